/**
 * Pages of messages that a filter lets through, each with its live recipients as of one moment. A page is looked for in
 * slices that grow while little is found: what is listed whole is read once, and what is rare is found quickly.
 */
import type { Statement } from 'better-sqlite3'
import type { Instant } from '../../mail/clock.ts'
import { parseQueueId } from '../../mail/queue-id.ts'
import { messageOf, type DestinationName, type MessageId } from '../message.ts'
import type { ListedMessage, ListedRecipient, ListPage, QueueFilter } from '../reader.ts'
import type { Database } from './database.ts'
import * as sql from './reader-queries.ts'
import { toListedMessage, toListedRecipient, type ListedRecipientRow, type ListedRow } from './rows.ts'

/** Ids looked at in one statement at most: some milliseconds. */
const SLICE = 16_000

export class Listing {
  readonly #db: Database
  readonly #last
  readonly #next
  readonly #live
  /** By their text: a filter's parts say which. */
  readonly #statements = new Map<string, Statement<object[], ListedRow>>()
  readonly #shut

  constructor(db: Database) {
    this.#db = db
    this.#last = db.prepare<[], number | null>(sql.lastMessage).pluck()
    this.#next = db.prepare<[MessageId], number | null>(sql.nextMessage).pluck()
    this.#live = db.prepare<{ first: MessageId; last: MessageId }, ListedRecipientRow>(sql.liveBetween)
    this.#shut = db.prepare<[], DestinationName>(sql.shutDestinations).pluck()
  }

  list(filter: QueueFilter, { after, through: wantedEnd = Infinity, limit, now }: ListPage): ListedMessage[] {
    const end = Math.min(this.#last.get() ?? 0, wantedEnd)
    const statement = this.#statementFor(filter)
    const where = { ...conditions(filter), now }
    const found: ListedMessage[] = []
    const isWhole = sql.passesOverLittle(filter)
    let from = after
    for (let size = limit; found.length < limit && from < end; size = Math.min(2 * size, SLICE)) {
      // Where mail has left, the next may be far away.
      const next = this.#next.get(from) ?? null
      if (next === null) break
      const through = isWhole ? end : Math.min(next + size - 1, end)
      const wanted = { ...where, after: from, through, limit: limit - found.length }
      const { rows, listed } = this.#db.transaction(() => this.#page(statement.all(wanted), now))()
      for (const one of listed) if (isIn(one, filter)) found.push(one)
      if (isWhole && rows.length < wanted.limit) break
      from = rows.length === wanted.limit ? (rows.at(-1)?.id ?? through) : through
    }
    return found
  }

  /** The one message of that id, if the rest of the filter lets it through. */
  one(queueId: string, filter: QueueFilter, { after, through = Infinity, now }: ListPage): ListedMessage[] {
    const id = parseQueueId(queueId)
    if (id === undefined || id.row <= after || id.row > through) return []
    const wanted = { ...conditions(filter), now, after: id.row - 1, through: id.row, limit: 1 }
    const { listed } = this.#db.transaction(() => this.#page(this.#statementFor(filter).all(wanted), now))()
    return listed.filter((one) => one.message.createdAt === id.createdAt && isIn(one, filter))
  }

  #statementFor(filter: QueueFilter): Statement<object[], ListedRow> {
    const text = sql.listedBy(filter)
    const known = this.#statements.get(text)
    if (known !== undefined) return known
    const statement = this.#db.prepare<object[], ListedRow>(text)
    this.#statements.set(text, statement)
    return statement
  }

  /** The rows that were found, and of those the messages that have live recipients. */
  #page(rows: readonly ListedRow[], now: Instant): { readonly rows: readonly ListedRow[]; readonly listed: ListedMessage[] } {
    const live = this.#liveRecipientsOf(rows)
    const facts = { shut: new Set(this.#shut.all()), now }
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
        queue: queueOf(row, recipients, facts),
        forcedExpire: row.forced_expire === 1,
        recipients,
      })
    }
    return { rows, listed }
  }

  /** In the order of their ids: one range when the page is dense, a range per message when a filter left gaps. */
  #liveRecipientsOf(rows: readonly ListedRow[]): readonly ListedRecipientRow[] {
    const [first, last] = [rows[0]?.id ?? 0, rows.at(-1)?.id ?? 0]
    const isDense = last - first < 4 * rows.length
    return isDense ? this.#live.all({ first, last }) : rows.flatMap(({ id }) => this.#live.all({ first: id, last: id }))
  }
}

const isIn = (listed: ListedMessage, { queue }: QueueFilter): boolean => queue === undefined || listed.queue === queue

/** As the SQL has it (QUEUE_NAME). */
function queueOf(
  { placement }: ListedRow,
  live: readonly ListedRecipient[],
  { shut, now }: { readonly shut: ReadonlySet<DestinationName>; readonly now: Instant },
): ListedMessage['queue'] {
  if (placement !== 'queued') return placement
  if (live.some(({ state }) => state === 'leased')) return 'active'
  const isDeferred = ({ attempts, dueAt, destination }: ListedRecipient) => attempts > 0 || dueAt > now || shut.has(destination)
  return live.some(isDeferred) ? 'deferred' : 'incoming'
}

/** A filter as parameters of the statements. */
const conditions = ({ sender, recipient, destination, arrivedBefore, attemptsOver, reply }: QueueFilter): object => ({
  sender: pattern(sender),
  recipient: pattern(recipient),
  destination: pattern(destination),
  arrivedBefore: arrivedBefore ?? null,
  attemptsOver: attemptsOver ?? null,
  reply: reply === undefined ? null : lower(reply),
  // As it stands within the stored JSON: most rows need no more than this look.
  replyInJson: reply === undefined ? null : `%${literal(JSON.stringify(reply).slice(1, -1))}%`,
})

/** `*` is the only wildcard; everything else means itself, in any case. */
const pattern = (text: string | undefined): string | null => (text === undefined ? null : literal(text).replaceAll('*', '%'))

/** As a part of what LIKE looks for, which takes ASCII letters in any case. */
const literal = (text: string): string => text.replaceAll(/[\\%_]/g, '\\$&')

/** As SQLite's lower(): ASCII only. */
const lower = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
