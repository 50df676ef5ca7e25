/**
 * Rewrites a message for a next hop by smtp_generic_maps: its envelope, and its header while the content is read. The queued
 * message stays as it is.
 */
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

/** The mail with mapped addresses. After a failed lookup its content is unreadable for now, so that the delivery is deferred. */
export function genericMail({ message, recipients, content }: GenericMail, maps: GenericMaps): GenericMail {
  try {
    return {
      message: { ...message, sender: maps.envelope(message.sender) },
      recipients: recipients.map((recipient) => maps.recipient(recipient)),
      content: new GenericContent(content, maps),
    }
  } catch (error) {
    const failed = unreadable(error)
    return { message, recipients, content: { next: async () => failed } }
  }
}

function unreadable(error: unknown): ContentRead {
  if (!(error instanceof LookupFailed)) throw error
  return { kind: 'unreadable', why: error.message, lasting: false }
}

/** A content whose header addresses are mapped. */
class GenericContent implements ContentSource {
  readonly #content: ContentSource
  /** Reads the header; null after its end. */
  #header: HeaderEditor | null
  #pieces: Uint8Array[] = []

  constructor(content: ContentSource, maps: GenericMaps) {
    const completion = { origin: null, parent: null, keepsRoutes: true, map: (address: string) => maps.header(address) }
    const rules: HeaderRules = { dropped: new Set(), fieldLimit: Infinity, completion }
    this.#content = content
    this.#header = new HeaderEditor(rules, (piece) => this.#pieces.push(piece))
  }

  async next(): Promise<ContentRead> {
    for (;;) {
      const read = await this.#content.next()
      if (this.#header === null || read.kind === 'unreadable') return read
      try {
        const bytes = this.#edited(this.#header, read)
        if (bytes.length > 0 || read.last) return { ...read, bytes }
      } catch (error) {
        return unreadable(error)
      }
    }
  }

  /** The edited bytes that are complete. The rest is returned with the next ones. */
  #edited(header: HeaderEditor, { bytes, last }: Extract<ContentRead, { kind: 'chunk' }>): Buffer {
    const body = header.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) ?? (last ? header.end() : undefined)
    if (body !== undefined) this.#header = null
    const edited = Buffer.concat([...this.#pieces, ...(body === undefined ? [] : [body.rest])])
    this.#pieces = []
    return edited
  }
}
