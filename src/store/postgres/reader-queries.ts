/**
 * SQL statements of the reader. Each reads a bounded slice in one statement, so that no snapshot is held for long: an old snapshot keeps
 * dead rows from being removed. A walk through the whole queue consists of many statements.
 */
import type { QueueName } from '../../mail/message.ts'
import { likeInJson, partPattern } from '../../patterns/filter-pattern.ts'
import type { QueueTime } from '../../system/clock.ts'
import { conditionsIn, type QueueFilter } from '../message-conditions.ts'
import { SHARDS } from '../membership/shards.ts'
import { texts } from './session/arrays.ts'
import type { Parameter } from './session/database-connection.ts'
import { messageIdOf, recipientRange } from './session/id-ranges.ts'
import { bigintList, booleanList, intList, nullableList, textList } from './session/lists.ts'
import { matches, matchesAddress, patternParameter } from './session/patterns.ts'
import { DUE_INDEX } from './writing/queries.ts'
import { MESSAGE_COLUMNS } from './writing/rows.ts'

const THEIRS = `r.id ${recipientRange('message.id')}`

/** Destinations that are dead or suspended: no ordinary delivery is attempted there. */
export const closedDestinations = 'select name from destination where dead_until is not null or suspended_by is not null'

const IS_DEFERRED = `(r.attempts > 0 or r.destination in (${closedDestinations}))`

/**
 * Queue name of a message. A message that is held, corrupt or deleted has its placement as queue name. Any other message is
 * `active` when a recipient is leased, `deferred` when a live recipient was attempted or its destination is dead or suspended,
 * and `incoming` otherwise.
 */
const QUEUE_NAME = `
  case
    when placement <> 'queued' then placement
    when exists (select 1 from recipient r where ${THEIRS} and r.state = 'leased') then 'active'
    when exists (select 1 from recipient r where ${THEIRS} and r.settled_at is null and ${IS_DEFERRED}) then 'deferred'
    else 'incoming'
  end`

export const lastMessage = 'select max(id) as id from message'
export const previousMessage = 'select id from message where id <= $1 order by id desc limit 1'
export const nextMessage = 'select id from message where id > $1 order by id limit 1'

/** Highest id among the next messages after an id; null when there are none. */
export const sliceOfMessages = 'select max(id) as id from (select id from message where id > $1 order by id limit $2) slice'
export const sliceOfRecipients = 'select max(id) as id from (select id from recipient where id > $1 order by id limit $2) slice'

// --- listings

/** A live recipient as a list. */
const LIVE_ENTRY = `json_build_array(r.id, r.state, r.destination, r.address, r.orcpt, r.due_at, r.expires_at, r.steps, r.attempts, r.last)`
/** Columns that a listing reads of a message, and its live recipients as a list of lists. */
const LISTED = `
  select message.id as message, created_at, arrived_at, sender, size, content_id, message_id, placement, forced_expire,
    (select json_agg(${LIVE_ENTRY} order by r.id) from recipient r where ${THEIRS} and r.settled_at is null) as live
  from message`

/** The same with at most so many recipients per message, the number of all, and the queue of the message. */
const shortened = (most: string): string => `
  select message.id as message, created_at, arrived_at, sender, size, content_id, message_id, placement, forced_expire,
    (select json_agg(${LIVE_ENTRY} order by r.id) from (
      select * from recipient r where ${THEIRS} and r.settled_at is null order by r.id limit ${most}) r) as live,
    (select count(*)::int from recipient r where ${THEIRS} and r.settled_at is null) as live_count, ${QUEUE_NAME} as queue
  from message`

/** A statement with its parameters. */
export interface Query {
  readonly text: string
  readonly parameters: readonly Parameter[]
}

/** Collects parameters, each of which gets the next number. */
class Parameters {
  readonly all: Parameter[] = []

  add(value: Parameter): string {
    this.all.push(value)
    return `$${this.all.length}`
  }
}

/**
 * Filter keys that test a column of one row. Two keys are excluded: an id is a range of one row, and the queue depends on several
 * rows.
 */
type Column = Exclude<keyof QueueFilter, 'queueId' | 'queue'>

