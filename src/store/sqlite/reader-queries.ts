/**
 * SQL statements of the reader. Each statement reads a bounded slice, so that a reader does not delay the reuse of the
 * write-ahead log. A walk through the whole queue consists of many statements.
 */

import type { QueueName } from '../../mail/message.ts'
import { likeInJson, likePattern, partPattern } from '../../patterns/filter-pattern.ts'
import { conditionsIn, type QueueFilter } from '../message-conditions.ts'
import { messageIdOf, recipientRange } from './queries.ts'
import { OF_MESSAGE, OF_RECIPIENT } from './rows.ts'

const THEIRS = `recipient.id ${recipientRange('message.id')}`

/** Destinations that are dead or suspended: no ordinary delivery is attempted there. */
export const closedDestinations = 'select name from destination where dead_until is not null or suspended_by is not null'

const IS_DEFERRED = `(attempts > 0 or recipient.destination in (${closedDestinations}))`

/**
 * Queue name of a message. A message that is held, corrupt or deleted has its placement as queue name. Any other message is
 * `active` when a recipient is leased, `deferred` when a live recipient was attempted or its destination is dead or suspended,
 * and `incoming` otherwise. The due time is not tested, because mail that was never attempted is due from its creation on.
 */
const QUEUE_NAME = `
  case
    when placement <> 'queued' then placement
    when exists (select 1 from recipient where ${THEIRS} and state = 'leased') then 'active'
    when exists (select 1 from recipient where ${THEIRS} and settled_at is null and ${IS_DEFERRED}) then 'deferred'
    else 'incoming'
  end`

export const lastMessage = 'select max(id) from message'
export const nextMessage = 'select min(id) from message where id > ?'
export const previousMessage = 'select max(id) from message where id <= ?'

export const lastId = 'select coalesce(max(id), 0) from message'
/** Highest id among the next `:size` messages after `:after`; null when there are none. Reads the messages before it once. */
export const sliceOfMessages = `
  select coalesce((select id from message where id > :after order by id limit 1 offset :size - 1),
    (select max(id) from message where id > :after))`

/** Parameter values of a statement. */
type Bound = Readonly<Record<string, string | number>>

interface Condition<Value> {
  /** The table that the condition tests. All conditions on recipients must hold for the same live recipient. */
  readonly on: 'message' | 'recipient'
  readonly sql: string
  readonly bind: (value: Value) => Bound
}

/**
 * Filter keys that test a column of one row. Two keys are excluded: an id is a range of one row, and the queue depends on several
 * rows.
 */
type Column = Exclude<keyof QueueFilter, 'queueId' | 'queue'>

/**
 * Condition that an address, or its normal form, matches a pattern. Addresses that earlier versions stored may have needless quotes, or lack
 * them around misplaced dots and a second `@`.
 */
const addressIs = (column: string, pattern: string): string => `(${column} like ${pattern} escape '\\'
    or ((instr(${column}, '"') = 1 or instr(${column}, '.') = 1 or instr(${column}, '..') > 0 or instr(${column}, '.@') > 0 or ${column} glob '*@*@*')
      and normal_address(${column}) like ${pattern} escape '\\'))`

