import { afterEach, beforeEach, expect, test } from 'vitest'
import { recipientId } from '../../src/mail/message.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { deferred, delivered, first, ownerOf, queue, settleOne, UNKNOWN } from '../conformance/mail.ts'
import { NOW, Operator } from '../support/operator.ts'

const AT = NOW - 3_600_000
let operator: Operator
let gone: string

beforeEach(async () => {
  operator = new Operator()
  await operator.own(async (store) => {
    for (const [n, address] of ['ann@far.example', 'bob@far.example', `o'neil@slow.example`].entries()) {
      const id = await queue(store, { at: AT, leased: true, to: [{ address }] })
      const reply = n === 2 ? `450 4.2.1 it's full` : `421 4.7.0 too much mail from [192.0.2.${n}]`
      const last = { status: '4.7.0', reason: `host mx said: ${reply}`, reply, stage: 'rcpt' } as const
      await settleOne(store, id, deferred(first(id), NOW + 60_000, { last }), AT + 60_000)
    }
    const id = await queue(store, { at: AT, leased: true, to: [{ address: 'eve@far.example' }, { address: 'Zoe@far.example' }] })
    gone = formatQueueId(AT, id)
    const bounced = { recipient: recipientId(id, 1), state: 'bounced', at: AT + 2_000, attempts: 1, last: UNKNOWN } as const
    await store.settle({ owner: ownerOf(store), message: id, recipients: [delivered(first(id), AT + 1_000), bounced], attempts: [] })
  })
})
afterEach(() => operator.leave())

const jsonOf = (text: string) =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>)

test('causes are summed over destinations, one line each, with the options that select them', async () => {
  expect(await operator.says('queue', 'causes')).toBe(
    `  WAITING  DESTINATION           CAUSE
        2  far.example           421 4.7.0 too much mail from [·]
           --destination far.example --reply '421 4.7.0 too much mail from'
        1  slow.example          450 4.2.1 it's full
           --destination slow.example --reply '450 4.2.1 it'\\''s full'
More, by destination: deferd queue causes --details, or --destination NAME
`,
  )
  expect(jsonOf(await operator.says('queue', 'causes', '--json'))).toMatchObject([
    { destinations: 1, largest_destinations: ['far.example'], kind: 'failed', on_hold: false, recipients: 2 },
    { destinations: 1, largest_destinations: ['slow.example'], recipients: 1 },
  ])
})

test('mail on hold is counted apart from mail that waits', async () => {
  await operator.says('queue', 'hold', '--recipient', 'bob@far.example')
  expect(await operator.says('queue', 'causes')).toContain(
    `
   ON HOLD  DESTINATION           CAUSE
        1  far.example           421 4.7.0 too much mail from [·]
           --destination far.example --queue hold --reply '421 4.7.0 too much mail from'
`.replace('\n   ON', '\n  ON'),
  )
  const text = await operator.says('queue', 'causes', '--destination', 'far.example')
  expect(text).toContain('far.example: 1 recipient, 1 on hold, open\n')
  expect(text).toContain('        1  on hold: 421 4.7.0 too much mail from [·]\n')
  expect(text).toContain('           (these options also select other mail)\n')
})

test('causes of each destination are printed with the options that select them', async () => {
  const text = await operator.says('queue', 'causes', '--details')
  expect(text).toContain('far.example: 2 recipients, open\n        2  421 4.7.0 too much mail from [·]\n')
  expect(text).toContain(`           --destination far.example --reply '421 4.7.0 too much mail from'\n`)
  expect(text).toContain(`           --destination slow.example --reply '450 4.2.1 it'\\''s full'\n`)
  expect(await operator.says('queue', 'hold', '--destination', 'far.example', '--reply', '421 4.7.0 too much mail from')).toBe(
    '2 messages put on hold\n',
  )
})

