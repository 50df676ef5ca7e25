/**
 * Lists pages of messages that match a filter. A message and its live recipients are read in one consistent state. A page is
 * searched in slices of ids. The slice size doubles while too few messages match, so that a common match reads few rows and a rare
 * match needs few statements.
 */
import type { Statement } from 'better-sqlite3'
import { parseQueueId } from '../../mail/queue-id.ts'
import { messageOf, type DestinationName, type MessageId, type Placement, type RecipientId } from '../../mail/message.ts'
import type { ListedMessage, ListedRecipient, ListPage, Survey, SurveyPage } from '../queue-reader.ts'
import { exactDestination, type QueueFilter } from '../message-conditions.ts'
import type { Database } from './file/database.ts'
import { isForcedToExpire, placementOf, toListedMessage, toListedRecipient, type ListedRecipientRow, type ListedRow } from './rows.ts'
import * as sql from './reader-queries.ts'

/** Maximum number of ids that one statement covers. A statement takes some milliseconds. */
const SLICE = 16_000
/**
 * Maximum number of recipients at a destination for which the indexes on destination are used. These indexes are not ordered by
 * id, so each page reads all entries of the destination, which takes some milliseconds. For more recipients, a scan by id is
 * faster.
 */
export const FEW = 20_000

interface LiveCount {
  readonly id: MessageId
  readonly recipients: number
  readonly isActive: 0 | 1
  readonly isDeferred: 0 | 1
}

/** Ids above `after` and up to `through`. */
type Ids = Pick<Range, 'after' | 'through'>

/** A page with an upper limit of ids. */
type Range = ListPage & { readonly through: MessageId }

export class Listing {
  readonly #db: Database
  readonly #last
  readonly #next
  readonly #previous
  readonly #live
  readonly #liveOf
  readonly #firstLive
  readonly #liveCounts
  /** Prepared statements by their SQL text, which depends on the keys of the filter. */
  readonly #statements = new Map<string, Statement<object[]>>()
  readonly #closed
  readonly #recipientsAt
  readonly #newestRecipientsAt
  readonly #countAt
  /** The destination of the last filter, and whether it had few recipients. */
  #known = { destination: '', isFew: false }

  constructor(db: Database) {
    this.#db = db
    this.#last = db.prepare<[], number | null>(sql.lastMessage).pluck()
    this.#next = db.prepare<[MessageId], number | null>(sql.nextMessage).pluck()
    this.#previous = db.prepare<[MessageId], number | null>(sql.previousMessage).pluck()
    this.#live = db.prepare<{ first: MessageId; last: MessageId }, ListedRecipientRow>(sql.liveBetween).raw()
    this.#liveOf = db.prepare<{ messages: string }, ListedRecipientRow>(sql.liveOf).raw()
    this.#firstLive = db.prepare<{ message: MessageId; most: number }, ListedRecipientRow>(sql.firstLiveOf).raw()
    this.#liveCounts = db.prepare<{ messages: string }, LiveCount>(sql.liveCountsOf)
    this.#closed = db.prepare<[], DestinationName>(sql.closedDestinations).pluck()
    this.#recipientsAt = db.prepare<object, RecipientId>(sql.recipientsAt).pluck()
    this.#newestRecipientsAt = db.prepare<object, RecipientId>(sql.newestRecipientsAt).pluck()
    this.#countAt = db.prepare<{ destination: DestinationName; most: number }, number>(sql.countAt).pluck()
  }

  list(filter: QueueFilter, page: ListPage): ListedMessage[] {
    const end = Math.min(this.#last.get() ?? 0, page.through ?? Infinity)
    const destination = exactDestination(filter)
    const range = { ...page, through: end }
    if (destination !== null && this.#isFew(destination, page)) return this.#at(destination, filter, range)
    return page.newestFirst === true ? this.#backwards(filter, range) : this.#between(filter, range)
  }

  /**
   * Whether a destination has few recipients. Counted for the first page only, so that all pages of a listing use the same
   * method.
   */
  #isFew(destination: DestinationName, { after, through, newestFirst = false }: ListPage): boolean {
    const isFirst = newestFirst ? through === undefined : after === 0
    if (isFirst || destination !== this.#known.destination) {
      this.#known = { destination, isFew: (this.#countAt.get({ destination, most: FEW }) ?? 0) < FEW }
    }
    return this.#known.isFew
  }

  /** Reads recipients at a destination until the page is full. Each read covers twice as many recipients as the one before. */
  #at(destination: DestinationName, filter: QueueFilter, page: Range): ListedMessage[] {
    const { after, through, limit, newestFirst = false } = page
    const statement = this.#statementFor(sql.listedAmong(filter, newestFirst))
    const recipientsAt = newestFirst ? this.#newestRecipientsAt : this.#recipientsAt
    const where = sql.boundBy(filter)
    const found: ListedMessage[] = []
    const look = (ids: Ids, size: number): Ids | null => {
      const recipients = recipientsAt.all({ destination, ...ids, size })
      const candidates = [...new Set(recipients.map(messageOf))]
      const wanted = limit - found.length
      const { rows, listed } = this.#page(statement.all({ ...where, candidates: JSON.stringify(candidates), limit: wanted }), page)
      for (const one of listed) if (isIn(one, filter)) found.push(one)
      const last = rows.length === wanted ? rows.at(-1)?.[0] : recipients.length < size ? undefined : candidates.at(-1)
      return last === undefined ? null : newestFirst ? { ...ids, through: last - 1 } : { ...ids, after: last }
    }
    let rest: Ids | null = { after, through }
    for (let size = limit; rest !== null && found.length < limit; size *= 2) {
      const ids: Ids = rest
      rest = this.#db.transaction(() => look(ids, size))()
    }
    return found
  }

