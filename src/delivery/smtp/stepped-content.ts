/** Passes a stored content through the steps that change it, chunk by chunk, while it is read for a next hop. */
import { SigningFailed } from '../../dkim/signer.ts'
import type { ContentEntry, ContentStep, Taken } from '../../mail/content-step.ts'
import { headerLength } from '../../mail/headers.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import { LookupFailed } from '../../rewriting/lookup-table.ts'
import type { ContentRead, ContentSource } from './message-content.ts'

/** Returns the fields to prepend to a header; `changed` tells whether it differs from the queued one. */
export type HeaderSigning = (header: Buffer, changed: boolean) => Promise<string>

/** The steps of a content, of which `last` takes what they leave. A content that is refused is unreadable for now. */
type Steps = (last: ContentStep<'header'>, refuse: (reply: SmtpReply) => void) => ContentEntry

export class SteppedContent implements ContentSource {
  readonly #content: ContentSource
  readonly #sign: HeaderSigning | null
  readonly #entry: ContentEntry
  #hasBody = false
  #refusal: SmtpReply | undefined
  #pieces: Uint8Array[] = []
  /** The header as it is queued, with the bytes read after it. Kept for signing. */
  #queued: Buffer[] = []

  /** `sign` is null for a header that gets no further fields. */
  constructor(content: ContentSource, sign: HeaderSigning | null, steps: Steps) {
    this.#content = content
    this.#sign = sign
    this.#entry = steps(this.#lastStep(), (reply) => (this.#refusal ??= reply))
  }

  async next(): Promise<ContentRead> {
    for (;;) {
      const read = await this.#content.next()
      if (read.kind === 'unreadable') return read
      try {
        await this.#pass(read)
      } catch (error) {
        return unreadableFor(error)
      }
      if (this.#refusal !== undefined) return { kind: 'unreadable', why: this.#refusal.text, lasting: false }
      const bytes = this.#hasBody || this.#sign === null ? this.#take() : NOTHING
      if (bytes.length > 0 || read.last) return { ...read, bytes }
    }
  }

  async #pass({ bytes, last }: Extract<ContentRead, { kind: 'chunk' }>): Promise<void> {
    // Copied while steps may keep a part of the header, because the next chunk invalidates this one.
    const piece = this.#hasBody ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) : Buffer.from(bytes)
    if (this.#sign !== null && !this.#hasBody) this.#queued.push(piece)
    await this.#entry.write(piece)
    if (last) await this.#entry.end()
  }

  #lastStep(): ContentStep<'header'> {
    const keep = (piece: Buffer): undefined => void (piece.length > 0 && this.#pieces.push(piece))
    return { permits: 'header', header: keep, insert: keep, beginBody: (line) => this.#beginBody(line), body: keep, end: () => undefined }
  }

  #beginBody(line: Buffer): Taken {
    this.#hasBody = true
    if (this.#sign === null) return void this.#pieces.push(line)
    const [header, queued] = [this.#take(), Buffer.concat(this.#queued)]
    this.#queued = []
    return this.#sign(header, !header.equals(queued.subarray(0, headerLength(queued)))).then((fields) => {
      this.#pieces.push(Buffer.from(fields), header, line)
    })
  }

  #take(): Buffer {
    const [first = NOTHING, ...more] = this.#pieces
    this.#pieces = []
    return more.length === 0 ? Buffer.from(first.buffer, first.byteOffset, first.byteLength) : Buffer.concat([first, ...more])
  }
}

const NOTHING = Buffer.alloc(0)

/** The content whose reading failed with an error of a lookup or a signature. Throws every other error. */
export function unreadableFor(error: unknown): ContentRead {
  if (!(error instanceof LookupFailed || error instanceof SigningFailed)) throw error
  return { kind: 'unreadable', why: error.message, lasting: false }
}