test('causes as JSON', async () => {
  const [far] = jsonOf(await operator.says('queue', 'causes', '--json', '--destination', 'FAR.example'))
  expect(far).toEqual({
    destination: 'far.example',
    kind: 'failed',
    on_hold: false,
    cause: '421 4.7.0 too much mail from [{ip}]',
    recipients: 2,
    since: (AT + 60_000) / 1000,
    last_time: (AT + 60_000) / 1000,
    stage: 'rcpt',
    last_status: '4.7.0',
    class: 'rate',
    hint: null,
    example: {
      queue_id: expect.any(String) as string,
      recipient: 'ann@far.example',
      reply: '421 4.7.0 too much mail from [192.0.2.0]',
      reason: 'host mx said: 421 4.7.0 too much mail from [192.0.2.0]',
    },
    filter: { destination: 'far.example', queue: null, reply: '421 4.7.0 too much mail from' },
    filter_is_exact: true,
    options: `--destination far.example --reply '421 4.7.0 too much mail from'`,
  })
})

test('an empty queue has no causes', async () => {
  await operator.says('queue', 'delete', '--all')
  expect(await operator.says('queue', 'causes')).toBe('No mail waits.\n')
  expect(await operator.says('queue', 'causes', '--json')).toBe('')
})

test('mail that has left is listed by recipient and outcome', async () => {
  const row = (state: string, address: string, reply: string) =>
    expect.stringMatching(`^\\S+Z\t${gone}\t${state}\tapp@us.example\t${address}\t${reply}`) as string
  expect((await operator.says('history', 'list', '--tsv')).split('\n')).toEqual([
    row('delivered', 'eve@far.example', ''),
    row('bounced', 'Zoe@far.example', 'host mx.example said: 550 5.1.1'),
    '',
  ])
  expect((await operator.says('history', 'list', '--recipient', 'zoe@*', '--since', '2h', '--tsv')).split('\n')).toHaveLength(2)
  expect(await operator.says('history', 'list', '--recipient', 'eve@*', '--outcome', 'bounced')).toBe(
    'No message in the history matches.\n',
  )
  expect(await operator.says('history', 'list', '--since', '10m', '--tsv')).toBe('')
  const left = new Date(AT + 2_000).toISOString()
  const later = String((AT + 3_000) / 1_000)
  expect(await operator.says('history', 'list', '--left-after', left, '--left-before', later, '--tsv')).not.toBe('')
  expect(await operator.says('history', 'list', '--left-after', later, '--tsv')).toBe('')
  expect(await operator.says('history', 'list', '--left-before', left, '--tsv')).toBe('')
  expect((await operator.run(['history', 'list', '--left-before', '2h'])).code).toBe(64)
  expect((await operator.run(['history', 'list', '--left-after', later, '--left-before', left])).code).toBe(64)
  const narrow = await operator.run(['history', 'list', '--outcome', 'delivered'], { columns: 80 })
  expect(narrow.out).toMatch(/^LEFT .*\n2026-11-20 \S+ \w+ +delivered app@us\.example → eve@far\.example\n.*1 message\n$/s)
  expect((await operator.run(['history', 'list', '--outcome', 'lost'])).code).toBe(64)
})

test('mail that has left as JSON: one object per message, with the recipients that match', async () => {
  const [one] = jsonOf(await operator.says('history', 'list', '--json', '--outcome', 'bounced'))
  expect(one).toMatchObject({
    queue_id: gone,
    arrival_time: AT / 1000,
    left_time: AT / 1000 + 2,
    sender: 'app@us.example',
    recipients: [{ address: 'Zoe@far.example', destination: 'far.example', outcome: 'bounced', time: AT / 1000 + 2, attempts: 1 }],
  })
  expect(one?.['recipients']).toHaveLength(1)
})

test('the shape of the queue by the whole address of the sender', async () => {
  const table = await operator.says('queue', 'shape', '--senders', '--addresses')
  expect(table).toMatch(/^ +app@us\.example +3 /m)
  expect((await operator.run(['queue', 'shape', '--addresses', '--parents'])).code).toBe(64)
})
