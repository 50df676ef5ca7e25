/**
 * SQL statements of the readers, but for those of a filter on messages. Each reads a bounded slice, so that a reader does not delay the reuse
 * of the write-ahead log, and holds no snapshot of PostgreSQL for long. A walk through the whole queue consists of many statements.
 */
import type { DestinationName, MessageId, QueueName, RecipientId } from '../../mail/message.ts'
import { likeInJson, unquotedPattern } from '../../patterns/filter-pattern.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { SearchTerm } from '../search/search-terms.ts'
import type { HistoryFilter } from '../queue-reader.ts'
import { namesIn, QUEUE_NAME, THEIRS } from './message-selection.ts'
import { APART, PLACING_ACTIONS, type AuditId } from '../records/audit-log.ts'
import { messageIdOf } from './id-ranges.ts'
import { statement, type Add, type Query } from './read.ts'
import type { IdRange, Place, PlaceOf, Spelling } from './spelling.ts'

// --- slices

export const lastMessage = statement(() => 'select max(id) as id from message')
export const nextMessage = (after: MessageId): Query =>
  statement((add) => `select id from message where id > ${add(after)} order by id limit 1`)
export const previousMessage = (through: MessageId): Query =>
  statement((add) => `select id from message where id <= ${add(through)} order by id desc limit 1`)

/**
 * Highest id among the next rows after an id; null when there are none. `behind` is the size of the slice less one. Reads the rows before it
 * once, and makes no list of them.
 */
export const sliceEnd = (table: 'message' | 'recipient', after: string, behind: string): string => `
  select coalesce((select id from ${table} where id > ${after} order by id limit 1 offset ${behind}),
    (select max(id) from ${table} where id > ${after})) as id`

const sliceOf = (table: 'message' | 'recipient', after: number, size: number): Query =>
  statement((add) => sliceEnd(table, add(after), add(size - 1)))
export const sliceOfMessages = (after: MessageId, size: number): Query => sliceOf('message', after, size)
export const sliceOfRecipients = (after: RecipientId, size: number): Query => sliceOf('recipient', after, size)

// --- search

export const messagesWith = (terms: readonly SearchTerm[], below: RecipientId, limit: number, spelling: Spelling): Query =>
  statement((add) => spelling.messagesWith(terms, below, limit, add))
/** The newest messages without entries. */
export const unindexedBelow = (below: MessageId, limit: number): Query =>
  statement((add) => `select message from unindexed where message < ${add(below)} order by message desc limit ${add(limit)}`)

// --- recipients at a destination

const all = ({ due, suspect, leased, parked }: Place): string => [due, suspect, leased, parked].join(' union all ')

/** Ids of live recipients at a destination, at most `size`, in the order of their messages. */
export const recipientsAt = (place: PlaceOf, { first, last, size, newestFirst }: RecipientsAt): Query =>
  statement(
    (add) => `
      select id from (${all(place(add))}) there where id between ${add(first)} and ${add(last)}
      order by id${newestFirst ? ' desc' : ''} limit ${add(size)}`,
  )

interface RecipientsAt {
  readonly first: RecipientId
  readonly last: RecipientId
  readonly size: number
  readonly newestFirst: boolean
}

/** Number of live recipients at a destination, up to a limit. */
export const countAt = (place: PlaceOf, most: number): Query =>
  statement((add) => `select count(*) as found from (select 1 from (${all(place(add))}) there limit ${add(most)}) counted`)

export const loadOf = (place: PlaceOf): Query =>
  statement((add) => {
    const { due, suspect, leased, nextDueAt } = place(add)
    const count = (ids: string): string => `(select count(*) from (${ids}) counted)`
    return `select ${count(due)} + ${count(suspect)} as waiting, ${count(leased)} as leased, ${nextDueAt} as "nextDueAt"`
  })

/** Of the recipients that wait at a destination, those of scheduled mail. */
export const scheduledAt = (place: PlaceOf, { scheduledIds }: Spelling): Query =>
  statement((add) => {
    const { due, suspect } = place(add)
    return `
      select count(*) as scheduled from (${due} union all ${suspect}) waiting
      where ${messageIdOf('waiting.id')} in (${scheduledIds})`
  })

