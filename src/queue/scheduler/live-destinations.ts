/**
 * The destinations in memory as the rest of the relay sees them: their states, and orders of operators to suspend and resume them. An order
 * for a destination of another node is saved, and its owner applies it.
 */
import type { ProviderDirectory } from '../../config/provider-directory.ts'
import type { DestinationName } from '../../mail/message.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { EventRecorder } from '../../outbox/event-recorder.ts'
import type { LiveDestination, Suspension } from '../../store/destination-status.ts'
import type { Membership } from '../../store/membership/membership.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import type { Clock } from '../../system/clock.ts'
import { ordered, suspended, type DestinationControl } from './destination-control.ts'
import type { DestinationTable } from './destination-table.ts'
import type { Expiry } from './expiry.ts'
import { endSavedSuspension, type ProviderControl } from './provider-control.ts'
import type { ShardTransfer } from './shard-transfer.ts'

export interface LiveDestinationsDeps {
  readonly store: QueueStore
  readonly clock: Clock
  readonly recorder: EventRecorder
  readonly membership: Pick<Membership, 'recall'>
  readonly directory: ProviderDirectory
  readonly table: DestinationTable
  readonly control: DestinationControl
  readonly providers: ProviderControl
  readonly shards: ShardTransfer
  readonly expiry: Expiry
}

export class LiveDestinations {
  readonly #deps: LiveDestinationsDeps

  constructor(deps: LiveDestinationsDeps) {
    this.#deps = deps
  }

  /** True for a dead or suspended destination. */
  isClosed(name: DestinationName): boolean {
    return (this.#deps.table.known(name)?.access.kind ?? 'open') !== 'open'
  }

  /** Failure for which a destination is dead; undefined when it is not dead. */
  deadStatus(name: DestinationName): DeliveryStatus | undefined {
    const access = this.#deps.table.known(name)?.access
    return access?.kind === 'dead' ? access.siteStatus : undefined
  }

  /** State of a destination; undefined when it is not in memory. */
  status(name: DestinationName): LiveDestination | undefined {
    const { table, clock } = this.#deps
    return table.known(name)?.status(clock.monotonic())
  }

  /** States of all destinations. */
  all(): readonly LiveDestination[] {
    const { table, clock } = this.#deps
    const now = clock.monotonic()
    return Array.from(table.all, (destination) => destination.status(now))
  }

  /**
   * Suspends a destination. Resolves when that is committed, and no attempt to the destination begins any more. Rejects with StoreUnavailable,
   * without effect, when the commit fails, and with NotTakenBack when its owner does not answer.
   */
  async suspend(name: DestinationName, suspension: Suspension): Promise<void> {
    const { store, recorder, membership, shards, control, expiry } = this.#deps
    await shards.loaded(name)
    if (!shards.schedules(name)) {
      await store.saveDestination(ordered(name, suspension), recorder.of(suspended(name, suspension, recorder.wall)))
      await membership.recall({ messages: [], destination: name, rests: false })
      return
    }
    await control.suspend(name, suspension)
    await expiry.run()
  }

  /**
   * Ends a suspension of a destination, after that of its provider by a rule. Resolves when both are committed. Rejects with
   * StoreUnavailable when a commit fails; the suspension of the provider may then have ended.
   */
  async resume(name: DestinationName, by: string): Promise<void> {
    const { store, recorder, directory, table, shards, control, providers } = this.#deps
    await shards.loaded(name)
    if (!shards.schedules(name)) {
      await endSavedSuspension(store, directory.of(name))
      return store.saveDestination(ordered(name, null), recorder.of({ kind: 'resumed', destination: name, by }))
    }
    const provider = table.providerOf(name)
    if (provider !== null) await providers.resume(provider, by)
    await control.resume(name, by)
  }
}
