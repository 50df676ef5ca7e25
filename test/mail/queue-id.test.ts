import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatQueueId, parseQueueId } from '../../src/mail/queue-id.ts'

test('a queue id has Postfix’s long form', () => {
  // Postfix's own example has microseconds 123456 and inode 987654; ours are whole milliseconds.
  expect(formatQueueId(1_700_000_000_123, 987_654)).toMatch(/^4SVLCh0[0-9B-Zb-z]{3}z7Qhl$/)
})

test('a queue id encodes its time and its row', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1_500_000_000_000, max: 9_000_000_000_000 }), fc.integer({ min: 1, max: 2 ** 36 }), (createdAt, row) => {
      expect(parseQueueId(formatQueueId(createdAt, row))).toEqual({ createdAt, row })
    }),
  )
})

test('queue ids sort by time', () => {
  const at = fc.integer({ min: 1_500_000_000_000, max: 9_000_000_000_000 })
  fc.assert(
    fc.property(at, at, (a, b) => {
      fc.pre(a < b)
      expect(formatQueueId(a, 7) < formatQueueId(b, 7)).toBe(true)
    }),
  )
})

test.each(['', 'z', 'nonsense', '../etc/passwd', '4SVLCh0sf8z', '4SVLCh0sf8z0', '4SVLCh0sf8zA', '\u0000'])(
  '%j is not a queue id',
  (text) => {
    expect(parseQueueId(text)).toBeUndefined()
  },
)
