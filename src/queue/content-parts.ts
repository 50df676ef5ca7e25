/** Content of a queued message, as it is sent. */
import type { MessageDetails, QueueReader } from '../store/queue-reader.ts'

const LF = 10
const CR = 13

/** Finds the end of the header, which includes the empty line after it. Lines may extend over several chunks. */
export class HeaderEnd {
  /** True while the current line is empty. */
  #lineEmpty = true
  #found = false

  /** Number of bytes in the chunk that belong to the header. */
  take(chunk: Uint8Array): number {
    if (this.#found) return 0
    for (const [at, byte] of chunk.entries()) {
      if (byte === LF) {
        if (this.#lineEmpty) {
          this.#found = true
          return at + 1
        }
        this.#lineEmpty = true
      } else if (byte !== CR) this.#lineEmpty = false
    }
    return chunk.length
  }
}

/** Yields the message as it is sent, or only its header or body, chunk by chunk. */
export async function* messageContent(
  reader: QueueReader,
  story: Pick<MessageDetails, 'message'>,
  parts: { readonly header: boolean; readonly body: boolean },
): AsyncGenerator<Uint8Array> {
  const { prependedHeaders = '' } = story.message
  if (parts.header && prependedHeaders !== '') yield Buffer.from(prependedHeaders)
  const end = new HeaderEnd()
  for (let index = 0; ; index++) {
    const chunk = await reader.readChunk(story.message, index)
    if (chunk === undefined) return
    const split = end.take(chunk)
    if (parts.header && split > 0) yield chunk.subarray(0, split)
    if (parts.body && split < chunk.length) yield chunk.subarray(split)
    if (!parts.body && split < chunk.length) return
  }
}
