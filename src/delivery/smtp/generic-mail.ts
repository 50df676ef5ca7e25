/** Rewrites a message for a next hop by smtp_generic_maps: envelope, and header while it is read. The queued message stays unchanged. */
import { SigningFailed } from '../../dkim/signer.ts'
import type { Completion } from '../../mail/header-addresses.ts'
import { HeaderEditor, type HeaderRules } from '../../mail/header-editor.ts'
import type { LeasedRecipient, Message } from '../../mail/message.ts'
import type { GenericMaps } from '../../rewriting/generic.ts'
import { LookupFailed } from '../../rewriting/lookup-table.ts'
import type { ContentRead, ContentSource } from './message-content.ts'

/** The parts of a mail that are rewritten. */
export interface GenericMail {
  readonly message: Message
  readonly recipients: readonly LeasedRecipient[]
  readonly content: ContentSource
}

/** Returns the fields to prepend to a header; `changed` tells whether it differs from the queued one. */
export type HeaderSigning = (header: Buffer, changed: boolean) => Promise<string>

/** The mail with mapped addresses. After a failed lookup its content is unreadable for now, so that the delivery is deferred. */
export function genericMail(
  { message, recipients, content }: GenericMail,
  maps: GenericMaps,
  sign: HeaderSigning | null = null,
): GenericMail {
  try {
    return {
      message: { ...message, sender: maps.envelope(message.sender) },
      recipients: recipients.map((recipient) => maps.recipient(recipient)),
      content: new EditedHeader(content, completionOf(maps), sign),
    }
  } catch (error) {
    const failed = unreadable(error)
    return { message, recipients, content: { next: async () => failed } }
  }
}

function unreadable(error: unknown): ContentRead {
  if (!(error instanceof LookupFailed || error instanceof SigningFailed)) throw error
  return { kind: 'unreadable', why: error.message, lasting: false }
}

const completionOf = (maps: GenericMaps): Completion => ({
  origin: null,
  parent: null,
  keepsRoutes: true,
  map: (address) => maps.header(address),
})

/** A content whose header is signed, and whose header addresses are mapped unless `completion` is null. */
export class EditedHeader implements ContentSource {
  readonly #content: ContentSource
  readonly #sign: HeaderSigning | null
  /** Reads the header; null after its end. */
  #header: HeaderEditor | null
  #pieces: Uint8Array[] = []
  /** The header as it is queued, with the bytes read after it. */
  #queued: Buffer[] = []

  constructor(content: ContentSource, completion: Completion | null, sign: HeaderSigning | null) {
    const rules: HeaderRules = { dropped: new Set(), fieldLimit: Infinity, completion }
    this.#content = content
    this.#sign = sign
    this.#header = new HeaderEditor(rules, (piece) => this.#pieces.push(piece))
  }

  async next(): Promise<ContentRead> {
    for (;;) {
      const read = await this.#content.next()
      if (this.#header === null || read.kind === 'unreadable') return read
      try {
        const bytes = await this.#edited(this.#header, read)
        if (bytes.length > 0 || read.last) return { ...read, bytes }
      } catch (error) {
        return unreadable(error)
      }
    }
  }

  /** The edited bytes that are complete. The rest is returned with the next ones; a header that is signed, when it is complete. */
  async #edited(header: HeaderEditor, { bytes, last }: Extract<ContentRead, { kind: 'chunk' }>): Promise<Buffer> {
    const isSigned = this.#sign !== null
    // Copied when it is kept, because the next chunk invalidates this one.
    const given = isSigned ? Buffer.from(bytes) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const body = header.write(given) ?? (last ? header.end() : undefined)
    if (isSigned) this.#queued.push(given)
    if (body === undefined) return isSigned ? NOTHING : this.#take()
    this.#header = null
    const edited = this.#take()
    return Buffer.concat([await this.#fieldsFor(edited, body.rest.length), edited, body.rest])
  }

  #take(): Buffer {
    const edited = Buffer.concat(this.#pieces)
    this.#pieces = []
    return edited
  }

  async #fieldsFor(edited: Buffer, rest: number): Promise<Buffer> {
    if (this.#sign === null) return NOTHING
    const queued = Buffer.concat(this.#queued)
    this.#queued = []
    return Buffer.from(await this.#sign(edited, !edited.equals(queued.subarray(0, queued.length - rest))))
  }
}

const NOTHING = Buffer.alloc(0)
