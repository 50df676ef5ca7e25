/** The reads of mail, destinations and the history, for readers of engines that keep the queue in SQL. */
import { parseQueueId } from '../../mail/queue-id.ts'
import {
  recipientId,
  RECIPIENTS_PER_MESSAGE,
  type DestinationName,
  type MessageId,
  type QueueName,
  type RecipientId,
} from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import { CauseGroups, type CausePage, type CauseSlice } from '../counts/cause-groups.ts'
import type { AuditId } from '../records/audit-log.ts'
import type { PlacedPage } from '../queue-reader.ts'
import { formerOf } from '../former-times.ts'
import { decodeHistory } from '../history-record.ts'
import type { QueueFilter } from '../message-conditions.ts'
import {
  departedRecipients,
  UNINDEXED,
  type DestinationLoad,
  type FoundMessage,
  type FoundPage,
  type HistoryFilter,
  type HistoryPage,
  type ListPage,
  type MessageDetails,
  type QueueReader,
  type RecipientAge,
  type ShareLoad,
} from '../queue-reader.ts'
import { entriesOf, hasTerms, type SearchTerm } from '../search/search-terms.ts'
import { addCounts, type QueueCount, type TrashCount } from '../counts/queue-tally.ts'
import { toFailure, type FailureRow } from './stored-rows.ts'
import type { ReadingEngine } from './engine.ts'
import { hasFew, Listing } from './listing.ts'
import * as sql from './queue-queries.ts'
import { each, rowOf, rowsOf, together, type Query, type Read } from './read.ts'
import type { PlaceOf, Spelling } from './spelling.ts'

/** Maximum number of rows that one statement reads. A statement takes some milliseconds. */
const SLICE = 4_000
/**
 * Maximum number of history rows that one page searches, which takes some milliseconds. A filter may match few of them, or none.
 */
const SEARCHED = 10_000

type MailMethod =
  | 'list'
  | 'find'
  | 'survey'
  | 'expiring'
  | 'named'
  | 'withEnvid'
  | 'sliceEnd'
  | 'lastId'
  | 'details'
  | 'destinationNames'
  | 'destinationLoads'
  | 'destinationLoad'
  | 'scheduledAt'
  | 'causes'
  | 'departed'
  | 'search'
  | 'ages'
  | 'shareLoads'
  | 'counts'
  | 'trashCount'
  | 'placedBy'

type MailArguments = { readonly [M in MailMethod]: Parameters<QueueReader[M]> }
type MailAnswers = { readonly [M in MailMethod]: Awaited<ReturnType<QueueReader[M]>> }
type MailReads = { readonly [M in MailMethod]: (...args: MailArguments[M]) => Read<MailAnswers[M]> }

/** The methods of a reader that answer at once, and those of one that answer later. */
type MailAnswering = { readonly [M in MailMethod]: (...args: MailArguments[M]) => MailAnswers[M] }
type MailReader = Pick<QueueReader, MailMethod>

/** Creates the methods of a reader of an engine. `run` makes the queries of a read. */
export function mailReader(engine: ReadingEngine, run: <T>(read: Read<T>) => T): MailAnswering
export function mailReader(engine: ReadingEngine, run: <T>(read: Read<T>) => Promise<T>): MailReader
export function mailReader(engine: ReadingEngine, run: (read: Read<unknown>) => unknown): MailAnswering | MailReader {
  const reads: Readonly<Record<string, (...args: never[]) => Read<unknown>>> = mailReads(engine)
  const methods: object = Object.fromEntries(
    Object.entries(reads).map(([method, read]) => [method, (...args: never[]) => run(read(...args))]),
  )
  return methods as MailAnswering | MailReader
}

