import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DataStream } from '../../src/smtpd/stream/data-stream.ts'
import { cutAt, cuts, segmentations, wireBytes } from '../support/segments.ts'

interface Read {
  readonly stored: string
  /** Bytes after the end of the content; null when it did not end. */
  readonly rest: string | null
  readonly bareNewline: boolean
  readonly nul: boolean
}

function read(packets: readonly Buffer[], lenient = false): Read {
  const stream = new DataStream({ lenient })
  const stored: Uint8Array[] = []
  let rest: Buffer | undefined
  packets.forEach((packet) => {
    if (rest !== undefined) {
      rest = Buffer.concat([rest, packet])
      return
    }
    const step = stream.read(packet)
    stored.push(...step.pieces)
    rest = step.rest
  })
  const { bareNewline, nul } = stream
  return { stored: Buffer.concat(stored).toString('latin1'), rest: rest?.toString('latin1') ?? null, bareNewline, nul }
}

const whole = (text: string, lenient = false) => read([Buffer.from(text, 'latin1')], lenient)

/** The rules again, line by line and without any thought of packets. */
function byTheBook(text: string): Read {
  let stored = ''
  let position = 0
  let afterCrlf = true
  let bareNewline = false
  for (;;) {
    const newline = text.indexOf('\n', position)
    if (newline < 0) {
      const line = text.slice(position).replace(/^\.(?!\r?$)/, '')
      // Bytes that may still become a CRLF or the end are kept back.
      const open = /^\.\r?$/.test(text.slice(position)) ? '' : line.replace(/\r$/, '')
      return { stored: stored + open.replaceAll('\r', ' '), rest: null, bareNewline, nul: text.includes('\0') }
    }
    const crlf = text[newline - 1] === '\r' && newline > position
    const line = text.slice(position, crlf ? newline - 1 : newline)
    position = newline + 1
    bareNewline ||= !crlf
    if (line === '.' && crlf && afterCrlf) {
      return { stored, rest: text.slice(position), bareNewline, nul: text.slice(0, position).includes('\0') }
    }
    if (line !== '.') stored += `${line.replace(/^\./, '').replaceAll('\r', ' ')}\r\n`
    afterCrlf = crlf
  }
}

describe('the content of a message', () => {
  test('ends at CRLF.CRLF; later bytes are not consumed', () => {
    expect(whole('a\r\n.\r\nQUIT\r\n')).toMatchObject({ stored: 'a\r\n', rest: 'QUIT\r\n' })
  })

  test('may be empty', () => {
    expect(whole('.\r\n')).toMatchObject({ stored: '', rest: '' })
  })

  test.each([
    ['a stuffed dot', '..\r\n.\r\n', '.\r\n'],
    ['a stuffed line', '..a\r\n.\r\n', '.a\r\n'],
    ['an unstuffed dot', '.a\r\n.\r\n', 'a\r\n'],
    ['a line of its own after CRLF', 'x\r\n..\r\ny\r\n.\r\n', 'x\r\n.\r\ny\r\n'],
    ['a dot within a line', 'a.b\r\n.\r\n', 'a.b\r\n'],
    ['a stray CR', 'a\rb\r\n.\r\n', 'a b\r\n'],
    ['a line of CRs', '\r\r\r\n.\r\n', '  \r\n'],
    ['bare LFs', 'a\nb\n\r\n.\r\n', 'a\r\nb\r\n\r\n'],
  ])('%s', (_, sent, stored) => {
    expect(whole(sent)).toMatchObject({ stored, rest: '' })
  })

  test.each(['a\n.\r\n', 'a\r\n.\n', 'a\n.\n', '.\n', 'a\r.\r\n', 'a\r\n.\r', 'a\r\n\0.\r\n'])('%j does not end it', (sent) => {
    expect(whole(sent).rest).toBeNull()
  })

  test('a lone dot beside a bare LF is not kept either', () => {
    expect(whole('a\n.\r\nb\r\n.\n\r\n.\r\n')).toMatchObject({ stored: 'a\r\nb\r\n\r\n', rest: '', bareNewline: true })
  })

  test('LF.LF ends it for clients in smtpd_forbid_bare_newline_exclusions', () => {
    expect(whole('a\n.\nMAIL', true)).toMatchObject({ stored: 'a\r\n', rest: 'MAIL' })
  })

  test('a NUL is detected, but not one after the end', () => {
    expect(whole('a\0\r\n.\r\n').nul).toBe(true)
    expect(whole('a\r\n.\r\n\0').nul).toBe(false)
  })

  test('a body line ".." split after its dots is content', () => {
    for (const { name, packets } of segmentations(Buffer.from('..\r\nx\r\n.\r\n'))) {
      expect({ name, ...read(packets) }).toMatchObject({ name, stored: '.\r\nx\r\n', rest: '' })
    }
  })

  test('agrees with a reference decoder at any segmentation', () => {
    fc.assert(
      fc.property(wireBytes(), cuts, (bytes, places) => {
        const expected = byTheBook(bytes.toString('latin1'))
        expect(read([bytes])).toEqual(expected)
        expect(read(cutAt(bytes, places))).toEqual(expected)
      }),
      { numRuns: 5000 },
    )
  })

  test('takes no longer in many fragments', () => {
    const stream = new DataStream()
    const { pieces } = stream.read(Buffer.from('\n'.repeat(65_536)))
    expect(pieces).toHaveLength(1)
    expect(pieces[0]).toHaveLength(131_072)
  })
})
