/**
 * Splits the bytes of a server into replies, with strict syntax (RFC 5321 §4.2). A line begins with three digits, of which the
 * first is 2 to 5, followed by a space, a hyphen or nothing. All lines of a reply have the same digits, and a reply has at most
 * 64 KiB. A reply is complete when its last line has a line end. The result does not depend on the packets in which the bytes
 * arrive.
 */
import { maskControls, parseReply, type SmtpReply } from '../mail/smtp-reply.ts'

export interface ServerReply extends SmtpReply {
  /** All lines with their codes, joined by spaces. Control characters are masked, and a very long reply is truncated. */
  readonly raw: string
}

export type Reading =
  | { readonly kind: 'reply'; readonly reply: ServerReply; /** As received. */ readonly lines: readonly string[] }
  | { readonly kind: 'protocol-error'; readonly what: string }

export const MAX_REPLY = 65_536
/** Maximum number of characters kept of a reply, about twice the longest log line of Postfix. */
const MAX_RAW = 4_096
const MAX_SHOWN = 200

const LINE = /^[2-5]\d\d(?:[ -]|$)/

/** Decodes a server's text, which has no charset (RFC 5321 §4.2.1): as UTF-8 when it is valid, else as ISO 8859-1. */
function decoded(bytes: string): string {
  // oxlint-disable-next-line no-control-regex -- bytes above ASCII are exactly this range
  if (!/[\u0080-\u00ff]/.test(bytes)) return bytes
  const text = Buffer.from(bytes, 'latin1').toString('utf8')
  return text.includes('\ufffd') ? bytes : text
}

const truncated = (text: string, limit: number): string => (text.length > limit ? `${text.slice(0, limit - 1).toWellFormed()}…` : text)

export class ReplyReader {
  /** Received bytes that are not parsed yet, one character per byte. */
  #bytes = ''
  #lines: string[] = []
  /** Number of bytes in the complete lines of the current reply. */
  #length = 0

  feed(chunk: Buffer): void {
    this.#bytes += chunk.toString('latin1')
  }

  /** Discards all received bytes. After STARTTLS they may be an injection (CVE-2011-0411). */
  discard(): void {
    this.#bytes = ''
    this.#lines = []
    this.#length = 0
  }

  /** The next reply; undefined while the reply is incomplete. */
  next(): Reading | undefined {
    for (;;) {
      const end = this.#bytes.indexOf('\n')
      const length = this.#length + (end < 0 ? this.#bytes.length : end + 1)
      if (length > MAX_REPLY) return { kind: 'protocol-error', what: `reply of more than ${MAX_REPLY} bytes` }
      if (end < 0) return undefined
      const line = this.#bytes.slice(0, this.#bytes[end - 1] === '\r' ? end - 1 : end)
      this.#bytes = this.#bytes.slice(end + 1)
      this.#length = length
      const [first] = this.#lines
      if (!LINE.test(line) || (first !== undefined && !line.startsWith(first.slice(0, 3)))) {
        return { kind: 'protocol-error', what: truncated(maskControls(decoded(line)), MAX_SHOWN) }
      }
      this.#lines.push(line)
      if (line[3] !== '-') return this.#complete()
    }
  }

  #complete(): Reading {
    const lines = this.#lines
    this.#lines = []
    this.#length = 0
    const texts = lines.map(decoded)
    const first = parseReply(texts[0] ?? '')
    const last = lines.length === 1 ? first : parseReply(texts.at(-1) ?? '')
    const raw = truncated(maskControls(texts.join(' ')), MAX_RAW)
    const text = last === undefined ? '' : truncated(maskControls(last.text), MAX_RAW)
    return { kind: 'reply', lines: texts, reply: { code: Number(texts[0]?.slice(0, 3)), status: last?.status ?? first?.status, text, raw } }
  }
}
