/** SQL statements of the outbox: events, subscriptions, and events that targets refused. */

/** Time of an event without a time of its own. The nodes follow the clock of the database. */
const NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** Ids ascend in the order of the arrays. Run at the end of a transaction, after it has locked its rows. */
export const insertEvents = `
  insert into event (at, type, data)
  select coalesce(at, ${NOW}), type, data from unnest($1::bigint[], $2::text[], $3::text[])
    with ordinality as new (at, type, data, number) order by number`

/** Notes the last transaction of a node that only this row shows when its answer is lost. */
export const markBatch = `
  insert into marked_batch (node, number) values ($1, $2) on conflict (node) do update set number = excluded.number`
export const markedBatch = 'select 1 from marked_batch where node = $1 and number = $2'

/** Locks the numbers; no row while another node numbers events. */
export const lockNumbers = 'select last from outbox for update skip locked'
/**
 * Numbers committed events in the order of their ids. Sent after the answer of lockNumbers: a statement that waited for the lock would not
 * see the numbers that another node has given meanwhile.
 */
export const numberEvents = `
  with oldest as (select id from event where seq is null order by id limit $1),
    new as (select id, row_number() over (order by id) as n from oldest),
    numbered as (update event set seq = (select last from outbox) + new.n from new
      where event.id = new.id and event.seq is null and event.id = any (array(select id from oldest)) returning 1)
  update outbox set last = last + (select count(*) from new) returning (select count(*) from new) as numbered`

export const eventsAfter = 'select seq, at, type, data from event where seq > $1 order by seq limit $2'
export const oldestEvents = 'select seq, at from event where seq is not null order by seq limit $1'
export const boundsOfEvents = `
  select epoch, last, coalesce((select seq from event where seq is not null order by seq limit 1), last + 1) as first from outbox`
export const cursorBefore = `
  select coalesce((select seq from event where seq is not null and at < $1 order by seq desc limit 1),
    (select seq - 1 from event where seq is not null order by seq limit 1), 0) as cursor`
export const deleteEventsThrough = 'delete from event where seq <= $1'

const SUBSCRIPTION = `name, owner, settings, created_at as "createdAt", created_by as "createdBy", cursor, state, why, tries,
    refusals, due_at as "dueAt", last_answer as "lastAnswer", losses`
export const subscriptions = `select ${SUBSCRIPTION} from subscription order by name`
export const subscriptionByName = `select ${SUBSCRIPTION} from subscription where name = $1`
export const lockSubscription = `${subscriptionByName} for update`
export const lockSubscriptions = `${subscriptions} for update`
export const subscriptionViews = `
  select ${SUBSCRIPTION}, (select count(*) from parked where parked.subscription = subscription.name)::int as parked,
    (select event.at from event where event.seq > subscription.cursor order by event.seq limit 1) as "oldestAt"
  from subscription order by name`
/** Subscriptions that belong to own shards, by their numbers ($3) and names ($2). */
export const ownShardsAmong = `
  select name from unnest($2::text[], $3::smallint[]) as asked (name, shard)
  where exists (select 1 from shard where shard.id = asked.shard and (shard.owner = $1) is true)`

/** A new subscription receives the events that are numbered after this transaction has begun. */
export const insertSubscription = `
  insert into subscription (name, owner, settings, created_at, created_by, configured_by, cursor)
  select $1, $2, $3, $4, $5, $6, last from outbox on conflict do nothing returning name`
/** Takes a subscription of another queue. */
export const takeSubscription = `
  insert into subscription (name, owner, settings, created_at, created_by, cursor, state, why, losses)
  values ($1, 'command', $2, $3, $4, $5, $6, $7, $8)
  on conflict (name) do update set settings = excluded.settings, cursor = excluded.cursor, state = excluded.state, why = excluded.why,
    losses = excluded.losses, tries = 0, refusals = 0, due_at = null`