export const busyDestinations = (after: DestinationName, limit: number, spelling: Spelling): Query =>
  statement((add) => spelling.busyDestinations(after, limit, add))

export const expiring = (before: QueueTime, most: number, spelling: Spelling): Query =>
  statement((add) => spelling.expiring(before, most, add))

// --- messages, ages and counts

export const queuesOf = (ids: readonly MessageId[], spelling: Spelling): Query =>
  statement(
    (add) => `
      select message.id, created_at as "createdAt", ${QUEUE_NAME} as queue from message where ${spelling.among('message.id', ids, add)}`,
  )

/**
 * Live recipients of mail that waits or is on hold, and is not scheduled, with their last status, the times of their first and last attempt, and the status of the
 * first.
 */
const failures = (where: string, { ownMessage }: Spelling): string => `
  select r.id, message.created_at as "createdAt", message.placement, r.destination, r.address, r.last,
    (select at from attempt where attempt.recipient = r.id order by number desc limit 1) as "lastAt",
    (select at from attempt where attempt.recipient = r.id order by number limit 1) as "firstAt",
    (select status from attempt where attempt.recipient = r.id order by number limit 1) as "firstStatus"
  from recipient r ${ownMessage} where ${where} and r.settled_at is null and message.placement in ('queued', 'hold')
    and message.scheduled is not true order by r.id`
export const failuresBetween = ({ after, through }: IdRange, destination: DestinationName | null, spelling: Spelling): Query =>
  statement((add) => {
    const there = destination === null ? '' : ` and r.destination = ${add(destination)}`
    return failures(`r.id > ${add(after)} and r.id <= ${add(through)}${there}`, spelling)
  })
export const failuresOf = (recipients: readonly RecipientId[], spelling: Spelling): Query =>
  statement((add) => failures(spelling.among('r.id', recipients, add), spelling))

/** Found by the index message_envid. */
export const withEnvid = (envid: string, submitters: readonly string[] | null, limit: number): Query =>
  statement((add) => {
    const own = submitters === null ? '' : ` and sasl_username in (${submitters.map((name) => add(name)).join(', ')})`
    return `
      select message.id, created_at as "createdAt", ${QUEUE_NAME} as queue from message
      where envid = ${add(envid)}${own} order by message.id limit ${add(limit)}`
  })

export const ages = ({ after, through }: IdRange, queues: readonly QueueName[], limit: number, { ownMessage }: Spelling): Query =>
  statement(
    (add) => `
      select r.id as cursor, message.sender, r.address, message.arrived_at as "arrivedAt", message.id as message
      from recipient r ${ownMessage}
      where r.id > ${add(after)} and r.id <= ${add(through)} and r.settled_at is null and ${QUEUE_NAME} in ${namesIn(queues)}
      order by r.id limit ${add(limit)}`,
  )

const ALIVE = `(select count(*) from recipient r where ${THEIRS} and r.settled_at is null) as alive`

export const countsBetween = ({ after, through }: IdRange, { fence }: Spelling): Query =>
  statement(
    (add) => `
      select queue, count(*) as messages, cast(sum(alive) as bigint) as recipients, min(arrived_at) as "oldestArrival"
      from (select ${QUEUE_NAME} as queue, arrived_at, ${ALIVE} from message
        where message.id > ${add(after)} and message.id <= ${add(through)} and message.placement <> 'trash' ${fence}) counted
      where alive > 0 group by queue`,
  )

export const loadsBetween = ({ after, through }: IdRange, { fence }: Spelling): Query =>
  statement(
    (add) => `
      select class, share, cast(sum(alive) as bigint) as recipients
      from (select class, share, ${ALIVE} from message
        where message.id > ${add(after)} and message.id <= ${add(through)} and message.placement = 'queued'
          and message.scheduled is not true ${fence}) counted
      where alive > 0 group by class, share order by class, share`,
  )

