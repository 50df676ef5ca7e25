/**
 * Makes deliveries: passes each to the delivery agent, lets destination and provider learn from the result, and commits the outcome.
 * Recipients without an attempt return to the store.
 */
import type { DeliveryAgent } from '../../delivery/delivery-agent.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import type { StoreHealth } from '../../store/store-health.ts'
import type { Clock, QueueTime } from '../../system/clock.ts'
import type { DestinationControl } from './destination-control.ts'
import type { RunningDelivery } from './destination-table.ts'
import type { DueQueue } from './due-queue.ts'
import type { Expiry } from './expiry.ts'
import type { GiveBack } from './give-back.ts'
import type { Job } from './job-queue.ts'
import { earliestDue } from './lifecycle.ts'
import type { ProviderControl } from './provider-control.ts'
import { NEVER_STARTED, type SettlementWriter } from './settlement-writer.ts'
import { unreadRecipients, withoutRecipients } from './unread-content.ts'

export interface DeliveriesDeps {
  readonly store: QueueStore
  readonly agent: DeliveryAgent
  readonly clock: Clock
  readonly storeHealth: StoreHealth
  readonly settlements: SettlementWriter
  readonly control: DestinationControl
  readonly providers: ProviderControl
  readonly giveBack: GiveBack
  readonly due: DueQueue
  readonly expiry: Expiry
}

export class Deliveries {
  readonly #deps: DeliveriesDeps

  constructor(deps: DeliveriesDeps) {
    this.#deps = deps
  }

  /** Makes a delivery that has a slot. Resolves when its outcome is committed. */
  make(running: RunningDelivery): Promise<void> {
    const { clock, settlements } = this.#deps
    const { job, destination } = running
    const isLate = waitedTooLong(job, clock.now() - destination.settings.minimal_backoff_time)
    return isLate ? settlements.expired(job.request, NEVER_STARTED) : this.#attempt(running)
  }

  async #attempt(running: RunningDelivery): Promise<void> {
    const { agent, clock, storeHealth, settlements, control, providers, due, expiry } = this.#deps
    const { job, destination } = running
    const result = await agent.deliver(job.request, {
      keepConnection: destination.keepsConnection(clock.monotonic()),
      signal: storeHealth.abandoned,
      admits: (provider) => providers.admits(running, provider),
    })
    if (result === 'not-begun') return this.#returnUnbegun(running)
    const unread = await unreadRecipients(this.#deps, job.request, result)
    if (unread.length === job.request.recipients.length) return this.#returnUnbegun(running)
    // Other deliveries to the destination are in progress, so it is congested, not dead. The attempt is not a step of the retry
    // schedule.
    const returned = result.congestion === 'early' && destination.inFlight > 1
    control.learn(running, result)
    providers.learn(running, result)
    if (result.unreadable !== undefined) return settlements.unreadable(job.request.message, result.unreadable)
    const answered = unread.length === 0 ? job : { ...job, request: withoutRecipients(job.request, unread) }
    const settlement = await settlements.attempted(answered, result, returned)
    if (unread.length > 0) await this.#returnUnbegun(running, unread)
    const dueAt = earliestDue(settlement)
    if (dueAt === null) return
    // The destination may have left memory and be here again.
    due.expect(destination.name, dueAt)
    for (const recipient of job.request.recipients) expiry.expect(recipient.expiresAt)
  }

  /**
   * Returns recipients without an attempt, because the lease of this node has ended or the store was away. The commit fails when another
   * node has them.
   */
  async #returnUnbegun({ job: { request }, destination }: RunningDelivery, recipients = request.recipients): Promise<void> {
    await this.#deps.giveBack.unexpired(destination, [{ ...request, recipients }])
  }
}

/**
 * True when a job entered the active queue, and all its recipients expired, before `latest`. Its mail then expires without a last attempt,
 * because it has waited `minimal_backoff_time` for a slot.
 */
const waitedTooLong = ({ activatedAt, request }: Job, latest: QueueTime): boolean =>
  activatedAt < latest && request.recipients.every(({ expiresAt }) => expiresAt < latest)
