/**
 * Moves the mail of destinations whose provider was changed to the shard of the new one, in slices. A slice locks neither nodes nor mail in
 * use by others. Until its slice, mail stays where it was: the owner of the new shard does not find it, and that of the former one does not
 * schedule its destination. The shards that may still have mail of a destination are in `provider_member`, so that the owner of shard 0
 * goes on when the node that made the change has ended.
 */
import type { DestinationName, OwnerId } from '../../mail/message.ts'
import { seconds, sleep, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import { shardUnder } from '../membership/shard-keys.ts'
import type { Shard } from '../membership/shards.ts'
import { rethrowUnlessUnavailable } from '../queue-store.ts'
import * as sql from './provider-queries.ts'
import { texts } from './session/arrays.ts'
import type { Connection, Statements } from './session/database-connection.ts'
import type { LastingSession } from './session/lasting-session.ts'

/** Maximum number of recipients that one transaction moves; half after each one that failed, down to the second number. */
const [SLICE, LEAST_SLICE] = [10_000, 100]
/** Maximum number of destinations that a slice looks at, apart from those of a change. */
const DESTINATIONS = 100
/** Pause after a slice, in which changes and other slices get the locks. */
const PAUSE: Duration = 20
/** Time between two looks for mail that has not followed, and after a slice that failed or found all of it locked. */
const LOOK_EVERY: Duration = seconds(5)

interface ProviderMailDeps {
  readonly node: OwnerId
  readonly clock: Clock
  readonly session: LastingSession
  readonly reading: Statements
  /** Called after a commit with shards whose owners find messages. */
  readonly wake: (shards: readonly Shard[]) => void
}

/** The result of a slice: the number of moved recipients, and whether mail is left that has to follow. */
interface Slice {
  readonly moved: number
  readonly isLeft: boolean
}

export class ProviderMail {
  readonly #deps: ProviderMailDeps
  readonly #task: PeriodicTask
  #size = SLICE
  /** True when the last slice, or a change since then, has left mail. */
  #isWanted = false

  constructor(deps: ProviderMailDeps) {
    this.#deps = deps
    this.#task = every(deps.clock, LOOK_EVERY, (stopping) => this.#go(stopping), { failed: rethrowUnlessUnavailable })
  }

  /** Moves the first mail of destinations whose provider was changed. The rest follows, also when this fails. */
  async follow(destinations: readonly DestinationName[]): Promise<void> {
    const slice = await this.#slice((connection) => connection.query<sql.Member>(sql.movingAmong, [texts(destinations)]))
    if (slice !== null && !slice.isLeft) return
    this.#wakeSoon()
  }

  /** Stops after the slice under way. */
  async stop(): Promise<void> {
    await this.#task.stop()
    await this.#deps.session.close()
  }

  #wakeSoon(): void {
    this.#isWanted = true
    this.#task.wake()
  }

  /** Moves a slice. Without a change of its own, a node does so only while it owns shard 0. The next follows after PAUSE while it can. */
  async #go(stopping: AbortSignal): Promise<void> {
    const { clock, reading, node } = this.#deps
    if (this.#isWanted) await sleep(clock, PAUSE, stopping)
    if (stopping.aborted) return
    const isOwn = this.#isWanted
    this.#isWanted = false
    if (!isOwn && (await reading.query(sql.leftToMove, [node])).length === 0) return
    const slice = await this.#slice((connection) => connection.query<sql.Member>(sql.moving, [DESTINATIONS]))
    if (slice !== null && slice.isLeft && slice.moved > 0) this.#wakeSoon()
  }

  /** Moves mail of the destinations that `choose` locks. Null when that failed: the next look tries again, with a smaller slice. */
  async #slice(choose: (connection: Connection) => Promise<readonly sql.Member[]>): Promise<Slice | null> {
    const { session, wake } = this.#deps
    const shards = new Set<Shard>()
    try {
      const result = await session.run(async (connection) => {
        await connection.command('begin')
        await connection.command(sql.slicesNeedNoSync)
        const slice = await moveSlice(connection, await choose(connection), { most: this.#size, told: shards })
        await connection.command('commit')
        return slice
      })
      this.#size = SLICE
      if (shards.size > 0) wake([...shards])
      return result
    } catch (error) {
      rethrowUnlessUnavailable(error)
      this.#size = Math.max(LEAST_SLICE, Math.floor(this.#size / 2))
      return null
    }
  }
}

/** Moves up to `most` recipients, and adds the shards whose owners find messages to `told`. */
async function moveSlice(
  connection: Connection,
  members: readonly sql.Member[],
  { most, told }: { readonly most: number; readonly told: Set<Shard> },
): Promise<Slice> {
  let [moved, isLeft] = [0, false]
  for (const { destination, provider, movesFrom } of members) {
    const to = shardUnder(destination, provider)
    const before = moved
    for (const from of movesFrom) {
      for (const statement of [sql.moveLeased, sql.moveWaiting, sql.moveSuspect, sql.moveParked])
        if (moved < most) moved += (await connection.query(statement, [from, destination, to, most - moved])).length
      if (moved < most && (await connection.query(sql.mailLeft, [from, destination])).length === 0)
        await connection.query(sql.endMove, [destination, from])
      else isLeft = true
    }
    if (moved === before) continue
    await connection.query(sql.tellOfMail, [to, destination])
    told.add(to)
  }
  return { moved, isLeft }
}