function mailReads(engine: ReadingEngine): MailReads {
  const { spelling } = engine
  const listing = new Listing(engine)
  return {
    list: (filter, page) => listing.list(filter, page),
    find: (filter, page) => found(listing, filter, page),
    survey: (filter, page) => listing.survey(filter, page),
    expiring: (before, most) => expiring(spelling, before, most),
    named: (queueIds) => named(spelling, queueIds),
    withEnvid: (envid, submitters, limit) => rowsOf<FoundMessage>(sql.withEnvid(envid, submitters, limit)),
    sliceEnd: (after, size) => idOf(sql.sliceOfMessages(after, size)),
    lastId: () => lastId(),
    details: (queueId) => together(details(engine, queueId)),
    destinationNames: (page) => destinationNames(spelling, page),
    destinationLoads: (page) => destinationLoads(engine, page),
    destinationLoad: (name) => destinationLoad(engine, name),
    scheduledAt: (name) => scheduledAt(engine, name),
    causes: (page) => causes(engine, page),
    departed: (filter, page) => departed(spelling, filter, page),
    search: (terms, page) => search(engine, terms, page),
    ages: (page) => ages(spelling, page),
    shareLoads: (slice) => shareLoads(spelling, slice),
    counts: () => counts(spelling),
    trashCount: () => trashCount(spelling),
    placedBy: (operation, page) => placedBy(operation, page),
  }
}

function* idOf(query: Query): Read<number | null> {
  return (yield* rowOf<{ id: number | null }>(query))?.id ?? null
}

function* found(listing: Listing, filter: QueueFilter, page: ListPage): Read<readonly FoundMessage[]> {
  return (yield* listing.list(filter, page)).map(({ message: { id, createdAt }, queue }) => ({ id, createdAt, queue }))
}

function* expiring(spelling: Spelling, before: QueueTime, most: number): Read<number> {
  return Math.min(most, (yield* rowOf<{ found: number }>(sql.expiring(before, most, spelling)))?.found ?? 0)
}

function* named(spelling: Spelling, queueIds: readonly string[]): Read<readonly (FoundMessage | undefined)[]> {
  const parsed = queueIds.map(parseQueueId)
  const ids = parsed.flatMap((one) => (one === undefined ? [] : [one.row]))
  const byId = new Map((yield* rowsOf<FoundMessage>(sql.queuesOf(ids, spelling))).map((row) => [row.id, row]))
  return parsed.map((one) => {
    const row = one === undefined ? undefined : byId.get(one.row)
    return row?.createdAt === one?.createdAt ? row : undefined
  })
}

function* lastId(): Read<MessageId> {
  return (yield* idOf(sql.lastMessage)) ?? 0
}

function* details(engine: ReadingEngine, queueId: string): Read<MessageDetails | undefined> {
  const id = parseQueueId(queueId)
  if (id === undefined) return undefined
  const queued = yield* engine.details(id.row)
  if (queued?.message.createdAt === id.createdAt) return queued
  const gone = yield* rowOf<Pick<DepartureRow, 'leftAt' | 'record'>>(sql.historyOf(id.row, engine.spelling))
  const departure = gone === undefined ? undefined : toDeparture({ ...gone, message: id.row })
  return departure?.message.createdAt === id.createdAt ? departure : undefined
}

interface NamePage {
  readonly after: DestinationName
  readonly limit: number
}

function* destinationNames(spelling: Spelling, { after, limit }: NamePage): Read<readonly DestinationName[]> {
  const rows = yield* rowsOf<{ destination: DestinationName }>(sql.busyDestinations(after, limit, spelling))
  return rows.map(({ destination }) => destination)
}

function* destinationLoads(engine: ReadingEngine, page: NamePage): Read<readonly DestinationLoad[]> {
  const names = yield* destinationNames(engine.spelling, page)
  return yield* each(names.map((destination) => destinationLoad(engine, destination)))
}

function* destinationLoad(engine: ReadingEngine, destination: DestinationName): Read<DestinationLoad> {
  const load = yield* rowOf<Omit<DestinationLoad, 'destination'>>(sql.loadOf(yield* engine.place(destination)))
  return { destination, ...(load ?? { waiting: 0, leased: 0, nextDueAt: null }) }
}

