/**
 * Begins and ends the counts of shares of a queue of several nodes. A change locks the rows of all nodes for a moment, as a change of providers does:
 * a transaction of a node before it has committed, and one after it fails until the node has read the change, and counts then. The mail from before
 * is counted in a snapshot of that moment, which holds up nobody, and the counting node adds it to its own rows. When the node ends before that,
 * another one begins anew.
 */
import { DatabaseError } from 'pg'
import { Fenced, rethrowUnlessUnavailable } from '../queue-store.ts'
import type { OwnerId } from '../../mail/message.ts'
import { sumsOf, type OwnShares, type ShareCount } from '../share-counts.ts'
import type { ShardKeys } from '../membership/shard-keys.ts'
import { limitLockWait, nextKeys, setKeys } from './provider-queries.ts'
import type { Connection } from './session/database-connection.ts'
import type { LastingSession } from './session/lasting-session.ts'
import type { ReadingSession } from './session/reading-session.ts'
import { refreshKeys } from './session/key-changes.ts'
import { writeShares } from './session/share-notes.ts'

/** SQLSTATEs of a lock that was not available within lock_timeout, and of a deadlock with a takeover. */
const HELD: ReadonlySet<string | undefined> = new Set(['55P03', '40P01'])

export const countState = `
  select shares_since as since, shares_counter is null as counted, shares_counter = $1 as mine,
    exists (select 1 from node where node.id = shares_counter) as alive
  from queue`
export const beginCounts = 'update queue set shares_since = $1, shares_counter = $2'
export const endCounts = 'update queue set shares_since = null, shares_counter = null'
export const clearUsage = 'delete from share_usage'
/** A row when this node still counts for the counts that it has begun. */
export const concludeCounts = `
  update queue set shares_counter = null where shares_since = $1 and shares_counter = $2
    and exists (select 1 from node where id = $2) returning 1 as done`
export const slice = `
  with slice as (select id, share, size, placement from message where id > $1 order by id limit $2)
  select (select max(id) from slice) as last, coalesce(share, '') as share,
    count(*) filter (where placement in ('queued', 'hold')) as messages,
    coalesce(sum(size) filter (where placement in ('queued', 'hold')), 0)::bigint as bytes
  from slice group by share`
export const usageElsewhere = `
  select share, sum(messages)::bigint as messages, sum(bytes)::bigint as bytes from share_usage where node <> $1
  group by share having sum(messages) <> 0 or sum(bytes) <> 0`

const SLICE = 20_000

interface ShareCounterDeps {
  readonly node: OwnerId
  readonly reading: ReadingSession
  readonly keys: ShardKeys
  /** For the changes, and for the snapshot. */
  readonly session: LastingSession
  readonly snapshot: LastingSession
}

interface CountState {
  readonly since: number | null
  readonly counted: boolean
  readonly mine: boolean | null
  readonly alive: boolean
}

export class ShareCounter {
  readonly #deps: ShareCounterDeps
  #running: Promise<void> | null = null

  constructor(deps: ShareCounterDeps) {
    this.#deps = deps
  }

  get #own(): OwnShares {
    return this.#deps.keys.shares
  }

  async countShares(counts: boolean): Promise<boolean> {
    const { reading, node } = this.#deps
    if (this.#running !== null) return false
    const [state] = await reading.query<CountState>(countState, [node])
    if (state === undefined) throw new Error('the table queue has no row')
    if (!counts) {
      if (state.since !== null) await this.#change((connection) => connection.query(endCounts))
      return true
    }
    if (state.since !== null && state.counted) return this.#own.since === state.since || this.#follow()
    if (state.since !== null && state.alive && state.mine !== true) return false
    this.#running = this.#count().finally(() => (this.#running = null))
    // The next call begins anew.
    this.#running.catch(rethrowUnlessUnavailable)
    return false
  }

  sharesElsewhere(): Promise<readonly ShareCount[]> {
    return this.#deps.reading.query<ShareCount>(usageElsewhere, [this.#deps.node])
  }

  async close(): Promise<void> {
    await this.#running?.catch(rethrowUnlessUnavailable)
    await Promise.all([this.#deps.session.close(), this.#deps.snapshot.close()])
  }

  /** Reads a change that another node has made. */
  async #follow(): Promise<boolean> {
    const { session, node, keys } = this.#deps
    await session.run((connection) => refreshKeys(connection, node, keys))
    return true
  }

  async #count(): Promise<void> {
    const { node, session, snapshot } = this.#deps
    const since = await this.#change(async (connection, number) => {
      await connection.query(beginCounts, [number, node])
      await connection.query(clearUsage)
      // The transactions before have ended, and later ones wait: the snapshot has exactly the mail that nobody counts.
      await snapshot.run(async (other) => {
        await other.command('begin isolation level repeatable read read only')
        await other.query(countState, [node])
      })
    })
    if (since === null) return
    const counts = await snapshot.run(countIn)
    await session.run(async (connection) => {
      await connection.command('begin')
      const [mine] = await connection.query<{ done: number }>(concludeCounts, [since, node])
      if (mine !== undefined && counts.length > 0) await writeShares(connection, node, counts)
      await connection.command('commit')
      if (mine !== undefined) this.#own.add(since, counts)
    })
  }

  /** Makes a change that all nodes see before their next transaction. Resolves with its number, and with null when a node holds its row. */
  async #change(make: (connection: Connection, number: number) => Promise<unknown>): Promise<number | null> {
    const { session, node, keys } = this.#deps
    try {
      return await session.run(async (connection) => {
        await connection.command('begin')
        await connection.command(limitLockWait)
        const [queue] = await connection.query<{ keys: number }>(nextKeys)
        if (queue === undefined) throw new Error('the table queue has no row')
        const nodes = await connection.query<{ id: OwnerId }>(setKeys, [queue.keys])
        if (!nodes.some(({ id }) => id === node)) throw new Fenced(`node ${node} was taken over`)
        await make(connection, queue.keys)
        await connection.command('commit')
        await refreshKeys(connection, node, keys)
        return queue.keys
      })
    } catch (error) {
      const code = error instanceof Error && error.cause instanceof DatabaseError ? error.cause.code : undefined
      if (!HELD.has(code)) throw error
      return null
    }
  }
}

/** Counts the live mail of a snapshot, and ends it. */
async function countIn(connection: Connection): Promise<readonly ShareCount[]> {
  const found: ShareCount[] = []
  for (let after = 0; ;) {
    const rows = await connection.query<ShareCount & { last: number }>(slice, [after, SLICE])
    const [first] = rows
    if (first === undefined) break
    found.push(...rows.map(({ share, messages, bytes }) => ({ share, messages, bytes })))
    after = first.last
  }
  await connection.command('commit')
  return [...sumsOf(found).values()].filter(({ messages, bytes }) => messages !== 0 || bytes !== 0)
}
