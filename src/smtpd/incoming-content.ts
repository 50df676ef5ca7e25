/**
 * The content of a connection's mail transaction, from DATA or the first BDAT to its end: passes it to the acceptor, and skips the octets of
 * refused chunks (RFC 3030).
 */
import type { SmtpReply } from '../mail/smtp-reply.ts'
import type { Acceptance, ContentTaker } from '../queue/intake/acceptor.ts'
import type { Chunk } from './dialogue/chunk-sequence.ts'
import { ChunkReader, DataStream, type ContentReader } from './stream/data-stream.ts'
import * as replies from './dialogue/replies.ts'

/** Treatment of bare LF. */
export interface NewlineRules {
  /** True when LF.LF ends a message too. */
  readonly lenient: boolean
  /** The reply that refuses content with a bare LF; undefined when it is normalized. */
  readonly refusal: SmtpReply | undefined
}

interface OpenMessage {
  readonly receiver: ContentTaker
  readonly stream: DataStream
  readonly newlines: NewlineRules
}

type State =
  | { readonly kind: 'none' }
  | { readonly kind: 'data'; readonly message: OpenMessage }
  /** The chunk is read. Without a message, its octets are skipped. */
  | { readonly kind: 'chunk'; readonly chunk: Chunk; readonly message: OpenMessage | null }
  /** The next BDAT is awaited. */
  | { readonly kind: 'between chunks'; readonly message: OpenMessage }

/** The end of a chunk that does not end its message, or of a message. */
export type ContentEnd =
  | { readonly kind: 'chunk'; readonly chunk: Chunk; readonly refusal?: SmtpReply | undefined }
  | { readonly kind: 'message'; readonly receiver: ContentTaker; readonly acceptance: Acceptance }

const NONE: State = { kind: 'none' }

export class IncomingContent {
  #state: State = NONE

  /** True while a message was begun and has not ended. */
  get isOpen(): boolean {
    return this.#message !== null
  }

  /** True while octets are read whose end was not received. */
  get isReading(): boolean {
    return this.#state.kind === 'data' || this.#state.kind === 'chunk'
  }

  /** Octets of the open message that were received; undefined without one. */
  get octets(): number | undefined {
    return this.#message?.receiver.octets
  }

  get #message(): OpenMessage | null {
    return this.#state.kind === 'none' ? null : this.#state.message
  }

  /** Begins the content after DATA. */
  beginData(receiver: ContentTaker, newlines: NewlineRules): ContentReader {
    const stream = new DataStream({ lenient: newlines.lenient })
    this.#state = { kind: 'data', message: { receiver, stream, newlines } }
    return stream
  }

  /** Begins the octets after BDAT; `open` is called for the first chunk of a message. */
  beginChunk(chunk: Chunk, open: () => ContentTaker, newlines: NewlineRules): ContentReader {
    if (chunk.refusal !== undefined) this.abandon()
    const message =
      chunk.refusal === undefined ? (this.#message ?? { receiver: open(), stream: new DataStream({ chunked: true }), newlines }) : null
    this.#state = { kind: 'chunk', chunk, message }
    return new ChunkReader(chunk.octets, message?.stream ?? null)
  }

  write(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    return this.#message?.receiver.write(pieces)
  }

  /** Called after the last octet of DATA or of a chunk. Undefined when the content was abandoned. */
  ended(): Promise<ContentEnd | undefined> | ContentEnd | undefined {
    const state = this.#state
    if (state.kind === 'data') return this.#conclude(state.message)
    if (state.kind !== 'chunk') return undefined
    const { chunk, message } = state
    if (message !== null) return this.#chunkEnded(chunk, message)
    this.#state = NONE
    return { kind: 'chunk', chunk }
  }

  /** Discards content that has not ended: the client has disconnected, or has ended the transaction. */
  abandon(): void {
    const message = this.#message
    this.#state = NONE
    if (message !== null) void message.receiver.abandon()
  }

  #chunkEnded(chunk: Chunk, message: OpenMessage): Promise<ContentEnd | undefined> | ContentEnd {
    const { receiver, stream } = message
    this.#state = { kind: 'between chunks', message }
    check(message)
    if (chunk.last) {
      const stored = receiver.write(stream.finish())
      return stored === undefined ? this.#conclude(message) : stored.then(() => this.#conclude(message))
    }
    const taken = (): ContentEnd => {
      const { refusal } = receiver
      if (refusal !== undefined) this.abandon()
      return { kind: 'chunk', chunk, refusal }
    }
    return receiver.staging === null ? taken() : receiver.staging.then(taken)
  }

  /** Resolves when the message is on disk, or refused. */
  async #conclude(message: OpenMessage): Promise<ContentEnd | undefined> {
    if (this.#message !== message) return undefined
    this.#state = NONE
    check(message)
    const { receiver } = message
    return { kind: 'message', receiver, acceptance: await receiver.end() }
  }
}

function check({ receiver, stream, newlines: { refusal } }: OpenMessage): void {
  if (stream.nul) receiver.refuse(replies.HAS_NUL)
  if (stream.bareNewline && refusal !== undefined) receiver.refuse(refusal)
}
