/**
 * The destinations in memory as the rest of the relay sees them: their states, and orders of operators to suspend and resume them. An order
 * for a destination of another node is saved, and its owner applies it.
 */
import { nameOfProvider } from '../../config/provider-directory.ts'
import type { SchedulerState } from './scheduler-state.ts'
import { type Duration, SECOND, sleep } from '../../system/clock.ts'
import type { DestinationName } from '../../mail/message.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import { isClosed, isRefusing, type DeliverySlots } from '../../store/destination-status.ts'
import type { LiveDestination } from './destination.ts'
import type { Suspension } from '../../store/records/suspension.ts'
import { ordered, suspended, type DestinationControl } from './destination-control.ts'
import type { Expiry } from './expiry.ts'
import { providerSuspended, recordEvent, resumeSavedProvider, suspendSavedProvider } from './providers/provider-orders.ts'
import type { ProviderControl } from './provider-control.ts'
import type { LiveShare } from './turns/share-activity.ts'

/** Time between two looks at a shard that is being loaded. */
const LOOK: Duration = SECOND / 10

type State = Pick<
  SchedulerState,
  'store' | 'clock' | 'recorder' | 'storeHealth' | 'membership' | 'table' | 'addresses' | 'limits' | 'shards' | 'policies'
>
interface Loops {
  readonly control: DestinationControl
  readonly providers: ProviderControl
  readonly expiry: Expiry
}

export class LiveDestinations {
  readonly #state: State
  readonly #loops: Loops

  constructor(state: State, loops: Loops) {
    this.#state = state
    this.#loops = loops
  }

  /** True for a dead or suspended destination. */
  isClosed(name: DestinationName): boolean {
    return this.#state.table.isClosed(name)
  }

  /** Failure for which a destination is dead; undefined when it is not dead. */
  deadStatus(name: DestinationName): DeliveryStatus | undefined {
    const access = this.#state.table.known(name)?.access
    return access?.kind === 'dead' ? access.siteStatus : undefined
  }

  /** State of a destination; undefined when it is not in memory. */
  status(name: DestinationName): LiveDestination | undefined {
    const { table, clock } = this.#state
    return table.known(name)?.status(clock.monotonic())
  }

  /** The shares with deliveries at this node; none where deliveries are not shared fairly. */
  get shares(): readonly LiveShare[] {
    const { table, clock, policies } = this.#state
    const { bands } = policies().classes
    return table.sharesAt(clock.monotonic()).map(({ band, ...one }) => ({ class: bands.nameOf(band) ?? null, ...one }))
  }

  /** The delivery slots of this node. */
  get slots(): DeliverySlots {
    const { table, addresses, limits } = this.#state
    return { inFlight: table.running, limit: limits().deliveries, connecting: addresses.connecting }
  }

  /** States of all destinations. */
  all(): readonly LiveDestination[] {
    const { table, clock } = this.#state
    const now = clock.monotonic()
    return Array.from(table.all, (destination) => destination.status(now))
  }

  /** Names of those with the most recipients that wait for a delivery slot, the largest first. */
  busiest(most: number): readonly DestinationName[] {
    return Array.from(this.#state.table.all)
      .filter(({ mail }) => mail.waitingJobs > 0)
      .toSorted((a, b) => b.mail.waitingRecipients - a.mail.waitingRecipients)
      .slice(0, most)
      .map(({ name }) => name)
  }

  /** States of those that are dead or suspended, or have delivered nothing in their last attempts. */
  troubled(): readonly LiveDestination[] {
    const { table, clock } = this.#state
    const now = clock.monotonic()
    return Array.from(table.all)
      .filter((one) => one.hasUndelivered || one.access.kind !== 'open')
      .map((one) => one.status(now))
      .filter((one) => isClosed(one) || isRefusing(one))
  }

  /**
   * Suspends a destination. Resolves when that is committed, and no attempt to the destination begins any more. Rejects with StoreUnavailable,
   * without effect, when the commit fails, and with NotTakenBack when its owner does not answer.
   */
  async suspend(name: DestinationName, suspension: Suspension): Promise<void> {
    const { store, recorder, membership, shards } = this.#state
    const { control, expiry } = this.#loops
    await this.#loaded(name)
    if (!shards.schedules(name)) {
      await store.saveDestination(ordered(name, suspension), recorder.of(suspended(name, suspension, recorder.wall)))
      await membership.recall({ messages: [], destination: name, rests: false })
      return
    }
    await control.suspend(name, suspension)
    await expiry.run()
  }

  /** Ends a suspension of a destination, not that of its provider. Resolves when that is committed. Rejects as `suspend` does. */
  async resume(name: DestinationName, by: string): Promise<void> {
    const { store, recorder, shards } = this.#state
    await this.#loaded(name)
    if (!shards.schedules(name)) return store.saveDestination(ordered(name, null), recorder.of({ kind: 'resumed', destination: name, by }))
    await this.#loops.control.resume(name, by)
  }

  /** Suspends a provider: all its destinations, also later ones. Resolves and rejects as `suspend` does. */
  async suspendProvider(name: string, suspension: Suspension): Promise<void> {
    const { store, recorder, membership, shards, table } = this.#state
    const { providers, expiry } = this.#loops
    await this.#loaded(nameOfProvider(name))
    if (!shards.schedules(nameOfProvider(name)))
      return suspendSavedProvider({ store, recorder, recall: (recall) => membership.recall(recall) }, name, suspension)
    await providers.suspend(table.provider(name), suspension)
    await recordEvent(store, recorder, providerSuspended(name, suspension, recorder.wall))
    await expiry.run()
  }

  /** Ends a suspension of a provider, also that by a rule. Destinations that are suspended themselves stay so. Resolves and rejects as `resume` does. */
  async resumeProvider(name: string, by: string): Promise<void> {
    const { store, recorder, shards, table } = this.#state
    await this.#loaded(nameOfProvider(name))
    if (!shards.schedules(nameOfProvider(name))) return resumeSavedProvider({ store, recorder }, name, by)
    const provider = table.provider(name)
    if (provider.suspension === null) return
    await this.#loops.providers.resume(provider, by)
    await recordEvent(store, recorder, { kind: 'provider-resumed', provider: name, by })
  }

  /** Resolves when the saved state of the destination is not being loaded, or when calls of the store are abandoned. */
  async #loaded(name: DestinationName): Promise<void> {
    const { clock, storeHealth, shards } = this.#state
    while (shards.isLoading(name) && !storeHealth.abandoned.aborted) await sleep(clock, LOOK, storeHealth.abandoned)
  }
}