const CONDITIONS: { readonly [Key in Column]: Condition<NonNullable<QueueFilter[Key]>> } = {
  sender: { on: 'message', sql: addressIs('sender', ':sender'), bind: (sender) => ({ sender: likePattern(sender) }) },
  arrivedBefore: { on: 'message', sql: 'arrived_at < :arrivedBefore', bind: (arrivedBefore) => ({ arrivedBefore }) },
  arrivedAfter: { on: 'message', sql: 'arrived_at > :arrivedAfter', bind: (arrivedAfter) => ({ arrivedAfter }) },
  recipient: { on: 'recipient', sql: addressIs('address', ':recipient'), bind: (recipient) => ({ recipient: likePattern(recipient) }) },
  destination: {
    on: 'recipient',
    sql: `destination like :destination escape '\\'`,
    bind: (destination) => ({ destination: likePattern(destination) }),
  },
  attemptsOver: { on: 'recipient', sql: 'attempts > :attemptsOver', bind: (attemptsOver) => ({ attemptsOver }) },
  status: {
    on: 'recipient',
    sql: `case when last like :statusInJson escape '\\' and json_valid(last) then last ->> 'status' like :status escape '\\' end`,
    // A pattern on the stored JSON excludes most rows before they are decoded, as for `reply`.
    bind: (status) => ({ status: likePattern(status), statusInJson: likeInJson(status) }),
  },
  reply: {
    on: 'recipient',
    sql: `case when last like :replyInJson escape '\\' and json_valid(last)
    then last ->> 'reply' like :reply escape '\\' or last ->> 'reason' like :reply escape '\\' end`,
    // A pattern on the stored JSON excludes most rows before they are decoded.
    bind: (reply) => ({
      reply: likePattern(partPattern(reply)),
      replyInJson: likeInJson(partPattern(reply)),
    }),
  },
}

const isColumn = (key: keyof QueueFilter): key is Column => key !== 'queueId' && key !== 'queue'

const columnsIn = (filter: QueueFilter): readonly Column[] => conditionsIn(filter).filter(isColumn)

const conditionsOn = (on: 'message' | 'recipient', filter: QueueFilter): readonly string[] =>
  columnsIn(filter).flatMap((key) => (CONDITIONS[key].on === on ? [CONDITIONS[key].sql] : []))

/** Parameter values for the statement that `listedBy` returns for the same filter. */
export const boundBy = (filter: QueueFilter): Bound => Object.assign({}, ...columnsIn(filter).map((key) => bound(key, filter))) as Bound

function bound<Key extends Column>(key: Key, filter: Pick<QueueFilter, Key>): Bound {
  const value = filter[key]
  return value === null ? {} : CONDITIONS[key].bind(value)
}

/**
 * SQL condition on the placement. Messages in the trash are listed only when the filter names the trash. The second condition on a
 * placement is that of the index message_aside.
 */
const placementOf = (queue: QueueFilter['queue']): string =>
  queue === null
    ? `placement <> 'trash'`
    : queue === 'hold' || queue === 'corrupt' || queue === 'trash'
      ? `placement = '${queue}' and placement <> 'queued'`
      : `placement = 'queued'`

/**
 * SQL condition for the messages of a slice that have a live recipient which meets all `conditions`. The slice is one range of
 * recipient ids.
 */
const messagesWithLive = (conditions: readonly string[]): string => `id in (select ${messageIdOf('id')} from recipient
  where id ${recipientRange('(:after + 1)', ':through')} and settled_at is null and ${conditions.join(' and ')})`

/** SQL condition for the messages in delivery. The subquery reads as many rows as there are leased recipients. */
const LEASED = `id in (select ${messageIdOf('id')} from recipient indexed by recipient_leased where state = 'leased')
  and id > :after and id <= :through`

/**
 * SQL condition for the keys of a filter that test recipients. The queue is handled here as well, because it depends on all
 * recipients of a message.
 */
function recipientPart(filter: QueueFilter): string {
  const asked = conditionsOn('recipient', filter)
  if (asked.length > 0) return messagesWithLive(asked)
  switch (filter.queue) {
    case 'active':
      return LEASED
    case 'incoming':
      return messagesWithLive([`not ${IS_DEFERRED}`])
    case 'deferred':
      return messagesWithLive([IS_DEFERRED])
    case 'hold':
    case 'corrupt':
    case 'trash':
    case null:
      return 'id > :after and id <= :through'
  }
}

/**
 * SQL of one slice of the messages that match a filter. It contains only the conditions that the filter sets, because a search
 * for rare mail tests millions of rows.
 */