interface Condition<Value> {
  /** The table that the condition tests. All conditions on recipients must hold for the same live recipient. */
  readonly on: 'message' | 'recipient'
  readonly sql: (value: Value, parameters: Parameters) => string
}

/** Compares members of the last outcome with a pattern. A comparison with the stored JSON excludes most rows before they are decoded. */
const inLast = (members: readonly string[], pattern: string, parameters: Parameters): string => {
  const wanted = parameters.add(patternParameter(pattern))
  const tests = members.map((member) => matches(`r.last::json ->> '${member}'`, wanted))
  return `case when ${matches('r.last', parameters.add(likeInJson(pattern)))} and position('\\u0000' in r.last) = 0 then ${tests.join(' or ')} end`
}

const CONDITIONS: { readonly [Key in Column]: Condition<NonNullable<QueueFilter[Key]>> } = {
  sender: { on: 'message', sql: (sender, parameters) => matchesAddress('sender', parameters.add(patternParameter(sender))) },
  arrivedBefore: { on: 'message', sql: (at, parameters) => `arrived_at < ${parameters.add(at)}` },
  arrivedAfter: { on: 'message', sql: (at, parameters) => `arrived_at > ${parameters.add(at)}` },
  recipient: { on: 'recipient', sql: (address, parameters) => matchesAddress('r.address', parameters.add(patternParameter(address))) },
  destination: { on: 'recipient', sql: (name, parameters) => matches('r.destination', parameters.add(patternParameter(name))) },
  attemptsOver: { on: 'recipient', sql: (limit, parameters) => `r.attempts > ${parameters.add(limit)}` },
  status: { on: 'recipient', sql: (status, parameters) => inLast(['status'], status, parameters) },
  reply: { on: 'recipient', sql: (reply, parameters) => inLast(['reply', 'reason'], partPattern(reply), parameters) },
}

const isColumn = (key: keyof QueueFilter): key is Column => key !== 'queueId' && key !== 'queue'

function conditionsOn(on: 'message' | 'recipient', filter: QueueFilter, parameters: Parameters): readonly string[] {
  return conditionsIn(filter)
    .filter(isColumn)
    .flatMap((key) => (CONDITIONS[key].on === on ? [conditionOf(key, filter, parameters)] : []))
}

function conditionOf<Key extends Column>(key: Key, filter: Pick<QueueFilter, Key>, parameters: Parameters): string {
  const value = filter[key]
  return value === null ? 'true' : CONDITIONS[key].sql(value, parameters)
}

/** Messages in the trash are listed only when the filter names the trash. */
const placementOf = (queue: QueueFilter['queue']): string =>
  queue === null
    ? `placement <> 'trash'`
    : `placement = '${queue === 'hold' || queue === 'corrupt' || queue === 'trash' ? queue : 'queued'}'`

function recipientPart(filter: QueueFilter, parameters: Parameters): readonly string[] {
  const asked = [...conditionsOn('recipient', filter, parameters)]
  if (filter.queue === 'incoming' && asked.length === 0) asked.push(`not ${IS_DEFERRED}`)
  if (filter.queue === 'deferred' && asked.length === 0) asked.push(IS_DEFERRED)
  if (asked.length === 0) return []
  return [`exists (select 1 from recipient r where ${THEIRS} and r.settled_at is null and ${asked.map((one) => `(${one})`).join(' and ')})`]
}

/** Messages in delivery: as many rows are read as there are leased recipients. */
const LEASED = `message.id = any (array(select ${messageIdOf('id')} from recipient where leased_by is not null))`

/** Messages that a statement selects: a range of ids, or those among candidates. */
export type SelectedIds = IdRange | { readonly candidates: Buffer }

/** Ids above `after` and up to `through`. */
export interface IdRange {
  readonly after: number
  readonly through: number
}

function conditionsOf(filter: QueueFilter, ids: SelectedIds, parameters: Parameters): readonly string[] {
  const isRange = 'after' in ids
  return [
    isRange
      ? `message.id > ${parameters.add(ids.after)} and message.id <= ${parameters.add(ids.through)}`
      : `message.id = any (${parameters.add(ids.candidates)}::bigint[])`,
    ...(isRange && isOfLeased(filter) ? [LEASED] : []),
    placementOf(filter.queue),
    ...conditionsOn('message', filter, parameters),
    ...recipientPart(filter, parameters),
  ]
}

