/** Gives shards of destinations to other nodes. Their destinations leave memory when their mail was given back. */
import type { GiveBack } from './give-back.ts'
import type { Shard } from '../../store/membership/shards.ts'
import { SECOND, sleep, type Duration } from '../../system/clock.ts'
import type { Destination } from './destination.ts'
import type { DueQueue } from './due-queue.ts'
import type { SchedulerState } from './scheduler-state.ts'

type State = Pick<SchedulerState, 'clock' | 'storeHealth' | 'membership' | 'table' | 'shards'>
interface Loops {
  readonly due: DueQueue
  readonly giveBack: GiveBack
}

/** Maximum wait for deliveries of a shard that is given away. They may end later, beside those of the next owner. */
const PATIENCE: Duration = 10 * SECOND
/** Time between two looks at the destinations of such a shard. */
const LOOK: Duration = SECOND / 10

export class ShardTransfer {
  readonly #state: State
  readonly #loops: Loops

  constructor(state: State, loops: Loops) {
    this.#state = state
    this.#loops = loops
  }

  /**
   * Gives waiting mail of the shards back and waits for their deliveries, at most PATIENCE, and for all pending commits. Calls `given` for
   * each shard at the end of its own.
   */
  async release(shards: readonly Shard[], given: (shard: Shard) => void): Promise<void> {
    const leaving = Map.groupBy(this.#destinationsOf(shards), ({ name }) => this.#state.membership.shardOf(name))
    const releasing = [...leaving].map(([shard, destinations]) => this.#empty(destinations).then(() => given(shard)))
    for (const shard of shards) if (!leaving.has(shard)) given(shard)
    await Promise.all(releasing)
  }

  /**
   * Gives the waiting mail of a destination back and waits for its deliveries, at most PATIENCE. Then makes a change after which another node
   * may schedule the destination. Where this node still does, its state stays and the mail is scheduled again.
   */
  async rejoin(destination: Destination, change: () => Promise<void>): Promise<void> {
    const { storeHealth, table, shards } = this.#state
    const { due } = this.#loops
    await this.#giveBackAll([destination])
    if (!storeHealth.abandoned.aborted) await change()
    table.forget(destination)
    if (shards.schedules(destination.name)) table.get(destination.name).continue(destination)
    const { nextDueAt } = destination.mail
    if (nextDueAt !== null) due.expect(destination.name, nextDueAt)
  }

  async #empty(leaving: readonly Destination[]): Promise<void> {
    await this.#giveBackAll(leaving)
    for (const destination of leaving) this.#state.table.forget(destination)
  }

  async #giveBackAll(leaving: readonly Destination[]): Promise<void> {
    const { clock, storeHealth } = this.#state
    const { due, giveBack } = this.#loops
    for (const destination of leaving) {
      destination.release()
      due.forget(destination)
    }
    await Promise.all(leaving.map((destination) => giveBack.waiting(destination)))
    const deadline = clock.monotonic() + PATIENCE
    const isWaitedFor = (one: Destination) => one.isCommitting || (!one.isSettled && clock.monotonic() < deadline)
    while (leaving.some(isWaitedFor) && !storeHealth.abandoned.aborted) await sleep(clock, LOOK, storeHealth.abandoned)
  }

  #destinationsOf(shards: readonly Shard[]): readonly Destination[] {
    const isWanted = this.#state.shards.among(shards)
    return [...this.#state.table.all].filter(({ name }) => isWanted(name))
  }
}
