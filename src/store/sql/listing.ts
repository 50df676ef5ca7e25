/**
 * Lists and counts messages that match a filter. A message and its live recipients are read in one state of the queue. A page is searched
 * in slices of ids. The slice size doubles while too few messages match, so that a common match reads few rows and a rare match needs few
 * statements.
 */
import { parseQueueId } from '../../mail/queue-id.ts'
import { messageOf, recipientId, type DestinationName, type MessageId, type RecipientId } from '../../mail/message.ts'
import type { ListedMessage, ListPage, Survey, SurveyPage } from '../queue-reader.ts'
import { exactDestination, type QueueFilter } from '../message-conditions.ts'
import type { ReadingEngine } from './engine.ts'
import { needsNoSlices, surveyByDestination, surveyBySender, surveyOf, type Selection } from './message-selection.ts'
import * as sql from './queue-queries.ts'
import { each, none, rowOf, rowsOf, together, type Read } from './read.ts'
import type { IdRange, PlaceOf } from './spelling.ts'

/** Maximum number of ids that one statement covers. A statement takes some milliseconds. */
const SLICE = 16_000
/**
 * Maximum number of recipients at a destination for which the indexes on destination are used. These indexes are not ordered by
 * id, so each page reads all entries of the destination, which takes some milliseconds. For more recipients, a scan by id is
 * faster.
 */
export const FEW = 20_000

/** A page of messages, as far as it is found. */
interface Search {
  readonly filter: QueueFilter
  readonly page: ListPage
  readonly found: ListedMessage[]
}

/** The parts of a survey, and their filter. */
interface SurveyedParts extends Required<Pick<SurveyPage, 'queues' | 'bounds' | 'destinations' | 'senders'>> {
  readonly filter: QueueFilter
}

export class Listing {
  readonly #engine: ReadingEngine
  /** The destination of the last filter, and whether it had few recipients: all pages of a listing use the same method. */
  #known = { destination: '', isFew: false }

  constructor(engine: ReadingEngine) {
    this.#engine = engine
  }

