/** SQL of the messages that a filter selects. A statement has only the conditions of its filter, because a search for rare mail tests millions of rows. */
import type { QueueName } from '../../mail/message.ts'
import { likeBehindCode, likeInJson, partPattern } from '../../patterns/filter-pattern.ts'
import type { QueueTime } from '../../system/clock.ts'
import { isAside, queueNameIn } from '../decisions/queue-name.ts'
import { recipientRange } from './id-ranges.ts'
import { conditionsIn, type QueueFilter } from '../message-conditions.ts'
import { statement, type Add, type Query } from './read.ts'
import type { IdRange, Spelling } from './spelling.ts'

/** Condition for the recipients `r` of `message`. */
export const THEIRS = `r.id ${recipientRange('message.id')}`

/** Condition that the rows `table` of destinations are closed, as isClosed of `store/destination-status`. */
export const isClosedIn = (table: string): string => `(${table}.dead_until is not null or ${table}.suspended_by is not null)`

/** Destinations that are closed. */
export const closedDestinations = `select name from destination where ${isClosedIn('destination')}`

export const IS_DEFERRED = `(r.attempts > 0 or r.destination in (${closedDestinations}))`

/** The destination of a recipient `r`, when it is closed; null otherwise. */
export const CLOSED_DESTINATION = `case when r.destination in (${closedDestinations}) then r.destination end`

/** Queue name of a message. */
export const QUEUE_NAME = queueNameIn({
  placement: 'message.placement',
  isActive: `exists (select 1 from recipient r where ${THEIRS} and r.state = 'leased')`,
  scheduled: 'message.scheduled',
  isDeferred: `exists (select 1 from recipient r where ${THEIRS} and r.settled_at is null and ${IS_DEFERRED})`,
})

export const namesIn = (names: readonly string[]): string => `(${names.map((name) => `'${name}'`).join(', ')})`

interface Terms {
  readonly spelling: Spelling
  readonly add: Add
}

interface Condition<Value> {
  /** The table that the condition tests. All conditions on recipients must hold for the same live recipient. */
  readonly on: 'message' | 'recipient'
  readonly sql: (value: Value, spelling: Spelling, add: Add) => string
}

/**
 * Filter keys that test a column of one row. Two keys are excluded: an id is a range of one row, and the queue depends on several
 * rows.
 */
type Column = Exclude<keyof QueueFilter, 'queueId' | 'queue'>

/** Condition that an address, or its normal form, matches a pattern. */
function isAddress(address: string, pattern: string, { pattern: parameterOf, matches, isOdd, normalForm }: Spelling, add: Add): string {
  const wanted = add(parameterOf(pattern))
  return `(${matches(address, wanted)} or (${isOdd(address)} and ${matches(normalForm(address), wanted)}))`
}

/**
 * Compares texts of the last outcome with a pattern. A comparison of the stored JSON with `inJson`, patterns of LIKE, excludes most rows
 * before they are decoded.
 */
function inLast(texts: readonly string[], pattern: string, inJson: readonly string[], { spelling, add }: Terms): string {
  const wanted = add(spelling.pattern(pattern))
  const tests = texts.map((text) => spelling.matches(text, wanted))
  const mayMatch = inJson.map((like) => spelling.matches('r.last', add(like)))
  return `case when (${mayMatch.join(' or ')}) and ${spelling.isReadable} then ${tests.join(' or ')} end`
}

const member = (name: string, { lastOutcome }: Spelling): string => `${lastOutcome} ->> '${name}'`

/** Condition that the status of the last outcome, or that of the reply to it, matches a pattern. */
const hasStatus = (pattern: string, spelling: Spelling, add: Add): string =>
  inLast(
    [member('status', spelling), spelling.replyStatus(member('reply', spelling))],
    pattern,
    [likeInJson(pattern), likeBehindCode(pattern)],
    { spelling, add },
  )

/** Condition that the reply or the reason of the last outcome matches a pattern. */
const hasReply = (pattern: string, spelling: Spelling, add: Add): string =>
  inLast([member('reply', spelling), member('reason', spelling)], pattern, [likeInJson(pattern)], { spelling, add })

