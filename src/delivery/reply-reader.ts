/**
 * Cuts what a server sends into replies, strictly (RFC 5321 §4.2): three digits of which the first is 2 to 5, the same
 * on every line, a blank, a hyphen or nothing after them, and no more than 64 KiB in all. However the bytes are cut
 * into packets, the same replies come out. A reply whose last line never ended is no reply.
 */
import { harmless, parseReply, type SmtpReply } from '../mail/reply.ts'

export interface ServerReply extends SmtpReply {
  /** All lines joined by a blank, with codes; controls masked, cut when very long. */
  readonly raw: string
}

export type Reading =
  | { readonly kind: 'reply'; readonly reply: ServerReply; /** As received. */ readonly lines: readonly string[] }
  | { readonly kind: 'nonsense'; readonly what: string }

export const MAX_REPLY = 65_536
/** What is kept of a reply; the longest log line of Postfix is about half of it. */
const MAX_RAW = 4_096
const MAX_SHOWN = 200

const LINE = /^([2-5]\d\d)(?:([ -])|$)/

/** Server texts have no charset (RFC 5321 §4.2.1): UTF-8 when they are, else the bytes as they stand. */
function decoded(bytes: string): string {
  // oxlint-disable-next-line no-control-regex -- bytes above ASCII are exactly this range
  if (!/[\u0080-\u00ff]/.test(bytes)) return bytes
  const text = Buffer.from(bytes, 'latin1').toString('utf8')
  return text.includes('\ufffd') ? bytes : text
}

const cut = (text: string, limit: number): string => (text.length > limit ? `${text.slice(0, limit - 1).toWellFormed()}…` : text)

export class ReplyReader {
  /** What has arrived and was not read yet; one character for each byte. */
  #bytes = ''
  #lines: string[] = []
  /** Bytes of the lines read so far of the reply that is under way. */
  #length = 0

  feed(chunk: Buffer): void {
    this.#bytes += chunk.toString('latin1')
  }

  /** Forgets what was received: after STARTTLS it may be an injection (CVE-2011-0411). */
  discard(): void {
    this.#bytes = ''
    this.#lines = []
    this.#length = 0
  }

  /** The next reply; undefined while it is not complete. */
  next(): Reading | undefined {
    for (;;) {
      const end = this.#bytes.indexOf('\n')
      const length = this.#length + (end < 0 ? this.#bytes.length : end + 1)
      if (length > MAX_REPLY) return { kind: 'nonsense', what: `reply of more than ${MAX_REPLY} bytes` }
      if (end < 0) return undefined
      const line = this.#bytes.slice(0, this.#bytes[end - 1] === '\r' ? end - 1 : end)
      this.#bytes = this.#bytes.slice(end + 1)
      this.#length = length
      const match = LINE.exec(line)
      const [first] = this.#lines
      if (match === null || (first !== undefined && !line.startsWith(first.slice(0, 3)))) {
        return { kind: 'nonsense', what: cut(harmless(decoded(line)), MAX_SHOWN) }
      }
      this.#lines.push(line)
      if (match[2] !== '-') return this.#complete()
    }
  }

  #complete(): Reading {
    const lines = this.#lines
    this.#lines = []
    this.#length = 0
    const texts = lines.map(decoded)
    const first = parseReply(texts[0] ?? '')
    const last = lines.length === 1 ? first : parseReply(texts.at(-1) ?? '')
    const raw = cut(harmless(texts.join(' ')), MAX_RAW)
    const text = last === undefined ? '' : cut(harmless(last.text), MAX_RAW)
    return { kind: 'reply', lines: texts, reply: { code: Number(texts[0]?.slice(0, 3)), status: last?.status ?? first?.status, text, raw } }
  }
}
