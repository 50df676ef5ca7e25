/**
 * The reader engine over SQLite, on a read-only connection, beside a running daemon or without one. Each read is a short statement
 * or transaction, and a page may take several, so that a reader does not delay the reuse of the write-ahead log.
 */
import type { QueueTime } from '../../system/clock.ts'
import type { ClockRecord } from '../../system/queue-clock.ts'
import { parseQueueId } from '../../mail/queue-id.ts'
import type { DestinationName, Message, MessageId, QueueName, RecipientId } from '../../mail/message.ts'
import type {
  DestinationLoad,
  FoundMessage,
  HistoryFilter,
  HistoryPage,
  ListedMessage,
  ListPage,
  MessageDetails,
  QueueReader,
  RecipientAge,
  Survey,
  SurveyPage,
} from '../queue-reader.ts'
import type { QueueFilter } from '../message-conditions.ts'
import type { AccessEntry } from '../access-entry.ts'
import { accessEntries } from './audit/access-rows.ts'
import type { KeptGrant } from '../../oauth/shared-grant.ts'
import { sharedGrants } from './audit/grant-rows.ts'
import type { StsPolicy } from '../tls/sts-policy.ts'
import { providerMembers, providerOf, providerRecords } from './audit/provider-rows.ts'
import { withSuspendedProviders, type ProviderMember, type ProviderRecord } from '../provider-state.ts'
import { stsPolicies, stsPolicy } from './audit/sts-rows.ts'
import type { AccessToken } from '../access-token.ts'
import type { AuditEntry, AuditId, KeptRequest, PlacedPage } from '../audit-log.ts'
import type { EventPage } from '../outbox/outbox-store.ts'
import type { ParkedEvent, SubscriptionView } from '../outbox/subscription.ts'
import { freshRecord, type DestinationRecord } from '../queue-store.ts'
import { addCounts, type QueueCount, type TrashCount } from '../queue-tally.ts'
import { NO_TRAFFIC, type Traffic, type TrafficMinute } from '../traffic.ts'
import { directReader, type ReaderEngine } from '../reader-methods.ts'
import { openForReading, type Database } from './file/database.ts'
import { CauseGroups, type CausePage, type CauseSlice } from '../cause-groups.ts'
import { decodeHistory } from '../history-record.ts'
import { AuditSearch } from './audit/audit-rows.ts'
import { findRequest } from './audit/request-rows.ts'
import { TokenSearch } from './audit/token-rows.ts'
import { Contents } from './enqueue.ts'
import { HistorySearch } from './history.ts'
import { FEW, Listing } from './listing.ts'
import { OutboxSearch } from './outbox/outbox-search.ts'
import * as writing from './queries.ts'
import * as sql from './reader-queries.ts'
import {
  asMessage,
  toAttempt,
  toDestination,
  toFailure,
  toRecipient,
  type AttemptRow,
  type DestinationRow,
  type FailureRow,
  type MessageRow,
  type RecipientRow,
} from './rows.ts'

type Placed = MessageRow & { readonly queue: QueueName | 'trash' }

/** Maximum number of rows that one statement reads. A statement takes a few milliseconds. */
const SLICE = 2_000

export class SqliteReader implements ReaderEngine {
  readonly #db: Database
  readonly #contents: Contents
  readonly #listing: Listing
  readonly #slice
  readonly #message
  readonly #recipients
  readonly #attempts
  readonly #history
  readonly #search
  readonly #audit: AuditSearch
  readonly #tokens: TokenSearch
  readonly #outbox: OutboxSearch
  readonly #destinations
  readonly #load

  constructor(db: Database) {
    this.#db = db
    this.#contents = new Contents(db)
    this.#listing = new Listing(db)
    this.#search = new HistorySearch(db)
    this.#audit = new AuditSearch(db)
    this.#tokens = new TokenSearch(db)
    this.#outbox = new OutboxSearch(db)
    this.#slice = db.prepare<{ after: number; size: number }, number | null>(sql.sliceOfMessages).pluck()
    this.#message = db.prepare<{ message: MessageId }, Placed>(sql.messageWithQueue)
    this.#recipients = db.prepare<{ message: MessageId }, RecipientRow>(writing.recipientsOf)
    this.#attempts = db.prepare<{ message: MessageId }, AttemptRow>(writing.attemptsOf)
    this.#destinations = db.prepare<[], DestinationRow>(writing.destinations)
    this.#load = db.prepare<{ destination: DestinationName }, Omit<DestinationLoad, 'destination'>>(sql.loadOf)
    this.#history = db.prepare<[MessageId], { leftAt: QueueTime; record: string }>(sql.historyOf)
  }

  list(filter: QueueFilter, page: ListPage): ListedMessage[] {
    return filter.queueId === null ? this.#listing.list(filter, page) : this.#listing.one(filter.queueId, filter, page)
  }