const CONDITIONS: { readonly [Key in Column]: Condition<NonNullable<QueueFilter[Key]>> } = {
  sender: { on: 'message', sql: (sender, spelling, add) => isAddress('message.sender', sender, spelling, add) },
  class: { on: 'message', sql: (name, _, add) => `message.class = ${add(name)}` },
  arrivedAfter: { on: 'message', sql: (at, _, add) => `message.arrived_at >= ${add(at)}` },
  arrivedBefore: { on: 'message', sql: (at, _, add) => `message.arrived_at < ${add(at)}` },
  olderThan: { on: 'message', sql: (at, _, add) => `message.arrived_at < ${add(at)}` },
  youngerThan: { on: 'message', sql: (at, _, add) => `message.arrived_at > ${add(at)}` },
  recipient: { on: 'recipient', sql: (address, spelling, add) => isAddress('r.address', address, spelling, add) },
  destination: { on: 'recipient', sql: (name, { matches, pattern }, add) => matches('r.destination', add(pattern(name))) },
  expiresWithin: { on: 'recipient', sql: (at, _, add) => `r.state = 'waiting' and r.expires_at < ${add(at)}` },
  attemptsOver: { on: 'recipient', sql: (limit, _, add) => `r.attempts > ${add(limit)}` },
  status: { on: 'recipient', sql: hasStatus },
  reply: { on: 'recipient', sql: (reply, spelling, add) => hasReply(partPattern(reply), spelling, add) },
}

const isColumn = (key: keyof QueueFilter): key is Column => key !== 'queueId' && key !== 'queue'

function conditionsOn(on: 'message' | 'recipient', filter: QueueFilter, spelling: Spelling, add: Add): readonly string[] {
  const keys = conditionsIn(filter).filter(isColumn)
  return keys.flatMap((key) => (CONDITIONS[key].on === on ? [conditionOf(key, filter, spelling, add)] : []))
}

function conditionOf<Key extends Column>(key: Key, filter: Pick<QueueFilter, Key>, spelling: Spelling, add: Add): string {
  const value = filter[key]
  if (value === null) throw new Error(`the filter has no ${key}`)
  return `(${CONDITIONS[key].sql(value, spelling, add)})`
}

/**
 * SQL condition on the placement. Messages in the trash are listed only when the filter names the trash. The second condition on a
 * placement is that of the index message_aside.
 */
const placementOf = (queue: QueueFilter['queue']): string =>
  queue === null
    ? `message.placement <> 'trash'`
    : isAside(queue)
      ? `message.placement = '${queue}' and message.placement <> 'queued'`
      : `message.placement = 'queued'`

/** Messages of which a statement selects: those of a range of ids, or candidates with a recipient at the destination of the filter. */
export type Selection = IdRange | { readonly candidates: readonly number[] }

/** Conditions on the live recipients of a message. The queue is one where nothing else is asked of a recipient; else the caller tests it. */
function recipientConditions(filter: QueueFilter, spelling: Spelling, add: Add): readonly string[] {
  const asked = conditionsOn('recipient', filter, spelling, add)
  if (asked.length > 0) return asked
  return filter.queue === 'incoming' ? [`not ${IS_DEFERRED}`] : filter.queue === 'deferred' ? [IS_DEFERRED] : []
}

function selected(filter: QueueFilter, ids: Selection, spelling: Spelling, add: Add): readonly string[] {
  const live = recipientConditions(filter, spelling, add)
  const met = live.join(' and ')
  const have = live.length === 0 ? [] : [`exists (select 1 from recipient r where ${THEIRS} and r.settled_at is null and ${met})`]
  if ('candidates' in ids) return [spelling.among('message.id', ids.candidates, add), ...have]
  const few = filter.queue === 'active' ? spelling.leased : filter.queue === 'scheduled' ? spelling.scheduled : null
  if (few === null && live.length > 0) return [spelling.withLive(met, ids, add)]
  const range = `message.id > ${add(ids.after)} and message.id <= ${add(ids.through)}`
  return few === null ? [range] : [few, range, ...have]
}

const conditionsOf = (filter: QueueFilter, ids: Selection, spelling: Spelling, add: Add): readonly string[] => [
  ...selected(filter, ids, spelling, add),
  placementOf(filter.queue),
  ...conditionsOn('message', filter, spelling, add),
]

