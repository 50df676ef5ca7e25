/**
 * Reads a queue file of Postfix, from the maildrop or from a queue: envelope, content, and the records after the content. A file with
 * any unknown, missing or contradictory part is refused. Pure.
 */
import type { FileKind, PostfixMessage } from './postfix-message.ts'
import { EnvelopeReader } from './queue-file-envelope.ts'
import { recordsOf, UnusableQueueFile, type QueueRecord } from './queue-records.ts'

const CRLF = Buffer.from('\r\n')
const LF = 0x0a

/** Reads a file. Throws UnusableQueueFile. */
export function readQueueFile(file: Buffer, kind: FileKind): PostfixMessage {
  const envelope = new EnvelopeReader(kind)
  const content = new ContentReader()
  let part: 'envelope' | 'content' | 'extracted' = 'envelope'
  for (const record of recordsOf(file)) {
    if (part === 'content') {
      if (record.type === 'X') part = 'extracted'
      else content.take(record)
      if (part === 'extracted') envelope.endContent(record)
    } else if (record.type === 'M') {
      if (part === 'extracted') throw new UnusableQueueFile('it has two contents')
      envelope.beginContent(record)
      part = 'content'
    } else if (record.type === 'E') {
      if (part !== 'extracted') throw new UnusableQueueFile('it has no content')
    } else envelope.take(record)
  }
  return { ...envelope.end(), content: content.end() }
}

/** Joins the lines of the content. A record `N` is a line or its end, `L` a part of a line, `w` padding where a filter edits. */
class ContentReader {
  readonly #pieces: Buffer[] = []
  #endsInLine = false

  take({ type, data, isEditable }: QueueRecord): void {
    if (type === 'w' && isEditable) return
    if (type !== 'N' && type !== 'L') throw new UnusableQueueFile(`its content has a record of the type ${JSON.stringify(type)}`)
    if (data.includes(LF)) throw new UnusableQueueFile('a line of its content contains a line end')
    this.#pieces.push(data)
    this.#endsInLine = type === 'L'
    if (type === 'N') this.#pieces.push(CRLF)
  }

  end(): Buffer {
    if (this.#endsInLine) this.#pieces.push(CRLF)
    return Buffer.concat(this.#pieces)
  }
}