  find(filter: QueueFilter, page: ListPage): FoundMessage[] {
    return this.list(filter, page).map(({ message: { id, createdAt }, queue }) => ({ id, createdAt, queue }))
  }

  survey(filter: QueueFilter, page: SurveyPage): Survey {
    return this.#listing.survey(filter, page)
  }

  expiring(before: QueueTime, most: number): number {
    return this.#db.prepare<{ before: QueueTime; most: number }, number>(sql.expiring).pluck().get({ before, most }) ?? 0
  }

  named(queueIds: readonly string[]): (FoundMessage | undefined)[] {
    return queueIds.map((queueId) => {
      const row = this.#rowOf(queueId)
      return row === undefined ? undefined : { id: row.id, createdAt: row.created_at, queue: row.queue }
    })
  }

  sliceEnd(after: MessageId, size: number): MessageId | null {
    return this.#slice.get({ after, size }) ?? null
  }

  lastId(): MessageId {
    return this.#db.prepare<[], MessageId>(sql.lastId).pluck().get() ?? 0
  }

  details(queueId: string): MessageDetails | undefined {
    return this.#db.transaction(() => {
      const row = this.#rowOf(queueId)
      return row === undefined ? this.#inHistory(queueId) : this.#present(row)
    })()
  }

  #rowOf(queueId: string): Placed | undefined {
    const parsed = parseQueueId(queueId)
    const row = parsed === undefined ? undefined : this.#message.get({ message: parsed.row })
    return row?.created_at === parsed?.createdAt ? row : undefined
  }

  #inHistory(queueId: string): MessageDetails | undefined {
    const parsed = parseQueueId(queueId)
    const found = parsed === undefined ? undefined : this.#history.get(parsed.row)
    if (parsed === undefined || found === undefined) return undefined
    const record = decodeHistory(parsed.row, found.record)
    return record.message.createdAt === parsed.createdAt ? { ...record, queue: 'gone', leftAt: found.leftAt } : undefined
  }

  #present(row: Placed): MessageDetails {
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

  readChunk(message: Pick<Message, 'contentId'>, index: number): Uint8Array | undefined {
    return this.#contents.readChunk(message.contentId, index)
  }

  destinationLoads({ after, limit }: { after: DestinationName; limit: number }): DestinationLoad[] {
    const waiting = this.#db.prepare<[DestinationName], DestinationName>(sql.nextWaitingDestination).pluck()
    const leased = this.#db.prepare<[DestinationName], DestinationName>(sql.nextLeasedDestination).pluck()
    const loads: DestinationLoad[] = []
    for (let from = after; loads.length < limit;) {
      const [destination] = [waiting.get(from), leased.get(from)].filter((name) => name !== undefined).toSorted(asSqlite)
      if (destination === undefined) break
      loads.push(this.destinationLoad(destination))
      from = destination
    }
    return loads
  }

  destinationLoad(destination: DestinationName): DestinationLoad {
    return { destination, ...(this.#load.get({ destination }) ?? { waiting: 0, leased: 0, nextDueAt: null }) }
  }

  causes(page: CausePage): CauseSlice {
    const { after, size, destination } = page
    if (destination !== null && this.#isFew(destination)) return this.#causesAt(destination, page)
    const slice = this.#db.prepare<{ after: number; size: number }, RecipientId | null>(sql.sliceOfRecipients).pluck()
    const failures = this.#db.prepare<object, FailureRow>(sql.failuresBetween)
    return this.#db.transaction(() => {
      const through = slice.get({ after, size }) ?? null
      const groups = new CauseGroups()
      if (through !== null) for (const row of failures.iterate({ after, through, destination })) groups.count(toFailure(row))
      return { through, groups: groups.all }
    })()
  }

  #isFew(destination: DestinationName): boolean {
    const count = this.#db.prepare<{ destination: DestinationName; most: number }, number>(sql.countAt).pluck()
    return (count.get({ destination, most: FEW }) ?? 0) < FEW
  }

  /** The slice of a destination with few recipients, which are found by its index. */
  #causesAt(destination: DestinationName, { after, size }: CausePage): CauseSlice {
    const next = this.#db.prepare<object, RecipientId>(sql.recipientsAfter).pluck()
    const failures = this.#db.prepare<object, FailureRow>(sql.failuresOf)
    return this.#db.transaction(() => {
      const ids = next.all({ destination, after, size })
      const groups = new CauseGroups()
      for (const row of failures.iterate({ ids: JSON.stringify(ids) })) groups.count(toFailure(row))
      return { through: ids.at(-1) ?? null, groups: groups.all }
    })()
  }

  departed(filter: HistoryFilter, page: { readonly before: number | null; readonly limit: number }): HistoryPage {
    return this.#search.departed(filter, page)
  }

  destinationRecords(): DestinationRecord[] {
    const records = this.#destinations.all().map(toDestination)
    return withSuspendedProviders(records, this.providerRecords(), { members: () => this.membersOfProviders(), fresh: freshRecord })
  }

  clockRecord(): ClockRecord | null {
    return this.#db.prepare<[], ClockRecord>(sql.clockRecord).get() ?? null
  }

  audit(page: Parameters<AuditSearch['audit']>[0]): AuditEntry[] {
    return this.#audit.audit(page)
  }

  auditBefore(...wanted: Parameters<AuditSearch['auditBefore']>): AuditEntry[] {
    return this.#audit.auditBefore(...wanted)
  }

  operation(id: AuditId): AuditEntry | undefined {
    return this.#audit.operation(id)
  }

  operationsOn(message: MessageId): AuditEntry[] {
    return this.#audit.operationsOn(message)
  }

  placedBy(...wanted: Parameters<AuditSearch['placedBy']>): PlacedPage {
    return this.#audit.placedBy(...wanted)
  }

  keptRequest(key: string): KeptRequest | undefined {
    return findRequest(this.#db, key)
  }

  tokens(): AccessToken[] {
    return this.#tokens.tokens()
  }

  allSubscriptions(): SubscriptionView[] {
    return this.#outbox.allSubscriptions()
  }

  parkedEvents(...wanted: Parameters<OutboxSearch['parkedEvents']>): ParkedEvent[] {
    return this.#outbox.parkedEvents(...wanted)
  }

  eventsAfter(page: Parameters<OutboxSearch['eventsAfter']>[0]): EventPage {
    return this.#outbox.eventsAfter(page)
  }

  accessEntries(): AccessEntry[] {
    return accessEntries(this.#db)
  }

  sharedGrants(): KeptGrant[] {
    return sharedGrants(this.#db)
  }

  stsPolicy(domain: string): StsPolicy | undefined {
    return stsPolicy(this.#db, domain)
  }

  stsPolicies(): StsPolicy[] {
    return stsPolicies(this.#db)
  }

  providerOf(destination: DestinationName): string | null {
    return providerOf(this.#db, destination)
  }

  membersOfProviders(): ProviderMember[] {
    return providerMembers(this.#db)
  }

  providerRecords(): ProviderRecord[] {
    return providerRecords(this.#db)
  }

  tokenByHash(hash: string): AccessToken | undefined {
    return this.#tokens.tokenByHash(hash)
  }

  ages({ after, limit, queues }: { after: RecipientId; limit: number; queues: readonly QueueName[] }): RecipientAge[] {
    const slice = this.#db.prepare<{ after: number; size: number }, number | null>(sql.sliceOfRecipients).pluck()
    const ages = this.#db.prepare<object, RecipientAge>(sql.ages)
    const found: RecipientAge[] = []
    for (let from = after; found.length < limit;) {
      const through = slice.get({ after: from, size: SLICE }) ?? null
      if (through === null) break
      const page = ages.all({ after: from, through, limit: limit - found.length, queues: JSON.stringify(queues) })
      found.push(...page)
      from = found.length === limit ? (page.at(-1)?.cursor ?? through) : through
    }
    return found
  }

  counts(): QueueCount[] {
    const between = this.#db.prepare<{ after: MessageId; through: MessageId }, QueueCount>(sql.countsBetween)
    const totals = new Map<QueueName, QueueCount>()
    let after = 0
    for (let through = this.sliceEnd(after, SLICE); through !== null; through = this.sliceEnd(after, SLICE)) {
      for (const part of between.all({ after, through })) totals.set(part.queue, addCounts(totals.get(part.queue), part))
      after = through
    }
    return [...totals.values()]
  }

  trashCount(): TrashCount {
    return this.#db.prepare<[], TrashCount>(sql.trashCount).get() ?? { messages: 0, recipients: 0 }
  }

  traffic(since: QueueTime): { readonly total: Traffic; readonly minutes: readonly TrafficMinute[] } {
    return this.#db.transaction(() => ({
      total: this.#db.prepare<[], Traffic>(writing.trafficTotal).get() ?? NO_TRAFFIC,
      minutes: this.#db.prepare<{ since: QueueTime }, TrafficMinute>(writing.trafficSince).all({ since }),
    }))()
  }

  close(): void {
    this.#db.close()
  }
}

/** Compares as SQLite compares text: by UTF-8 bytes. */
const asSqlite = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** Opens the queue to read it. Throws NoSuchQueue, QueueTooNew, QueueIncompatible or QueueFolderUnusable. */
export const openQueueReader = (directory: string): QueueReader => directReader(openReaderEngine(directory))

/** Opens a synchronous reader engine. */
export const openReaderEngine = (directory: string): ReaderEngine => new SqliteReader(openForReading(directory))
