/** The QueueReader over PostgreSQL, for the daemon and for commands on any machine that reaches the database. */
import { parseQueueId } from '../../mail/queue-id.ts'
import type { DestinationName, MessageId, QueueName, RecipientId } from '../../mail/message.ts'
import { likeInJson, unquotedPattern } from '../../patterns/filter-pattern.ts'
import type { QueueTime } from '../../system/clock.ts'
import { CauseGroups, type CausePage, type CauseSlice } from '../cause-groups.ts'
import { decodeHistory } from '../history-record.ts'
import { withSuspendedProviders } from '../provider-state.ts'
import { freshRecord, type DestinationRecord } from '../queue-store.ts'
import {
  departedRecipients,
  type DestinationLoad,
  type FoundMessage,
  type HistoryFilter,
  type HistoryPage,
  type ListPage,
  type MessageDetails,
  type QueueReader,
  type RecipientAge,
} from '../queue-reader.ts'
import type { QueueFilter } from '../message-conditions.ts'
import { addCounts, type QueueCount, type TrashCount } from '../queue-tally.ts'
import { NO_TRAFFIC, type Traffic, type TrafficMinute } from '../traffic.ts'
import { int8s } from './session/arrays.ts'
import { auditReader } from './audit-reader.ts'
import { outboxReader } from './outbox-reader.ts'
import { Contents } from './writing/contents.ts'
import type { Statements } from './session/database-connection.ts'
import { FEW, Listing } from './listing.ts'
import * as sql from './reader-queries.ts'
import { providerMembers, providerRecords, shardsAt } from './provider-rows.ts'
import {
  toAttempt,
  toDestination,
  toFailure,
  toMessage,
  toRecipient,
  type AttemptRow,
  type DestinationRow,
  type FailureRow,
  type MessageRow,
  type RecipientRow,
} from './writing/rows.ts'
import { trafficSince, trafficTotal } from './writing/traffic-counts.ts'

/** Maximum number of rows that one statement reads. */
const SLICE = 4_000
/** Maximum number of history rows that one page searches. */
const SEARCHED = 10_000

type Placed = MessageRow & {
  readonly queue: QueueName | 'trash'
  readonly all_recipients: readonly RecipientRow[] | null
  readonly attempts: readonly AttemptRow[] | null
}

/** Creates the reader. `close` ends its session. */
export function createPostgresReader(reading: Statements, close: () => Promise<void>): QueueReader {
  const listing = new Listing(reading)
  const contents = new Contents(reading)
  const list = (filter: QueueFilter, page: ListPage) =>
    filter.queueId === null ? listing.list(filter, page) : listing.one(filter.queueId, filter, page)
  return {
    list,
    find: async (filter, page) => (await list(filter, page)).map(({ message: { id, createdAt }, queue }) => ({ id, createdAt, queue })),
    survey: (filter, page) => listing.survey(filter, page),
    expiring: async (before, most) => Math.min(most, (await reading.query<{ found: number }>(sql.expiring, [before, most]))[0]?.found ?? 0),
    named: (queueIds) => named(reading, queueIds),
    sliceEnd: async (after, size) => idOf(await reading.query<{ id: MessageId | null }>(sql.sliceOfMessages, [after, size])),
    lastId: async () => idOf(await reading.query<{ id: MessageId | null }>(sql.lastMessage)) ?? 0,
    details: (queueId) => details(reading, queueId),
    readChunk: ({ contentId }, index) => contents.readChunk(contentId, index),
    destinationLoads: (page) => destinationLoads(reading, page),
    destinationLoad: (name) => destinationLoad(reading, name),
    causes: (page) => causes(reading, page),
    departed: (filter, page) => departed(reading, filter, page),
    destinationRecords: () => destinationRecords(reading),
    clockRecord: async () => null,
    ...auditReader(reading),
    ...outboxReader(reading),
    ages: (page) => ages(reading, page),
    counts: () => counts(reading),
    trashCount: async () => (await reading.query<TrashCount>(sql.trashCount))[0] ?? { messages: 0, recipients: 0 },
    traffic: (since) => traffic(reading, since),
    close,
  }
}

async function destinationRecords(reading: Statements): Promise<readonly DestinationRecord[]> {
  const [rows, providers] = [await reading.query<DestinationRow>(sql.destinations), await providerRecords(reading)]
  const members = providers.length === 0 ? [] : await providerMembers(reading)
  return withSuspendedProviders(rows.map(toDestination), providers, { members: () => members, fresh: freshRecord })
}

const idOf = ([row]: readonly { readonly id: number | null }[]): number | null => row?.id ?? null

async function named(reading: Statements, queueIds: readonly string[]): Promise<readonly (FoundMessage | undefined)[]> {
  const parsed = queueIds.map(parseQueueId)
  const rows = await reading.query<FoundMessage>(sql.queuesOf, [int8s(parsed.flatMap((one) => (one === undefined ? [] : [one.row])))])
  const byId = new Map(rows.map((row) => [row.id, row]))
  return parsed.map((one) => {
    const row = one === undefined ? undefined : byId.get(one.row)
    return row?.createdAt === one?.createdAt ? row : undefined
  })
}

async function details(reading: Statements, queueId: string): Promise<MessageDetails | undefined> {
  const parsed = parseQueueId(queueId)
  if (parsed === undefined) return undefined
  const [row] = await reading.query<Placed>(sql.messageWithAll, [parsed.row])
  if (row !== undefined) return row.created_at === parsed.createdAt ? present(row) : undefined
  const [gone] = await reading.query<{ leftAt: QueueTime; record: string }>(sql.historyOf, [parsed.row])
  if (gone === undefined) return undefined
  const record = decodeHistory(parsed.row, gone.record)
  return record.message.createdAt === parsed.createdAt ? { ...record, queue: 'gone', leftAt: gone.leftAt } : undefined
}

