import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { PostfixMessage } from '../../../src/import/spool/postfix-message.ts'
import { readQueueFile } from '../../../src/import/spool/queue-file.ts'
import { UnusableQueueFile } from '../../../src/import/spool/queue-records.ts'
import { queueFile, record } from '../../support/queue-file-builder.ts'

const read = (file: Buffer) => readQueueFile(file, 'queued')

test('a file of a queue has envelope, DSN parameters and content', () => {
  const envelope = [
    record('A', 'create_time=1795365168'),
    record('A', 'envelope_id=QQ+314'),
    record('A', 'ret_flags=2'),
    record('S', 'ann@a.test'),
    record('A', 'notify_flags=1'),
    record('D', 'done@b.test'),
    record('A', 'notify_flags=10'),
    record('A', 'dsn_orig_rcpt=rfc822;Bob+tag@b.test'),
    record('O', 'bob+tag@b.test'),
    record('R', 'john doe@b.test'),
    record('R', 'plain@b.test'),
  ]
  const content = [record('N', 'Subject: a'), record('N'), record('L', 'x'.repeat(300)), record('N', 'y'), record('N', '.dot')]
  const message = read(queueFile({ envelope, content, smtputf8: 3 }))
  expect(message).toMatchObject({
    arrival: '1795365167.442771',
    arrivedAt: 1_795_365_167_442,
    createdAt: 1_795_365_168_000,
    sender: 'ann@a.test',
    envid: 'QQ+314',
    ret: 'hdrs',
    smtputf8: true,
    isWarned: false,
  })
  expect(message.recipients).toMatchObject([
    { address: 'done@b.test', isDone: true, notify: 'never', orcpt: undefined },
    { address: 'john doe@b.test', isDone: false, notify: ['success', 'delay'], orcpt: 'rfc822;Bob+tag@b.test' },
    { address: 'plain@b.test', isDone: false, notify: undefined, orcpt: undefined },
  ])
  expect(message.content.toString()).toBe(`Subject: a\r\n\r\n${'x'.repeat(300)}y\r\n.dot\r\n`)
})

test('a file of the maildrop has no size record, and may have the name of the user', () => {
  const file = Buffer.concat([
    record('T', '1795365171 5'),
    record('F', 'Jörg'),
    record('S', 'root'),
    record('R', 'bob'),
    record('M'),
    record('L', 'no end'),
    record('X'),
    record('E'),
  ])
  expect(readQueueFile(file, 'submission')).toMatchObject({
    arrival: '1795365171.000005',
    fullName: 'Jörg',
    sender: 'root',
    content: Buffer.from('no end\r\n'),
  })
  expect(() => read(file)).toThrow('it has no size record')
})

test('pointers continue elsewhere, padding is skipped, and recipients may follow the content', () => {
  const head = [record('T', '1795365167 0'), record('S', 'a@a.test'), record('R', 'b@b.test'), record('p', '0'.padStart(15)), record('M')]
  const line = [record('N', 'one'), record('w', 'xx')]
  const offset = Buffer.concat([...head, ...line, record('p', ''.padStart(15)), record('N', 'removed')]).length
  const file = Buffer.concat([
    ...head,
    ...line,
    record('p', String(offset).padStart(15)),
    record('N', 'removed'),
    record('N', 'two'),
    record('X'),
    record('R', 'c@c.test'),
    record('E'),
  ])
  const message = readQueueFile(file, 'submission')
  expect(message.content.toString()).toBe('one\r\ntwo\r\n')
  expect(message.recipients.map(({ address }) => address)).toEqual(['b@b.test', 'c@c.test'])
})

test('REDIRECT replaces the recipients that are left, and a cleared warning time is a sent warning', () => {
  const envelope = [
    record('K', '1795379567'),
    record('S', ''),
    record('D', 'a@a.test'),
    record('R', 'b@b.test'),
    record('R', 'c@c.test'),
    record('>', 'all@d.test'),
  ]
  const { recipients, sender, isWarned } = read(queueFile({ envelope }))
  expect([sender, isWarned]).toEqual(['', true])
  expect(recipients.map(({ address, isDone }) => [address, isDone])).toEqual([
    ['a@a.test', true],
    ['all@d.test', false],
  ])
})