export interface ListedForm {
  readonly limit: number
  readonly newestFirst: boolean
  /** Maximum number of recipients per message; no limit when absent. */
  readonly recipients?: number | undefined
}

const MESSAGE_LISTS = [
  ...['message', 'created_at', 'arrived_at', 'size', 'content_id'].map(bigintList),
  ...['sender', 'placement'].map(textList),
  nullableList('message_id'),
  booleanList('forced_expire'),
].join(', ')
const RECIPIENT_LISTS = [
  ...['id', 'due_at', 'expires_at'].map(bigintList),
  ...['steps', 'attempts'].map(intList),
  ...['state', 'destination', 'address'].map(textList),
  ...['orcpt', 'last'].map(nullableList),
].join(', ')

/** All messages of a range outside the trash, as lists (whole-listing.ts) in the order of their ids. `wholeRecipients` has their recipients. */
export function listedWhole({ after, through }: IdRange, { limit, newestFirst }: ListedForm): Query {
  const text = `
    select ${MESSAGE_LISTS} from (
      select message.id as message, created_at, arrived_at, sender, size, content_id, message_id, placement, forced_expire from message
      where message.id > $1 and message.id <= $2 and placement <> 'trash' order by message.id${newestFirst ? ' desc' : ''} limit $3) rows`
  return { text, parameters: [after, through, limit] }
}

/**
 * Live recipients of the messages from one id to another, as lists in the order of their ids. A statement that finds the recipients of each
 * message, or makes a list for each, would take two or four times as long.
 */
export const wholeRecipients = `
  select ${RECIPIENT_LISTS} from (
    select r.id, state, destination, address, orcpt, due_at, expires_at, steps, attempts, last from recipient r
    where r.id ${recipientRange('$1::bigint', '$2::bigint')} and r.settled_at is null
      and (state <> 'parked' or (select placement from message where message.id = ${messageIdOf('r.id')}) <> 'trash')
    order by r.id) rows`

/** The messages of a selection that match a filter. */
export function listedBy(filter: QueueFilter, ids: SelectedIds, { limit, newestFirst, recipients }: ListedForm): Query {
  const parameters = new Parameters()
  const where = conditionsOf(filter, ids, parameters).join(' and ')
  const listed = recipients === undefined ? LISTED : shortened(parameters.add(recipients))
  const order = `order by message.id${newestFirst ? ' desc' : ''} limit ${parameters.add(limit)}`
  return { text: `${listed} where ${where} ${order}`, parameters: parameters.all }
}

/** SQL condition on the queue of a message, for the queues whose messages are counted. */
function queueCondition({ queue }: QueueFilter, queues: readonly QueueName[] | null): readonly string[] {
  const wanted = queues ?? (queue === null ? null : [queue])
  if (wanted === null) return []
  const placements = wanted.map((name) => (name === 'hold' || name === 'corrupt' || name === 'trash' ? name : 'queued'))
  const isWhole = !placements.includes('queued') || (['incoming', 'active', 'deferred'] as const).every((name) => wanted.includes(name))
  const list = (names: readonly string[]) => `(${names.map((name) => `'${name}'`).join(', ')})`
  return [isWhole ? `placement in ${list([...new Set(placements)])}` : `${QUEUE_NAME} in ${list(wanted)}`]
}

/** Counts of the messages of a selection that match a filter; with `destinations`, their live recipients by destination instead. */
export function surveyedBy(
  filter: QueueFilter,
  ids: SelectedIds,
  {
    queues,
    destinations,
    bounds = [],
  }: { readonly queues: readonly QueueName[] | null; readonly destinations: boolean; readonly bounds?: readonly QueueTime[] },
): Query {
  const parameters = new Parameters()
  const where = [...conditionsOf(filter, ids, parameters), ...queueCondition(filter, queues)].join(' and ')
  const earlier = (destinations ? [] : bounds).map((at) => `(count(*) filter (where arrived_at < ${parameters.add(at)}))::int`)
  const counts = `
    select array[${earlier.join(', ')}]::int[] as "arrivedBefore", count(*)::int as messages, coalesce(sum(size), 0)::bigint as bytes, min(arrived_at) as "oldestArrival"
    from (select size, arrived_at from message
      where ${where} and exists (select 1 from recipient r where ${THEIRS} and r.settled_at is null) offset 0) found`
  const byDestination = `
    select r.destination, count(*)::int as recipients from (select message.id from message where ${where} offset 0) found
    cross join lateral (select destination from recipient r where r.id ${recipientRange('found.id')} and r.settled_at is null offset 0) r
    group by r.destination`
  return { text: destinations ? byDestination : counts, parameters: parameters.all }
}

