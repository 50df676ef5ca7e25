/** Lines of listings, which are written without the objects of messageJson, beside those. */
import { WallView } from '../../src/system/wall-view.ts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { messageJson } from '../../src/resources/message-json.ts'
import { listingLines } from '../../src/presentation/message-lines.ts'
import type { DestinationRecords } from '../../src/presentation/recipient-status.ts'
import { jsonLine } from '../../src/presentation/text.ts'
import type { ListedMessage, ListedRecipient } from '../../src/store/queue-reader.ts'
import type { DestinationRecord } from '../../src/store/queue-store.ts'

/** Mostly plain, and what JSON escapes, what a terminal must not get, or what takes more bytes than it has letters. */
const text = fc.oneof(
  { weight: 4, arbitrary: fc.emailAddress() },
  { weight: 4, arbitrary: fc.string() },
  { weight: 2, arbitrary: fc.string({ unit: 'binary' }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '',
      '"',
      '\\',
      '\u007f',
      '\u0085',
      'é',
      '€',
      '😀',
      '\ud800',
      'a\udc00',
      '\u2028',
      '\u202e',
      '\u0000\n\r\t\b',
      '\u3164',
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom('x'.repeat(20_000), `${'long reason '.repeat(100)}é`, '\\'.repeat(700)) },
)
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined })
const instant = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 }) },
  { weight: 1, arbitrary: fc.maxSafeNat() },
  { weight: 1, arbitrary: fc.constantFrom(0, 1, 10, 100, 999, 1_000, 1e14, 1e14 + 1, 99_999_999_999_999, -1, -1_500, 1.5, 0.001) },
)
const destination = fc.oneof(fc.constantFrom('far.example', 'dead.example', 'held.example'), text)
const status = fc.record({
  status: fc.oneof(fc.constantFrom('4.4.1', '4.7.0'), text),
  reason: text,
  stage: fc.constant('connect' as const),
})

const recipient: fc.Arbitrary<ListedRecipient> = fc.record({
  id: fc.nat(),
  address: text,
  destination,
  state: fc.constantFrom('waiting', 'leased', 'parked', 'delivered', 'bounced', 'expired', 'removed'),
  orcpt: maybe(
    fc.oneof(
      text,
      text.map((address) => `rfc822;${address}`),
    ),
  ),
  dueAt: instant,
  expiresAt: instant,
  steps: fc.nat(),
  attempts: fc.nat(),
  last: fc.option(status),
  node: maybe(text),
})

const listed: fc.Arbitrary<ListedMessage> = fc
  .record({
    message: fc.record({
      id: fc.integer({ min: 1, max: 2 ** 33 }),
      createdAt: instant,
      arrivedAt: instant,
      sender: text,
      size: fc.maxSafeNat(),
      contentId: fc.nat(),
      messageId: maybe(text),
      class: maybe(text),
      share: maybe(text),
      holdRequest: maybe(fc.constantFrom('for;3600', 'quota;app;3/1h;1;app@us.example', 'quota;"a\\;1/1h;1;')),
    }),
    queue: fc.constantFrom('incoming', 'active', 'deferred', 'scheduled', 'hold', 'corrupt', 'trash'),
    forcedExpire: fc.boolean(),
    recipients: fc.array(recipient, { maxLength: 4 }),
  })
  .map((one) => ({ ...one, recipientCount: one.recipients.length }))

const record: fc.Arbitrary<Omit<DestinationRecord, 'name'>> = fc.record({
  deadUntil: fc.option(instant),
  probeInterval: fc.constant(null),
  suspension: fc.option(fc.record({ by: text, until: fc.option(instant), reason: fc.option(text) })),
  siteStatus: fc.option(status),
})
const records: fc.Arbitrary<DestinationRecords> = fc.tuple(record, record).map(
  ([dead, held]) =>
    new Map(
      [
        { name: 'dead.example', ...dead },
        { name: 'held.example', ...held },
      ].map((one) => [one.name, one]),
    ),
)

const WALL = new WallView(() => 0, 12_345)

test('the lines of a page are those of its JSON objects', () => {
  fc.assert(
    fc.property(fc.array(listed, { maxLength: 12 }), records, (page, known) => {
      const expected = page.map((one) => jsonLine(messageJson(one, known, WALL))).join('')
      expect(Buffer.from(listingLines(page, known, WALL)).toString()).toBe(expected)
    }),
    { numRuns: 200 },
  )
})

test('a buffer of lines has no other bytes, so that it is moved between threads', () => {
  const [one] = fc.sample(listed, { numRuns: 1, seed: 1 })
  const page = Array.from({ length: 200 }, () => one!)
  const lines = listingLines(page, new Map(), WALL)
  expect(lines.byteOffset).toBe(0)
  expect(lines.buffer.byteLength - lines.byteLength).toBeLessThanOrEqual(4)
})
