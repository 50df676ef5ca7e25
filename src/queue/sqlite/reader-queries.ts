/**
 * The SQL of those who look at the queue. Each statement reads a bounded slice, so that no reader keeps the
 * write-ahead log from being used again; walks through the whole queue are made of many of them.
 */

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

/** What a filter says of the message itself. Mail in the trash is listed only when it is asked for. */
const MESSAGE_PART = `
    case :queue when 'hold' then placement = 'hold' when 'corrupt' then placement = 'corrupt' when 'trash' then placement = 'trash'
      else placement = 'queued' or (:queue is null and placement <> 'trash') end
    and (:sender is null or sender like :sender escape '\\')
    and (:arrivedBefore is null or arrived_at < :arrivedBefore)
  order by id limit :limit`

/** Live recipients of a slice of messages: their ids have no index of their own, for they are one range. */
const MESSAGES_WITH_LIVE = `
  select id / 131072 from recipient
  where id between :after * 131072 + 131072 and :through * 131072 + 131071 and settled_at is null`

export const listedWhole = `
  select ${OF_MESSAGE} from message where id > :after and id <= :through and placement <> 'trash' order by id limit :limit`

export const listed = `select ${OF_MESSAGE} from message where id > :after and id <= :through and ${MESSAGE_PART}`

/** Recipient parts of a filter must hold of one live recipient together. */
export const listedByRecipient = `
  select ${OF_MESSAGE} from message where id in (${MESSAGES_WITH_LIVE}
      and (:recipient is null or address like :recipient escape '\\')
      and (:destination is null or destination like :destination escape '\\')
      and (:attemptsOver is null or attempts > :attemptsOver)
      and (:reply is null or case when last like :replyInJson escape '\\' and json_valid(last)
        then instr(lower(coalesce(last ->> 'reply', '') || char(10) || (last ->> 'reason')), :reply) > 0 end))
    and ${MESSAGE_PART}`

/** Mail in delivery: as many rows as the active queue has. */
export const listedActive = `
  select ${OF_MESSAGE} from message where id in (select id / 131072 from recipient indexed by recipient_leased where state = 'leased')
    and id > :after and id <= :through and ${MESSAGE_PART}`

/** Some recipient is as they are in that queue; whether the message is in it, all of them say together. */
export const listedByQueue = `
  select ${OF_MESSAGE} from message where id in (${MESSAGES_WITH_LIVE}
      and case :queue when 'incoming' then not ${IS_DEFERRED} else ${IS_DEFERRED} end)
    and ${MESSAGE_PART}`

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