/** Whether messages are found by the index of those outside of the ordinary queues. */
const isByIndex = ({ queue }: QueueFilter, { aside }: Spelling): boolean => aside !== null && isAside(queue)

/** Whether the statement of `listedBy` skips so few rows that the whole queue can be searched without slices. */
export const needsNoSlices = (filter: QueueFilter, spelling: Spelling): boolean =>
  filter.queue === 'active' || filter.queue === 'scheduled' || conditionsIn(filter).length === (isByIndex(filter, spelling) ? 1 : 0)

/** Number and order of the messages of a listing. */
export interface ListedForm {
  readonly limit: number
  readonly newestFirst: boolean
  /** Maximum number of recipients per message; no limit when absent. */
  readonly recipients?: number | undefined
}

/** The messages of a selection that match a filter, but for the queue where it depends on several rows. */
export const listedBy = (
  { filter, ids, columns }: { readonly filter: QueueFilter; readonly ids: Selection; readonly columns: string | ((add: Add) => string) },
  { limit, newestFirst }: ListedForm,
  spelling: Spelling,
): Query =>
  statement((add) => {
    const hasRecipients = conditionsIn(filter).some((key) => isColumn(key) && CONDITIONS[key].on === 'recipient')
    const table = isByIndex(filter, spelling) && !hasRecipients ? spelling.aside : 'message'
    const listed = typeof columns === 'string' ? columns : columns(add)
    const where = conditionsOf(filter, ids, spelling, add).join(' and ')
    return `select ${listed} from ${table} where ${where} order by message.id${newestFirst ? ' desc' : ''} limit ${add(limit)}`
  })

/** SQL condition on the queue of a message, for the queues whose messages are counted. */
function queueCondition({ queue }: QueueFilter, queues: readonly QueueName[] | null): readonly string[] {
  const wanted = queues ?? (queue === null ? null : [queue])
  if (wanted === null) return []
  const placements = wanted.map((name) => (isAside(name) ? name : 'queued'))
  const isWhole =
    !placements.includes('queued') || (['incoming', 'active', 'deferred', 'scheduled'] as const).every((name) => wanted.includes(name))
  return [isWhole ? `message.placement in ${namesIn([...new Set(placements)])}` : `${QUEUE_NAME} in ${namesIn(wanted)}`]
}

/** The messages that are counted. */
interface Surveyed {
  readonly filter: QueueFilter
  readonly ids: Selection
  readonly queues: readonly QueueName[] | null
}

const surveyed = ({ filter, ids, queues }: Surveyed, spelling: Spelling, add: Add): string =>
  [...conditionsOf(filter, ids, spelling, add), ...queueCondition(filter, queues)].join(' and ')

/** Counts of the messages of a selection that match a filter; `before0` and so on for those that arrived before the bounds. */
export const surveyOf = (wanted: Surveyed, bounds: readonly QueueTime[], spelling: Spelling): Query =>
  statement((add) => {
    const earlier = bounds.map((at, n) => `, count(*) filter (where arrived_at < ${add(at)}) as before${n}`)
    return `
      select count(*) as messages, cast(coalesce(sum(size), 0) as bigint) as bytes, min(arrived_at) as "oldestArrival"${earlier.join('')}
      from (select size, arrived_at from message where ${surveyed(wanted, spelling, add)}
        and exists (select 1 from recipient r where ${THEIRS} and r.settled_at is null) ${spelling.fence}) found`
  })

/** These messages with a live recipient, by sender. */
export const surveyBySender = (wanted: Surveyed, spelling: Spelling): Query =>
  statement(
    (add) => `
      select found.sender, count(*) as messages
      from (select message.sender from message where ${surveyed(wanted, spelling, add)}
        and exists (select 1 from recipient r where ${THEIRS} and r.settled_at is null) ${spelling.fence}) found
      group by found.sender`,
  )

/** Live recipients of these messages by destination. */
export const surveyByDestination = (wanted: Surveyed, spelling: Spelling): Query =>
  statement(
    (add) => `
      select r.destination, count(*) as recipients
      from (select message.id from message where ${surveyed(wanted, spelling, add)} ${spelling.fence}) found ${spelling.ownRecipients}
      where r.settled_at is null group by r.destination`,
  )
