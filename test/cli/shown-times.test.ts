/** Output of each command after the wall clock was set: the same as before, with all times of the wall clock. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ALL_EVENTS, settingsOf } from '../../src/outbox/configured-subscriptions.ts'
import { queueIdOf, type MessageId } from '../../src/mail/message.ts'
import { DAY, HOUR, MINUTE } from '../../src/system/clock.ts'
import type { LiveStatus } from '../../src/queue/queue-status.ts'
import { BUSY, deferred, delivered, first, queue, settleOne } from '../conformance/mail.ts'
import { NOW, Operator, type Terminal } from '../support/operator.ts'
import { shiftedTimes } from '../support/shifted-times.ts'

const STEPS = [10 * 365 * DAY, -10 * 365 * DAY]

let operator: Operator
let waiting: string

const idOf = (id: MessageId): string => queueIdOf({ id, createdAt: NOW - HOUR })

beforeEach(async () => {
  operator = new Operator()
  const { clock } = operator
  waiting = await operator.own(async (store) => {
    const waits = await queue(store, { at: NOW - HOUR, leased: true, to: [{ address: 'ann@busy.example' }] })
    await settleOne(store, waits, deferred(first(waits), NOW + MINUTE), NOW - 30 * MINUTE)
    const gone = await queue(store, { at: NOW - 20 * MINUTE, leased: true, to: [{ address: 'eve@near.example' }] })
    await settleOne(store, gone, delivered(first(gone), NOW - 10 * MINUTE), NOW - 10 * MINUTE)
    const closed = { probeInterval: MINUTE, siteStatus: BUSY }
    await store.saveDestination({ ...closed, name: 'busy.example', deadUntil: NOW + 2 * MINUTE, suspension: null })
    const suspension = { by: 'root', until: NOW + HOUR, reason: 'maintenance' }
    await store.saveDestination({ ...closed, name: 'held.example', deadUntil: null, suspension })
    await store.records.audit.add({ at: NOW - MINUTE, who: 'root', action: 'hold', arguments: '', changed: 1 })
    const entry = { subject: 'sender', key: 'app@us.example', action: 'REJECT no', addedBy: 'root' } as const
    await store.records.access.set({ ...entry, addedAt: NOW - HOUR, expiresAt: NOW + HOUR })
    const token = { name: 'ci', role: 'viewer', content: false, destinations: null, hash: 'x', addedBy: 'root' } as const
    await store.records.tokens.add({ ...token, addedAt: NOW - HOUR, expiresAt: NOW + DAY, lastUsedAt: NOW - HOUR })
    const policy = { domain: 'sts.example', id: '1', mode: 'enforce', mx: ['mx.sts.example'], text: '', failure: 'it timed out' } as const
    await store.records.stsPolicies.keep({
      ...policy,
      fetchedAt: NOW - HOUR,
      expiresAt: NOW + DAY,
      usedAt: NOW - MINUTE,
      failedAt: NOW - MINUTE,
    })
    await store.outbox.subscribe({
      name: 'app',
      settings: { ...settingsOf(ALL_EVENTS), to: 'https://hooks.example/' },
      at: NOW - HOUR,
      by: 'root',
    })
    await store.upkeep.saveClock({ time: NOW, offset: 0, uptime: clock.uptime(), boot: clock.boot })
    return idOf(waits)
  })
})
afterEach(() => operator.leave())

const COMMANDS: readonly (readonly string[])[] = [
  ['queue', 'list'],
  ['queue', 'list', '--wide'],
  ['queue', 'list', '--tsv'],
  ['queue', 'list', '--json'],
  ['queue', 'list', '--sort', 'next', '--json'],
  ['queue', 'list', '--older-than', '30m', '--json'],
  ['queue', 'list', '--younger-than', '30m', '--count'],
  ['queue', 'show', 'ID'],
  ['queue', 'show', 'ID', '--json'],
  ['queue', 'cat', '-e', 'ID'],
  ['queue', 'causes'],
  ['queue', 'causes', '--json'],
  ['queue', 'shape'],
  ['queue', 'hold', '--older-than', '30m', '--dry-run'],
  ['queue', 'delete', '--younger-than', '30m', '--dry-run', '--json'],
  ['history', 'list'],
  ['history', 'list', '--tsv'],
  ['history', 'list', '--json', '--since', '11m'],
  ['audit'],
  ['audit', '--tsv'],
  ['audit', '--json'],
  ['destination', 'list'],
  ['destination', 'list', '--tsv'],
  ['destination', 'list', '--json'],
  ['destination', 'show', 'busy.example'],
  ['destination', 'show', 'held.example', '--json'],
  ['access', 'list'],
  ['access', 'list', '--json'],
  ['token', 'list'],
  ['token', 'list', '--json'],
  ['tls', 'list'],
  ['tls', 'show', 'sts.example'],
  ['tls', 'show', 'sts.example', '--json'],
  ['webhook', 'list'],
  ['webhook', 'list', '--json'],
  ['status'],
  ['status', '--json'],
  ['mailq'],
  ['postqueue', '-p'],
  ['postqueue', '-j'],
  ['postcat', '-q', 'ID'],
]

/** The state of a daemon, with times of its queue. */
const live = async (): Promise<LiveStatus> => ({
  version: '1.0.0',
  tally: {
    queues: [{ queue: 'deferred', messages: 1, recipients: 1, oldestArrival: NOW - HOUR }],
    trash: { messages: 0, recipients: 0 },
    traffic: { accepted: 2, delivered: 1, deferred: 1, bounced: 0, expired: 0, deleted: 0 },
    waiting: [{ destination: 'busy.example', recipients: 1, leased: 0, scheduled: 0 }],
  },
  rates: { last10s: NOTHING, last5min: NOTHING },
  destinations: [],
  recent: [],
})
const WITH_DAEMON: readonly (readonly [Terminal, readonly string[]])[] = [
  [{ status: live }, ['status']],
  [{ status: live }, ['status', '--json']],
]

const NOTHING = { accepted: 0, delivered: 0, deferred: 0, bounced: 0, expired: 0, deleted: 0 }

/** With a daemon and without. */
async function printed(): Promise<readonly string[]> {
  const texts: string[] = []
  for (const [terminal, [tool = '', ...rest]] of [...COMMANDS.map((one) => [{}, one] as const), ...WITH_DAEMON]) {
    const argv = rest.map((one) => (one === 'ID' ? waiting : one))
    const isPostfix = /^(?:mailq|post)/.test(tool)
    const { code, out, err } = await operator.run(isPostfix ? argv : [tool, ...argv], {
      ...terminal,
      calledAs: isPostfix ? tool : 'deferd',
    })
    texts.push(`${[tool, ...rest].join(' ')}: ${code} ${err}\n${out}`)
  }
  return texts
}

test('after the wall clock was set, every command prints what it did, with times of the wall clock', async () => {
  const before = await printed()
  expect(before.filter((text) => !/: 0 \n./.test(text))).toEqual([])
  for (const step of STEPS) {
    operator.clock.step(step)
    const year = new Date(NOW).getUTCFullYear()
    expect(await printed()).toEqual(before.map((text) => shiftedTimes(text, step, year)))
    operator.clock.step(-step)
  }
})
