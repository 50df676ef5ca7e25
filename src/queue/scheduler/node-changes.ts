/**
 * Applies changes of the node's membership to the scheduler: shards that the node takes and gives away, and what other nodes changed about
 * the mail and the destinations of its shards.
 */
import { nameOfProvider } from '../../config/provider-directory.ts'
import type { Membership } from '../../store/membership/membership.ts'
import type { Recall, TakenBack } from '../../store/membership/taken-back.ts'
import type { Arrivals } from '../../store/membership/node-table.ts'
import type { Shard } from '../../store/membership/shards.ts'
import type { StoreHealth } from '../../store/store-health.ts'
import { SECOND, type Clock } from '../../system/clock.ts'
import type { TaskSet } from '../../system/task-set.ts'
import type { DestinationControl } from './destination-control.ts'
import type { Expiry } from './expiry.ts'
import type { ForcedExpiry } from './forced-expiry.ts'
import type { PoisonRetry } from './poison-retry.ts'
import type { ProviderControl } from './provider-control.ts'
import type { SchedulerPort } from './scheduler-port.ts'
import type { TakeBack } from './take-back.ts'
import type { ShardTransfer } from './shard-transfer.ts'

export interface NodeChangesDeps {
  readonly clock: Clock
  readonly storeHealth: StoreHealth
  readonly membership: Membership
  readonly tasks: TaskSet
  readonly shards: ShardTransfer
  readonly control: DestinationControl
  readonly providers: ProviderControl
  readonly expiry: Expiry
  readonly forcedExpiry: ForcedExpiry
  readonly poisonRetry: PoisonRetry
  readonly takeBack: TakeBack
  readonly scheduler: Pick<SchedulerPort, 'dispatch' | 'schedules' | 'workAdded' | 'scan'>
}

export class NodeChanges {
  readonly #deps: NodeChangesDeps
  #stopped = false

  constructor(deps: NodeChangesDeps) {
    this.#deps = deps
  }

  /** Takes no shards from now on. */
  stop(): void {
    this.#stopped = true
  }

  /** Schedules the destinations of shards that this node now owns. Rejects with StoreUnavailable only while the scheduler stops. */
  async taken(shards: readonly Shard[]): Promise<void> {
    if (this.#stopped) return
    const { providers, poisonRetry, expiry, tasks, scheduler } = this.#deps
    await this.#deps.shards.take(shards)
    providers.refresh()
    poisonRetry.start()
    tasks.add(expiry.run())
    scheduler.dispatch()
  }

  /** Calls `given` for each shard when no mail of it is in memory, or after 10 s when only deliveries in progress are left. */
  async releasing(shards: readonly Shard[], given: (shard: Shard) => void): Promise<void> {
    const { membership, forcedExpiry, tasks } = this.#deps
    const isReleased = new Set(shards)
    tasks.add(forcedExpiry.giveBack(({ destination }) => isReleased.has(membership.shardOf(destination))))
    await this.#deps.shards.release(shards, given)
  }

  /** Reads all work anew, because changes by other nodes may have been lost. */
  missed(): void {
    const { storeHealth, control, providers, tasks, scheduler } = this.#deps
    const read = async () => {
      await control.compare((name) => scheduler.schedules(name))
      await providers.compare((name) => scheduler.schedules(name))
      await scheduler.scan()
    }
    tasks.add(storeHealth.retryUntilCommitted(read))
  }

  /** Gives claimed mail back, because another node has changed its messages or suspended its destination. */
  async recalled({ messages, destination, rests }: Recall): Promise<TakenBack> {
    const { storeHealth, control, takeBack, scheduler } = this.#deps
    if (destination !== null)
      await storeHealth.retryUntilCommitted(() => control.compare((name) => name === destination && scheduler.schedules(name)))
    return takeBack.messages(messages, { rests })
  }

  /** Applies changes that other nodes made. */
  arrived({ due, destinations, providers: ended }: Arrivals): void {
    const { clock, storeHealth, control, providers, expiry, tasks, scheduler } = this.#deps
    if (due.length > 0) {
      // The mail may be past its lifetime. One check a second is enough.
      const expiresAt = clock.now() + SECOND
      for (const revive of [true, false]) {
        scheduler.workAdded(
          due.filter((one) => one.revive === revive),
          { revive, expiresAt },
        )
      }
    }
    // An order of an operator ends an earlier one, which a new owner of the shard may find beside it.
    for (const record of new Map(destinations.map((one) => [one.name, one])).values()) {
      if (!scheduler.schedules(record.name)) continue
      tasks.add(storeHealth.retryUntilCommitted(() => control.received(record)).then(() => expiry.run()))
    }
    for (const record of ended) if (scheduler.schedules(nameOfProvider(record.provider))) providers.received(record)
  }
}
