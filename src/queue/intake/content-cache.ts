/**
 * Keeps the contents of new messages in memory until their first delivery ends. A content that is not in the cache is read from
 * the store.
 */
import { contentSize, type ContentId, type Message } from '../../mail/message.ts'

/** Maximum number of bytes in the cache. */
const BUDGET = 64 * 1024 * 1024

export class ContentCache {
  readonly #contents = new Map<ContentId, readonly Uint8Array[]>()
  #bytes = 0

  /**
   * Keeps the content of a message until `drop`, without a copy. Returns false when the content is not kept, because the cache is
   * full or because the store already has the first part of the content.
   */
  keep(message: Message, content: readonly Uint8Array[]): boolean {
    const bytes = content.reduce((sum, chunk) => sum + chunk.byteLength, 0)
    if (bytes !== contentSize(message) || this.#bytes + bytes > BUDGET) return false
    this.#contents.set(message.contentId, content)
    this.#bytes += bytes
    return true
  }

  get({ contentId }: Message): readonly Uint8Array[] | undefined {
    return this.#contents.get(contentId)
  }

  drop(message: Message): void {
    if (this.#contents.delete(message.contentId)) this.#bytes -= contentSize(message)
  }
}
