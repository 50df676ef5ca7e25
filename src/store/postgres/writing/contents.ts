/** Reads contents. Throws ContentUnreadable when the bytes differ from those that were queued. */
import { crc32 } from '../../../system/crc32.ts'
import type { ContentId } from '../../../mail/message.ts'
import { ContentUnreadable } from '../../errors.ts'
import { int4s, int8s } from '../session/arrays.ts'
import type { Statements } from '../session/database-connection.ts'
import type { OwnLeases } from './own-leases.ts'
import * as sql from './queries.ts'

/** Maximum number of parts, of 64 kB each, that one statement reads. */
const PARTS = 32

interface Part {
  readonly crc: number
  readonly data: Uint8Array
}

interface Place {
  readonly content: ContentId
  /** Number of the part, from 0. */
  readonly index: number
}

const keyOf = ({ content, index }: Place): string => `${content} ${index}`

interface Request extends Place {
  readonly resolve: (part: Part | undefined) => void
  readonly reject: (error: unknown) => void
}

/**
 * Reads parts of contents. Parts that are requested during a statement are read together by the next one: claimed messages come in
 * numbers, and a statement for each would cost the server as much as their deliveries.
 */
export class Contents {
  readonly #reading: Statements
  readonly #leases: Pick<OwnLeases, 'takeContent'> | null
  #requests: Request[] = []
  #isReading = false

  /** `leases` have contents that need no statement. */
  constructor(reading: Statements, leases: Pick<OwnLeases, 'takeContent'> | null = null) {
    this.#reading = reading
    this.#leases = leases
  }

  /** Part of a content; undefined after the last one, and for a content that no message has. */
  async readChunk(content: ContentId, index: number): Promise<Uint8Array | undefined> {
    const kept = index === 0 ? this.#leases?.takeContent(content) : undefined
    if (kept !== undefined) return new Uint8Array(kept)
    const part = await this.#part(content, index)
    if (part === undefined) {
      const [found] = await this.#reading.query<{ last: number }>(sql.lastChunkOf, [content])
      if (index > (found?.last ?? -1)) return undefined
      throw new ContentUnreadable(`part ${index} of content ${content} is missing`)
    }
    if (crc32(part.data) !== part.crc) throw new ContentUnreadable(`part ${index} of content ${content} is damaged`)
    // The client's buffers are views of what the socket received, and the caller owns its chunk.
    return new Uint8Array(part.data)
  }

  #part(content: ContentId, index: number): Promise<Part | undefined> {
    return new Promise((resolve, reject) => {
      this.#requests.push({ content, index, resolve, reject })
      if (!this.#isReading) void this.#readAll()
    })
  }

  async #readAll(): Promise<void> {
    this.#isReading = true
    while (this.#requests.length > 0) {
      const requests = this.#requests.splice(0, PARTS)
      try {
        const parts = await this.#parts(requests)
        for (const request of requests) request.resolve(parts.get(keyOf(request)))
      } catch (error) {
        for (const { reject } of requests) reject(error)
      }
    }
    this.#isReading = false
  }

  async #parts(requests: readonly Request[]): Promise<ReadonlyMap<string, Part>> {
    const rows = await this.#reading.query<Part & Place>(sql.contentParts, [
      int8s(requests.flatMap(({ content, index }) => (index === 0 ? [content] : []))),
      int8s(requests.map(({ content }) => content)),
      int4s(requests.map(({ index }) => index)),
    ])
    return new Map(rows.map((row) => [keyOf(row), row]))
  }
}
