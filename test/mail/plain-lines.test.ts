import fc from 'fast-check'
import { expect, test } from 'vitest'
import { NO_LIMIT, plainLines, type LineRules, type LineState } from '../../src/mail/plain-lines.ts'

const START: LineState = { last: 0x0a, column: 0 }
const DOTTED: LineRules = { limit: NO_LIMIT, dots: false }

const plain = (text: string, rules = DOTTED, state = START) => plainLines(Buffer.from(text, 'latin1'), 0, state, rules)

test.each([
  ['', true, 0],
  ['a', true, 0],
  ['a\r\n', true, 3],
  ['a\r\nb', true, 3],
  ['a\r\n\r\n\r\n', true, 7],
  ['a\r\nb\r', true, 3],
  ['a\r\nb.c\r\n', true, 8],
  ['a\r\n.b\r\n', false, 3],
  ['.', false, 0],
  ['abc\r\nd\ne\r\n', false, 5],
  ['abc\r\nd\re\r\n', false, 5],
  ['a\r\n\nb', false, 3],
  ['a\r\r\n', false, 0],
  ['\t\0\x0b\x0d\x0a\x80\xff\r\n', true, 9],
])('%j: %j, last line at %i', (text, isPlain, lineStart) => {
  expect(plain(text)).toEqual({ isPlain, lineStart })
})

test('a line that began before counts with its octets', () => {
  expect(plain('cd\r\n.', { limit: 4, dots: true }, { last: 0x62, column: 2 })).toEqual({ isPlain: true, lineStart: 4 })
  expect(plain('cde\r\n', { limit: 4, dots: true }, { last: 0x62, column: 2 })).toEqual({ isPlain: false, lineStart: -2 })
  expect(plain('.d\r\n', DOTTED, { last: 0x62, column: 2 })).toEqual({ isPlain: true, lineStart: 4 })
  expect(plain('\nd', DOTTED, { last: 0x0d, column: 0 })).toEqual({ isPlain: true, lineStart: 1 })
  expect(plain('d\n', DOTTED, { last: 0x0d, column: 0 })).toEqual({ isPlain: false, lineStart: 0 })
})

/** The rules again, octet by octet. */
function byOctets(bytes: Uint8Array, from: number, { last, column }: LineState, { limit, dots }: LineRules) {
  let lineStart = from - column
  let before = last
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]
    const breaks =
      (before === 0x0d && byte !== 0x0a) ||
      (byte === 0x0a && before !== 0x0d) ||
      (byte === 0x2e && at === lineStart && !dots) ||
      (byte === 0x0d && at + 1 < bytes.length && (at - lineStart > limit || bytes[at + 1] !== 0x0a))
    if (breaks) return { isPlain: false, lineStart }
    if (byte === 0x0a) lineStart = at + 1
    before = byte ?? 0
  }
  return { isPlain: bytes.length - lineStart <= limit, lineStart }
}

test('agrees with a reading octet by octet, wherever the octets lie', () => {
  const parts = fc.constantFrom('\r\n', '\r\n', '\r\n', 'abcdefg', 'abcdefghijkl', 'x', 'yz', '.', '\r', '\n', '\t', '\x0e', '\x80\xff')
  const state = fc.constantFrom<LineState>(START, { last: 0x61, column: 3 }, { last: 0x0d, column: 0 })
  const rules = fc.record({ limit: fc.constantFrom(NO_LIMIT, 12, 30), dots: fc.boolean() })
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 16 }), fc.nat(9), fc.nat(3), state, rules, (texts, offset, from, before, rule) => {
      const bytes = Buffer.from(`${'#'.repeat(offset)}${texts.join('')}`, 'latin1').subarray(offset)
      const start = Math.min(from, bytes.length)
      expect(plainLines(bytes, start, before, rule)).toEqual(byOctets(bytes, start, before, rule))
    }),
    { numRuns: 3000 },
  )
})