const present = (row: Placed): MessageDetails => ({
  message: toMessage(row),
  queue: row.queue,
  forcedExpire: row.forced_expire,
  warnings: row.warnings,
  recipients: (row.all_recipients ?? []).map(toRecipient),
  history: (row.attempts ?? []).map(toAttempt),
})

async function destinationLoads(
  reading: Statements,
  { after, limit }: { readonly after: DestinationName; readonly limit: number },
): Promise<readonly DestinationLoad[]> {
  const names = await reading.query<{ destination: DestinationName }>(sql.busyDestinations, [after, limit])
  return Promise.all(names.map(({ destination }) => destinationLoad(reading, destination)))
}

async function destinationLoad(reading: Statements, destination: DestinationName): Promise<DestinationLoad> {
  const [load] = await reading.query<Omit<DestinationLoad, 'destination'>>(sql.loadOf, [await shardsAt(reading, destination), destination])
  return { destination, ...(load ?? { waiting: 0, leased: 0, nextDueAt: null }) }
}

async function causes(reading: Statements, page: CausePage): Promise<CauseSlice> {
  const { after, size, destination } = page
  if (destination !== null) {
    const shards = await shardsAt(reading, destination)
    const [count] = await reading.query<{ found: number }>(sql.countAt, [shards, destination, FEW])
    if ((count?.found ?? 0) < FEW) return causesAt(reading, [shards, destination], page)
  }
  const through = idOf(await reading.query<{ id: RecipientId | null }>(sql.sliceOfRecipients, [after, size]))
  const groups = new CauseGroups()
  const rows = through === null ? [] : await reading.query<FailureRow>(sql.failuresBetween, [after, through, destination])
  for (const row of rows) groups.count(toFailure(row))
  return { through, groups: groups.all }
}

/** The slice of a destination with few recipients, which are found by its index. */
async function causesAt(reading: Statements, place: readonly [Buffer, DestinationName], { after, size }: CausePage): Promise<CauseSlice> {
  const found = await reading.query<{ id: RecipientId }>(sql.recipientsAfter, [...place, after, size])
  const ids = found.map(({ id }) => id)
  const groups = new CauseGroups()
  for (const row of await reading.query<FailureRow>(sql.failuresOf, [int8s(ids)])) groups.count(toFailure(row))
  return { through: ids.at(-1) ?? null, groups: groups.all }
}

interface DepartureRow {
  readonly seq: number
  readonly message: MessageId
  readonly leftAt: QueueTime
  readonly record: string
}

async function departed(
  reading: Statements,
  filter: HistoryFilter,
  { before, limit }: { readonly before: number | null; readonly limit: number },
): Promise<HistoryPage> {
  const since = filter.since ?? 0
  const [[first], [last]] = await Promise.all([
    reading.query<{ seq: number | null }>(sql.firstDeparture, [since]),
    reading.query<{ seq: number | null }>(sql.lastDeparture),
  ])
  const begin = first?.seq ?? null
  const end = before ?? (last?.seq ?? 0) + 1
  if (begin === null || begin >= end) return { messages: [], next: null }
  const from = Math.max(begin, end - SEARCHED)
  const { sender, recipient, outcome } = filter
  const patterns = [sender, recipient].flatMap((text) =>
    text === null ? [null, null] : [likeInJson(text), likeInJson(unquotedPattern(text))],
  )
  const found: MessageDetails[] = []
  for (let to = end; to > from;) {
    const wanted = [from, to, since, ...patterns, outcome === null ? null : JSON.stringify(outcome), 4 * limit]
    const rows = await reading.query<DepartureRow>(sql.departures, wanted)
    for (const row of rows) {
      const one = { ...decodeHistory(row.message, row.record), queue: 'gone' as const, leftAt: row.leftAt }
      if (departedRecipients(filter, one).length === 0) continue
      found.push(one)
      if (found.length === limit) return { messages: found, next: row.seq > begin ? row.seq : null }
    }
    to = rows.length === 4 * limit ? (rows.at(-1)?.seq ?? from) : from
  }
  return { messages: found, next: from > begin ? from : null }
}

async function ages(
  reading: Statements,
  { after, limit, queues }: { readonly after: RecipientId; readonly limit: number; readonly queues: readonly QueueName[] },
): Promise<readonly RecipientAge[]> {
  const found: RecipientAge[] = []
  for (let from = after; found.length < limit;) {
    const through = idOf(await reading.query<{ id: RecipientId | null }>(sql.sliceOfRecipients, [from, SLICE]))
    if (through === null) break
    const page = await reading.query<RecipientAge>(sql.ages, [from, through, limit - found.length, sql.queueNames(queues)])
    found.push(...page)
    from = found.length === limit ? (page.at(-1)?.cursor ?? through) : through
  }
  return found
}

async function counts(reading: Statements): Promise<readonly QueueCount[]> {
  const totals = new Map<QueueName, QueueCount>()
  let after = 0
  for (;;) {
    const through = idOf(await reading.query<{ id: MessageId | null }>(sql.sliceOfMessages, [after, SLICE]))
    if (through === null) return [...totals.values()]
    for (const part of await reading.query<QueueCount>(sql.countsBetween, [after, through])) {
      totals.set(part.queue, addCounts(totals.get(part.queue), part))
    }
    after = through
  }
}

async function traffic(
  reading: Statements,
  since: QueueTime,
): Promise<{ readonly total: Traffic; readonly minutes: readonly TrafficMinute[] }> {
  const [[total], minutes] = await Promise.all([reading.query<Traffic>(trafficTotal), reading.query<TrafficMinute>(trafficSince, [since])])
  return { total: total ?? NO_TRAFFIC, minutes }
}
