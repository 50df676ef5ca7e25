import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { attempt, bounced, deferred, first, queue, settleOne } from '../conformance/mail.ts'
import { NOW, Operator, type Ran, withoutColours } from '../support/operator.ts'

/** Escape sequences, line ends, C1 controls, bidirectional overrides: everything a stranger would like a terminal to see. */
const HOSTILE = 'x\u001b[2J\u001b]0;owned\u0007\r\n\t\u0000\u0008\u007f\u009b31m\u202e\u2066\u2028y'

// Line ends are written by deferd itself.
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/

let operator: Operator
const ids: Record<string, string> = {}

beforeEach(async () => {
  operator = new Operator()
  const last = { status: '4.2.1', reason: HOSTILE, reply: HOSTILE, remoteMta: HOSTILE, stage: 'rcpt' as const }
  await operator.own(async (store) => {
    const hostile = {
      at: NOW - 5000,
      sender: `a${HOSTILE}@us.example`,
      to: [{ address: `b${HOSTILE}@far.example`, destination: HOSTILE, orcpt: `rfc822;${HOSTILE}` }],
      content: [Buffer.from(`Subject: ${HOSTILE}\r\n\r\n${HOSTILE}\r\n`)],
    }
    const waiting = await queue(store, { ...hostile, leased: true })
    await store.settle({
      owner: store.leaseTerms().owner,
      message: waiting,
      recipients: [deferred(first(waiting), NOW + 5000, { last })],
      attempts: [{ ...attempt(first(waiting), NOW - 1000, 'deferred', last), relay: HOSTILE }],
    })
    const gone = await queue(store, { ...hostile, leased: true })
    await settleOne(store, gone, { ...bounced(first(gone), NOW), last }, NOW)
    const held = await queue(store, { ...hostile, hold: true })
    await store.saveDestination({
      name: HOSTILE,
      deadUntil: NOW + 1,
      probeInterval: 1,
      suspension: { by: HOSTILE, until: null, reason: null },
      siteStatus: last,
    })
    await store.records.audit.add({ at: NOW, who: HOSTILE, action: HOSTILE, arguments: HOSTILE, changed: 1 })
    for (const [name, message] of Object.entries({ waiting, gone, held })) ids[name] = formatQueueId(NOW - 5000, message)
  })
})
afterEach(() => operator.leave())

const COMMANDS: readonly (readonly string[])[] = [
  ['queue', 'list'],
  ['queue', 'list', '--json'],
  ['queue', 'show', 'waiting'],
  ['queue', 'show', 'waiting', '--json'],
  ['queue', 'show', 'gone'],
  ['queue', 'show', 'held'],
  ['queue', 'cat', 'waiting'],
  ['queue', 'cat', '-h', 'waiting'],
  ['queue', 'cat', '-e', 'waiting'],
  ['queue', 'shape'],
  ['queue', 'hold', '--all', '--dry-run'],
  ['queue', 'hold', HOSTILE],
  ['queue', 'show', HOSTILE],
  ['queue', HOSTILE],
  ['queue', 'list', '--queue', HOSTILE],
  ['destination', 'list'],
  ['destination', 'list', '--json'],
  ['destination', 'show', HOSTILE],
  ['destination', 'suspend', HOSTILE],
  ['audit'],
  ['audit', '--json'],
  ['config', '-o', `mail_name=${HOSTILE}`],
  ['config', '--json', '-o', `mail_name=${HOSTILE}`],
  ['config', HOSTILE],
  ['config', '-o', `${HOSTILE}=1`],
  ['config', '-o', `minimal_backoff_time=${HOSTILE}`],
  ['config', '--config', HOSTILE],
  [HOSTILE],
  ['mailq'],
  ['postqueue', '-p'],
  ['postqueue', '-j'],
  ['postqueue', '-i', HOSTILE],
  ['postsuper', '-d', HOSTILE],
  ['postsuper', '-h', 'ALL', HOSTILE],
  ['postcat', '-q', 'waiting'],
  ['postcat', '-q', HOSTILE],
  ['qshape', 'deferred'],
  ['qshape', '-s', 'deferred', 'hold'],
  ['qshape', HOSTILE],
  ['sendmail', '-b', HOSTILE],
]

describe('on a terminal, hostile text prints no control character', () => {
  test.each(COMMANDS.map((argv) => ({ argv, name: argv.map((word) => (word.includes(HOSTILE) ? '…' : word)).join(' ') })))(
    '$name',
    async ({ argv }) => {
      const named = argv.map((word) => ids[word] ?? word)
      const { out, err }: Ran = await operator.run(named, { columns: 400 })
      expect((out + err).length).toBeGreaterThan(0)
      expect(out + err).not.toMatch(CONTROL)
      const coloured = await operator.run(named, { columns: 400, env: { NO_COLOR: '' } })
      expect(withoutColours(coloured.out)).toBe(out)
    },
  )
})

test('in tab-separated values only the content is unchanged, and fields contain no tabs', async () => {
  const [line = ''] = (await operator.says('queue', 'list', '--tsv')).split('\n')
  expect(line.split('\t')).toHaveLength(9)
  expect(line.replaceAll('\t', '')).not.toMatch(CONTROL)
  expect(await operator.says('queue', 'cat', ids['waiting'] ?? '')).toContain(HOSTILE)
})

test('JSON has the original text, escaped', async () => {
  const [line = ''] = (await operator.says('queue', 'list', '--json')).split('\n')
  expect(line).not.toMatch(CONTROL)
  expect(JSON.parse(line)).toMatchObject({ sender: `a${HOSTILE}@us.example`, recipients: [{ address: `b${HOSTILE}@far.example` }] })
})