export function listedBy(filter: QueueFilter, newestFirst = false): string {
  return `select ${OF_MESSAGE} from ${tableOf(filter)} where ${sliceConditions(filter).join(' and ')} ${orderOf(newestFirst)} limit :limit`
}

/** Mail outside of the ordinary queues, which has an index. */
const isAside = ({ queue }: QueueFilter): boolean => queue === 'hold' || queue === 'corrupt' || queue === 'trash'

const tableOf = (filter: QueueFilter): string =>
  isAside(filter) && conditionsOn('recipient', filter).length === 0 ? 'message indexed by message_aside' : 'message'

const orderOf = (newestFirst: boolean): string => `order by id${newestFirst ? ' desc' : ''}`

/** SQL conditions for the messages of a slice that match a filter. The queue is not tested where it depends on several rows. */
const sliceConditions = (filter: QueueFilter): readonly string[] => [
  recipientPart(filter),
  placementOf(filter.queue),
  ...conditionsOn('message', filter),
]

/** SQL of the messages among the ids `:candidates` that match a filter. The filter must have a condition on recipients. */
export function listedAmong(filter: QueueFilter, newestFirst = false): string {
  return `select ${OF_MESSAGE} from message where ${amongConditions(filter).join(' and ')} ${orderOf(newestFirst)} limit :limit`
}

function amongConditions(filter: QueueFilter): readonly string[] {
  const recipient = conditionsOn('recipient', filter).join(' and ')
  return [
    'id in (select value from json_each(:candidates))',
    `exists (select 1 from recipient where ${THEIRS} and settled_at is null and ${recipient})`,
    placementOf(filter.queue),
    ...conditionsOn('message', filter),
  ]
}

/** SQL condition on the queue of a message, for the queues whose messages are counted. */
function queueCondition({ queue }: QueueFilter, queues: readonly QueueName[] | null): readonly string[] {
  const wanted = queues ?? (queue === null ? null : [queue])
  if (wanted === null) return []
  const names = wanted.map((name) => `'${name}'`).join(', ')
  const placements = wanted.map((name) => (name === 'hold' || name === 'corrupt' || name === 'trash' ? name : 'queued'))
  const isWhole = !placements.includes('queued') || (['incoming', 'active', 'deferred'] as const).every((name) => wanted.includes(name))
  if (isWhole) return [`placement in (${[...new Set(placements)].map((name) => `'${name}'`).join(', ')})`]
  return [`${QUEUE_NAME} in (${names})`]
}

/**
 * SQL of the counts of one slice of the messages that match a filter, or of the messages among `:candidates`. `destinations` selects the live
 * recipients by destination instead.
 */
export function surveyedBy(
  filter: QueueFilter,
  {
    queues,
    among,
    destinations,
    bounds = 0,
  }: { readonly queues: readonly QueueName[] | null; readonly among: boolean; readonly destinations: boolean; readonly bounds?: number },
): string {
  const selected = among ? amongConditions(filter) : sliceConditions(filter)
  const conditions = [...selected, ...queueCondition(filter, queues)]
  if (destinations)
    return `
      select destination, count(*) as recipients from (select id as found from message where ${conditions.join(' and ')})
      cross join recipient on recipient.id ${recipientRange('found')} where settled_at is null group by destination`
  return `
    select count(*) as messages, coalesce(sum(size), 0) as bytes, min(arrived_at) as oldestArrival,
      json_array(${Array.from({ length: bounds }, (_, n) => `coalesce(sum(arrived_at < :bound${n}), 0)`).join(', ')}) as arrivedBefore
    from (select size, arrived_at from message
      where ${conditions.join(' and ')} and exists (select 1 from recipient where ${THEIRS} and settled_at is null))`
}

/** Number of waiting recipients whose lifetime ends before a time, up to a limit. */
export const expiring = `
  select count(*) from (select 1 from recipient indexed by recipient_expiry where state = 'waiting' and expires_at < :before limit +:most)`

