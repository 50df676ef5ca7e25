/**
 * Lists pages of messages that match a filter. A message and its live recipients are read in one consistent state. A page is
 * searched in slices of ids. The slice size doubles while too few messages match, so that a common match reads few rows and a rare
 * match needs few statements.
 */
import type { Statement } from 'better-sqlite3'
import { parseQueueId } from '../../mail/queue-id.ts'
import { messageOf, type DestinationName, type MessageId, type RecipientId } from '../../mail/message.ts'
import { exactDestination, type ListedMessage, type ListedRecipient, type ListPage, type QueueFilter } from '../queue-reader.ts'
import type { Database } from './file/database.ts'
import * as sql from './reader-queries.ts'
import { toListedMessage, toListedRecipient, type ListedRecipientRow, type ListedRow } from './rows.ts'

/** Maximum number of ids that one statement covers. A statement takes some milliseconds. */
const SLICE = 16_000
/**
 * Maximum number of recipients at a destination for which the indexes on destination are used. These indexes are not ordered by
 * id, so each page reads all entries of the destination, which takes some milliseconds. For more recipients, a scan by id is
 * faster.
 */
const FEW = 20_000

/** A page with an upper limit of ids. */
type Range = ListPage & { readonly through: MessageId }

export class Listing {
  readonly #db: Database
  readonly #last
  readonly #next
  readonly #live
  readonly #liveOf
  /** Prepared statements by their SQL text, which depends on the keys of the filter. */
  readonly #statements = new Map<string, Statement<object[], ListedRow>>()
  readonly #closed
  readonly #recipientsAt
  readonly #countAt
  /** The destination of the last filter, and whether it had few recipients. */
  #known = { destination: '', isFew: false }

  constructor(db: Database) {
    this.#db = db
    this.#last = db.prepare<[], number | null>(sql.lastMessage).pluck()
    this.#next = db.prepare<[MessageId], number | null>(sql.nextMessage).pluck()
    this.#live = db.prepare<{ first: MessageId; last: MessageId }, ListedRecipientRow>(sql.liveBetween)
    this.#liveOf = db.prepare<{ messages: string }, ListedRecipientRow>(sql.liveOf)
    this.#closed = db.prepare<[], DestinationName>(sql.closedDestinations).pluck()
    this.#recipientsAt = db.prepare<object, RecipientId>(sql.recipientsAt).pluck()
    this.#countAt = db.prepare<{ destination: DestinationName; most: number }, number>(sql.countAt).pluck()
  }

  list(filter: QueueFilter, page: ListPage): ListedMessage[] {
    const end = Math.min(this.#last.get() ?? 0, page.through ?? Infinity)
    const destination = exactDestination(filter)
    if (destination !== null && this.#isFew(destination, page)) return this.#at(destination, filter, { ...page, through: end })
    return this.#between(filter, { ...page, through: end })
  }

  /**
   * Whether a destination has few recipients. Counted for the first page only, so that all pages of a listing use the same
   * method.
   */
  #isFew(destination: DestinationName, { after }: ListPage): boolean {
    if (after === 0 || destination !== this.#known.destination) {
      this.#known = { destination, isFew: (this.#countAt.get({ destination, most: FEW }) ?? 0) < FEW }
    }
    return this.#known.isFew
  }

  /** Reads recipients at a destination until the page is full. Each read covers twice as many recipients as the one before. */
  #at(destination: DestinationName, filter: QueueFilter, { after, through, limit }: Range): ListedMessage[] {
    const statement = this.#statementFor(sql.listedAmong(filter))
    const where = sql.boundBy(filter)
    const found: ListedMessage[] = []
    const look = (from: MessageId, size: number): MessageId | null => {
      const recipients = this.#recipientsAt.all({ destination, after: from, through, size })
      const candidates = [...new Set(recipients.map(messageOf))]
      const wanted = limit - found.length
      const { rows, listed } = this.#page(statement.all({ ...where, candidates: JSON.stringify(candidates), limit: wanted }))
      for (const one of listed) if (isIn(one, filter)) found.push(one)
      if (rows.length === wanted) return rows.at(-1)?.id ?? null
      return recipients.length < size ? null : (candidates.at(-1) ?? null)
    }
    let from: MessageId | null = after
    for (let size = limit; from !== null && found.length < limit; size *= 2) {
      const begin: MessageId = from
      from = this.#db.transaction(() => look(begin, size))()
    }
    return found
  }

