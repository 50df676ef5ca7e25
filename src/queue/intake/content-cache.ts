/**
 * Keeps the contents of new messages in memory until their first delivery ends, those of long messages from their arrival on. A content that
 * is not in the cache is read from the store.
 */
import { contentSize, type ContentId, type Message } from '../../mail/message.ts'

/** Maximum number of bytes in the cache. */
const BUDGET = 64 * 1024 * 1024
/** Maximum number of bytes of a content that is kept while it is received. */
const LARGEST = 16 * 1024 * 1024

interface Kept {
  readonly chunks: readonly Uint8Array[]
  readonly bytes: number
}

export class ContentCache {
  /** Contents of messages, and the first parts of contents that are being received. */
  readonly #contents = new Map<ContentId, Kept>()
  #bytes = 0

  /**
   * Keeps the next chunks of a content that is being received; `from` is the number of chunks before them. Returns false when they are
   * not kept, because the content or the cache is too large, or earlier chunks were not kept: then none of the content is.
   */
  hold(content: ContentId, from: number, chunks: readonly Uint8Array[]): boolean {
    const before = this.#contents.get(content) ?? NOTHING
    const bytes = sizeOf(chunks)
    if (before.chunks.length === from && before.bytes + bytes <= LARGEST && this.#bytes + bytes <= BUDGET) {
      this.#put(content, { chunks: [...before.chunks, ...chunks], bytes: before.bytes + bytes })
      return true
    }
    this.drop(content)
    return false
  }

  /**
   * Keeps the content of a message until `drop`, without a copy: the chunks that are held, followed by `rest`. Returns false when the
   * content is not kept, because the cache is full or because its first part is not held.
   */
  keep(message: Message, rest: readonly Uint8Array[]): boolean {
    const before = this.#contents.get(message.contentId) ?? NOTHING
    const added = sizeOf(rest)
    const bytes = before.bytes + added
    if (bytes !== contentSize(message) || this.#bytes + added > BUDGET) {
      this.drop(message.contentId)
      return false
    }
    this.#put(message.contentId, { chunks: before === NOTHING ? rest : [...before.chunks, ...rest], bytes })
    return true
  }

  get({ contentId }: Message): readonly Uint8Array[] | undefined {
    return this.#contents.get(contentId)?.chunks
  }

  drop(content: ContentId): void {
    this.#bytes -= this.#contents.get(content)?.bytes ?? 0
    this.#contents.delete(content)
  }

  #put(content: ContentId, kept: Kept): void {
    this.drop(content)
    this.#contents.set(content, kept)
    this.#bytes += kept.bytes
  }
}

const NOTHING: Kept = { chunks: [], bytes: 0 }

const sizeOf = (chunks: readonly Uint8Array[]): number => chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0)