  *list(filter: QueueFilter, page: ListPage): Read<readonly ListedMessage[]> {
    const search: Search = { filter, page, found: [] }
    if (filter.queueId !== null) return yield* this.#one(filter.queueId, search)
    const through = Math.min(page.through ?? Infinity, Number.MAX_SAFE_INTEGER)
    const isUnsliced = needsNoSlices(filter, this.#engine.spelling)
    // Only slices need an end.
    const range = { after: page.after, through: isUnsliced ? through : Math.min(yield* this.#last(), through) }
    const destination = exactDestination(filter)
    if (destination !== null && (yield* this.#isFew(destination, page))) yield* this.#at(destination, search, range)
    else yield* this.#between(search, range, isUnsliced)
    return search.found
  }

  /** The message with a queue id. */
  *#one(queueId: string, search: Search): Read<readonly ListedMessage[]> {
    const { after, through = Infinity } = search.page
    const id = parseQueueId(queueId)
    if (id === undefined || id.row <= after || id.row > through) return []
    yield* together(this.#select(search, { after: id.row - 1, through: id.row }))
    return search.found.filter(({ message }) => message.createdAt === id.createdAt)
  }

  /** Reads recipients at a destination until the page is full. Each read covers twice as many recipients as the one before. */
  *#at(destination: DestinationName, search: Search, range: IdRange): Read<void> {
    const place = yield* this.#engine.place(destination)
    let rest: IdRange | null = range
    for (let size = search.page.limit; rest !== null && search.found.length < search.page.limit; size *= 2)
      rest = yield* together(this.#among(place, size, search, rest))
  }

  /** Selects among the messages of the next `size` recipients of a range, and returns the rest of the range; null without a rest. */
  *#among(place: PlaceOf, size: number, search: Search, range: IdRange): Read<IdRange | null> {
    const { newestFirst = false } = search.page
    const { candidates, isLast } = yield* candidatesAt(place, range, size, newestFirst)
    const last = (yield* this.#select(search, { candidates })) ?? (isLast ? undefined : candidates.at(-1))
    return last === undefined ? null : beyond(last, range, newestFirst)
  }

  /** Reads a range of ids, in slices unless the statement skips few rows. */
  *#between(search: Search, range: IdRange, isUnsliced: boolean): Read<void> {
    const { limit, newestFirst = false } = search.page
    let rest = range
    for (let size = limit; search.found.length < limit && rest.after < rest.through; size = Math.min(2 * size, SLICE)) {
      const slice = isUnsliced ? rest : yield* sliceOf(rest, size, newestFirst)
      if (slice === null) return
      const last = yield* together(this.#select(search, slice))
      if (last === undefined && isUnsliced) return
      rest = beyond(last ?? (newestFirst ? slice.after + 1 : slice.through), rest, newestFirst)
    }
  }

  /** Adds the messages of a selection to the page. Returns the last one when as many as the page has room for were read. */
  *#select({ filter, page, found }: Search, ids: Selection): Read<MessageId | undefined> {
    const { newestFirst = false, recipients } = page
    const limit = page.limit - found.length
    const { matched, last, listed } = yield* this.#engine.page(filter, ids, { limit, newestFirst, recipients })
    for (const one of listed) if (filter.queue === null || one.queue === filter.queue) found.push(one)
    return matched === limit ? last : undefined
  }

  /**
   * Counts the messages of one slice. A destination with few recipients is one slice, because its recipients are found by its index.
   */
  *survey(
    filter: QueueFilter,
    { after, through: asked, size, queues, destinations, senders = false, bounds = [] }: SurveyPage,
  ): Read<Survey> {
    const end = Math.min(yield* this.#last(), asked)
    const destination = exactDestination(filter)
    const isFew = destination !== null && (yield* this.#isFew(destination, { after, limit: size }))
    const next = yield* rowOf<{ id: MessageId }>(sql.nextMessage(after))
    if (next === undefined || next.id > end) return { ...NOTHING, arrivedBefore: bounds.map(() => 0) }
    const through = isFew ? end : Math.min(next.id + size - 1, end)
    const place = isFew ? yield* this.#engine.place(destination) : null
    const counted = yield* together(this.#counted({ filter, queues, bounds, destinations, senders }, { after, through }, place))
    return { ...counted, last: through === end ? null : through }
  }

  /** Counts the messages of a range; with `place`, those of the recipients there. */
  *#counted(
    { filter, queues, bounds, destinations, senders }: SurveyedParts,
    range: IdRange,
    place: PlaceOf | null,
  ): Read<Omit<Survey, 'last'>> {
    const { spelling } = this.#engine
    const ids = place === null ? range : { candidates: (yield* candidatesAt(place, range, FEW, false)).candidates }
    const wanted = { filter, ids, queues }
    const [counts, byDestination, bySender] = yield* each<[Counts | undefined, Survey['destinations'], Survey['senders']]>([
      rowOf(surveyOf(wanted, bounds, spelling)),
      destinations ? rowsOf(surveyByDestination(wanted, spelling)) : none(),
      senders ? rowsOf(surveyBySender(wanted, spelling)) : none(),
    ])
    const { messages, bytes, oldestArrival } = counts ?? NOTHING
    const arrivedBefore = bounds.map((_, n) => counts?.[`before${n}`] ?? 0)
    return { messages, bytes, oldestArrival, arrivedBefore, destinations: byDestination, senders: bySender }
  }

  /** The highest id; 0 for an empty queue. */
  *#last(): Read<MessageId> {
    return (yield* rowOf<{ id: MessageId | null }>(sql.lastMessage))?.id ?? 0
  }

  /** Whether a destination has few recipients. Counted for the first page only. */
  *#isFew(destination: DestinationName, { after, through, newestFirst = false }: ListPage): Read<boolean> {
    const isFirst = newestFirst ? through === undefined : after === 0
    if (isFirst || destination !== this.#known.destination)
      this.#known = { destination, isFew: yield* hasFew(yield* this.#engine.place(destination)) }
    return this.#known.isFew
  }
}

export function* hasFew(place: PlaceOf): Read<boolean> {
  return ((yield* rowOf<{ found: number }>(sql.countAt(place, FEW)))?.found ?? 0) < FEW
}

/** The first part of a range that has messages; null without one. Messages that have left the queue leave gaps between the ids. */
function* sliceOf({ after, through }: IdRange, size: number, newestFirst: boolean): Read<IdRange | null> {
  const next = yield* rowOf<{ id: MessageId }>(newestFirst ? sql.previousMessage(through) : sql.nextMessage(after))
  if (next === undefined || next.id <= after || next.id > through) return null
  return newestFirst
    ? { after: Math.max(after, next.id - size), through: next.id }
    : { after, through: Math.min(next.id + size - 1, through) }
}

/** Messages of a range with a live recipient at a destination, from the first `size` recipients; `isLast` when there are no more. */
function* candidatesAt(place: PlaceOf, { after, through }: IdRange, size: number, newestFirst: boolean) {
  const range = {
    first: recipientId(after + 1, 0),
    last: Math.min(recipientId(through + 1, 0) - 1, Number.MAX_SAFE_INTEGER),
    size,
    newestFirst,
  }
  const recipients = yield* rowsOf<{ id: RecipientId }>(sql.recipientsAt(place, range))
  return { candidates: [...new Set(recipients.map(({ id }) => messageOf(id)))], isLast: recipients.length < size }
}

/** The part of a range behind a message. */
const beyond = (last: MessageId, range: IdRange, newestFirst: boolean): IdRange =>
  newestFirst ? { ...range, through: last - 1 } : { ...range, after: last }

type Counts = Pick<Survey, 'messages' | 'bytes' | 'oldestArrival'> & { readonly [before: `before${number}`]: number }

const NOTHING: Survey = { last: null, messages: 0, bytes: 0, oldestArrival: null, arrivedBefore: [], destinations: [], senders: [] }
