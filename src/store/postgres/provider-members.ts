/**
 * Changes the providers of destinations. A change locks the rows of all nodes for a moment: a transaction of a node before it has
 * committed, and one after it fails until the node has read the change. So no mail is queued or claimed by due time under a former
 * shard. The mail that waits there follows in later transactions (`provider-mail`), which the change notes in its own.
 */
import { DatabaseError } from 'pg'
import type { DestinationName, OwnerId } from '../../mail/message.ts'
import { seconds, sleep, type Clock, type Duration } from '../../system/clock.ts'
import { shardUnder, type KeyChange, type ShardKeys } from '../membership/shard-keys.ts'
import type { Shard } from '../membership/shards.ts'
import { Fenced } from '../queue-store.ts'
import { int2s, texts } from './session/arrays.ts'
import type { Connection } from './session/database-connection.ts'
import { refreshKeys } from './session/key-changes.ts'
import type { LastingSession } from './session/lasting-session.ts'
import type { ProviderMail } from './provider-mail.ts'
import * as sql from './provider-queries.ts'
import { toDestination, type DestinationRow } from '../sql/stored-rows.ts'

/** SQLSTATEs of a lock that was not available within lock_timeout, and of a deadlock with a takeover. */
const HELD: ReadonlySet<string | undefined> = new Set(['55P03', '40P01'])
const PAUSE: Duration = 500
/** Time after which a change that meets locks is given up, and its caller repeats it. */
const PATIENCE: Duration = seconds(10)

interface ProviderMembersDeps {
  readonly node: OwnerId
  readonly clock: Clock
  readonly session: LastingSession
  /** Shards of destinations, as this node knows them. They have a change before `join` resolves. */
  readonly keys: ShardKeys
  readonly mail: ProviderMail
  /** Called after a commit with shards whose owners find messages. */
  readonly wake: (shards: readonly Shard[]) => void
}

interface Waiting extends KeyChange {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export class ProviderMembers {
  readonly #deps: ProviderMembersDeps
  #waiting: Waiting[] = []
  #running: Promise<void> | null = null

  constructor(deps: ProviderMembersDeps) {
    this.#deps = deps
  }

  /** Rejects with StoreUnavailable; the change may then have had effect, and may be repeated. */
  join(destination: DestinationName, provider: string | null): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.push({ destination, provider, resolve, reject })
    this.#running ??= this.#run()
    return promise
  }

  async close(): Promise<void> {
    await this.#running
    await this.#deps.session.close()
  }

  /** Changes that wait share a transaction. */
  async #run(): Promise<void> {
    const { mail, wake } = this.#deps
    while (this.#waiting.length > 0) {
      const all = this.#waiting.splice(0)
      const changes = [...new Map(all.map((one) => [one.destination, one])).values()]
      try {
        wake(await this.#change(changes))
        await mail.follow(changes.map(({ destination }) => destination))
        for (const { resolve } of all) resolve()
      } catch (error) {
        for (const { reject } of all) reject(error)
      }
    }
    // In the same turn as the last look, so that no change is left without a run.
    this.#running = null
  }

  async #change(changes: readonly KeyChange[]): Promise<readonly Shard[]> {
    const { session, clock } = this.#deps
    const until = clock.monotonic() + PATIENCE
    for (;;) {
      try {
        return await session.run((connection) => this.#transaction(connection, changes))
      } catch (error) {
        const code = error instanceof Error && error.cause instanceof DatabaseError ? error.cause.code : undefined
        if (!HELD.has(code) || clock.monotonic() >= until) throw error
        await sleep(clock, PAUSE)
      }
    }
  }

  async #transaction(connection: Connection, changes: readonly KeyChange[]): Promise<readonly Shard[]> {
    const { node, keys } = this.#deps
    const names = texts(changes.map(({ destination }) => destination))
    await connection.command('begin')
    // A slice of mail ends before the nodes are locked.
    await connection.command(sql.limitSliceWait)
    await connection.query(sql.lockMembers, [names])
    await connection.command(sql.limitLockWait)
    const [queue] = await connection.query<{ keys: number }>(sql.nextKeys)
    if (queue === undefined) throw new Error('the table queue has no row')
    const nodes = await connection.query<{ id: OwnerId }>(sql.setKeys, [queue.keys])
    if (!nodes.some(({ id }) => id === node)) throw new Fenced(`node ${node} was taken over`)
    const former = await connection.query<sql.Member>(sql.membersAmong, [names])
    const known = new Map(former.map((one) => [one.destination, one]))
    const shards: Shard[] = []
    for (const { destination, provider } of changes) {
      const { provider: before = null, movesFrom = [] } = known.get(destination) ?? {}
      const to = shardUnder(destination, provider)
      const from = new Set([...movesFrom, shardUnder(destination, before)])
      from.delete(to)
      await connection.query(sql.saveMember, [destination, provider, queue.keys, int2s([...from])])
      if (from.size > 0) await moveRecord(connection, destination, to)
      shards.push(to)
    }
    await connection.command('commit')
    await refreshKeys(connection, node, keys)
    return shards
  }
}

/** Moves the saved state of a destination to another shard, and tells the owner. */
async function moveRecord(connection: Connection, destination: DestinationName, to: Shard): Promise<void> {
  const [row] = await connection.query<DestinationRow>(sql.moveRecord, [destination, to])
  if (row !== undefined) await connection.query(sql.tellOfRecord, [to, JSON.stringify(toDestination(row))])
}
