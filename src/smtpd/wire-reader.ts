/**
 * What a client sends, taken apart into command lines and contents. It replaces smtp-server's own reader, whose lines
 * end at any LF and whose contents keep the line ends they came with. It reads no further than its handler allows: the
 * socket is held back while a command is worked on or a content is being stored.
 */
import { SMTPStream } from 'smtp-server/lib/smtp-stream.js'
import type { DataStream } from './data-stream.ts'

const LF = 0x0a
const CR = 0x0d
const NOTHING = Buffer.alloc(0)

/** Octets of a command line (postfix line_length_limit); the rest of a longer one is skipped. */
const LINE_LIMIT = 2048
/** Whoever goes on so long without ending the line is no mail client. */
const ENDLESS_LINE = 16_384

export interface CommandLine {
  readonly text: string
  /** It ended in LF alone. */
  readonly bareNewline: boolean
  /** Only its beginning is here. */
  readonly tooLong: boolean
}

/** Every method may return a promise: nothing more is read before it resolves. */
export interface WireHandler {
  line(line: CommandLine): Promise<void> | undefined
  content(pieces: readonly Uint8Array[]): Promise<void> | undefined
  contentEnd(content: DataStream): Promise<void> | undefined
  endlessLine(): void
  /** Everything that came has been dealt with. */
  idle(): Promise<void> | undefined
  /** Bytes have come. */
  arrived(bytes: number): void
  /** A handler failed: a bug of ours. */
  failed(error: unknown): void
}

type Next = (error?: Error | null) => void

export class WireReader extends SMTPStream {
  readonly #handler: WireHandler
  #bytes: Buffer = NOTHING
  /** How much of what the stream holds is in `#bytes` already. */
  #chunk = 0
  #content: DataStream | null = null
  /** Bytes of an overlong line that were skipped. */
  #skipped = 0

  constructor(handler: WireHandler) {
    super()
    this.#handler = handler
  }

  /** From here on the client sends a content. */
  startContent(content: DataStream): void {
    this.#content = content
  }

  get inContent(): boolean {
    return this.#content !== null
  }

  /** Is there more than what has been handed out? */
  get hasMore(): boolean {
    return this.#bytes.length > 0 || this.writableLength > this.#chunk
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding | 'buffer', next: Next): void {
    this.#chunk = chunk.length
    this.#handler.arrived(chunk.length)
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk])
    this.#run(next)
  }

  /** smtp-server would take what is left at the end of the connection for a command. */
  override _flushData(): void {
    this.#bytes = NOTHING
  }

  /** Works until there is nothing to do, or something to wait for. */
  #run(next: Next): void {
    try {
      for (;;) {
        if (this.isClosed) this.#bytes = NOTHING
        const more = this.#bytes.length > 0 && (this.#content === null ? this.#readLine() : this.#readContent(this.#content))
        if (more === true) continue
        const wait = more === false ? this.#handler.idle() : more
        if (wait !== undefined) return this.#resumeAfter(wait, next)
        return next()
      }
    } catch (error) {
      this.#fail(error, next)
    }
  }

  #resumeAfter(wait: Promise<void>, next: Next): void {
    wait.then(
      () => this.#run(next),
      (error: unknown) => this.#fail(error, next),
    )
  }

  #fail(error: unknown, next: Next): void {
    this.isClosed = true
    this.#bytes = NOTHING
    this.#handler.failed(error)
    next()
  }

  /** True when something was done, false when more bytes are needed. */
  #readLine(): Promise<void> | boolean {
    const newline = this.#bytes.indexOf(LF)
    if (newline < 0) return this.#growingLine()
    const line = this.#bytes.subarray(0, newline)
    this.#bytes = this.#bytes.subarray(newline + 1)
    const bareNewline = line.at(-1) !== CR
    const tooLong = this.#skipped > 0 || line.length > LINE_LIMIT
    this.#skipped = 0
    const text = tooLong ? '' : line.toString('utf8', 0, bareNewline ? line.length : line.length - 1)
    return this.#handler.line({ text, bareNewline, tooLong }) ?? true
  }

  #growingLine(): false {
    if (this.#bytes.length > LINE_LIMIT) {
      this.#skipped += this.#bytes.length - 1
      // The last byte stays: it may be the CR of the line end.
      this.#bytes = Buffer.from(this.#bytes.subarray(-1))
      if (this.#skipped > ENDLESS_LINE) this.#handler.endlessLine()
    }
    return false
  }

  #readContent(content: DataStream): Promise<void> | boolean {
    const { pieces, rest } = content.read(this.#bytes)
    this.#bytes = rest ?? NOTHING
    const stored = pieces.length === 0 ? undefined : this.#handler.content(pieces)
    if (rest === undefined) return stored ?? true
    this.#content = null
    if (stored === undefined) return this.#handler.contentEnd(content) ?? true
    return stored.then(() => this.#handler.contentEnd(content))
  }
}
