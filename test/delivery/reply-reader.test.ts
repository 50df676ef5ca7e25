import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAX_REPLY, ReplyReader, type Reading } from '../../src/delivery/reply-reader.ts'

/** Everything that is read, up to the first protocol error. */
function read(chunks: readonly Buffer[]): Reading[] {
  const reader = new ReplyReader()
  const readings: Reading[] = []
  for (const chunk of chunks) {
    reader.feed(chunk)
    for (let reading = reader.next(); reading !== undefined; reading = reader.next()) {
      readings.push(reading)
      if (reading.kind === 'protocol-error') return readings
    }
  }
  return readings
}

const replies = (text: string) => read([Buffer.from(text, 'utf8')]).map((one) => (one.kind === 'reply' ? one.reply : one))

describe('replies', () => {
  test.each([
    ['250 2.1.0 Ok\r\n', { code: 250, status: '2.1.0', text: 'Ok', raw: '250 2.1.0 Ok' }],
    ['250\r\n', { code: 250, text: '', raw: '250' }],
    ['250 \r\n', { code: 250, text: '', raw: '250 ' }],
    ['550-5.1.1 no such\r\n550 5.1.1 user\r\n', { code: 550, status: '5.1.1', text: 'user', raw: '550-5.1.1 no such 550 5.1.1 user' }],
    ['450 4.2.0 später\n', { code: 450, status: '4.2.0', text: 'später' }],
    ['550 \u001b[2Jred\u0000\r\n', { code: 550, raw: '550 ?[2Jred?' }],
  ])('%j', (text, reply) => {
    expect(replies(text)).toEqual([expect.objectContaining(reply)])
  })

  test('text that is not UTF-8 is decoded as latin1', () => {
    expect(read([Buffer.from('550 gr\xfc\xdfe\r\n', 'latin1')])).toEqual([
      expect.objectContaining({ reply: expect.objectContaining({ raw: '550 grüße' }) as unknown }),
    ])
  })

  test('an unterminated line is not a reply', () => {
    expect(replies('250 Ok')).toEqual([])
    expect(replies('250-Ok\r\n250 more')).toEqual([])
  })
})

describe('invalid replies', () => {
  test.each([
    '\r\n',
    '2\r\n',
    '25x ok\r\n',
    '2500 ok\r\n',
    '199 ok\r\n',
    '600 ok\r\n',
    '999\r\n',
    '000 ok\r\n',
    '250_ok\r\n',
    ' 250 ok\r\n',
    '250-a\r\n251 b\r\n',
  ])('%j', (text) => {
    expect(replies(text)).toEqual([expect.objectContaining({ kind: 'protocol-error' })])
  })

  test('a reply of more than 64 KiB, in one line or many', () => {
    expect(replies(`250 ${'x'.repeat(MAX_REPLY)}`)).toEqual([expect.objectContaining({ kind: 'protocol-error' })])
    expect(replies('250-x\r\n'.repeat(MAX_REPLY / 7 + 1))).toEqual([expect.objectContaining({ kind: 'protocol-error' })])
  })

  test('64 KiB exactly and many small replies are accepted', () => {
    expect(replies(`250 ${'x'.repeat(MAX_REPLY - 6)}\r\n`)).toHaveLength(1)
    expect(replies('250 x\r\n'.repeat(MAX_REPLY))).toHaveLength(MAX_REPLY)
  })
})

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)),
  fc
    .array(fc.constantFrom('250', '354', '5', '50 ', '550-', '421', ' ', '-', '\r', '\n', '\r\n', '4.7.1 x', 'é'), { maxLength: 16 })
    .map((parts) => Buffer.from(parts.join(''))),
)

test('the replies do not depend on segmentation', () => {
  fc.assert(
    fc.property(bytes, fc.array(fc.nat(), { maxLength: 8 }), (input, cuts) => {
      const places = [0, ...cuts.map((cut) => cut % (input.length + 1)).toSorted((a, b) => a - b), input.length]
      const chunks = places.slice(1).map((end, i) => input.subarray(places[i], end))
      expect(read(chunks)).toEqual(read([input]))
    }),
    { numRuns: 3000 },
  )
})
