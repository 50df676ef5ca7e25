/** SQL statements of the providers of destinations, and of the mail that follows them. */
import type { KeyChange } from '../membership/shard-keys.ts'
import type { Shard } from '../membership/shards.ts'
import { DUE_INDEX } from './writing/queries.ts'

/** The mail of a destination may be moving for a moment. */
export const limitSliceWait = "set local lock_timeout = '2s'"
/** A node that was stopped may hold its row; the others do not wait for it for long. */
export const limitLockWait = "set local lock_timeout = '300ms'"

/** Lets one transaction at a time change providers, and no node join meanwhile. */
export const nextKeys = 'update queue set keys = keys + 1 returning keys'
/** Waits for the transactions of all nodes; those that begin later see the number. */
export const setKeys = 'update node set keys = $1 returning id'

/** A destination, and the shards that may still have mail of it. */
export interface Member extends KeyChange {
  readonly movesFrom: readonly Shard[]
}
const MEMBER = `select destination, provider, to_json(moves_from) as "movesFrom" from provider_member`

export const membersAmong = `${MEMBER} where destination = any ($1::text[])`
export const lockMembers = `${MEMBER} where destination = any ($1::text[]) order by destination for update`
export const saveMember = `
  insert into provider_member (destination, provider, keys, moves_from) values ($1, $2, $3, $4::smallint[])
  on conflict (destination) do update set provider = excluded.provider, keys = excluded.keys, moves_from = excluded.moves_from`

// --- mail that follows

/** The commit of a slice waits for no disk: when it is lost, its mail is still noted. */
export const slicesNeedNoSync = 'set local synchronous_commit = off'

export const movingAmong = `${MEMBER} where destination = any ($1::text[]) and moves_from <> '{}' order by destination for update`
/** Passes over those that another node moves. */
export const moving = `${MEMBER} where moves_from <> '{}' order by destination limit $1 for update skip locked`

/** A row when mail has to follow and this node owns shard 0. */
export const leftToMove = `
  select 1 from shard where id = 0 and owner = $1 and exists (select 1 from provider_member where moves_from <> '{}')`

/** Moves the recipients that a subquery selects: one statement per state, because each has its own index. Locked ones are passed over. */
const move = (condition: string): string => `
  update recipient set shard = $3 where id = any (array(
    select id from recipient where destination = $2 and ${condition} limit $4 for update skip locked)) returning id`
// The order is that of the index, and makes the planner choose it.
export const moveWaiting = move(`shard = $1 and ${DUE_INDEX} order by band, due_at`)
export const moveSuspect = move(`shard = $1 and state = 'waiting' and suspect order by due_at`)
export const moveParked = move(`shard = $1 and state = 'parked'`)
/** Mail in delivery, also of a node that gave its shard away and has not ended yet. */
export const moveLeased = move(`leased_by = any (array(select id from node)) and (shard = $1) is true`)

/** A row when mail of a destination is left in a shard, in any state: of one moment, so that none is missed between two states. */
export const mailLeft = `
  select 1 where exists (select 1 from recipient where shard = $1 and destination = $2 and ${DUE_INDEX})
    or exists (select 1 from recipient where shard = $1 and destination = $2 and state = 'waiting' and suspect)
    or exists (select 1 from recipient where shard = $1 and destination = $2 and state = 'parked')
    or exists (select 1 from recipient where leased_by = any (array(select id from node)) and destination = $2 and (shard = $1) is true)`
export const endMove = 'update provider_member set moves_from = array_remove(moves_from, $2::smallint) where destination = $1'

export const tellOfMail = `
  insert into arrival (shard, kind, destination, due_at)
  select $1, 'due', $2, due_at from recipient where shard = $1 and destination = $2 and ${DUE_INDEX} order by due_at limit 1`

export const moveRecord = `
  update destination set shard = $2 where name = $1
  returning name, dead_until, probe_interval, suspended_by, suspended_until, suspend_reason, site_status`
export const tellOfRecord = "insert into arrival (shard, kind, record) values ($1, 'destinations', $2)"
