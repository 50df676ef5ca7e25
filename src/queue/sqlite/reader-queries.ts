/**
 * The SQL of those who look at the queue. Each statement reads a bounded slice, so that no reader keeps the
 * write-ahead log from being used again; walks through the whole queue are made of many of them.
 */

import type { QueueFilter } from '../reader.ts'

const THEIRS = 'recipient.id between message.id * 131072 and message.id * 131072 + 131071'

/** Destinations where nothing is tried for the time being. */
export const shutDestinations = 'select name from destination where dead_until is not null or suspended_by is not null'

const IS_DEFERRED = `(attempts > 0 or due_at > :now or recipient.destination in (${shutDestinations}))`

/** Active = leased; incoming = never tried, due, and nothing but its turn in the way; deferred = all else that is alive. */
const QUEUE_NAME = `
  case
    when placement <> 'queued' then placement
    when exists (select 1 from recipient where ${THEIRS} and state = 'leased') then 'active'
    when exists (select 1 from recipient where ${THEIRS} and settled_at is null and ${IS_DEFERRED}) then 'deferred'
    else 'incoming'
  end`

export const lastMessage = 'select max(id) from message'
export const nextMessage = 'select min(id) from message where id > ?'

/** The last id of the next slice of messages. */
export const sliceOfMessages = 'select max(id) from (select id from message where id > :after order by id limit :size)'

/** What a listing needs of a message and of a recipient. */
const OF_MESSAGE = 'id, created_at, arrived_at, sender, size, body, message_id, placement, forced_expire'
const OF_RECIPIENT = 'id, state, destination, address, orcpt, due_at, expires_at, steps, attempts, last'

/** Recipient parts of a filter must hold of one live recipient together. */
const RECIPIENT_PARTS = {
  recipient: `address like :recipient escape '\\'`,
  destination: `destination like :destination escape '\\'`,
  attemptsOver: 'attempts > :attemptsOver',
  reply: `case when last like :replyInJson escape '\\' and json_valid(last)
    then instr(lower(coalesce(last ->> 'reply', '') || char(10) || (last ->> 'reason')), :reply) > 0 end`,
} as const satisfies Partial<Record<keyof QueueFilter, string>>

const MESSAGE_PARTS = {
  sender: `sender like :sender escape '\\'`,
  arrivedBefore: 'arrived_at < :arrivedBefore',
} as const satisfies Partial<Record<keyof QueueFilter, string>>

const partsOf = (parts: Partial<Record<keyof QueueFilter, string>>, filter: QueueFilter): readonly string[] =>
  Object.entries(parts).flatMap(([part, text]) => (filter[part as keyof QueueFilter] === undefined ? [] : [text]))

/** Mail in the trash is listed only when it is asked for. */
const placementOf = (queue: QueueFilter['queue']): string =>
  queue === undefined
    ? `placement <> 'trash'`
    : `placement = '${queue === 'hold' || queue === 'corrupt' || queue === 'trash' ? queue : 'queued'}'`

/** Live recipients of a slice of messages: their ids have no index of their own, for they are one range. */
const messagesWithLive = (conditions: readonly string[]): string => `id in (select id / 131072 from recipient
  where id between :after * 131072 + 131072 and :through * 131072 + 131071 and settled_at is null and ${conditions.join(' and ')})`

/** Mail in delivery: as many rows as the active queue has. */
const LEASED = `id in (select id / 131072 from recipient indexed by recipient_leased where state = 'leased')
  and id > :after and id <= :through`

/** What a filter asks of recipients. Whether the message is in a queue, all of them say together. */
function recipientPart(filter: QueueFilter): string {
  const asked = partsOf(RECIPIENT_PARTS, filter)
  if (asked.length > 0) return messagesWithLive(asked)
  switch (filter.queue) {
    case 'active':
      return LEASED
    case 'incoming':
      return messagesWithLive([`not ${IS_DEFERRED}`])
    case 'deferred':
      return messagesWithLive([IS_DEFERRED])
    default:
      return 'id > :after and id <= :through'
  }
}

/** A slice of the messages that a filter is about. Only what it asks stands in it: for rare mail millions are asked. */
export function listedBy(filter: QueueFilter): string {
  const conditions = [recipientPart(filter), placementOf(filter.queue), ...partsOf(MESSAGE_PARTS, filter)]
  return `select ${OF_MESSAGE} from message where ${conditions.join(' and ')} order by id limit :limit`
}

/** Whether the statement passes over so little that no slice is needed. */
export const passesOverLittle = (filter: QueueFilter): boolean =>
  recipientPart(filter) === LEASED || Object.values(filter).every((part) => part === undefined)

export const liveBetween = `
  select ${OF_RECIPIENT} from recipient where id between :first * 131072 and :last * 131072 + 131071 and settled_at is null order by id`

export const messageWithQueue = `select message.*, ${QUEUE_NAME} as queue from message where id = :message`
export const departedOf = 'select left_at as leftAt, record from departed where message = ? order by seq desc limit 1'

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

export const audit = 'select * from audit where id > :after order by id limit :limit'

/** The last id of the next slice of recipients. */
export const sliceOfRecipients = 'select max(id) from (select id from recipient where id > :after order by id limit :size)'

export const ages = `
  select recipient.id as cursor, sender, address, arrived_at as arrivedAt, message.id as message
  from recipient cross join message on message.id = recipient.id / 131072
  where recipient.id > :after and recipient.id <= :through and settled_at is null
    and ${QUEUE_NAME} in (select value from json_each(:queues))
  order by recipient.id limit :limit`

export const countsBetween = `
  select queue, count(*) as messages, sum(alive) as recipients, min(arrived_at) as oldestAt
  from (select ${QUEUE_NAME} as queue, arrived_at,
      (select count(*) from recipient where ${THEIRS} and settled_at is null) as alive
    from message where id > :after and id <= :through and placement <> 'trash')
  where alive > 0 group by queue`
