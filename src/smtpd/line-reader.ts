/**
 * Splits the bytes of a client into command lines and contents. It replaces the reader of smtp-server, which ends a line at any
 * LF and does not normalize line ends in content. While a command is handled or content is stored, the socket is paused.
 */
import { SMTPStream } from 'smtp-server/lib/smtp-stream.js'
import type { ContentReader } from './data-stream.ts'

const LF = 0x0a
const CR = 0x0d
const NOTHING = Buffer.alloc(0)

/** Maximum octets of a command line (Postfix line_length_limit). The rest of a longer line is skipped. */
const LINE_LIMIT = 2048
/** Number of octets without a line end after which the handler may disconnect. */
const ENDLESS_LINE = 16_384

export interface CommandLine {
  readonly text: string
  /** True when the line ended in LF without a CR. */
  readonly bareNewline: boolean
  /** True when the line was longer than LINE_LIMIT. `text` is then empty. */
  readonly tooLong: boolean
}

/** Receives lines and content. When a method returns a promise, reading stops until the promise resolves. */
export interface LineHandler {
  line(line: CommandLine): Promise<void> | undefined
  content(pieces: readonly Uint8Array[]): Promise<void> | undefined
  contentEnd(): Promise<void> | undefined
  endlessLine(): void
  /** Called when all input so far has been handled. */
  idle(): Promise<void> | undefined
  /** Called with the size of each piece of input, in bytes, before the piece is split into lines. */
  received(bytes: number): void
  /** Called when a method of the handler has thrown, which is a bug. */
  failed(error: unknown): void
}

type Next = (error?: Error | null) => void

export class LineReader extends SMTPStream {
  readonly #handler: LineHandler
  #bytes: Buffer = NOTHING
  /** Size of the packet that is being read. The stream still counts these bytes as unread. */
  #chunk = 0
  #content: ContentReader | null = null
  /** Bytes of an overlong line that were skipped. */
  #skipped = 0

  constructor(handler: LineHandler) {
    super()
    this.#handler = handler
  }

  /** Treats the following bytes as content. */
  startContent(content: ContentReader): void {
    this.#content = content
  }

  get inContent(): boolean {
    return this.#content !== null
  }

  /** True when bytes were received that were not passed to the handler yet. */
  get hasMore(): boolean {
    return this.#bytes.length > 0 || this.writableLength > this.#chunk
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding | 'buffer', next: Next): void {
    this.#chunk = chunk.length
    this.#handler.received(chunk.length)
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk])
    this.#run(next)
  }

  /** Discards the remaining bytes at the end of the connection. smtp-server would run them as a command. */
  override _flushData(): void {
    this.#bytes = NOTHING
  }

  /** Reads until more bytes are needed or the handler returns a promise. */
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

  /** Returns true when a line was handled, false when more bytes are needed, or the promise of the handler. */
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
      // The last byte is kept, because it may be the CR of the line end.
      this.#bytes = Buffer.from(this.#bytes.subarray(-1))
      if (this.#skipped > ENDLESS_LINE) this.#handler.endlessLine()
    }
    return false
  }

  #readContent(content: ContentReader): Promise<void> | boolean {
    const { pieces, rest } = content.read(this.#bytes)
    this.#bytes = rest ?? NOTHING
    const stored = pieces.length === 0 ? undefined : this.#handler.content(pieces)
    if (rest === undefined) return stored ?? true
    this.#content = null
    if (stored === undefined) return this.#handler.contentEnd() ?? true
    return stored.then(() => this.#handler.contentEnd())
  }
}
