/**
 * Lists pages of messages that match a filter. A message and its live recipients are read by one statement, in pages of all mail by two. A
 * page is searched in slices of ids, whose size doubles while too few messages match.
 */
import { parseQueueId } from '../../mail/queue-id.ts'
import { messageOf, type DestinationName, type MessageId, type RecipientId, type RecipientState } from '../../mail/message.ts'
import type { ListedMessage, ListedRecipient, ListPage, Survey, SurveyPage } from '../queue-reader.ts'
import { conditionsIn, exactDestination, type QueueFilter } from '../message-conditions.ts'
import { toListedMessage, toListedRecipient } from './listed-rows.ts'
import { int8s } from './session/arrays.ts'
import type { Statements } from './session/database-connection.ts'
import { shardsAt } from './provider-rows.ts'
import * as sql from './reader-queries.ts'
import { wholePage } from './whole-listing.ts'
import type { ListedRow } from './writing/rows.ts'

/** Maximum number of ids that one statement covers. */
const SLICE = 16_000
/** Maximum number of recipients at a destination for which the indexes on destination are used, which are not ordered by id. */
export const FEW = 20_000

/** A live recipient as JSON. */
type LiveEntry = readonly [
  id: RecipientId,
  state: RecipientState,
  destination: DestinationName,
  address: string,
  orcpt: string | null,
  dueAt: number,
  expiresAt: number,
  steps: number,
  attempts: number,
  last: string | null,
]

type Row = ListedRow & {
  /** Live recipients; null when there are none. */
  readonly live: readonly ListedRecipient[] | null
  /** Absent in a page without a limit of recipients. */
  readonly live_count?: number
  readonly queue?: ListedMessage['queue']
}

/** A row of `listedBy`. */
type AggregatedRow = Omit<Row, 'live'> & { readonly live: readonly LiveEntry[] | null }

/** Messages with a recipient at a destination; `isLast` when there are no more. */
interface Candidates {
  readonly messages: readonly MessageId[]
  readonly isLast: boolean
}

/** Ids above `after` and up to `through`. */
type Ids = Pick<Range, 'after' | 'through'>

/** A page with an upper limit of ids. */
type Range = ListPage & { readonly through: MessageId }

export class Listing {
  readonly #reading: Statements
  /** The destination of the last filter, and whether it had few recipients: all pages of a listing use the same method. */
  #known = { destination: '', isFew: false }

  constructor(reading: Statements) {
    this.#reading = reading
  }