  /** Reads a range of ids in slices. */
  #between(filter: QueueFilter, page: Range): ListedMessage[] {
    const { after, through: end, limit } = page
    const statement = this.#statementFor(sql.listedBy(filter))
    const where = sql.boundBy(filter)
    const found: ListedMessage[] = []
    const isUnsliced = sql.needsNoSlices(filter)
    let from = after
    for (let size = limit; found.length < limit && from < end; size = Math.min(2 * size, SLICE)) {
      // Messages that have left the queue leave gaps, so the search continues at the next id that exists.
      const next = this.#next.get(from) ?? null
      if (next === null) break
      const through = isUnsliced ? end : Math.min(next + size - 1, end)
      const wanted = { ...where, after: from, through, limit: limit - found.length }
      const { rows, listed } = this.#db.transaction(() => this.#page(statement.all(wanted), page))()
      for (const one of listed) if (isIn(one, filter)) found.push(one)
      if (isUnsliced && rows.length < wanted.limit) break
      from = rows.length === wanted.limit ? (rows.at(-1)?.[0] ?? through) : through
    }
    return found
  }

  /** Reads a range of ids in slices, the highest first. */
  #backwards(filter: QueueFilter, page: Range): ListedMessage[] {
    const { after, through: end, limit } = page
    const statement = this.#statementFor(sql.listedBy(filter, true))
    const where = sql.boundBy(filter)
    const found: ListedMessage[] = []
    const isUnsliced = sql.needsNoSlices(filter)
    let to = end
    for (let size = limit; found.length < limit && to > after; size = Math.min(2 * size, SLICE)) {
      const previous = this.#previous.get(to) ?? null
      if (previous === null || previous <= after) break
      const from = isUnsliced ? after : Math.max(after, previous - size)
      const wanted = { ...where, after: from, through: previous, limit: limit - found.length }
      const { rows, listed } = this.#db.transaction(() => this.#page(statement.all(wanted), page))()
      for (const one of listed) if (isIn(one, filter)) found.push(one)
      to = rows.length === wanted.limit ? (rows.at(-1)?.[0] ?? 0) - 1 : from
    }
    return found
  }

  /**
   * Counts the messages of one slice. A destination with few recipients is one slice, because its recipients are found by its index.
   */
  survey(filter: QueueFilter, { after, through: asked, size, queues, destinations: isDetailed, bounds = [] }: SurveyPage): Survey {
    const end = Math.min(this.#last.get() ?? 0, asked)
    const destination = exactDestination(filter)
    const isFew = destination !== null && this.#isFew(destination, { after, limit: size })
    const next = this.#next.get(after) ?? null
    if (next === null || next > end) return { ...NOTHING, arrivedBefore: bounds.map(() => 0) }
    const through = isFew ? end : Math.min(next + size - 1, end)
    const form = { queues, among: isFew }
    return this.#db.transaction(() => {
      const recipients = isFew ? this.#recipientsAt.all({ destination, after, through, size: FEW }) : []
      const candidates = isFew ? { candidates: JSON.stringify([...new Set(recipients.map(messageOf))]) } : { after, through }
      const where = { ...sql.boundBy(filter), ...candidates }
      const counted = sql.surveyedBy(filter, { ...form, destinations: false, bounds: bounds.length })
      const counts = this.#prepared<SurveyRow>(counted).get({ ...where, ...Object.fromEntries(bounds.map((at, n) => [`bound${n}`, at])) })
      const destinations = isDetailed
        ? this.#prepared<Survey['destinations'][number]>(sql.surveyedBy(filter, { ...form, destinations: true })).all(where)
        : []
      const arrivedBefore = counts === undefined ? bounds.map(() => 0) : (JSON.parse(counts.arrivedBefore) as readonly number[])
      return { ...NOTHING, ...counts, arrivedBefore, last: through === end ? null : through, destinations }
    })()
  }

  /** The message with this queue id, as a list: empty when the message does not exist or the filter does not match. */
  one(queueId: string, filter: QueueFilter, page: ListPage): ListedMessage[] {
    const { after, through = Infinity } = page
    const id = parseQueueId(queueId)
    if (id === undefined || id.row <= after || id.row > through) return []
    const wanted = { ...sql.boundBy(filter), after: id.row - 1, through: id.row, limit: 1 }
    const { listed } = this.#db.transaction(() => this.#page(this.#statementFor(sql.listedBy(filter)).all(wanted), page))()
    return listed.filter((one) => one.message.createdAt === id.createdAt && isIn(one, filter))
  }

  /** A statement of messages, whose rows are arrays. */
  #statementFor(text: string): Statement<object[], ListedRow> {
    return this.#prepared<ListedRow>(text).raw()
  }

  #prepared<Row>(text: string): Statement<object[], Row> {
    const known = this.#statements.get(text)
    if (known !== undefined) return known as Statement<object[], Row>
    const statement = this.#db.prepare<object[], Row>(text)
    this.#statements.set(text, statement)
    return statement
  }

  /** Returns the rows, and the messages among them that have live recipients. */
  #page(
    rows: readonly ListedRow[],
    { recipients: most, newestFirst = false }: ListPage,
  ): { readonly rows: readonly ListedRow[]; readonly listed: ListedMessage[] } {
    if (most !== undefined) return { rows, listed: this.#shortened(rows, most) }
    return { rows, listed: newestFirst ? this.#whole(rows.toReversed()).toReversed() : this.#whole(rows) }
  }

  /** The messages among the rows that have live recipients. The rows are in the order of ids. */
  #whole(rows: readonly ListedRow[]): ListedMessage[] {
    const live = this.#liveRecipientsOf(rows)
    const closed = new Set(this.#closed.all())
    const listed: ListedMessage[] = []
    let next = 0
    for (const row of rows) {
      const id = row[0]
      const recipients: ListedRecipient[] = []
      for (let one = live[next]; one !== undefined && messageOf(one[0]) <= id; one = live[++next]) {
        if (messageOf(one[0]) === id) recipients.push(toListedRecipient(one))
      }
      if (recipients.length === 0) continue
      listed.push({
        message: toListedMessage(row),
        queue: queueOf(placementOf(row), recipients, closed),
        forcedExpire: isForcedToExpire(row),
        recipients,
        recipientCount: recipients.length,
      })
    }
    return listed
  }

  /** The messages among the rows that have live recipients, each with at most `most` of them. */
  #shortened(rows: readonly ListedRow[], most: number): ListedMessage[] {
    const messages = JSON.stringify(rows.map(([id]) => id))
    const counts = new Map(this.#liveCounts.all({ messages }).map((one) => [one.id, one]))
    return rows.flatMap((row) => {
      const message = row[0]
      const count = counts.get(message)
      if (count === undefined) return []
      const { recipients, isActive, isDeferred } = count
      const placement = placementOf(row)
      const queue = placement !== 'queued' ? placement : isActive === 1 ? 'active' : isDeferred === 1 ? 'deferred' : 'incoming'
      return [
        {
          message: toListedMessage(row),
          queue,
          forcedExpire: isForcedToExpire(row),
          recipients: this.#firstLive.all({ message, most }).map(toListedRecipient),
          recipientCount: recipients,
        },
      ]
    })
  }

  /**
   * Live recipients of the rows, ordered by id. Reads one range of ids for a page of neighbouring messages, and one range per
   * message when the filter skips many messages.
   */
  #liveRecipientsOf(rows: readonly ListedRow[]): readonly ListedRecipientRow[] {
    const [first, last] = [rows[0]?.[0] ?? 0, rows.at(-1)?.[0] ?? 0]
    if (last - first < 4 * rows.length) return this.#live.all({ first, last })
    return this.#liveOf.all({ messages: JSON.stringify(rows.map(([id]) => id)) })
  }
}

type SurveyRow = Omit<Survey, 'arrivedBefore'> & { readonly arrivedBefore: string }

const NOTHING: Survey = { last: null, messages: 0, bytes: 0, oldestArrival: null, arrivedBefore: [], destinations: [] }

const isIn = (listed: ListedMessage, { queue }: QueueFilter): boolean => queue === null || listed.queue === queue

/** The queue of a message; the same definition as QUEUE_NAME in reader-queries.ts. */
function queueOf(placement: Placement, live: readonly ListedRecipient[], closed: ReadonlySet<DestinationName>): ListedMessage['queue'] {
  if (placement !== 'queued') return placement
  if (live.some(({ state }) => state === 'leased')) return 'active'
  const isDeferred = ({ attempts, destination }: ListedRecipient) => attempts > 0 || closed.has(destination)
  return live.some(isDeferred) ? 'deferred' : 'incoming'
}
