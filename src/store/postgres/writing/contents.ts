/** Reads contents. Throws ContentUnreadable when the bytes differ from those that were queued. */
import { crc32 } from 'node:zlib'
import type { ContentId } from '../../../mail/message.ts'
import { ContentUnreadable } from '../../errors.ts'
import type { Statements } from '../session/database-connection.ts'
import * as sql from './queries.ts'

/** Part of a content; undefined after the last one, and for a content that no message has. */
export async function readChunk(reading: Statements, content: ContentId, index: number): Promise<Uint8Array | undefined> {
  const [row] = await reading.query<{ crc: number; data: Uint8Array }>(sql.chunkByNumber, [content, index])
  if (row === undefined) {
    const [found] = await reading.query<{ last: number }>(sql.lastChunkOf, [content])
    if (index > (found?.last ?? -1)) return undefined
    throw new ContentUnreadable(`part ${index} of content ${content} is missing`)
  }
  if (crc32(row.data) !== row.crc) throw new ContentUnreadable(`part ${index} of content ${content} is damaged`)
  // The client's buffers are views of what the socket received, and the caller owns its chunk.
  return new Uint8Array(row.data)
}
