/**
 * The content of a message, piece by piece, with the promise that what ends as the last piece is the whole of it: a
 * final dot is never sent after less than the message.
 */
import type { BodyId, Message } from '../queue/message.ts'
import { StoreUnavailable } from '../queue/store.ts'

export type ReadBody = (body: BodyId, index: number) => Promise<Uint8Array | undefined>

export type Piece =
  | { readonly kind: 'piece'; readonly bytes: Uint8Array; readonly last: boolean }
  /** `lasting`: the content is not there or not whole; else the store could not answer now. */
  | { readonly kind: 'unreadable'; readonly why: string; readonly lasting: boolean }

export class MessageSource {
  readonly #message: Message
  readonly #readBody: ReadBody
  readonly #warm: readonly Uint8Array[] | undefined
  /** The last piece that came from the store: its bytes are ours. */
  #lent: Uint8Array | undefined
  #index = 0
  #read = 0

  /** `warm` is the content when it is still in memory. */
  constructor(message: Message, readBody: ReadBody, warm?: readonly Uint8Array[]) {
    this.#message = message
    this.#readBody = readBody
    this.#warm = warm
  }

  /** The next piece; the bytes of the one before are gone then. Not to be called after the last one. */
  async next(): Promise<Piece> {
    const { size, body } = this.#message
    if (size === 0) return { kind: 'piece', bytes: new Uint8Array(0), last: true }
    this.#forget()
    let bytes: Uint8Array | undefined
    try {
      bytes = this.#warm === undefined ? (this.#lent = await this.#readBody(body, this.#index)) : this.#warm[this.#index]
    } catch (error) {
      return { kind: 'unreadable', why: `cannot read its content: ${String(error)}`, lasting: !(error instanceof StoreUnavailable) }
    }
    this.#index++
    this.#read += bytes?.length ?? 0
    if (bytes === undefined || this.#read > size) {
      return { kind: 'unreadable', why: `its content is not whole: ${this.#read} of ${size} bytes`, lasting: true }
    }
    return { kind: 'piece', bytes, last: this.#read === size }
  }

  /** What has been sent gives its memory back at once: the collector would wait until much more had piled up. */
  #forget(): void {
    const lent = this.#lent
    this.#lent = undefined
    // A small part may lie in a buffer that others share.
    if (lent?.buffer instanceof ArrayBuffer && lent.byteLength === lent.buffer.byteLength) lent.buffer.transfer(0)
  }
}
