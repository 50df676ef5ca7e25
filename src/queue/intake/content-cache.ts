/**
 * Keeps the contents of new messages in memory until their first delivery ends, those of long messages from their arrival on. A content that
 * is not in the cache is read from the store.
 */
import type { CachedContent } from '../../delivery/smtp/message-content.ts'
import { contentSize, type ContentId, type Message } from '../../mail/message.ts'
import { bytesOf, freeChunk } from '../../store/chunks.ts'

/** Maximum number of bytes in the cache. */
const BUDGET = 64 * 1024 * 1024
/** Maximum number of bytes of a content that is kept while it is received. */
const LARGEST = 32 * 1024 * 1024

interface Kept {
  readonly chunks: readonly Uint8Array[]
  readonly bytes: number
  /** True for a content that was kept while it was received: the buffers of its chunks belong to the cache. */
  readonly held: boolean
  /** Number of mail transactions that were given the content, and whose host has not acknowledged it. */
  reading: number
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
    const bytes = bytesOf(chunks)
    if (before.chunks.length === from && before.bytes + bytes <= LARGEST && this.#bytes + bytes <= BUDGET) {
      this.#put(content, { chunks: [...before.chunks, ...chunks], bytes: before.bytes + bytes, held: true, reading: 0 })
      return true
    }
    this.drop(content)
    return false
  }

  /**
   * Keeps the content of a message until `release` or `drop`, without a copy: the chunks that are held, followed by `rest`. Returns false
   * when the content is not kept, because the cache is full or because its first part is not held.
   */
  keep(message: Message, rest: readonly Uint8Array[]): boolean {
    const { chunks, bytes, held } = this.#contents.get(message.contentId) ?? NOTHING
    const added = bytesOf(rest)
    if (bytes + added !== contentSize(message) || this.#bytes + added > BUDGET) {
      this.drop(message.contentId)
      return false
    }
    this.#put(message.contentId, { chunks: held ? [...chunks, ...rest] : rest, bytes: bytes + added, held, reading: 0 })
    return true
  }

  /** Returns the content of a message for a mail transaction. */
  get({ contentId }: Message): CachedContent | undefined {
    const kept = this.#contents.get(contentId)
    if (kept === undefined) return undefined
    kept.reading++
    return { chunks: kept.chunks, sent: () => kept.reading-- }
  }

  /**
   * Forgets the content of a message whose deliveries have ended. Frees the memory of a long one that each host has acknowledged, which
   * garbage collection would do much later, at a third of the CPU time of such a message. After another end, a write may still refer to it.
   */
  release(content: ContentId): void {
    const kept = this.#contents.get(content)
    this.drop(content)
    if (kept?.held === true && kept.reading === 0) for (const chunk of kept.chunks) freeChunk(chunk)
  }

  /** Forgets a content. */
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

const NOTHING: Kept = { chunks: [], bytes: 0, held: false, reading: 0 }