/** Messages in the trash with live recipients. Reads as many rows as the trash holds. */
export const trashCount = ({ trash, fence }: Spelling): Query =>
  statement(
    () => `
      select count(*) as messages, cast(coalesce(sum(alive), 0) as bigint) as recipients
      from (select ${ALIVE} from ${trash} where deleted_at is not null ${fence}) counted where alive > 0`,
  )

// --- operations

/** `isLast` is 1 when no later operation of the kind has placed the message; `createdAt` is null for one that has left. */
export interface PlacedRow {
  readonly id: MessageId
  readonly createdAt: QueueTime | null
  readonly former: string | null
  readonly isLast: 0 | 1
}

const PLACES = `action in (${PLACING_ACTIONS.map((action) => `'${action}'`).join(', ')})`

const kindOf = (audit: string): string =>
  `case when ${audit}.action in (${APART.map((action) => `'${action}'`).join(', ')}) then ${audit}.action else '' end`

/** Messages that an operation has changed, after a message. */
export const placedBy = (operation: AuditId, after: MessageId, limit: number): Query =>
  statement((add) => {
    const own = add(operation)
    return `
      select operated.message as id, (select created_at from message where message.id = operated.message) as "createdAt", former,
        case when exists (
          select 1 from operated later where later.message = operated.message and later.operation > operated.operation
            and (select ${PLACES} and ${kindOf('audit')} = (select ${kindOf('own')} from audit own where own.id = ${own})
              from audit where audit.id = later.operation)) then 0 else 1 end as "isLast"
      from operated where operation = ${own} and message > ${add(after)} order by message limit ${add(limit)}`
  })

// --- history

/** Row number of the first message that left at a time or later. */
export const firstDeparture = (since: QueueTime, spelling: Spelling): Query => statement((add) => spelling.firstDeparture(since, add))

/**
 * Row number of the last message that left before a time; null for all. Messages leave in the order of their rows, except those that
 * several nodes write at the same time: 10,000 rows of the index are enough to find it.
 */
export const lastDeparture = (until: QueueTime | null): Query =>
  statement((add) =>
    until === null
      ? 'select max(seq) as seq from history'
      : `select max(seq) as seq from (select seq from history where left_at < ${add(until)} order by left_at desc limit 10000) early`,
  )

/** Condition that the JSON text of a record may have an address that matches a pattern. Earlier versions stored needless quotes. */
function mayHave(address: string | null, { matches, contains }: Spelling, add: Add): readonly string[] {
  if (address === null) return []
  const [pattern, unquoted] = [add(likeInJson(address)), add(likeInJson(unquotedPattern(address)))]
  return [`(${matches('record', pattern)} or ${matches('record', unquoted)} or ${contains('record', `'"\\"'`)})`]
}

/**
 * Rows of the history, newest first. The conditions on `record` compare with its JSON text, which excludes most rows before they
 * are decoded; the caller compares the decoded values.
 */
export const departures = (
  { sender, recipient, outcome, since, until }: HistoryFilter,
  { from, before, limit }: { readonly from: number; readonly before: number; readonly limit: number },
  spelling: Spelling,
): Query =>
  statement((add) => {
    const conditions = [
      `seq >= ${add(from)} and seq < ${add(before)} and left_at >= ${add(since ?? 0)}`,
      ...(until === null ? [] : [`left_at < ${add(until)}`]),
      ...mayHave(sender, spelling, add),
      ...mayHave(recipient, spelling, add),
      ...(outcome === null ? [] : [spelling.contains('record', add(JSON.stringify(outcome)))]),
    ]
    return `
      select seq, message, left_at as "leftAt", record from history where ${conditions.join(' and ')} order by seq desc limit ${add(limit)}`
  })

export const historyOf = (message: MessageId, { fence }: Spelling): Query =>
  statement(
    (add) => `
      select left_at as "leftAt", record from (select * from history where message = ${add(message)} ${fence}) found
      order by seq desc limit 1`,
  )