function* scheduledAt(engine: ReadingEngine, destination: DestinationName): Read<number> {
  const row = yield* rowOf<{ scheduled: number }>(sql.scheduledAt(yield* engine.place(destination), engine.spelling))
  return row?.scheduled ?? 0
}

function* causes({ spelling, place: placeOf }: ReadingEngine, { after, size, destination }: CausePage): Read<CauseSlice> {
  const place = destination === null ? null : yield* placeOf(destination)
  if (place !== null && (yield* hasFew(place))) return yield* together(causesAt(spelling, place, { after, size }))
  return yield* together(causesAmong(spelling, { after, size, destination }))
}

/** The slice of a destination with few recipients, which are found by its index. */
function* causesAt(spelling: Spelling, place: PlaceOf, { after, size }: Omit<CausePage, 'destination'>): Read<CauseSlice> {
  const range = { first: after + 1, last: Number.MAX_SAFE_INTEGER, size, newestFirst: false }
  const ids = (yield* rowsOf<{ id: RecipientId }>(sql.recipientsAt(place, range))).map(({ id }) => id)
  return { through: ids.at(-1) ?? null, groups: grouped(yield* rowsOf(sql.failuresOf(ids, spelling))) }
}

function* causesAmong(spelling: Spelling, { after, size, destination }: CausePage): Read<CauseSlice> {
  const through = yield* idOf(sql.sliceOfRecipients(after, size))
  if (through === null) return { through, groups: [] }
  return { through, groups: grouped(yield* rowsOf(sql.failuresBetween({ after, through }, destination, spelling))) }
}

function grouped(rows: readonly FailureRow[]): CauseSlice['groups'] {
  const groups = new CauseGroups()
  for (const row of rows) groups.count(toFailure(row))
  return groups.all
}

interface DepartureRow {
  readonly seq: number
  readonly message: MessageId
  readonly leftAt: QueueTime
  readonly record: string
}

const toDeparture = ({ message, leftAt, record }: Omit<DepartureRow, 'seq'>): MessageDetails => ({
  ...decodeHistory(message, record),
  queue: 'gone',
  leftAt,
})

function* placedBy(operation: AuditId, { after, limit }: { readonly after: MessageId; readonly limit: number }): Read<PlacedPage> {
  const rows = yield* rowsOf<sql.PlacedRow>(sql.placedBy(operation, after, limit))
  const messages = rows.flatMap(({ id, createdAt, isLast, former }) =>
    isLast === 1 && createdAt !== null ? [{ id, createdAt, former: formerOf(former) }] : [],
  )
  return { messages, next: rows.length < limit ? null : (rows.at(-1)?.id ?? null) }
}

function* departed(
  spelling: Spelling,
  filter: HistoryFilter,
  { before, limit }: { readonly before: number | null; readonly limit: number },
): Read<HistoryPage> {
  type Seq = { readonly seq: number | null } | undefined
  const { since, until } = filter
  const [begin, last] = yield* each<[Seq, Seq]>([rowOf(sql.firstDeparture(since ?? 0, spelling)), rowOf(sql.lastDeparture(until))])
  const first = begin?.seq ?? null
  const end = before ?? (last?.seq ?? 0) + 1
  if (first === null || first >= end) return { messages: [], next: null }
  const from = Math.max(first, end - SEARCHED)
  const messages: MessageDetails[] = []
  for (let to = end; to > from;) {
    const rows = yield* rowsOf<DepartureRow>(sql.departures(filter, { from, before: to, limit: 4 * limit }, spelling))
    for (const row of rows) {
      const one = toDeparture(row)
      if (departedRecipients(filter, one).length === 0) continue
      messages.push(one)
      if (messages.length === limit) return { messages, next: row.seq > first ? row.seq : null }
    }
    to = rows.length === 4 * limit ? (rows.at(-1)?.seq ?? from) : from
  }
  return { messages, next: from > first ? from : null }
}

