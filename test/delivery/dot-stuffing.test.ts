import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DotStuffing } from '../../src/delivery/dot-stuffing.ts'

/** The content on the wire, cut into chunks at the given places. */
function wire(content: Buffer, cuts: readonly number[] = []): string {
  const stuffing = new DotStuffing()
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

const hostile = fc.array(fc.constantFrom('\r', '\n', '.', 'a', '\0'), { maxLength: 24 }).map((parts) => Buffer.from(parts.join('')))

test('only the end of the content looks like its end, and lines end in CR LF only', () => {
  fc.assert(
    fc.property(hostile, (content) => {
      const sent = wire(content)
      expect(`\r\n${sent}`.indexOf('\r\n.\r\n')).toBe(sent.length - 3)
      expect(sent).not.toMatch(/\r(?!\n)|(?<!\r)\n/)
    }),
    { numRuns: 2000 },
  )
})

test('the wire does not depend on how the content is cut', () => {
  fc.assert(
    fc.property(hostile, fc.array(fc.nat(), { maxLength: 5 }), (content, cuts) => {
      expect(wire(content, cuts)).toBe(wire(content))
    }),
    { numRuns: 2000 },
  )
})