describe('a file is refused when', () => {
  const sender = record('S', 'a@a.test')
  const cases: readonly (readonly [string, Buffer, string])[] = [
    ['it is empty', Buffer.alloc(0), 'ends without an end record'],
    ['it waits for a content filter', queueFile({ envelope: [sender, record('L', 'smtp:[127.0.0.1]:10025')] }), 'content filter'],
    ['it asks for VERP', queueFile({ envelope: [sender, record('V', '+=')] }), 'VERP'],
    ['a record has an unknown type', queueFile({ envelope: [sender, record('Z', 'x')] }), 'type "Z"'],
    ['an attribute has no name', queueFile({ envelope: [sender, record('A', 'x')] }), 'no name'],
    ['it has two senders', queueFile({ envelope: [sender, sender] }), 'two records of the type "S"'],
    ['it has no sender', queueFile({ envelope: [record('R', 'b@b.test')] }), 'no sender'],
    ['a line has a line end', queueFile({ content: [record('N', 'a\nb')] }), 'contains a line end'],
    ['NOTIFY contradicts itself', queueFile({ envelope: [record('A', 'notify_flags=3'), sender] }), 'NOTIFY'],
    ['its time is no time', queueFile({ arrival: 'soon' }), 'time of arrival'],
    ['an address has a control character', queueFile({ envelope: [record('S', 'a\rb@a.test')] }), 'control characters'],
    ['an address is not UTF-8', queueFile({ envelope: [record('S', Buffer.from([0xff]))] }), 'not UTF-8'],
    ['its end is missing', queueFile().subarray(0, -2), 'ends without an end record'],
    ['pointers form a loop', Buffer.concat([record('T', '1 1'), record('p', '0'.padStart(15, '0').replace(/0$/, '5'))]), 'form a loop'],
    ['a line is padding', queueFile({ content: [record('N', 'a'), record('w', 'b')] }), 'type "w"'],
  ]
  test.each(cases)('%s', (_, file, why) => {
    expect(() => read(file)).toThrow(why)
  })
})

const line = fc.string({ unit: 'binary-ascii', maxLength: 40 }).map((text) => text.replaceAll('\n', ' '))
const address = fc.stringMatching(/^[a-z]{1,8}@[a-z]{1,8}\.test$/)
const sound = fc
  .record({
    sender: fc.oneof(fc.constant(''), address),
    recipients: fc.array(fc.tuple(fc.constantFrom('R', 'D'), address), { minLength: 1, maxLength: 6 }),
    lines: fc.array(line, { maxLength: 12 }),
  })
  .map((parts) => ({
    ...parts,
    file: queueFile({
      envelope: [record('S', parts.sender), ...parts.recipients.map(([type, one]) => record(type, one))],
      content: parts.lines.map((one) => record('N', one)),
    }),
  }))

test('every sound file is read as it was written', () => {
  fc.assert(
    fc.property(sound, ({ sender, recipients, lines, file }) => {
      const message = read(file)
      expect(message.sender).toBe(sender)
      expect(message.recipients.map((one) => [one.isDone ? 'D' : 'R', one.address])).toEqual(recipients)
      expect(message.content.toString('latin1')).toBe(lines.map((one) => `${one}\r\n`).join(''))
    }),
  )
})

/** The message; undefined for a file that is refused. Any other error fails the test. */
function attempt(file: Buffer): PostfixMessage | undefined {
  try {
    return read(file)
  } catch (error) {
    if (error instanceof UnusableQueueFile) return undefined
    throw error
  }
}

test('a truncated file is refused', () => {
  fc.assert(
    fc.property(sound, fc.nat(), ({ file }, at) => {
      expect(attempt(file.subarray(0, at % file.length))).toBeUndefined()
    }),
    { numRuns: 300 },
  )
})

const SLASH = '/'.charCodeAt(0)

test('a file with a changed byte is refused, or has the same numbers of recipients and of bytes', () => {
  fc.assert(
    fc.property(sound, fc.nat(), fc.integer({ min: 1, max: 255 }), ({ file, recipients }, at, change) => {
      const damaged = Buffer.from(file)
      damaged[at % file.length]! ^= change
      const message = attempt(damaged)
      if (message === undefined) return
      // A recipient whose type becomes "/" is one that a milter has canceled.
      const mayBeCanceled =
        'RD'.includes(file.toString('latin1', at % file.length, (at % file.length) + 1)) && damaged[at % file.length] === SLASH
      expect(recipients.length - message.recipients.length).toBeOneOf(mayBeCanceled ? [0, 1] : [0])
      // A byte of data may have changed, or one line may have joined the next one.
      expect(Math.abs(message.content.length - read(file).content.length)).toBeLessThanOrEqual(2)
    }),
    { numRuns: 2000 },
  )
})

test('a recipient that a milter has canceled is left out', () => {
  const file = queueFile({ envelope: [record('S', ''), record('R', 'a@a.test'), record('R', 'b@b.test')] })
  file[file.indexOf('R')] = SLASH
  expect(read(file).recipients.map(({ address: one }) => one)).toEqual(['b@b.test'])
})

test('any bytes are refused or read, and never end the command', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      attempt(Buffer.from(bytes))
    }),
    { numRuns: 1000 },
  )
})