/** Queries for the live recipients at a destination: one query per recipient state, because each state has its own index. */
const AT_DESTINATION = [
  ['recipient_due', `state = 'waiting' and suspect = 0`],
  ['recipient_suspect', `state = 'waiting' and suspect = 1`],
  ['recipient_leased', `state = 'leased'`],
  ['recipient_parked', `state = 'parked'`],
].map(([index, state]) => `select id from recipient indexed by ${index} where ${state} and destination = :destination`)

/** Ids of live recipients at a destination, in the order of their messages. */
const recipientsIn = (order: string): string => `
  select id from (${AT_DESTINATION.join(' union all ')})
  where id ${recipientRange('(:after + 1)', ':through')} order by ${order} limit :size`
export const recipientsAt = recipientsIn('id')
export const newestRecipientsAt = recipientsIn('id desc')

/** Ids of the next live recipients at a destination. */
export const recipientsAfter = `select id from (${AT_DESTINATION.join(' union all ')}) where id > :after order by id limit :size`

/** Number of live recipients at a destination, up to a limit. */
export const countAt = `select count(*) from (select 1 from (${AT_DESTINATION.join(' union all ')}) limit :most)`

/** Whether the statement of `listedBy` skips so few rows that the whole queue can be searched without slices. */
export const needsNoSlices = (filter: QueueFilter): boolean =>
  recipientPart(filter) === LEASED || conditionsIn(filter).length === 0 || (isAside(filter) && conditionsIn(filter).length === 1)

export const liveBetween = `
  select ${OF_RECIPIENT} from recipient where id ${recipientRange(':first', ':last')} and settled_at is null order by id`

/** Live recipients of messages, in the order in which the messages are given. */
export const liveOf = `
  select ${OF_RECIPIENT} from json_each(:messages) cross join recipient on recipient.id ${recipientRange('value')}
  where settled_at is null`

/** Live recipients of a message, at most `:most`. */
export const firstLiveOf = `
  select ${OF_RECIPIENT} from recipient where id ${recipientRange(':message')} and settled_at is null order by id limit :most`

/** Number of live recipients of messages, and whether one is in delivery or deferred. */
export const liveCountsOf = `
  select value as id, count(*) as recipients, max(state = 'leased') as isActive, max(${IS_DEFERRED}) as isDeferred
  from json_each(:messages) cross join recipient on recipient.id ${recipientRange('value')} where settled_at is null group by value`

export const messageWithQueue = `select message.*, ${QUEUE_NAME} as queue from message where id = :message`
/**
 * Live recipients of a slice that are not in the trash, with their last status, the times of their first and last attempt, and the
 * status of the first.
 */
const failuresWhere = (selected: string): string => `
  select recipient.id as id, created_at as createdAt, destination, address, last,
    (select at from attempt where recipient = recipient.id order by number desc limit 1) as lastAt,
    (select at from attempt where recipient = recipient.id order by number limit 1) as firstAt,
    (select status from attempt where recipient = recipient.id order by number limit 1) as firstStatus
  from recipient cross join message on message.id = ${messageIdOf('recipient.id')}
  where ${selected} and settled_at is null and placement <> 'trash' order by recipient.id`
export const failuresBetween = failuresWhere(
  'recipient.id > :after and recipient.id <= :through and (:destination is null or destination = :destination)',
)
/** Those of recipients that are found by their destination. */
export const failuresOf = failuresWhere('recipient.id in (select value from json_each(:ids))')

/** Row number of the first message that left at a time or later. Reads the entries of the index from that time on. */
export const firstDeparture = 'select min(seq) from history indexed by history_left where left_at >= :since'
export const lastDeparture = 'select max(seq) from history'
/** Condition that the JSON text of a record may have an address that matches a pattern. Earlier versions stored needless quotes. */
const mayHave = (address: string): string =>
  `(:${address} is null or record like :${address} escape '\\' or record like :${address}Unquoted escape '\\' or instr(record, '"\\"') > 0)`

