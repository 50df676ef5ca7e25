/** Formats the lines of a listing in parts. A part is the text of one page of messages. */
import type { QueueTime } from '../../system/clock.ts'
import type { WallView } from '../../system/wall-view.ts'
import type { OpenedReader } from '../shell/shell.ts'
import type { MessageId } from '../../mail/message.ts'
import type { ListedMessage } from '../../store/queue-reader.ts'
import type { QueueFilter } from '../../store/message-conditions.ts'
import { listRow, type ListForm } from '../render/list-row.ts'
import { listingLines } from '../../presentation/message-lines.ts'
import { messageRowJson } from '../../resources/message-row-json.ts'
import { pages } from '../../queue/list-pages.ts'
import { recordsByName, type DestinationRecords } from '../../presentation/recipient-status.ts'

export interface ListingOrder {
  readonly filter: QueueFilter
  readonly now: QueueTime
  /** Maximum number of messages; no limit when absent. */
  readonly limit?: number | undefined
  readonly form: ListForm
}

/** Ids greater than `after`, up to and including `through`. */
export interface IdRange {
  readonly after: MessageId
  readonly through: MessageId
}

export interface ListingPart {
  /** Number of messages. */
  readonly count: number
  readonly lines: Uint8Array
}

/** Yields one part per page of the range. Without a range, lists the whole queue. */
export async function* partsOf({ reader, clock }: OpenedReader, order: ListingOrder, range?: IdRange): AsyncGenerator<ListingPart> {
  const records = recordsByName(await reader.destinationRecords())
  for await (const page of pages(reader, { ...order, ...range })) {
    yield { count: page.length, lines: formatPage(page, { records, wall: clock.wall }, order) }
  }
}

export function formatPage(
  page: readonly ListedMessage[],
  { records, wall }: { readonly records: DestinationRecords; readonly wall: WallView },
  { form, now }: Pick<ListingOrder, 'form' | 'now'>,
): Uint8Array {
  if (form.kind === 'json') return listingLines(page, records, wall)
  const facts = { now: wall.of(now), form }
  return new TextEncoder().encode(page.map((listed) => `${listRow(messageRowJson(listed, records, wall), facts)}\n`).join(''))
}
