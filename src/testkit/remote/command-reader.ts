/**
 * Reads a client's bytes as lines, or as content up to the final dot. Only CRLF ends a line, and only CRLF.CRLF ends the content
 * (RFC 5321 §2.3.8, §4.1.1.4). The end of the connection is a result, not an error.
 */
import type { Socket } from 'node:net'

const END_OF_LINE = '\r\n'
const END_OF_CONTENT = '\r\n.\r\n'

/** Number of buffered bytes at which the socket is paused. */
const BUFFER_LIMIT = 65_536

const NOTHING: Buffer = Buffer.alloc(0)

export class CommandReader {
  /** Resolves when the connection has ended. The end is not noticed while the socket is paused. */
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

  /** Stops reading the socket. Bytes that are still in the buffer are lost with this reader. */
  detach(): void {
    this.#socket.off('data', this.#take)
    for (const end of ['end', 'close', 'error']) this.#socket.off(end, this.#end)
  }

  /** Next line without CRLF; null after the end of the connection. */
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
   * Reads the content and removes the stuffed dots. `progress` is called with the number of bytes of each read, and reading
   * continues when its promise resolves. Resolves with null when the connection ended before the final dot, or when `progress`
   * resolved with false.
   */
  async content(progress: (bytes: number) => Promise<boolean>): Promise<Buffer | null> {
    // The CRLF of DATA precedes the content, so that a dot directly after it ends an empty content.
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

  /** Next bytes as received; null at the end of the connection. */
  async chunk(): Promise<Buffer | null> {
    while (this.#chunks.length === 0 && !this.#ended) await new Promise<void>((resolve) => (this.#wake = resolve))
    const chunk = this.#chunks.shift()
    if (chunk === undefined) return null
    this.#size -= chunk.length
    if (this.#size < BUFFER_LIMIT && this.#socket.isPaused()) this.#socket.resume()
    return chunk
  }

  /** Resolves at the end of the connection. Bytes received until then are discarded. */
  async gone(): Promise<void> {
    while ((await this.chunk()) !== null);
  }

  #take = (bytes: Buffer): void => {
    this.#chunks.push(bytes)
    this.#size += bytes.length
    if (this.#size >= BUFFER_LIMIT) this.#socket.pause()
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

/** Removes the leading CRLF, the final dot and the doubled dots (RFC 5321 §4.5.2). */
function unstuff(bytes: Buffer): Buffer {
  const lines = bytes.toString('latin1', 0, bytes.length - (END_OF_CONTENT.length - END_OF_LINE.length)).replaceAll('\r\n.', '\r\n')
  return Buffer.from(lines.slice(END_OF_LINE.length), 'latin1')
}
