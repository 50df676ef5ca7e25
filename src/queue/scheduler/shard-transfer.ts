/**
 * Takes shards of destinations from other nodes, and gives shards away. The destinations of a taken shard begin with their saved state
 * and a new window. Those of a shard that is given away leave memory when their mail was given back.
 */
import type { DestinationName } from '../../mail/message.ts'
import type { Membership } from '../../store/membership/membership.ts'
import type { Shard } from '../../store/membership/shards.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import type { StoreHealth } from '../../store/store-health.ts'
import { SECOND, sleep, type Clock, type Duration } from '../../system/clock.ts'
import type { Destination } from './destination.ts'
import type { DestinationControl } from './destination-control.ts'
import type { DestinationTable } from './destination-table.ts'
import type { DueQueue } from './due-queue.ts'
import type { SchedulerPort } from './scheduler-port.ts'

export interface ShardTransferDeps {
  readonly store: QueueStore
  readonly clock: Clock
  readonly storeHealth: StoreHealth
  readonly membership: Membership
  readonly table: DestinationTable
  readonly due: DueQueue
  readonly control: DestinationControl
  readonly recallProviders: (wanted: (name: DestinationName) => boolean) => Promise<void>
  readonly scheduler: Pick<SchedulerPort, 'giveBackWaiting'>
}

/** Maximum wait for deliveries of a shard that is given away. They may end later, beside those of the next owner. */
const PATIENCE: Duration = 10 * SECOND
/** Time between two looks at the destinations of such a shard. */
const LOOK: Duration = SECOND / 10

export class ShardTransfer {
  readonly #deps: ShardTransferDeps
  /** Shards whose saved destinations are being loaded. */
  readonly #loading = new Set<Shard>()

  constructor(deps: ShardTransferDeps) {
    this.#deps = deps
  }

  /** True when this node schedules the destination and knows its saved state. */
  schedules(name: DestinationName): boolean {
    return this.#deps.membership.owns(name) && !this.#isLoading(name)
  }

  #isLoading(name: DestinationName): boolean {
    return this.#loading.size > 0 && this.#loading.has(this.#deps.membership.shardOf(name))
  }

  /** Resolves when the saved state of the destination is not being loaded, or when calls of the store are abandoned. */
  async loaded(name: DestinationName): Promise<void> {
    const { clock, storeHealth } = this.#deps
    while (this.#isLoading(name) && !storeHealth.abandoned.aborted) await sleep(clock, LOOK, storeHealth.abandoned)
  }

  /** Loads the saved destinations of the shards, then schedules their mail. */
  async take(shards: readonly Shard[]): Promise<void> {
    const { store, storeHealth, table, due, control, recallProviders } = this.#deps
    const isTaken = this.#within(shards)
    for (const shard of shards) this.#loading.add(shard)
    for (const destination of this.#among(isTaken)) if (destination.isSettled) table.forget(destination)
    await storeHealth.retryUntilCommitted(() => recallProviders(isTaken))
    await storeHealth.retryUntilCommitted(() => control.recall(isTaken))
    // Mail that is queued from now on is scheduled as it comes, so the list of all mail is read after this.
    for (const shard of shards) this.#loading.delete(shard)
    const waiting = await storeHealth.retryUntilCommitted(() => store.destinationsDue())
    for (const { destination, dueAt } of waiting) if (isTaken(destination)) due.expect(destination, dueAt)
  }

  /**
   * Gives waiting mail of the shards back and waits for their deliveries, at most PATIENCE, and for all pending commits. Calls `given` for
   * each shard at the end of its own.
   */
  async release(shards: readonly Shard[], given: (shard: Shard) => void): Promise<void> {
    const leaving = Map.groupBy(this.#among(this.#within(shards)), ({ name }) => this.#deps.membership.shardOf(name))
    const releasing = [...leaving].map(([shard, destinations]) => this.#empty(destinations).then(() => given(shard)))
    for (const shard of shards) if (!leaving.has(shard)) given(shard)
    await Promise.all(releasing)
  }

  /**
   * Gives the waiting mail of a destination back and waits for its deliveries, at most PATIENCE. Then makes a change after which another node
   * may schedule the destination. Where this node still does, its state stays and the mail is scheduled again.
   */
  async rejoin(destination: Destination, change: () => Promise<void>): Promise<void> {
    const { storeHealth, table, due } = this.#deps
    await this.#giveBackAll([destination])
    if (!storeHealth.abandoned.aborted) await change()
    table.forget(destination)
    if (this.schedules(destination.name)) table.get(destination.name).recall(destination.record())
    if (destination.nextDueAt !== null) due.expect(destination.name, destination.nextDueAt)
  }

  async #empty(leaving: readonly Destination[]): Promise<void> {
    await this.#giveBackAll(leaving)
    for (const destination of leaving) this.#deps.table.forget(destination)
  }

  async #giveBackAll(leaving: readonly Destination[]): Promise<void> {
    const { clock, storeHealth, due, scheduler } = this.#deps
    for (const destination of leaving) {
      destination.release()
      due.forget(destination)
    }
    await Promise.all(leaving.map((destination) => scheduler.giveBackWaiting(destination)))
    const deadline = clock.monotonic() + PATIENCE
    const isWaitedFor = (one: Destination) => one.isCommitting || (!one.isSettled && clock.monotonic() < deadline)
    while (leaving.some(isWaitedFor) && !storeHealth.abandoned.aborted) await sleep(clock, LOOK, storeHealth.abandoned)
  }

  #among(wanted: (name: DestinationName) => boolean): readonly Destination[] {
    return [...this.#deps.table.all].filter(({ name }) => wanted(name))
  }

  #within(shards: readonly Shard[]): (name: DestinationName) => boolean {
    const wanted = new Set(shards)
    return (name) => wanted.has(this.#deps.membership.shardOf(name))
  }
}