  /** Reads a range of ids in slices. */
  #between(filter: QueueFilter, { after, through: end, limit }: Range): ListedMessage[] {
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
      const { rows, listed } = this.#db.transaction(() => this.#page(statement.all(wanted)))()
      for (const one of listed) if (isIn(one, filter)) found.push(one)
      if (isUnsliced && rows.length < wanted.limit) break
      from = rows.length === wanted.limit ? (rows.at(-1)?.id ?? through) : through
    }
    return found
  }

  /** The message with this queue id, as a list: empty when the message does not exist or the filter does not match. */
  one(queueId: string, filter: QueueFilter, { after, through = Infinity }: ListPage): ListedMessage[] {
    const id = parseQueueId(queueId)
    if (id === undefined || id.row <= after || id.row > through) return []
    const wanted = { ...sql.boundBy(filter), after: id.row - 1, through: id.row, limit: 1 }
    const { listed } = this.#db.transaction(() => this.#page(this.#statementFor(sql.listedBy(filter)).all(wanted)))()
    return listed.filter((one) => one.message.createdAt === id.createdAt && isIn(one, filter))
  }

  #statementFor(text: string): Statement<object[], ListedRow> {
    const known = this.#statements.get(text)
    if (known !== undefined) return known
    const statement = this.#db.prepare<object[], ListedRow>(text)
    this.#statements.set(text, statement)
    return statement
  }

  /** Returns the rows, and the messages among them that have live recipients. */
  #page(rows: readonly ListedRow[]): { readonly rows: readonly ListedRow[]; readonly listed: ListedMessage[] } {
    const live = this.#liveRecipientsOf(rows)
    const closed = new Set(this.#closed.all())
    const listed: ListedMessage[] = []
    let next = 0
    for (const row of rows) {
      const recipients: ListedRecipient[] = []
      for (let one = live[next]; one !== undefined && messageOf(one.id) <= row.id; one = live[++next]) {
        if (messageOf(one.id) === row.id) recipients.push(toListedRecipient(one))
      }
      if (recipients.length === 0) continue
      listed.push({
        message: toListedMessage(row),
        queue: queueOf(row, recipients, closed),
        forcedExpire: row.forced_expire === 1,
        recipients,
      })
    }
    return { rows, listed }
  }

  /**
   * Live recipients of the rows, ordered by id. Reads one range of ids for a page of neighbouring messages, and one range per
   * message when the filter skips many messages.
   */
  #liveRecipientsOf(rows: readonly ListedRow[]): readonly ListedRecipientRow[] {
    const [first, last] = [rows[0]?.id ?? 0, rows.at(-1)?.id ?? 0]
    if (last - first < 4 * rows.length) return this.#live.all({ first, last })
    return this.#liveOf.all({ messages: JSON.stringify(rows.map(({ id }) => id)) })
  }
}

const isIn = (listed: ListedMessage, { queue }: QueueFilter): boolean => queue === null || listed.queue === queue

/** The queue of a message; the same definition as QUEUE_NAME in reader-queries.ts. */
function queueOf({ placement }: ListedRow, live: readonly ListedRecipient[], closed: ReadonlySet<DestinationName>): ListedMessage['queue'] {
  if (placement !== 'queued') return placement
  if (live.some(({ state }) => state === 'leased')) return 'active'
  const isDeferred = ({ attempts, destination }: ListedRecipient) => attempts > 0 || closed.has(destination)
  return live.some(isDeferred) ? 'deferred' : 'incoming'
}
