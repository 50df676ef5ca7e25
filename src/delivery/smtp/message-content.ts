/** Reads the content of a message chunk by chunk and verifies its length: a final dot is never sent after an incomplete message. */
import { contentSize, type ContentId, type Message } from '../../mail/message.ts'
import { freeChunk } from '../../store/chunks.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { StoreUnavailable } from '../../store/queue-store.ts'

/** See QueueStore.readChunk. */
export type ReadChunk = (content: ContentId, index: number) => Promise<Uint8Array | undefined>

/** A content in memory, for one mail transaction. */
export interface CachedContent {
  readonly chunks: readonly Uint8Array[]
  /** Called when the host has acknowledged the content, so that no write refers to a chunk. Not called in any other case. */
  sent(): void
}

export type ContentRead =
  | { readonly kind: 'chunk'; readonly bytes: Uint8Array; readonly last: boolean }
  /**
   * Unreadable content. `lasting` is true when the content is missing or incomplete. `chunk` is the index of the chunk that the store
   * cannot return for now; absent for every other reason.
   */
  | { readonly kind: 'unreadable'; readonly why: string; readonly lasting: boolean; readonly chunk?: number | undefined }

/** A content that is read once, chunk by chunk. */
export interface ContentSource {
  /** Returns the next chunk and invalidates the previous one. Must not be called after the last chunk. */
  next(): Promise<ContentRead>
}

export class MessageContent implements ContentSource {
  readonly #message: Message
  readonly #readChunk: ReadChunk
  readonly #cached: readonly Uint8Array[] | undefined
  /** Last chunk read from the store. This object owns its buffer, unlike the buffers of cached chunks. */
  #fromStore: Uint8Array | undefined
  #index = 0
  #read = 0

  /** `cached` is the whole content, if it is still in memory. */
  constructor(message: Message, readChunk: ReadChunk, cached?: readonly Uint8Array[]) {
    this.#message = message
    this.#readChunk = readChunk
    this.#cached = cached
  }

  /** Returns the next chunk and invalidates the previous one. Must not be called after the last chunk. */
  async next(): Promise<ContentRead> {
    const { size, contentId, prependedHeaders = '' } = this.#message
    if (contentSize(this.#message) === 0) return { kind: 'chunk', bytes: Buffer.from(prependedHeaders), last: true }
    this.#release()
    let bytes: Uint8Array | undefined
    try {
      bytes = this.#cached === undefined ? (this.#fromStore = await this.#readChunk(contentId, this.#index)) : this.#cached[this.#index]
    } catch (error) {
      const why = `cannot read its content: ${errorMessage(error)}`
      return error instanceof StoreUnavailable
        ? { kind: 'unreadable', why, lasting: false, chunk: this.#index }
        : { kind: 'unreadable', why, lasting: true }
    }
    // The prepended fields join the first chunk, because that chunk decides whether SMTPUTF8 is needed.
    if (bytes !== undefined && this.#index === 0 && prependedHeaders !== '') bytes = Buffer.concat([Buffer.from(prependedHeaders), bytes])
    this.#index++
    this.#read += bytes?.length ?? 0
    if (bytes === undefined || this.#read > size) {
      return { kind: 'unreadable', why: `its content is not whole: ${this.#read} of ${size} bytes`, lasting: true }
    }
    return { kind: 'chunk', bytes, last: this.#read === size }
  }

  /** Frees the memory of a chunk that was sent. */
  #release(): void {
    const sent = this.#fromStore
    this.#fromStore = undefined
    if (sent !== undefined) freeChunk(sent)
  }
}
