/**
 * QueueReader over SQLite. Reads are short, so that they never hold up the writer's log; a page is fetched whole and
 * then handed out.
 */
import type { Duration, Instant } from '../../mail/clock.ts'
import { parseQueueId } from '../../mail/queue-id.ts'
import type { DestinationName, Message, MessageId } from '../message.ts'
import type { DestinationLoad, ListedMessage, ListPage, MessageStory, QueueFilter, QueueName, QueueReader } from '../reader.ts'
import type { AuditRecord, DestinationRecord } from '../store.ts'
import type { Database } from './database.ts'
import { decodeDeparted } from './departed-record.ts'
import { Contents } from './intake.ts'
import { Listing } from './listing.ts'
import * as writing from './queries.ts'
import * as sql from './reader-queries.ts'
import {
  asMessage,
  toAttempt,
  toDestination,
  toRecipient,
  type AttemptRow,
  type DestinationRow,
  type MessageRow,
  type RecipientRow,
} from './rows.ts'

type Placed = MessageRow & { readonly queue: QueueName | 'trash' }
type Age = ReturnType<QueueReader['ages']>[number]
interface Count {
  readonly queue: QueueName
  readonly messages: number
  readonly recipients: number
  readonly oldestAt: Instant
}

/** Rows looked at in one statement: a few milliseconds. */
const SLICE = 2_000

export class SqliteReader implements QueueReader {
  readonly #db: Database
  readonly #contents: Contents
  readonly #listing: Listing
  readonly #slice
  readonly #message
  readonly #recipients
  readonly #attempts
  readonly #departed
  readonly #destinations

  constructor(db: Database) {
    this.#db = db
    this.#contents = new Contents(db)
    this.#listing = new Listing(db)
    this.#slice = db.prepare<{ after: number; size: number }, number | null>(sql.sliceOfMessages).pluck()
    this.#message = db.prepare<{ message: MessageId; now: Instant }, Placed>(sql.messageWithQueue)
    this.#recipients = db.prepare<{ message: MessageId }, RecipientRow>(writing.recipientsOf)
    this.#attempts = db.prepare<{ message: MessageId }, AttemptRow>(writing.attemptsOf)
    this.#destinations = db.prepare<[], DestinationRow>(writing.destinations)
    this.#departed = db.prepare<[MessageId], { leftAt: Instant; record: string }>(sql.departedOf)
  }

  list(filter: QueueFilter, page: ListPage): ListedMessage[] {
    return filter.queueId === undefined ? this.#listing.list(filter, page) : this.#listing.one(filter.queueId, filter, page)
  }

  sliceEnd(after: MessageId, size: number): MessageId | null {
    return this.#slice.get({ after, size }) ?? null
  }

  story(queueId: string, now: Instant): MessageStory | undefined {
    const parsed = parseQueueId(queueId)
    if (parsed === undefined) return undefined
    const message = parsed.row
    return this.#db.transaction(() => {
      const row = this.#message.get({ message, now })
      if (row !== undefined) return row.created_at === parsed.createdAt ? this.#present(row) : undefined
      const gone = this.#departed.get(message)
      if (gone === undefined) return undefined
      const story = decodeDeparted(message, gone.record)
      return story.message.createdAt === parsed.createdAt ? { ...story, queue: 'gone' as const, leftAt: gone.leftAt } : undefined
    })()
  }

  #present(row: Placed): MessageStory {
    const message = row.id
    return {
      message: asMessage(row),
      queue: row.queue,
      forcedExpire: row.forced_expire === 1,
      warnings: row.warnings,
      recipients: this.#recipients.all({ message }).map(toRecipient),
      history: this.#attempts.all({ message }).map(toAttempt),
    }
  }

  readBody(message: Pick<Message, 'body'>, index: number): Uint8Array | undefined {
    return this.#contents.read(message.body, index)
  }

  destinationLoads({ after, limit }: { after: DestinationName; limit: number }): DestinationLoad[] {
    const waiting = this.#db.prepare<[DestinationName], DestinationName>(sql.nextWaitingDestination).pluck()
    const leased = this.#db.prepare<[DestinationName], DestinationName>(sql.nextLeasedDestination).pluck()
    const load = this.#db.prepare<{ destination: DestinationName }, Omit<DestinationLoad, 'destination'>>(sql.loadOf)
    const loads: DestinationLoad[] = []
    for (let from = after; loads.length < limit;) {
      const [destination] = [waiting.get(from), leased.get(from)].filter((name) => name !== undefined).toSorted(asSqlite)
      if (destination === undefined) break
      loads.push({ destination, ...(load.get({ destination }) ?? { waiting: 0, leased: 0, nextDueAt: null }) })
      from = destination
    }
    return loads
  }

  destinationRecords(): DestinationRecord[] {
    return this.#destinations.all().map(toDestination)
  }

  audit(page: { after: number; limit: number }): (AuditRecord & { readonly id: number })[] {
    return this.#db.prepare<typeof page, AuditRecord & { id: number }>(sql.audit).all(page)
  }

  ages({ after, limit, queues, now }: { after: number; limit: number; queues: readonly QueueName[]; now: Instant }): Age[] {
    const slice = this.#db.prepare<{ after: number; size: number }, number | null>(sql.sliceOfRecipients).pluck()
    const ages = this.#db.prepare<object, Age>(sql.ages)
    const found: Age[] = []
    for (let from = after; found.length < limit;) {
      const through = slice.get({ after: from, size: SLICE }) ?? null
      if (through === null) break
      const page = ages.all({ after: from, through, limit: limit - found.length, queues: JSON.stringify(queues), now })
      found.push(...page)
      from = found.length === limit ? (page.at(-1)?.cursor ?? through) : through
    }
    return found
  }

  counts(now: Instant): { queue: QueueName; messages: number; recipients: number; oldest: Duration }[] {
    const between = this.#db.prepare<object, Count>(sql.countsBetween)
    const totals = new Map<QueueName, Count>()
    let after = 0
    for (
      let through = this.#slice.get({ after, size: SLICE }) ?? null;
      through !== null;
      through = this.#slice.get({ after, size: SLICE }) ?? null
    ) {
      for (const part of between.all({ after, through, now })) totals.set(part.queue, added(totals.get(part.queue), part))
      after = through
    }
    return [...totals.values()].map(({ queue, messages, recipients, oldestAt }) => ({
      queue,
      messages,
      recipients,
      oldest: Math.max(0, now - oldestAt),
    }))
  }

  close(): void {
    this.#db.close()
  }
}

const added = (sum: Count | undefined, part: Count): Count =>
  sum === undefined
    ? part
    : {
        queue: part.queue,
        messages: sum.messages + part.messages,
        recipients: sum.recipients + part.recipients,
        oldestAt: Math.min(sum.oldestAt, part.oldestAt),
      }

/** SQLite compares text by its UTF-8 bytes. */
const asSqlite = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))