  async list(filter: QueueFilter, page: ListPage): Promise<readonly ListedMessage[]> {
    const through = Math.min(page.through ?? Infinity, Number.MAX_SAFE_INTEGER)
    // Only slices need an end.
    const range = { ...page, through: sql.needsNoSlices(filter) ? through : Math.min(await this.#last(), through) }
    const destination = exactDestination(filter)
    if (destination !== null && (await this.#isFew(destination, page))) return this.#at(destination, filter, range)
    return page.newestFirst === true ? this.#backwards(filter, range) : this.#between(filter, range)
  }

  /** The message with this queue id, as a list: empty when the message does not exist or the filter does not match. */
  async one(queueId: string, filter: QueueFilter, page: ListPage): Promise<readonly ListedMessage[]> {
    const { after, through = Infinity } = page
    const id = parseQueueId(queueId)
    if (id === undefined || id.row <= after || id.row > through) return []
    const { listed } = await this.#page(filter, { after: id.row - 1, through: id.row }, page, 1)
    return listed.filter(({ message }) => message.createdAt === id.createdAt)
  }

  /**
   * Counts the messages of one slice. A destination with few recipients is one slice, because its recipients are found by its index.
   */
  async survey(
    filter: QueueFilter,
    { after, through: asked, size, queues, destinations: isDetailed, bounds = [] }: SurveyPage,
  ): Promise<Survey> {
    const end = Math.min(await this.#last(), asked)
    const destination = exactDestination(filter)
    const isFew = destination !== null && (await this.#isFew(destination, { after, limit: size }))
    const [next] = await this.#reading.query<{ id: MessageId }>(sql.nextMessage, [after])
    if (next === undefined || next.id > end) return { ...NOTHING, arrivedBefore: bounds.map(() => 0) }
    const through = isFew ? end : Math.min(next.id + size - 1, end)
    const ids = isFew ? { candidates: int8s((await this.#candidates(destination, { after, through }, FEW)).messages) } : { after, through }
    const asks = (destinations: boolean) => sql.surveyedBy(filter, ids, { queues, destinations, bounds })
    const [[counts], destinations] = await Promise.all([
      this.#asked<Survey>(asks(false)),
      isDetailed ? this.#asked<Survey['destinations'][number]>(asks(true)) : [],
    ])
    return { ...(counts ?? NOTHING), last: through === end ? null : through, destinations }
  }

  #asked<Found extends object>({ text, parameters }: sql.Query): Promise<readonly Found[]> {
    return this.#reading.query<Found>(text, parameters)
  }

  /** The highest id; 0 for an empty queue. */
  async #last(): Promise<MessageId> {
    const [last] = await this.#reading.query<{ id: MessageId | null }>(sql.lastMessage)
    return last?.id ?? 0
  }

  async #isFew(destination: DestinationName, { after, through, newestFirst = false }: ListPage): Promise<boolean> {
    const isFirst = newestFirst ? through === undefined : after === 0
    if (isFirst || destination !== this.#known.destination) {
      const [count] = await this.#reading.query<{ found: number }>(sql.countAt, [
        await shardsAt(this.#reading, destination),
        destination,
        FEW,
      ])
      this.#known = { destination, isFew: (count?.found ?? 0) < FEW }
    }
    return this.#known.isFew
  }

  /** Messages with a live recipient at a destination, from the first `size` recipients. */
  async #candidates(destination: DestinationName, { after, through }: Ids, size: number, newestFirst = false): Promise<Candidates> {
    const statement = newestFirst ? sql.newestRecipientsAt : sql.recipientsAt
    const parameters = [await shardsAt(this.#reading, destination), destination, after, through, size]
    const recipients = await this.#reading.query<{ id: RecipientId }>(statement, parameters)
    return { messages: [...new Set(recipients.map(({ id }) => messageOf(id)))], isLast: recipients.length < size }
  }

  /** Reads recipients at a destination until the page is full. Each read covers twice as many recipients as the one before. */
  async #at(destination: DestinationName, filter: QueueFilter, page: Range): Promise<readonly ListedMessage[]> {
    const { limit, newestFirst = false } = page
    const found: ListedMessage[] = []
    let { after, through } = page
    for (let size = limit; found.length < limit; size *= 2) {
      const { messages, isLast } = await this.#candidates(destination, { after, through }, size, newestFirst)
      const wanted = limit - found.length
      const { rows, listed } = await this.#page(filter, { candidates: int8s(messages) }, page, wanted)
      found.push(...listed)
      const isFull = rows.length === wanted
      if (!isFull && isLast) break
      const last = (isFull ? rows.at(-1)?.message : messages.at(-1)) ?? 0
      if (newestFirst) through = last - 1
      else after = last
    }
    return found
  }

  /** Reads a range of ids in slices. */
  async #between(filter: QueueFilter, page: Range): Promise<readonly ListedMessage[]> {
    const { after, through: end, limit } = page
    const found: ListedMessage[] = []
    const isUnsliced = sql.needsNoSlices(filter)
    let from = after
    for (let size = limit; found.length < limit && from < end; size = Math.min(2 * size, SLICE)) {
      // Messages that have left the queue leave gaps, so the search continues at the next id that exists.
      const [next] = isUnsliced ? [{ id: from + 1 }] : await this.#reading.query<{ id: MessageId }>(sql.nextMessage, [from])
      if (next === undefined) break
      const through = isUnsliced ? end : Math.min(next.id + size - 1, end)
      const wanted = limit - found.length
      const { rows, listed } = await this.#page(filter, { after: from, through }, page, wanted)
      found.push(...listed)
      if (isUnsliced && rows.length < wanted) break
      from = rows.length === wanted ? (rows.at(-1)?.message ?? through) : through
    }
    return found
  }

  /** Reads a range of ids in slices, the highest first. */
  async #backwards(filter: QueueFilter, page: Range): Promise<readonly ListedMessage[]> {
    const { after, through: end, limit } = page
    const found: ListedMessage[] = []
    const isUnsliced = sql.needsNoSlices(filter)
    let to = end
    for (let size = limit; found.length < limit && to > after; size = Math.min(2 * size, SLICE)) {
      const [previous] = isUnsliced ? [{ id: to }] : await this.#reading.query<{ id: MessageId }>(sql.previousMessage, [to])
      if (previous === undefined || previous.id <= after) break
      const from = isUnsliced ? after : Math.max(after, previous.id - size)
      const wanted = limit - found.length
      const { rows, listed } = await this.#page(filter, { after: from, through: previous.id }, page, wanted)
      found.push(...listed)
      to = rows.length === wanted ? (rows.at(-1)?.message ?? 0) - 1 : from
    }
    return found
  }

  async #matching(filter: QueueFilter, ids: sql.SelectedIds, form: sql.ListedForm): Promise<readonly Row[]> {
    const isWhole = 'after' in ids && form.recipients === undefined && conditionsIn(filter).length === 0
    const rows = isWhole ? await wholePage(this.#reading, ids, form) : null
    return rows ?? (await this.#asked<AggregatedRow>(sql.listedBy(filter, ids, form))).map(withLive)
  }

  /** Returns the rows, and the messages among them that have live recipients and are in the queue of the filter. */
  async #page(
    filter: QueueFilter,
    ids: sql.SelectedIds,
    { newestFirst = false, recipients: most }: ListPage,
    limit: number,
  ): Promise<{ readonly rows: readonly Row[]; readonly listed: readonly ListedMessage[] }> {
    const form = { limit, newestFirst, recipients: most }
    const [rows, names] = await Promise.all([
      this.#matching(filter, ids, form),
      most === undefined ? this.#reading.query<{ name: DestinationName }>(sql.closedDestinations) : [],
    ])
    const closed = new Set(names.map(({ name }) => name))
    const listed: ListedMessage[] = []
    for (const row of rows) {
      if (row.live === null) continue
      const queue = row.queue ?? queueOf(row, row.live, closed)
      if (filter.queue !== null && queue !== filter.queue) continue
      const [message, recipientCount] = [toListedMessage(row.message, row), row.live_count ?? row.live.length]
      listed.push({ message, queue, forcedExpire: row.forced_expire, recipients: row.live, recipientCount })
    }
    return { rows, listed }
  }
}

const withLive = ({ live, ...row }: AggregatedRow): Row => ({ ...row, live: live === null ? null : live.map(toLive) })

const NOTHING: Survey = { last: null, messages: 0, bytes: 0, oldestArrival: null, arrivedBefore: [], destinations: [] }

const toLive = ([id, state, destination, address, orcpt, due_at, expires_at, steps, attempts, last]: LiveEntry): ListedRecipient =>
  toListedRecipient({ id, state, destination, address, orcpt, due_at, expires_at, steps, attempts, last })

/** The queue of a message; the same definition as QUEUE_NAME in reader-queries.ts. */
function queueOf({ placement }: ListedRow, live: readonly ListedRecipient[], closed: ReadonlySet<DestinationName>): ListedMessage['queue'] {
  if (placement !== 'queued') return placement
  if (live.some(({ state }) => state === 'leased')) return 'active'
  const isDeferred = ({ attempts, destination }: ListedRecipient) => attempts > 0 || closed.has(destination)
  return live.some(isDeferred) ? 'deferred' : 'incoming'
}
