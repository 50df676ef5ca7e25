/** Why a content cannot be read: its message has left the queue, which removes it, or keeps it for a time so that it can be sent again. */
import type { Message } from '../mail/message.ts'
import { isoTime } from '../presentation/text.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { WallTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'

interface AbsentContent {
  readonly isKept: boolean
  /** A sentence without its end. */
  readonly detail: string
  /** Instants in the sentence. */
  readonly instants: readonly WallTime[]
}

/** `queueId` is the name of the message in the sentence. */
export async function absentContent(
  { records }: Pick<QueueReader, 'records'>,
  { id }: Pick<Message, 'id'>,
  { queueId, wall }: { readonly queueId: string; readonly wall: WallView },
): Promise<AbsentContent> {
  const kept = await records.keptContents.of(id)
  if (kept === undefined)
    return { isKept: false, detail: `the content of ${queueId} is no longer stored: the message has left the queue`, instants: [] }
  const until = wall.of(kept.until)
  const end = `stored until ${isoTime(until)}, so that it can be sent again`
  return { isKept: true, detail: `the content of ${queueId} is not shown: the message has left the queue. It is ${end}`, instants: [until] }
}
