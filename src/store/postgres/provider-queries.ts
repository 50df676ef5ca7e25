/** SQL statements of the providers of destinations, and of the mail that moves with them. */
import { DUE_INDEX } from './writing/queries.ts'

/** A node that was stopped may hold its row; the others do not wait for it for long. */
export const limitLockWait = "set local lock_timeout = '300ms'"

/** Lets one transaction at a time change providers, and no node join meanwhile. */
export const nextKeys = 'update queue set keys = keys + 1 returning keys'
/** Waits for the transactions of all nodes; those that begin later see the number. */
export const setKeys = 'update node set keys = $1 returning id'

export const membersAmong = 'select destination, provider from provider_member where destination = any ($1::text[])'
export const saveMember = `
  insert into provider_member (destination, provider, keys) values ($1, $2, $3)
  on conflict (destination) do update set provider = excluded.provider, keys = excluded.keys`

/** Moves the recipients that a subquery selects: one statement per state, because each has its own index. */
const move = (condition: string): string => `
  update recipient set shard = $3 where id = any (array(
    select id from recipient where shard = $1 and destination = $2 and ${condition}))`
// The order is that of the index, and makes the planner choose it.
export const moveWaiting = move(`${DUE_INDEX} order by due_at`)
export const moveSuspect = move(`state = 'waiting' and suspect order by due_at`)
export const moveParked = move(`state = 'parked'`)
/** Mail in delivery, also of a node that gave its shard away and has not ended yet. */
export const moveLeased = `
  update recipient set shard = $2 where id = any (array(
    select id from recipient where leased_by = any (array(select id from node)) and destination = $1))`

export const tellOfMail = `
  insert into arrival (shard, kind, destination, due_at)
  select $1, 'due', $2, due_at from recipient where shard = $1 and destination = $2 and ${DUE_INDEX} order by due_at limit 1`

export const moveRecord = `
  update destination set shard = $2 where name = $1
  returning name, dead_until, probe_interval, suspended_by, suspended_until, suspend_reason, site_status`
export const tellOfRecord = "insert into arrival (shard, kind, record) values ($1, 'destinations', $2)"
