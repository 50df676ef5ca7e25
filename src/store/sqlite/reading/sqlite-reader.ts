/**
 * The reader engine over SQLite, on a read-only connection, beside a running daemon or without one. Each read is a short statement
 * or transaction, and a page may take several, so that a reader does not delay the reuse of the write-ahead log.
 */
import type { Statement } from 'better-sqlite3'
import type { QueueTime } from '../../../system/clock.ts'
import type { ClockRecord } from '../../../system/queue-clock.ts'
import type { MessageId, QueueName } from '../../../mail/message.ts'
import type { MessageDetails, QueueReader } from '../../queue-reader.ts'
import { freshRecord } from '../../queue-store.ts'
import { NO_TRAFFIC, type Traffic, type TrafficMinute } from '../../counts/traffic.ts'
import { directReader, type ReaderEngine } from '../../reader-methods.ts'
import { mailReader } from '../../sql/mail-reads.ts'
import { QUEUE_NAME } from '../../sql/message-selection.ts'
import { rowOf, statement, type Query, type Read, type Step } from '../../sql/read.ts'
import { destinations, toAttempt, toDestination, type AttemptRow, type DestinationRow } from '../../sql/stored-rows.ts'
import { openForReading, type Database } from '../file/database.ts'
import { PROVIDER_MEMBERS, PROVIDERS, withSuspendedProviders } from '../../records/provider-state.ts'
import { RecordCalls } from '../records/record-calls.ts'
import { Contents } from '../writing/enqueue.ts'
import { messagePage } from './message-pages.ts'
import { OutboxSearch } from '../outbox/outbox-search.ts'
import * as sql from '../writing/queries.ts'
import { asMessage, toRecipient, type MessageRow, type RecipientRow } from '../writing/rows.ts'
import { restorableSince } from '../../message-operation.ts'
import { place, SQLITE } from './spelling.ts'

type Placed = MessageRow & { readonly queue: QueueName | 'trash' }

export const messageWithQueue = (message: MessageId): Query =>
  statement((add) => `select message.*, ${QUEUE_NAME} as queue from message where id = ${add(message)}`)

const detailsOf = (db: Database) => {
  const recipients = db.prepare<{ message: MessageId }, RecipientRow>(sql.recipientsOf)
  const attempts = db.prepare<{ message: MessageId }, AttemptRow>(sql.attemptsOf)
  return function* details(message: MessageId): Read<MessageDetails | undefined> {
    const row = yield* rowOf<Placed>(messageWithQueue(message))
    if (row === undefined) return undefined
    return {
      message: asMessage(row),
      queue: row.queue,
      forcedExpire: row.forced_expire === 1,
      why: row.why ?? undefined,
      deletedAt: restorableSince(row.deleted_at),
      warnings: row.warnings,
      recipients: recipients.all({ message }).map(toRecipient),
      history: attempts.all({ message }).map(toAttempt),
    }
  }
}

export function createSqliteReader(db: Database): ReaderEngine {
  const runner = new ReadRunner(db)
  const [contents, records, outbox] = [new Contents(db), new RecordCalls(db), new OutboxSearch(db)]
  const destinationRows = db.prepare<[], DestinationRow>(destinations)
  const suspensions = { members: () => records.run(PROVIDER_MEMBERS.all), fresh: freshRecord }
  return {
    ...mailReader({ spelling: SQLITE, place, page: messagePage, details: detailsOf(db) }, (read) => runner.run(read)),
    readChunk: ({ contentId }, index) => contents.readChunk(contentId, index),
    destinationRecords: () => {
      const saved = { effects: records.run(PROVIDERS.all), orders: records.run(PROVIDERS.suspensions) }
      return withSuspendedProviders(destinationRows.all().map(toDestination), saved, suspensions)
    },
    clockRecord: () => db.prepare<[], ClockRecord>(sql.clockRecord).get() ?? null,
    record: (...call) => records.record(...call),
    allSubscriptions: () => outbox.allSubscriptions(),
    parkedEvents: (...wanted) => outbox.parkedEvents(...wanted),
    eventsAfter: (page) => outbox.eventsAfter(page),
    traffic: db.transaction((since: QueueTime) => ({
      total: db.prepare<[], Traffic>(sql.trafficTotal).get() ?? NO_TRAFFIC,
      minutes: db.prepare<{ since: QueueTime }, TrafficMinute>(sql.trafficSince).all({ since }),
    })),
    firstTraffic: () => db.prepare<[], QueueTime | null>(sql.firstTraffic).pluck().get() ?? null,
    close: () => void db.close(),
  }
}

/** Runs reads on a connection. */
class ReadRunner {
  readonly #db: Database
  /** Prepared statements by their SQL text, which depends on the keys of a filter. */
  readonly #statements = new Map<string, Statement<object[]>>()

  constructor(db: Database) {
    this.#db = db
  }

  run<T>(read: Read<T>): T {
    let step = read.next()
    while (step.done !== true) step = read.next(this.#answerTo(step.value))
    return step.value
  }

  #answerTo(step: Step): unknown {
    if ('each' in step) return step.each.map((read) => this.run(read))
    if ('together' in step) return this.#db.transaction(() => this.run(step.together))()
    return this.#statementOf(step).all(Object.fromEntries(step.parameters.map((value, n) => [n + 1, value])))
  }

  #statementOf({ text, asArrays = false }: Query): Statement<object[]> {
    const known = this.#statements.get(text)
    if (known !== undefined) return known
    const prepared = this.#db.prepare<object[]>(text)
    if (asArrays) prepared.raw()
    this.#statements.set(text, prepared)
    return prepared
  }
}

/** Opens the queue to read it. Throws NoSuchQueue, QueueTooNew, QueueIncompatible or QueueFolderUnusable. */
export const openQueueReader = (directory: string): QueueReader => directReader(openReaderEngine(directory))

/** Opens a synchronous reader engine. */
export const openReaderEngine = (directory: string): ReaderEngine => createSqliteReader(openForReading(directory))
