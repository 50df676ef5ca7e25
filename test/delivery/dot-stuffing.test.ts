import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DotStuffing } from '../../src/delivery/dot-stuffing.ts'

/** The content on the wire, cut into chunks at the given places. */
function wire(content: Buffer, cuts: readonly number[] = [], limit = 0): string {
  const stuffing = new DotStuffing(limit)
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
])('%j goes out as %j', (content, expected) => {
  expect(wire(Buffer.from(content))).toBe(expected)
})

test.each([
  ['abcd\r\n', 'abcd\r\n.\r\n'],
  ['abcde\r\n', 'abcd\r\n e\r\n.\r\n'],
  ['abcdefghi\r\nx', 'abcd\r\n efg\r\n hi\r\nx\r\n.\r\n'],
  ['....\r\n', '.....\r\n.\r\n'],
  ['.....\r\n', '.....\r\n .\r\n.\r\n'],
  ['abcd\nabcd\rabcde', 'abcd\r\nabcd\r\nabcd\r\n e\r\n.\r\n'],
])('%j goes out as %j where lines have four octets at most', (content, expected) => {
  expect(wire(Buffer.from(content), [], 4)).toBe(expected)
  for (let cut = 1; cut < content.length; cut++) expect(wire(Buffer.from(content), [cut], 4)).toBe(expected)
})

const hostile = fc.array(fc.constantFrom('\r', '\n', '.', 'a', '\0'), { maxLength: 24 }).map((parts) => Buffer.from(parts.join('')))

test('S12: only the end of the content looks like its end, and lines end in CR LF only', () => {
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

test('the wire does not depend on how the content is cut', () => {
  fc.assert(
    fc.property(hostile, fc.array(fc.nat(), { maxLength: 5 }), (content, cuts) => {
      for (const limit of [0, 2, 5]) expect(wire(content, cuts, limit)).toBe(wire(content, [], limit))
    }),
    { numRuns: 2000 },
  )
})
