/**
 * Changes the providers of destinations. Their mail moves to the shard of the provider in the same transaction. It locks the rows of all
 * nodes for a moment: a transaction of a node before it has committed, and one after it fails until the node has read the change. So
 * no mail is queued or claimed under a former shard.
 */
import { DatabaseError } from 'pg'
import type { DestinationName, OwnerId } from '../../mail/message.ts'
import { sleep, type Clock, type Duration } from '../../system/clock.ts'
import { shardUnder, type KeyChange, type ShardKeys } from '../membership/shard-keys.ts'
import type { Shard } from '../membership/shards.ts'
import { Fenced } from '../queue-store.ts'
import { texts } from './session/arrays.ts'
import type { Connection } from './session/database-connection.ts'
import { refreshKeys } from './session/key-changes.ts'
import type { LastingSession } from './session/lasting-session.ts'
import * as sql from './provider-queries.ts'
import { toDestination, type DestinationRow } from './writing/rows.ts'

/** SQLSTATEs of a lock that was not available within lock_timeout, and of a deadlock with a takeover. */
const HELD: ReadonlySet<string | undefined> = new Set(['55P03', '40P01'])
const PAUSE: Duration = 500

export interface ProviderMembersDeps {
  readonly node: OwnerId
  readonly clock: Clock
  readonly session: LastingSession
  /** Shards of destinations, as this node knows them. They have a change before `join` resolves. */
  readonly keys: ShardKeys
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
    this.#running ??= this.#run().finally(() => (this.#running = null))
    return promise
  }

  async close(): Promise<void> {
    await this.#running
    await this.#deps.session.close()
  }

  /** Changes that wait share a transaction. */
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const all = this.#waiting.splice(0)
      try {
        this.#deps.wake(await this.#change([...new Map(all.map((one) => [one.destination, one])).values()]))
        for (const { resolve } of all) resolve()
      } catch (error) {
        for (const { reject } of all) reject(error)
      }
    }
  }

  async #change(changes: readonly KeyChange[]): Promise<readonly Shard[]> {
    const { session, clock } = this.#deps
    for (;;) {
      try {
        return await session.run((connection) => this.#transaction(connection, changes))
      } catch (error) {
        const code = error instanceof Error && error.cause instanceof DatabaseError ? error.cause.code : undefined
        if (!HELD.has(code)) throw error
        await sleep(clock, PAUSE)
      }
    }
  }

  async #transaction(connection: Connection, changes: readonly KeyChange[]): Promise<readonly Shard[]> {
    await connection.command('begin')
    await connection.command(sql.limitLockWait)
    const [queue] = await connection.query<{ keys: number }>(sql.nextKeys)
    if (queue === undefined) throw new Error('the table queue has no row')
    const nodes = await connection.query<{ id: OwnerId }>(sql.setKeys, [queue.keys])
    if (!nodes.some(({ id }) => id === this.#deps.node)) throw new Fenced(`node ${this.#deps.node} was taken over`)
    const former = await connection.query<KeyChange>(sql.membersAmong, [texts(changes.map(({ destination }) => destination))])
    const providers = new Map(former.map(({ destination, provider }) => [destination, provider]))
    const shards: Shard[] = []
    for (const { destination, provider } of changes) {
      await connection.query(sql.saveMember, [destination, provider, queue.keys])
      const [from, to] = [shardUnder(destination, providers.get(destination) ?? null), shardUnder(destination, provider)]
      await moveMail(connection, { destination, from, to })
      shards.push(to)
    }
    await connection.command('commit')
    await refreshKeys(connection, this.#deps.node, this.#deps.keys)
    return shards
  }
}

/** Moves the live mail of a destination to another shard, with its saved state, and tells the owner. */
async function moveMail(
  connection: Connection,
  { destination, from, to }: { readonly destination: DestinationName; readonly from: Shard; readonly to: Shard },
): Promise<void> {
  if (from === to) return
  for (const statement of [sql.moveWaiting, sql.moveSuspect, sql.moveParked]) await connection.query(statement, [from, destination, to])
  await connection.query(sql.moveLeased, [destination, to])
  await connection.query(sql.tellOfMail, [to, destination])
  const [row] = await connection.query<DestinationRow>(sql.moveRecord, [destination, to])
  if (row !== undefined) await connection.query(sql.tellOfRecord, [to, JSON.stringify(toDestination(row))])
}
