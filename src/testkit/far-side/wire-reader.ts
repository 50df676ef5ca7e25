/**
 * Bytes from a client: line by line, or a whole content up to the lone dot. It never believes anything else to be the
 * end of a line or of a message than RFC 5321 does, and the end of the connection is an answer like any other.
 */
import type { Socket } from 'node:net'

const END_OF_LINE = '\r\n'
const END_OF_CONTENT = '\r\n.\r\n'

/** So many bytes wait here before the client is held back. */
const ENOUGH = 65_536

const NOTHING: Buffer = Buffer.alloc(0)

export class WireReader {
  /** Resolves when the connection has ended; a client that is held back cannot be seen to leave. */
  readonly ended: Promise<void>
  readonly #socket: Socket
  readonly #noteEnd: () => void
  #chunks: Buffer[] = []
  #size = 0
  #ended = false
  #wake: (() => void) | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.#noteEnd = resolve
    socket.on('data', this.#take)
    for (const end of ['end', 'close', 'error']) socket.on(end, this.#end)
  }

  /** Leaves the socket to somebody else, with what was read of it and not used. */
  detach(): void {
    this.#socket.off('data', this.#take)
    for (const end of ['end', 'close', 'error']) this.#socket.off(end, this.#end)
  }

  /** The next line without its end; null when there is none any more. */
  async line(): Promise<string | null> {
    let line = NOTHING
    for (;;) {
      const chunk = await this.chunk()
      if (chunk === null) return null
      line = line.length === 0 ? chunk : Buffer.concat([line, chunk])
      const end = line.indexOf(END_OF_LINE)
      if (end < 0) continue
      this.#putBack(line.subarray(end + END_OF_LINE.length))
      return line.toString('utf8', 0, end)
    }
  }

  /**
   * A content with its dots unstuffed; null when the connection ended in it. `progress` is told of the bytes of each
   * piece and may take its time: the client is held back meanwhile. It says whether to read on.
   */
  async content(progress: (bytes: number) => Promise<boolean>): Promise<Buffer | null> {
    // The line end before the content belongs to DATA, and a dot right after it ends the content.
    const parts: Buffer[] = [Buffer.from(END_OF_LINE)]
    let tail = parts[0] ?? NOTHING
    for (;;) {
      const chunk = await this.chunk()
      if (chunk === null) return null
      const seam = Buffer.concat([tail, chunk])
      const end = seam.indexOf(END_OF_CONTENT)
      const used = end < 0 ? chunk : chunk.subarray(0, end + END_OF_CONTENT.length - tail.length)
      parts.push(used)
      this.#putBack(chunk.subarray(used.length))
      if (!(await progress(used.length))) return null
      if (end >= 0) return unstuff(Buffer.concat(parts))
      tail = seam.subarray(Math.max(0, seam.length - END_OF_CONTENT.length + 1))
    }
  }

  /** The next bytes as they come; null at the end of the connection. */
  async chunk(): Promise<Buffer | null> {
    while (this.#chunks.length === 0 && !this.#ended) await new Promise<void>((resolve) => (this.#wake = resolve))
    const chunk = this.#chunks.shift()
    if (chunk === undefined) return null
    this.#size -= chunk.length
    if (this.#size < ENOUGH && this.#socket.isPaused()) this.#socket.resume()
    return chunk
  }

  /** Resolves when the client has gone; whatever it says until then is lost. */
  async gone(): Promise<void> {
    while ((await this.chunk()) !== null);
  }

  #take = (bytes: Buffer): void => {
    this.#chunks.push(bytes)
    this.#size += bytes.length
    if (this.#size >= ENOUGH) this.#socket.pause()
    this.#rouse()
  }

  #end = (): void => {
    this.#ended = true
    this.#noteEnd()
    this.#rouse()
  }

  #rouse(): void {
    this.#wake?.()
    this.#wake = undefined
  }

  #putBack(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#chunks.unshift(bytes)
    this.#size += bytes.length
  }
}

/** Without the line end in front, the dot at the end, and the dots that were doubled (RFC 5321 §4.5.2). */
function unstuff(bytes: Buffer): Buffer {
  const lines = bytes.toString('latin1', 0, bytes.length - (END_OF_CONTENT.length - END_OF_LINE.length)).replaceAll('\r\n.', '\r\n')
  return Buffer.from(lines.slice(END_OF_LINE.length), 'latin1')
}
