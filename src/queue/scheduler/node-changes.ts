/**
 * Applies changes of the node's membership to the scheduler: shards that the node takes and gives away, and what other nodes changed about
 * the mail and the destinations of its shards.
 */
import type { DueQueue } from './due-queue.ts'
import type { DestinationName } from '../../mail/message.ts'
import { nameOfProvider } from '../../config/provider-directory.ts'
import type { Recall, TakenBack } from '../../store/membership/taken-back.ts'
import type { Arrivals } from '../../store/membership/node-table.ts'
import type { Shard } from '../../store/membership/shards.ts'
import { SECOND } from '../../system/clock.ts'
import type { DestinationControl } from './destination-control.ts'
import type { Expiry } from './expiry.ts'
import type { ForcedExpiry } from './forced-expiry.ts'
import type { Schedules } from './due/schedules.ts'
import type { PoisonRetry } from './poison-retry.ts'
import type { ProviderControl } from './provider-control.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'
import type { TakeBack } from './take-back.ts'
import type { ShardTransfer } from './shard-transfer.ts'

type State = Pick<SchedulerState, 'store' | 'clock' | 'storeHealth' | 'table' | 'shards' | 'tasks'>
interface Loops {
  readonly transfer: ShardTransfer
  readonly due: DueQueue
  readonly control: DestinationControl
  readonly providers: ProviderControl
  readonly expiry: Expiry
  readonly schedules: Schedules
  readonly forcedExpiry: ForcedExpiry
  readonly poisonRetry: PoisonRetry
  readonly takeBack: TakeBack
  readonly scheduler: Pick<SchedulerLoop, 'dispatch' | 'workAdded' | 'scan'>
}

export class NodeChanges {
  readonly #state: State
  readonly #loops: Loops
  #stopped = false

  constructor(state: State, loops: Loops) {
    this.#state = state
    this.#loops = loops
  }

  /** Takes no shards from now on. */
  stop(): void {
    this.#stopped = true
  }

  /** Schedules the destinations of shards that this node now owns. Rejects with StoreUnavailable only while the scheduler stops. */
  async taken(shards: readonly Shard[]): Promise<void> {
    if (this.#stopped) return
    const { providers, poisonRetry, expiry, schedules, scheduler } = this.#loops
    await this.#load(shards)
    providers.refresh()
    poisonRetry.start()
    this.#state.tasks.add(expiry.run())
    this.#state.tasks.add(schedules.run())
    scheduler.dispatch()
  }

  /** Loads the saved destinations of the shards, which begin with a new window, then schedules their mail. */
  async #load(taken: readonly Shard[]): Promise<void> {
    const { store, storeHealth, table, shards } = this.#state
    const { due, control, providers } = this.#loops
    const isTaken = shards.among(taken)
    shards.beginLoading(taken)
    for (const destination of table.all) if (isTaken(destination.name) && destination.isSettled) table.forget(destination)
    await storeHealth.retryUntilCommitted(() => providers.recall(isTaken))
    await storeHealth.retryUntilCommitted(() => control.recall(isTaken))
    // Mail that is queued from now on is scheduled as it comes, so the list of all mail is read after this.
    shards.endLoading(taken)
    const waiting = await storeHealth.retryUntilCommitted(() => store.destinationsDue())
    for (const { destination, dueAt } of waiting) if (isTaken(destination)) due.expect(destination, dueAt)
  }

  /** Calls `given` for each shard when no mail of it is in memory, or after 10 s when only deliveries in progress are left. */
  async releasing(shards: readonly Shard[], given: (shard: Shard) => void): Promise<void> {
    const { forcedExpiry, transfer } = this.#loops
    const isReleased = this.#state.shards.among(shards)
    this.#state.tasks.add(forcedExpiry.giveBack(({ destination }) => isReleased(destination)))
    await transfer.release(shards, given)
  }

  /** Reads all work anew, because changes by other nodes may have been lost. */
  missed(): void {
    const { storeHealth, shards, tasks } = this.#state
    const { control, providers, scheduler } = this.#loops
    const read = async () => {
      await control.compare((name) => shards.schedules(name))
      await providers.compare((name) => shards.schedules(name))
      await scheduler.scan()
    }
    tasks.add(storeHealth.retryUntilCommitted(read))
  }

  /** Gives claimed mail back, because another node has changed its messages or suspended its destination or provider. */
  async recalled({ messages, destination, rests }: Recall): Promise<TakenBack> {
    const { storeHealth, shards } = this.#state
    const { control, providers, takeBack } = this.#loops
    if (destination !== null) {
      const isAsked = (name: DestinationName): boolean => name === destination && shards.schedules(name)
      await storeHealth.retryUntilCommitted(() => control.compare(isAsked))
      await storeHealth.retryUntilCommitted(() => providers.compare(isAsked))
    }
    return takeBack.messages(messages, { rests })
  }

  /** Applies changes that other nodes made. */
  arrived({ due, destinations, providers: changes }: Arrivals): void {
    const { clock, storeHealth, shards, tasks } = this.#state
    const { control, providers, expiry, scheduler } = this.#loops
    // An order of an operator ends an earlier one, which a new owner of the shard may find beside it.
    for (const record of new Map(destinations.map((one) => [one.name, one])).values()) {
      if (!shards.schedules(record.name)) continue
      tasks.add(storeHealth.retryUntilCommitted(() => control.received(record)).then(() => expiry.run()))
    }
    for (const change of changes) if (shards.schedules(nameOfProvider(change.provider))) providers.received(change)
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
  }
}