/** Number of waiting recipients whose lifetime ends before a time, up to a limit in each shard. */
export const expiring = `
  select coalesce(sum(found), 0)::int as found from shard s cross join lateral (
    select count(*) as found from (
      select 1 from recipient r where r.shard = s.id and r.state = 'waiting' and r.expires_at < $1 limit $2) first) counted`

const isOfLeased = ({ queue }: QueueFilter): boolean => queue === 'active'

/** Whether the statement of `listedBy` skips so few rows that the whole queue can be searched without slices. */
export const needsNoSlices = (filter: QueueFilter): boolean => isOfLeased(filter) || conditionsIn(filter).length === 0

const ofShards = (condition: string): string =>
  `(select r.id from unnest($1::smallint[]) own (shard) cross join lateral (
    select r.id from recipient r where r.shard = own.shard and ${condition} offset 0) r)`

/** Queries for the live recipients at a destination ($1 its shards, $2 its name): one per state, because each has its own index. */
const AT_DESTINATION = [
  // The order is that of the index, and makes the planner choose it.
  ofShards(`r.destination = $2 and ${DUE_INDEX} order by r.due_at`),
  ofShards(`r.destination = $2 and r.state = 'waiting' and r.suspect order by r.due_at`),
  `(select id from recipient where leased_by is not null and destination = $2 offset 0)`,
  ofShards(`r.destination = $2 and r.state = 'parked'`),
]

/** Ids of live recipients at a destination, in the order of their messages. */
const recipientsIn = (order: string): string => `
  select id from (${AT_DESTINATION.join(' union all ')}) there
  where id ${recipientRange('($3::bigint + 1)', '$4::bigint')} order by ${order} limit $5`
export const recipientsAt = recipientsIn('id')
export const newestRecipientsAt = recipientsIn('id desc')

/** Ids of the next live recipients at a destination. */
export const recipientsAfter = `select id from (${AT_DESTINATION.join(' union all ')}) there where id > $3 order by id limit $4`

/** Number of live recipients at a destination, up to a limit. */
export const countAt = `select count(*) as found from (select 1 from (${AT_DESTINATION.join(' union all ')}) there limit $3) counted`

// --- one message

/** A message with all its recipients and attempts, of one moment. */
export const messageWithAll = `
  select ${MESSAGE_COLUMNS}, ${QUEUE_NAME} as queue,
    (select json_agg(to_json(r) order by r.id) from (
      select r.*, n.name as node_name from recipient r left join node n on n.id = r.leased_by where ${THEIRS}) r) as all_recipients,
    (select json_agg(to_json(a) order by a.at, a.recipient, a.number) from attempt a where a.recipient ${recipientRange('message.id')}) as attempts
  from message where message.id = $1`
export const queuesOf = `
  select message.id, created_at as "createdAt", ${QUEUE_NAME} as queue from message where message.id = any ($1::bigint[])`
export const historyOf = `
  select left_at as "leftAt", record from (select * from history where message = $1 offset 0) rows order by seq desc limit 1`

// --- destinations

/** Destinations after a name with waiting or leased mail. Loose index scan: two seeks per destination and shard. */
export const busyDestinations = `
  with recursive walk (shard, destination) as (
    select s, (select r.destination from recipient r where r.shard = s and r.destination > $1 and r.state = 'waiting' and not r.suspect
      order by r.destination limit 1) from generate_series(0, ${SHARDS - 1}) s
    union all
    select walk.shard, (select r.destination from recipient r where r.shard = walk.shard and r.destination > walk.destination
      and r.state = 'waiting' and not r.suspect order by r.destination limit 1) from walk where walk.destination is not null)
  select destination from walk where destination is not null
  union select destination from recipient where leased_by is not null and destination > $1
  order by destination limit $2`

