/**
 * Splits the bytes of a client into command lines and contents. It replaces the reader of smtp-server, which ends a line at any
 * LF and does not normalize line ends in content. While a command is handled or content is stored, further bytes wait.
 */
import { isUtf8 } from 'node:buffer'
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
  /** True when the octets are no UTF-8. `text` then has U+FFFD in their place. */
  readonly isBroken: boolean
}

/** Receives lines and content. When a method returns a promise, reading stops until the promise resolves. */
export interface LineHandler {
  line(line: CommandLine): Promise<void> | undefined
  content(pieces: readonly Uint8Array[]): Promise<void> | undefined
  contentEnd(): Promise<void> | undefined
  endlessLine(): void
  /** Called when all input so far has been handled. */
  idle(): Promise<void> | undefined
  /** Called when packets are read again, after `take` returned false. */
  resumed(): void
  /** Called with the size of each piece of input, in bytes, before the piece is split into lines. */
  received(bytes: number): void
  /** Called when a method of the handler has thrown, which is a bug. */
  failed(error: unknown): void
}

export class LineReader {
  readonly #handler: LineHandler
  #bytes: Buffer = NOTHING
  /** Bytes that were received while the handler worked. */
  #waiting: Buffer = NOTHING
  #working = false
  #closed = false
  #content: ContentReader | null = null
  /** Bytes of an overlong line that were skipped. */
  #skipped = 0

  constructor(handler: LineHandler) {
    this.#handler = handler
  }

  /** Treats the following bytes as content. */
  startContent(content: ContentReader): void {
    this.#content = content
  }

  /** True when bytes were received that were not passed to the handler yet. */
  get hasMore(): boolean {
    return this.#bytes.length > 0 || this.#waiting.length > 0
  }

  /** Reads a packet. Returns false when no other one should follow before `LineHandler.resumed`. */
  take(packet: Buffer): boolean {
    if (this.#closed) return true
    if (this.#working) {
      this.#waiting = this.#waiting.length === 0 ? packet : Buffer.concat([this.#waiting, packet])
      return false
    }
    this.#read(packet)
    return true
  }

  /** Discards the bytes that were not passed to the handler, and all later ones. */
  close(): void {
    this.#closed = true
    this.#bytes = NOTHING
    this.#waiting = NOTHING
  }

  #read(packet: Buffer): void {
    this.#working = true
    this.#handler.received(packet.length)
    this.#bytes = this.#bytes.length === 0 ? packet : Buffer.concat([this.#bytes, packet])
    this.#run()
  }

  /** Reads until more bytes are needed or the handler returns a promise. */
  #run(): void {
    try {
      for (;;) {
        const more = this.#bytes.length > 0 && (this.#content === null ? this.#readLine() : this.#readContent(this.#content))
        if (more === true) continue
        const wait = more === false ? this.#handler.idle() : more
        if (wait !== undefined) return this.#continueAfter(wait)
        return this.#proceed()
      }
    } catch (error) {
      this.#fail(error)
    }
  }

  #continueAfter(wait: Promise<void>): void {
    wait.then(
      () => this.#run(),
      (error: unknown) => this.#fail(error),
    )
  }

  /** Reads what was received meanwhile. */
  #proceed(): void {
    this.#working = false
    const waiting = this.#waiting
    if (waiting.length === 0) return
    this.#waiting = NOTHING
    this.#read(waiting)
    this.#handler.resumed()
  }

  #fail(error: unknown): void {
    this.close()
    this.#working = false
    this.#handler.failed(error)
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
    const isBroken = text.includes('\ufffd') && !isUtf8(line)
    return this.#handler.line({ text, bareNewline, tooLong, isBroken }) ?? true
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
