/**
 * Lists pages of messages that match a filter. A message and its live recipients are read by one statement. A page is searched in
 * slices of ids, whose size doubles while too few messages match.
 */
import { parseQueueId } from '../../mail/queue-id.ts'
import { messageOf, type DestinationName, type MessageId, type RecipientId, type RecipientState } from '../../mail/message.ts'
import { shardOf } from '../membership/shards.ts'
import { exactDestination, type ListedMessage, type ListedRecipient, type ListPage, type QueueFilter } from '../queue-reader.ts'
import { int8s } from './session/arrays.ts'
import type { Statements } from './session/database-connection.ts'
import * as sql from './reader-queries.ts'
import { toListedMessage, toListedRecipient, type ListedRow } from './writing/rows.ts'

/** Maximum number of ids that one statement covers. */
const SLICE = 16_000
/** Maximum number of recipients at a destination for which the indexes on destination are used, which are not ordered by id. */
const FEW = 20_000

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

type Row = ListedRow & { readonly live: readonly LiveEntry[] | null }

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
    const [last] = await this.#reading.query<{ id: MessageId | null }>(sql.lastMessage)
    const range = { ...page, through: Math.min(last?.id ?? 0, page.through ?? Infinity) }
    const destination = exactDestination(filter)
    if (destination !== null && (await this.#isFew(destination, page))) return this.#at(destination, filter, range)
    return this.#between(filter, range)
  }

  /** The message with this queue id, as a list: empty when the message does not exist or the filter does not match. */
  async one(queueId: string, filter: QueueFilter, { after, through = Infinity }: ListPage): Promise<readonly ListedMessage[]> {
    const id = parseQueueId(queueId)
    if (id === undefined || id.row <= after || id.row > through) return []
    const { listed } = await this.#page(sql.listedBy(filter, { after: id.row - 1, through: id.row, limit: 1 }), filter)
    return listed.filter(({ message }) => message.createdAt === id.createdAt)
  }

  async #isFew(destination: DestinationName, { after }: ListPage): Promise<boolean> {
    if (after === 0 || destination !== this.#known.destination) {
      const [count] = await this.#reading.query<{ found: number }>(sql.countAt, [shardOf(destination), destination, FEW])
      this.#known = { destination, isFew: (count?.found ?? 0) < FEW }
    }
    return this.#known.isFew
  }

  /** Reads recipients at a destination until the page is full. Each read covers twice as many recipients as the one before. */
  async #at(destination: DestinationName, filter: QueueFilter, { after, through, limit }: Range): Promise<readonly ListedMessage[]> {
    const found: ListedMessage[] = []
    let from = after
    for (let size = limit; found.length < limit; size *= 2) {
      const parameters = [shardOf(destination), destination, from, through, size]
      const recipients = await this.#reading.query<{ id: RecipientId }>(sql.recipientsAt, parameters)
      const candidates = [...new Set(recipients.map(({ id }) => messageOf(id)))]
      const wanted = limit - found.length
      const { rows, listed } = await this.#page(sql.listedAmong(filter, int8s(candidates), wanted), filter)
      found.push(...listed)
      const isFull = rows.length === wanted
      if (!isFull && recipients.length < size) break
      from = (isFull ? rows.at(-1)?.message : candidates.at(-1)) ?? through
    }
    return found
  }

  /** Reads a range of ids in slices. */
  async #between(filter: QueueFilter, { after, through: end, limit }: Range): Promise<readonly ListedMessage[]> {
    const found: ListedMessage[] = []
    const isUnsliced = sql.needsNoSlices(filter)
    let from = after
    for (let size = limit; found.length < limit && from < end; size = Math.min(2 * size, SLICE)) {
      // Messages that have left the queue leave gaps, so the search continues at the next id that exists.
      const [next] = isUnsliced ? [{ id: from + 1 }] : await this.#reading.query<{ id: MessageId }>(sql.nextMessage, [from])
      if (next === undefined) break
      const through = isUnsliced ? end : Math.min(next.id + size - 1, end)
      const wanted = limit - found.length
      const { rows, listed } = await this.#page(sql.listedBy(filter, { after: from, through, limit: wanted }), filter)
      found.push(...listed)
      if (isUnsliced && rows.length < wanted) break
      from = rows.length === wanted ? (rows.at(-1)?.message ?? through) : through
    }
    return found
  }

  /** Returns the rows, and the messages among them that have live recipients and are in the queue of the filter. */
  async #page(
    query: sql.Query,
    { queue }: QueueFilter,
  ): Promise<{ readonly rows: readonly Row[]; readonly listed: readonly ListedMessage[] }> {
    const [rows, names] = await Promise.all([
      this.#reading.query<Row>(query.text, query.parameters),
      this.#reading.query<{ name: DestinationName }>(sql.closedDestinations),
    ])
    const closed = new Set(names.map(({ name }) => name))
    const listed = rows.flatMap((row) => {
      if (row.live === null) return []
      const recipients = row.live.map(toLive)
      const name = queueOf(row, recipients, closed)
      return queue === null || name === queue
        ? [{ message: toListedMessage(row), queue: name, forcedExpire: row.forced_expire, recipients }]
        : []
    })
    return { rows, listed }
  }
}

const toLive = ([id, state, destination, address, orcpt, due_at, expires_at, steps, attempts, last]: LiveEntry): ListedRecipient =>
  toListedRecipient({ id, state, destination, address, orcpt, due_at, expires_at, steps, attempts, last })

/** The queue of a message; the same definition as QUEUE_NAME in reader-queries.ts. */
function queueOf({ placement }: ListedRow, live: readonly ListedRecipient[], closed: ReadonlySet<DestinationName>): ListedMessage['queue'] {
  if (placement !== 'queued') return placement
  if (live.some(({ state }) => state === 'leased')) return 'active'
  const isDeferred = ({ attempts, destination }: ListedRecipient) => attempts > 0 || closed.has(destination)
  return live.some(isDeferred) ? 'deferred' : 'incoming'
}
