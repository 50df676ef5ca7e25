/** `deferd check` of the limits of the queue, as a running daemon counts them. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { LimitState } from '../../src/queue/intake/queue-limits.ts'
import type { LiveStatus } from '../../src/queue/queue-status.ts'
import { EMPTY_TALLY } from '../../src/store/counts/queue-tally.ts'
import { NO_TRAFFIC } from '../../src/store/counts/traffic.ts'
import { Operator } from '../support/operator.ts'

let operator: Operator
beforeEach(() => {
  operator = new Operator()
})
afterEach(() => operator.leave())

const RUNNING: LiveStatus = {
  version: '1.0',
  tally: EMPTY_TALLY,
  rates: { last10s: NO_TRAFFIC, last5min: NO_TRAFFIC },
  destinations: [],
  recent: [],
}

async function checked(limits: readonly LimitState[] | null, settings = ['queue_message_limit=1000', 'queue_share_size_limit=500']) {
  const liveStatus = async () => (limits === null ? null : { ...RUNNING, limits })
  const { code, out } = await operator.run(['check', ...settings.flatMap((one) => ['-o', one])], { access: { liveStatus } })
  expect(code).toBe(0)
  return out.split('\n').filter((line) => line.includes(' limits '))
}

const ofQueue = (used: number): LimitState => ({ share: null, measure: 'messages', used, limit: 1_000, refusedSince: null })
const ofShare = (used: number, refusedSince: number | null): LimitState => ({
  share: 'app',
  measure: 'bytes',
  used,
  limit: 500,
  refusedSince,
})

test('limits below 80 % are named; without a daemon, and without limits, there is no line', async () => {
  expect(await checked([ofQueue(799), ofShare(0, null)])).toEqual([
    'ok      limits                     799 of 1,000 messages in the queue; 0 of 500 bytes of the share app in the queue',
  ])
  expect(await checked(null)).toEqual([])
  expect(await checked([], [])).toEqual([])
})

test('from 80 % on there is a warning, with those that refuse mail first', async () => {
  expect(await checked([ofQueue(800), ofShare(0, null)])).toEqual([
    'warning limits                     800 of 1,000 messages in the queue; see deferd queue causes',
  ])
  expect(await checked([ofQueue(990), ofShare(480, 1)])).toEqual([
    'warning limits                     480 of 500 bytes of the share app in the queue: mail is refused; 990 of 1,000 messages in the queue; see deferd queue causes',
  ])
})

test('a daemon that does not answer is a warning', async () => {
  const access = { liveStatus: () => Promise.reject(new Error('the daemon has not answered for 30 seconds')) }
  const { code, out } = await operator.run(['check', '-o', 'queue_message_limit=9'], { access })
  expect(code).toBe(0)
  expect(out).toContain('the use of the limits is not known: the daemon has not answered for 30 seconds')
})