/**
 * Rows of the history, newest first. The conditions on `record` compare with its JSON text, which excludes most rows before they
 * are decoded; the caller compares the decoded values.
 */
export const departures = `
  select seq, message, left_at as leftAt, record from history
  where seq >= :from and seq < :before and left_at >= :since
    and ${mayHave('sender')} and ${mayHave('recipient')}
    and (:outcome is null or instr(record, :outcome) > 0)
  order by seq desc limit :limit`

export const historyOf = 'select left_at as leftAt, record from history where message = ? order by seq desc limit 1'

export const nextWaitingDestination = `
  select destination from recipient indexed by recipient_due
  where state = 'waiting' and suspect = 0 and destination > ? order by destination limit 1`
export const nextLeasedDestination = `
  select destination from recipient indexed by recipient_leased
  where state = 'leased' and destination > ? order by destination limit 1`
export const loadOf = `
  select
    (select count(*) from recipient indexed by recipient_due
      where state = 'waiting' and suspect = 0 and destination = :destination)
    + (select count(*) from recipient indexed by recipient_suspect
      where state = 'waiting' and suspect = 1 and destination = :destination) as waiting,
    (select count(*) from recipient indexed by recipient_leased where state = 'leased' and destination = :destination) as leased,
    (select due_at from recipient indexed by recipient_due
      where state = 'waiting' and suspect = 0 and destination = :destination order by due_at limit 1) as nextDueAt`

/** Highest id among the next `:size` recipients after `:after`; null when there are none. */
export const sliceOfRecipients = 'select max(id) from (select id from recipient where id > :after order by id limit :size)'

export const ages = `
  select recipient.id as cursor, sender, address, arrived_at as arrivedAt, message.id as message
  from recipient cross join message on message.id = ${messageIdOf('recipient.id')}
  where recipient.id > :after and recipient.id <= :through and settled_at is null
    and ${QUEUE_NAME} in (select value from json_each(:queues))
  order by recipient.id limit :limit`

/** Separator of the parts of a key. No part contains it. */
const NEXT = 'char(10)'

/**
 * Messages of a range of ids, each with its share of the tally as a text key. The key lists placement, state, tried, destination
 * and number of recipients for each distinct kind of live recipient. A text is the cheapest form in which SQLite can return a
 * list of rows, and equal keys are decoded once.
 */
export const sharesBetween = `
  select id, arrived_at, group_concat(kind || recipients, ${NEXT})
  from (select message.id as id, arrived_at, count(*) as recipients,
      placement || ${NEXT} || state || ${NEXT} || (attempts > 0) || ${NEXT} || destination || ${NEXT} as kind
    from message cross join recipient on ${THEIRS}
    where message.id between :first and :last and settled_at is null
    group by message.id, state, destination, attempts > 0)
  group by id`

export const countsBetween = `
  select queue, count(*) as messages, sum(alive) as recipients, min(arrived_at) as oldestArrival
  from (select ${QUEUE_NAME} as queue, arrived_at,
      (select count(*) from recipient where ${THEIRS} and settled_at is null) as alive
    from message where id > :after and id <= :through and placement <> 'trash')
  where alive > 0 group by queue`

/** The record of the clock; no row in a queue without one. */
export const clockRecord = `
  select t.value as time, o.value as offset, u.value as uptime, b.value as boot
  from meta t, meta o, meta u, meta b
  where t.name = 'clock_time' and o.name = 'clock_offset' and u.name = 'clock_uptime' and b.name = 'clock_boot'`

/** Messages in the trash with live recipients. Reads as many rows as the trash holds. */
export const trashCount = `
  select count(*) as messages, coalesce(sum(alive), 0) as recipients
  from (select (select count(*) from recipient where ${THEIRS} and settled_at is null) as alive
    from message indexed by message_trash where deleted_at is not null)
  where alive > 0`
