import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ContentUnits, type ContentUnit } from '../../src/checks/content-units.ts'
import { cutAt, segmentations } from '../support/segments.ts'

interface Seen {
  readonly units: readonly string[]
  readonly bytes: string
}

/** The units of a content in a short form, and their bytes together. */
function read(packets: readonly Buffer[], limit = 2000): Seen {
  const units = new ContentUnits(limit)
  const seen: ContentUnit[] = []
  for (const packet of packets) seen.push(...units.read(packet))
  seen.push(...units.end())
  const bytes = seen.map((unit) => (unit.kind === 'body' ? '\r\n' : unit.bytes.toString('latin1'))).join('')
  return { bytes, units: seen.map(shortOf) }
}

function shortOf(unit: ContentUnit): string {
  if (unit.kind === 'body') return 'body'
  return unit.kind === 'line' ? `${unit.offset} ${unit.text}` : `${unit.place === 'header' ? '' : `${unit.place} `}field ${unit.text}`
}

const MESSAGE = [
  'Subject : a',
  '\tb',
  'Content-Type: multipart/mixed;',
  ' boundary="x y"',
  '',
  'preamble',
  '--x y',
  'Content-Type: message/rfc822',
  'X-Inner: 1',
  '',
  'Subject: attached',
  'Content-Type: multipart/digest; boundary=z',
  '',
  '--z',
  '',
  'Subject: of a digest',
  '',
  'text',
  '--z--',
  '--x y',
  '',
  'Not-A-Field: 1',
  '--x y--',
  'To: epilogue',
  '',
].join('\r\n')

test('header fields, those of body parts and of attached messages, and lines with their offset', () => {
  expect(read([Buffer.from(MESSAGE)]).units).toEqual([
    'field Subject: a\n\tb',
    'field Content-Type: multipart/mixed;\n boundary="x y"',
    'body',
    '1 preamble',
    '10 --x y',
    'part field Content-Type: message/rfc822',
    'part field X-Inner: 1',
    '0 ',
    'nested field Subject: attached',
    'nested field Content-Type: multipart/digest; boundary=z',
    '0 ',
    '1 --z',
    '0 ',
    'nested field Subject: of a digest',
    '0 ',
    '1 text',
    '0 --z--',
    '6 --x y',
    '0 ',
    '1 Not-A-Field: 1',
    '0 --x y--',
    '8 To: epilogue',
  ])
})

test('a line that is no field begins the body; lines of an mbox file do not', () => {
  expect(read([Buffer.from('From a Fri\r\nA: b\r\nFrom c Fri\r\nd\r\n')]).units).toEqual([
    'field X-Mailbox-Line: From a Fri',
    'field A: b',
    'body',
    '1 From c Fri',
    '12 d',
  ])
})

test('lines above 2048 octets are examined in pieces, and fields are cut at header_size_limit', () => {
  const seen = read([Buffer.from(`A: ${'x'.repeat(3000)}\r\n y\r\n\r\n${'z'.repeat(5000)}\r\n`)])
  expect(seen.units.map((unit) => unit.length)).toEqual([2006, 4, 2050, 2053, 909])
  expect(seen.bytes).toBe(`A: ${'x'.repeat(1997)}\r\n\r\n${'z'.repeat(5000)}\r\n`)
})

test('a long line that ends a header is examined in pieces, as those after it', () => {
  const header = 'A: b\r\n'
  const line = `${'a b '.repeat(700)}x`
  const seen = read([Buffer.from(`${header}${line}\r\nnext\r\n`)], 102_400)
  expect(seen.units).toEqual(['field A: b', 'body', `1 ${line.slice(0, 2048)}`, `2050 ${line.slice(2048)}`, '2804 next'])
  expect(seen.bytes).toBe(`${header}\r\n${line}\r\nnext\r\n`)
})

const LINE = fc.constantFrom(
  'A: b',
  ' c',
  '',
  '',
  '--x',
  '--x--',
  'text',
  'Content-Type: multipart/mixed; boundary=x',
  'Content-Type: message/rfc822',
  'y'.repeat(2500),
)

test('units have all bytes in their order, and are the same in any packets', () => {
  fc.assert(
    fc.property(fc.array(LINE, { maxLength: 12 }), fc.array(fc.nat(4000), { maxLength: 8 }), (lines, cuts) => {
      const content = Buffer.from(lines.map((line) => `${line}\r\n`).join(''))
      const whole = read([content], 100_000)
      expect(read(cutAt(content, cuts), 100_000)).toEqual(whole)
      // An empty line is inserted before a body that begins with a line that is no field.
      expect([0, 2]).toContain(whole.bytes.length - content.length)
      if (whole.bytes.length === content.length) expect(whole.bytes).toBe(content.toString('latin1'))
    }),
  )
})

test('a message has the same units byte by byte', () => {
  const whole = read([Buffer.from(MESSAGE)])
  for (const { packets } of segmentations(Buffer.from(MESSAGE))) expect(read(packets)).toEqual(whole)
})