export const loadOf = `
  select
    ((select count(*) from ${AT_DESTINATION[0]} due) + (select count(*) from ${AT_DESTINATION[1]} suspects))::int as waiting,
    (select count(*) from recipient where leased_by is not null and destination = $2)::int as leased,
    (select min(r.due_at) from unnest($1::smallint[]) own (shard) cross join lateral (select r.due_at from recipient r
      where r.shard = own.shard and r.destination = $2 and ${DUE_INDEX} order by r.due_at limit 1) r) as "nextDueAt"`

export const destinations = 'select * from destination order by name'

/**
 * Live recipients of a slice that are not in the trash, with their last status, the times of their first and last attempt, and the
 * status of the first.
 */
const failuresWhere = (selected: string): string => `
  select r.id, m.created_at as "createdAt", r.destination, r.address, r.last,
    (select at from attempt where attempt.recipient = r.id order by number desc limit 1) as "lastAt",
    (select at from attempt where attempt.recipient = r.id order by number limit 1) as "firstAt",
    (select status from attempt where attempt.recipient = r.id order by number limit 1) as "firstStatus"
  from recipient r cross join lateral (select created_at, placement from message where message.id = ${messageIdOf('r.id')} offset 0) m
  where ${selected} and r.settled_at is null and m.placement <> 'trash' order by r.id`
export const failuresBetween = failuresWhere('r.id > $1 and r.id <= $2 and ($3::text is null or r.destination = $3)')
/** Those of recipients that are found by their destination. */
export const failuresOf = failuresWhere('r.id = any ($1::bigint[])')

// --- history, ages and counts

/** Number of the first row among those that left at a time or later. */
export const firstDeparture = `
  select min(seq) as seq from (select seq from history where left_at >= $1 order by left_at limit 10000) late`
export const lastDeparture = 'select max(seq) as seq from history'
/** Condition that the JSON text of a record may have an address that matches a pattern. Earlier versions stored needless quotes. */
const mayHave = (pattern: string, unquoted: string): string =>
  `(${pattern}::text is null or ${matches('record', pattern)} or ${matches('record', unquoted)} or position('"\\"' in record) > 0)`

/**
 * Rows of the history, newest first. The conditions on `record` compare with its JSON text, which excludes most rows before they
 * are decoded; the caller compares the decoded values.
 */
export const departures = `
  select seq, message, left_at as "leftAt", record from history
  where seq >= $1 and seq < $2 and left_at >= $3
    and ${mayHave('$4', '$5')} and ${mayHave('$6', '$7')}
    and ($8::text is null or position($8 in record) > 0)
  order by seq desc limit $9`

export const ages = `
  select r.id as cursor, m.sender, r.address, m.arrived_at as "arrivedAt", m.id as message
  from recipient r cross join lateral (select message.id, sender, arrived_at, ${QUEUE_NAME.replaceAll('r.', 'x.').replaceAll('recipient r', 'recipient x')} as queue
    from message where message.id = ${messageIdOf('r.id')} offset 0) m
  where r.id > $1 and r.id <= $2 and r.settled_at is null and m.queue = any ($4::text[])
  order by r.id limit $3`

export const countsBetween = `
  select queue, count(*)::int as messages, sum(alive)::bigint as recipients, min(arrived_at) as "oldestArrival"
  from (select ${QUEUE_NAME} as queue, arrived_at,
      (select count(*) from recipient r where ${THEIRS} and r.settled_at is null) as alive
    from message where message.id > $1 and message.id <= $2 and placement <> 'trash' offset 0) counted
  where alive > 0 group by queue`

/** Messages in the trash with live recipients. Reads as many rows as the trash holds. */
export const trashCount = `
  select count(*)::int as messages, coalesce(sum(alive), 0)::bigint as recipients
  from (select (select count(*) from recipient r where ${THEIRS} and r.settled_at is null) as alive
    from message where deleted_at is not null offset 0) counted
  where alive > 0`

/** Parameter of `ages`. */
export const queueNames = (queues: readonly string[]): Buffer => texts(queues)
