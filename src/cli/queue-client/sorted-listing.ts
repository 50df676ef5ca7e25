/**
 * Sorts a listing, which needs the messages in memory. Without `--limit`, all messages that match are kept, and more than MOST_IN_MEMORY
 * messages are an error; with it, only the messages that sort first are kept.
 */
import { nextAttemptAt, recordsByName, type DestinationRecords } from '../../presentation/recipient-status.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { ListedMessage } from '../../store/queue-reader.ts'
import { pages } from '../../queue/list-pages.ts'
import type { OpenedReader } from '../shell/shell.ts'
import { formatPage, type ListingOrder, type ListingPart } from './listing-parts.ts'

/** Orders of a listing. Equal messages stay in the order of their arrival. */
export const SORTS = ['age', 'next', 'tries', 'size', 'sender', 'recipient'] as const
export type Sort = (typeof SORTS)[number]

const MOST_IN_MEMORY = 100_000

const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function nextOf({ recipients, queue }: ListedMessage, records: DestinationRecords): number {
  return recipients.reduce((least, recipient) => Math.min(least, nextAttemptAt(recipient, queue, records) ?? Infinity), Infinity)
}

const most = ({ recipients }: ListedMessage): number => recipients.reduce((largest, { attempts }) => Math.max(largest, attempts), 0)

/** Order of SORTS: oldest, next due, most attempts and largest first; addresses by their text. */
function comparison(sort: Sort, records: DestinationRecords): (a: ListedMessage, b: ListedMessage) => number {
  switch (sort) {
    case 'age':
      return (a, b) => a.message.arrivedAt - b.message.arrivedAt
    case 'next':
      return (a, b) => Math.sign(nextOf(a, records) - nextOf(b, records)) || 0
    case 'tries':
      return (a, b) => most(b) - most(a)
    case 'size':
      return (a, b) => b.message.size - a.message.size
    case 'sender':
      return (a, b) => text(a.message.sender, b.message.sender)
    case 'recipient':
      return (a, b) => text(a.recipients[0]?.address ?? '', b.recipients[0]?.address ?? '')
  }
}

/** Yields the listing in one part. Throws CommandError (64) for more messages than can be sorted. */
export async function* sortedListing(
  { reader, clock }: OpenedReader,
  { limit = Infinity, ...order }: ListingOrder,
  sort: Sort,
): AsyncGenerator<ListingPart> {
  const records = recordsByName(await reader.destinationRecords())
  const compare = comparison(sort, records)
  let kept: ListedMessage[] = []
  for await (const page of pages(reader, { filter: order.filter })) {
    kept.push(...page)
    if (kept.length <= MOST_IN_MEMORY) continue
    if (limit >= MOST_IN_MEMORY)
      throw new CommandError(EX.usage, `--sort takes at most ${MOST_IN_MEMORY} messages: add filters, or --limit`)
    kept = kept.toSorted(compare).slice(0, limit)
  }
  const listed = kept.toSorted(compare).slice(0, limit)
  if (listed.length > 0) yield { count: listed.length, lines: formatPage(listed, { records, wall: clock.wall }, order) }
}
