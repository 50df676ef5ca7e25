import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ContentEncoding } from '../../src/mail/content-encoding.ts'

/** The content on the wire, cut into chunks at the given places. */
function wire(content: Buffer, cuts: readonly number[] = [], limit = 0): string {
  const stuffing = new ContentEncoding(limit)
  const places = [0, ...cuts.map((cut) => cut % (content.length + 1)).toSorted((a, b) => a - b), content.length]
  const chunks = places.slice(1).map((end, i) => content.subarray(places[i], end))
  return Buffer.concat(chunks.map((chunk) => stuffing.encode(chunk))).toString('latin1') + stuffing.end()
}

test.each([
  ['a\r\n', 'a\r\n.\r\n'],
  ['a', 'a\r\n.\r\n'],
  ['', '.\r\n'],
  ['.\r\n', '..\r\n.\r\n'],
  ['a\r\n.b\r\n', 'a\r\n..b\r\n.\r\n'],
  ['a\n.\nb', 'a\r\n..\r\nb\r\n.\r\n'],
  ['a\r.\rb', 'a\r\n..\r\nb\r\n.\r\n'],
  ['a\r', 'a\r\n.\r\n'],
  ['a\r\r\nb\r\n', 'a\r\n\r\nb\r\n.\r\n'],
])('%j is sent as %j', (content, expected) => {
  expect(wire(Buffer.from(content))).toBe(expected)
})

test.each([
  ['abcd\r\n', 'abcd\r\n.\r\n'],
  ['abcde\r\n', 'abcd\r\n e\r\n.\r\n'],
  ['abcdefghi\r\nx', 'abcd\r\n efg\r\n hi\r\nx\r\n.\r\n'],
  ['....\r\n', '.....\r\n.\r\n'],
  ['.....\r\n', '.....\r\n .\r\n.\r\n'],
  ['abcd\nabcd\rabcde', 'abcd\r\nabcd\r\nabcd\r\n e\r\n.\r\n'],
])('%j is sent as %j with a line limit of four octets', (content, expected) => {
  expect(wire(Buffer.from(content), [], 4)).toBe(expected)
  for (let cut = 1; cut < content.length; cut++) expect(wire(Buffer.from(content), [cut], 4)).toBe(expected)
})

/** The content as sent with BDAT. */
function chunked(content: Buffer, cut: number, limit: number): string {
  const encoding = new ContentEncoding(limit, 'BDAT')
  const chunks = [content.subarray(0, cut), content.subarray(cut)].map((chunk) => encoding.encode(chunk))
  return Buffer.concat(chunks).toString('latin1') + encoding.lineEnd()
}

const hostile = fc.array(fc.constantFrom('\r', '\n', '.', 'a', '\0'), { maxLength: 24 }).map((parts) => Buffer.from(parts.join('')))

test('the end-of-data sequence occurs once, at the end, and lines end in CR LF only', () => {
  fc.assert(
    fc.property(hostile, (content) => {
      for (const limit of [0, 2, 5]) {
        const sent = wire(content, [], limit)
        expect(`\r\n${sent}`.indexOf('\r\n.\r\n')).toBe(sent.length - 3)
        expect(sent).not.toMatch(/\r(?!\n)|(?<!\r)\n/)
        // The dot that is added does not count.
        const lengths = sent.split('\r\n').map((line) => line.replace(/^\.(?=.)/s, '').length)
        if (limit > 0) expect(Math.max(...lengths)).toBeLessThanOrEqual(limit)
      }
    }),
    { numRuns: 2000 },
  )
})

test('BDAT sends the same lines as DATA, without the doubled dots', () => {
  fc.assert(
    fc.property(hostile, fc.nat(24), (content, cut) => {
      for (const limit of [0, 2, 5]) {
        const lines = `\r\n${wire(content, [], limit)}`.replaceAll('\r\n.', '\r\n').slice(2, -2)
        expect(chunked(content, cut, limit)).toBe(lines)
      }
    }),
    { numRuns: 2000 },
  )
})

test('the output does not depend on the chunks of the content', () => {
  fc.assert(
    fc.property(hostile, fc.array(fc.nat(), { maxLength: 5 }), (content, cuts) => {
      for (const limit of [0, 2, 5]) expect(wire(content, cuts, limit)).toBe(wire(content, [], limit))
    }),
    { numRuns: 2000 },
  )
})
