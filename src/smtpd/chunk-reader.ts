/** Reads the octets of one chunk after BDAT (RFC 3030 §2). The chunk ends by its length: no sequence of octets in it is special. */
import type { ContentRead, ContentReader, DataStream } from './data-stream.ts'

export class ChunkReader implements ContentReader {
  #left: number
  readonly #content: DataStream | null

  /** `content` normalizes the line ends of all chunks of a message. With null, the octets are skipped. */
  constructor(octets: number, content: DataStream | null) {
    this.#left = octets
    this.#content = content
  }

  read(bytes: Buffer): ContentRead {
    const own = bytes.subarray(0, this.#left)
    this.#left -= own.length
    const pieces = this.#content?.read(own).pieces ?? []
    return { pieces, rest: this.#left === 0 ? bytes.subarray(own.length) : undefined }
  }
}
