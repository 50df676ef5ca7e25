/**
 * Reads the third part of a notice, the original or its header, chunk by chunk up to a limit. A message/rfc822 part must not have
 * a transfer encoding (RFC 2046 §5.2.1). Lines are therefore changed to end in CRLF, to have at most 998 octets and to contain no
 * NUL.
 */

/** The n-th chunk of a stored content; undefined after the last. */
export type ReadPiece = (index: number) => Promise<Uint8Array | undefined>

export interface ReturnedOriginal {
  /** Text with one character per octet; every line ends in CRLF. Undefined when the content is unreadable. */
  readonly text: string | undefined
  /** False when only the header is returned. */
  readonly whole: boolean
}

interface ReturnLimits {
  readonly whole: boolean
  /** bounce_size_limit */
  readonly size: number
  /** header_size_limit */
  readonly header: number
}

/** Maximum octets of a line without CRLF (RFC 5321 §4.5.3.1.6). */
const LONGEST_LINE = 998

const END_OF_HEADER = /(?:^|\r?\n)\r?\n/

/** Reads the part to return. Holds at most the limit plus one chunk in memory. */
export async function readOriginal(read: ReadPiece, limits: ReturnLimits): Promise<ReturnedOriginal> {
  const limit = limits.whole ? limits.size : limits.header
  let text = ''
  let ended = false
  for (let index = 0; text.length <= limit; index++) {
    // Chunks are read in order, as far as needed.
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

/** The header only. A header longer than the limit is cut at a line end. */
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

/** Splits a line that is too long for SMTP with CRLF and a space, which is folding inside a header. */
function shortened(line: string): string {
  if (line.length <= LONGEST_LINE) return line
  const parts = [line.slice(0, LONGEST_LINE)]
  for (let at = LONGEST_LINE; at < line.length; at += LONGEST_LINE - 1) parts.push(` ${line.slice(at, at + LONGEST_LINE - 1)}`)
  return parts.join('\r\n')
}

/**
 * Whether the original has a TLS-Required field, which its notice has too (RFC 8689 §5), for the next relay: the delivery of the notice from
 * here reads prepended fields only (isTlsOptional).
 */
export const needsNoTls = ({ text }: ReturnedOriginal): boolean =>
  text !== undefined && /^tls-required:[ \t]*no[ \t]*\r?$/im.test(headerOf(text, text.length))