function* search(
  engine: ReadingEngine,
  terms: readonly SearchTerm[],
  { before, limit }: { readonly before: MessageId | null; readonly limit: number },
): Read<FoundPage> {
  const below = before ?? HIGHEST_ID
  // One more than the page has tells whether there is a next page. A message of several entries may be found more than once.
  const most = 2 * limit + 1
  const [entries, unindexed] = yield* each<[readonly Found[], readonly Found[]]>([
    rowsOf<Found>(sql.messagesWith(terms, recipientId(below, 0), most, engine.spelling)),
    rowsOf<Found>(sql.unindexedBelow(below, UNINDEXED)),
  ])
  // Below the last of a full page of entries, others may follow.
  const end = entries.length === most ? (entries.at(-1)?.message ?? 0) : 0
  const ids = [...new Set([...entries, ...unindexed].map(({ message }) => message))].filter((id) => id >= end).toSorted((a, b) => b - a)
  const messages: MessageDetails[] = []
  for (const id of ids) {
    for (const one of yield* together(stored(engine, id))) {
      const { message, recipients } = one
      const own = entriesOf(
        message,
        recipients.map(({ address }) => address),
      )
      if (message.fromHeader !== undefined && hasTerms(own, terms)) messages.push(one)
    }
    if (messages.length >= limit) return { messages, next: id === ids.at(-1) && end === 0 ? null : id }
  }
  return { messages, next: end === 0 ? null : end }
}

interface Found {
  readonly message: MessageId
}

/** Above all ids, whose recipients have ids that are safe integers. */
const HIGHEST_ID: MessageId = Math.floor(Number.MAX_SAFE_INTEGER / RECIPIENTS_PER_MESSAGE)

/** The messages with an id: in the queue, and in the history, where mail of another queue may have the same one. */
function* stored(engine: ReadingEngine, id: MessageId): Read<readonly MessageDetails[]> {
  const queued = yield* engine.details(id)
  const gone = yield* rowOf<Pick<DepartureRow, 'leftAt' | 'record'>>(sql.historyOf(id, engine.spelling))
  return [...(queued === undefined ? [] : [queued]), ...(gone === undefined ? [] : [toDeparture({ ...gone, message: id })])]
}

function* ages(
  spelling: Spelling,
  { after, limit, queues }: { readonly after: RecipientId; readonly limit: number; readonly queues: readonly QueueName[] },
): Read<readonly RecipientAge[]> {
  const recipients: RecipientAge[] = []
  for (let from = after; recipients.length < limit;) {
    const through = yield* idOf(sql.sliceOfRecipients(from, SLICE))
    if (through === null) break
    const range = { after: from, through }
    const page = yield* rowsOf<RecipientAge>(sql.ages(range, queues, limit - recipients.length, spelling))
    recipients.push(...page)
    from = recipients.length === limit ? (page.at(-1)?.cursor ?? through) : through
  }
  return recipients
}

function* shareLoads(
  spelling: Spelling,
  { after, size }: { readonly after: MessageId; readonly size: number },
): Read<{ readonly last: MessageId | null; readonly loads: readonly ShareLoad[] }> {
  const last = yield* idOf(sql.sliceOfMessages(after, size))
  if (last === null) return { last, loads: [] }
  return { last, loads: yield* rowsOf<ShareLoad>(sql.loadsBetween({ after, through: last }, spelling)) }
}

function* counts(spelling: Spelling): Read<readonly QueueCount[]> {
  const totals = new Map<QueueName, QueueCount>()
  for (let after = 0; ;) {
    const through = yield* idOf(sql.sliceOfMessages(after, SLICE))
    if (through === null) return [...totals.values()]
    for (const part of yield* rowsOf<QueueCount>(sql.countsBetween({ after, through }, spelling)))
      totals.set(part.queue, addCounts(totals.get(part.queue), part))
    after = through
  }
}

function* trashCount(spelling: Spelling): Read<TrashCount> {
  return (yield* rowOf<TrashCount>(sql.trashCount(spelling))) ?? { messages: 0, recipients: 0 }
}
