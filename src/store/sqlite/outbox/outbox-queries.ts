/** SQL statements of the outbox: events, subscriptions, and events that targets refused. */

export const insertEvents = 'insert into event (last, at, lines) values (?, ?, ?)'
export const eventsAfter = 'select last, at, lines from event where last > ? order by last'
/** Rows with an event before a time, the newest first. */
export const eventsBefore = 'select last, at, lines from event where at < ? order by last desc'
export const lastEvent = 'select max(last) from event'
export const deleteEventsThrough = 'delete from event where last <= ?'
/** Leaves the later events of a row. */
export const shortenEvents = 'update event set at = ?, lines = ? where last = ?'
export const epoch = `select value from meta where name = 'event_epoch'`
export const timeOfClock = `select value from meta where name = 'clock_time'`

const SUBSCRIPTION = `
  select name, owner, settings, created_at as createdAt, created_by as createdBy, cursor, state, why, tries, refusals,
    due_at as dueAt, last_answer as lastAnswer, losses from subscription`
export const subscriptions = `${SUBSCRIPTION} order by name`
export const subscriptionByName = `${SUBSCRIPTION} where name = ?`
export const insertSubscription = `
  insert or ignore into subscription (name, owner, settings, created_at, created_by, cursor)
  values (:name, :owner, :settings, :createdAt, :createdBy, :cursor)`
/** Takes a subscription of another queue. */
export const takeSubscription = `
  insert into subscription (name, owner, settings, created_at, created_by, cursor, state, why, losses)
  values (:name, 'command', :settings, :createdAt, :createdBy, :cursor, :state, :why, :losses)
  on conflict (name) do update set settings = excluded.settings, cursor = excluded.cursor, state = excluded.state, why = excluded.why,
    losses = excluded.losses, tries = 0, refusals = 0, due_at = null`
export const changeSettings = 'update subscription set settings = ? where name = ?'
export const deleteSubscription = 'delete from subscription where name = ? and owner = ?'
export const deleteParkedOf = 'delete from parked where subscription = ?'
export const saveProgress = `
  update subscription set cursor = :cursor, state = :state, why = :why, tries = :tries, refusals = :refusals, due_at = :dueAt,
    last_answer = :lastAnswer
  where name = :name and cursor = :from and state = 'active'`
export const moveCursor = 'update subscription set cursor = :cursor where name = :name'
/** Enables a subscription, and has its next event tried at once. */
export const resume = `update subscription set state = 'active', why = null, tries = 0, refusals = 0, due_at = null where name = ?`
export const saveLosses = 'update subscription set cursor = max(cursor, :cursor), refusals = 0, losses = :losses where name = :name'

export const insertParked = `
  insert or replace into parked (subscription, seq, tries, parked_at, answer) values (:name, :seq, :tries, :at, :answer)`
const PARKED = 'select seq, tries, parked_at as parkedAt, due_at as dueAt, answer from parked'
export const parkedDue = `
  ${PARKED} indexed by parked_due
  where subscription = :name and due_at is not null order by due_at, seq limit :limit`
export const parkedAfter = `${PARKED} where subscription = :name and seq > :after order by seq limit :limit`
export const parkedThrough = 'select seq from parked where subscription = ? and seq <= ?'
export const countParked = 'select count(*) from parked where subscription = ?'
export const deleteParked = 'delete from parked where subscription = ? and seq = ?'
export const deleteParkedAfter = 'delete from parked where subscription = ? and seq > ?'
export const deleteParkedThrough = 'delete from parked where subscription = ? and seq <= ?'
export const changeParked = 'update parked set tries = :tries, answer = :answer, due_at = :dueAt where subscription = :name and seq = :seq'
/** Parks an event that the subscription has had, with a try at once. */
export const repeatEvent = `
  insert into parked (subscription, seq, tries, parked_at, due_at, answer) values (:name, :seq, 0, :at, :at, :answer)
  on conflict (subscription, seq) do update set due_at = excluded.due_at`
export const retryParked = 'update parked set due_at = ? where subscription = ?'