export const deleteParkedOf = 'delete from parked where subscription = $1'
export const changeSettings = 'update subscription set settings = $2 where name = $1'
export const configuredHere = `
  update subscription set settings = $2, configured_by = array_append(array_remove(configured_by, $3), $3) where name = $1`
/** Notes that the node named $1 has no tables but those in $2. */
export const notConfiguredHere = `
  update subscription set configured_by = array_remove(configured_by, $1)
  where owner = 'configuration' and $1 = any (configured_by) and not name = any ($2) returning name`
/** Removes the subscriptions of the configuration that no node has. */
export const deleteUnconfigured = `
  with gone as (delete from subscription where owner = 'configuration' and configured_by = '{}' returning name),
    p as (delete from parked where subscription = any (array(select name from gone)))
  select name from gone`
export const deleteSubscription = `
  with gone as (delete from subscription where name = $1 and owner = 'command' returning name),
    p as (delete from parked where subscription = $1 and exists (select 1 from gone))
  select name from gone`
export const saveProgress = `
  update subscription set cursor = $3, state = $4, why = $5, tries = $6, due_at = $7, last_answer = $8, refusals = $11,
    losses = (select coalesce(json_agg(loss order by number), '[]')::text
      from json_array_elements(losses::json) with ordinality as kept (loss, number)
      where (loss->>'from')::bigint is distinct from $9 or (loss->>'to')::bigint is distinct from $10)
  where name = $1 and cursor = $2 and state = 'active' returning name`
export const moveCursor = `
  with s as (update subscription set cursor = least(cursor, $2) where name = $1 returning cursor),
    p as (delete from parked where subscription = $1 and seq > (select cursor from s))
  select (select last from outbox) - cursor as behind from s`
/** Enables a subscription, and has its next event tried at once. */
export const resume = `
  update subscription set state = 'active', why = null, tries = 0, refusals = 0, due_at = null where name = $1
  returning greatest(0, (select last from outbox) - cursor) as behind`
export const saveLosses = 'update subscription set cursor = greatest(cursor, $2), refusals = 0, losses = $3 where name = $1'
/** Marks the first loss as pulled, unless the losses have changed since they were read. */
export const markLossPulled = 'update subscription set losses = $3 where name = $1 and losses = $2 returning name'

export const insertParked = `
  insert into parked (subscription, seq, tries, parked_at, answer)
  select $1, new.* from unnest($2::bigint[], $3::int[], $4::bigint[], $5::text[]) as new (seq, tries, at, answer)
  on conflict (subscription, seq) do update set tries = excluded.tries, parked_at = excluded.parked_at, due_at = null, answer = excluded.answer`
const PARKED = `
  select e.*, p.tries, p.parked_at as "parkedAt", p.due_at as "dueAt", p.answer from parked p
    cross join lateral (select seq, at, type, data from event where event.seq = p.seq offset 0) e`
export const parkedDue = `
  ${PARKED} where p.subscription = $1 and p.due_at is not null order by p.due_at, p.seq limit $2`
export const parkedAfter = `${PARKED} where p.subscription = $1 and p.seq > $2 order by p.seq limit $3`
export const parkedThrough = 'select seq from parked where subscription = $1 and seq <= $2'
export const deleteParked = 'delete from parked where subscription = $1 and seq = $2'
export const deleteParkedThrough = 'delete from parked where subscription = $1 and seq <= $2'
export const changeParked = 'update parked set tries = $3, answer = $4, due_at = $5 where subscription = $1 and seq = $2'
/** Parks an event that the subscription has had, with a try at once. No row for another event. */
export const repeatEvent = `
  insert into parked (subscription, seq, tries, parked_at, due_at, answer)
  select s.name, e.seq, 0, $3, $3, $4 from subscription s, event e where s.name = $1 and e.seq = $2 and e.seq <= s.cursor
  on conflict (subscription, seq) do update set due_at = excluded.due_at returning seq`
export const retryParked = 'update parked set due_at = $2 where subscription = $1 returning seq'
