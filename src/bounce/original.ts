/**
 * The third part of a notice: the original, or its header. It is read piece by piece up to a limit, and repaired where
 * it would break the notice around it: a message/rfc822 part cannot be encoded (RFC 2046 §5.2.1), so lines must end in CRLF,
 * be at most 998 octets long and hold no NUL.
 */

/** The n-th piece of a stored content, or undefined after the last. */
export type ReadPiece = (index: number) => Promise<Uint8Array | undefined>

export interface ReturnedOriginal {
  /** As octets, one per character; every line ends in CRLF. Undefined when nothing could be read. */
  readonly text: string | undefined
  /** False when only the header is returned. */
  readonly whole: boolean
}

export interface ReturnLimits {
  readonly whole: boolean
  /** bounce_size_limit */
  readonly size: number
  /** header_size_limit */
  readonly header: number
}

/** The longest line of mail without its CRLF (RFC 5321 §4.5.3.1.6). */
const LONGEST_LINE = 998

const END_OF_HEADER = /(?:^|\r?\n)\r?\n/

/** Reads what is to be returned; never holds more than the limit and one piece. */
export async function readOriginal(read: ReadPiece, limits: ReturnLimits): Promise<ReturnedOriginal> {
  const limit = limits.whole ? limits.size : limits.header
  let text = ''
  let ended = false
  for (let index = 0; text.length <= limit; index++) {
    // Pieces are read in order, as far as they are needed.
    // oxlint-disable-next-line no-await-in-loop
    const piece = await read(index)
    ended = piece === undefined
    if (piece === undefined) break
    text += Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString('latin1')
    if (!limits.whole && END_OF_HEADER.test(text)) break
  }
  if (text === '' && ended) return { text: undefined, whole: false }
  if (limits.whole && ended && text.length <= limit) return { text: repaired(text), whole: true }
  return { text: repaired(headerOf(text, limits.header)), whole: false }
}

/** The header alone; cut at the end of a line when it is longer than the limit. */
function headerOf(text: string, limit: number): string {
  const end = END_OF_HEADER.exec(text)
  const header = end === null ? text : text.slice(0, end.index)
  if (header.length <= limit) return header
  const cut = header.lastIndexOf('\n', limit)
  return header.slice(0, cut < 0 ? limit : cut + 1)
}

function repaired(text: string): string {
  const lines = text
    .replaceAll('\0', '?')
    .replace(/\r(?!\n)/g, ' ')
    .split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  return lines.map((line) => `${shortened(line)}\r\n`).join('')
}

/** A line too long for SMTP goes on after CRLF and a blank, which inside a header is folding. */
function shortened(line: string): string {
  if (line.length <= LONGEST_LINE) return line
  const parts = [line.slice(0, LONGEST_LINE)]
  for (let at = LONGEST_LINE; at < line.length; at += LONGEST_LINE - 1) parts.push(` ${line.slice(at, at + LONGEST_LINE - 1)}`)
  return parts.join('\r\n')
}

/** RFC 8689 §5: a notice about mail that may go without TLS may do so too. */
export const needsNoTls = ({ text }: ReturnedOriginal): boolean =>
  text !== undefined && /^tls-required:[ \t]*no[ \t]*\r?$/im.test(headerOf(text, text.length))
