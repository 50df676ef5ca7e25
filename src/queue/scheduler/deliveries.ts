/**
 * Makes deliveries: passes each to the delivery agent, lets destination and provider learn from the result, and commits the outcome.
 * Recipients without an attempt return to the store.
 */
import type { SchedulerState } from './scheduler-state.ts'
import { ReadFailed, StoreUnavailable } from '../../store/queue-store.ts'
import type { DeliveryRequest, LeasedRecipient } from '../../mail/message.ts'
import type { AttemptResult } from '../../delivery/delivery-agent.ts'
import { type QueueTime, type Duration, SECOND, sleep } from '../../system/clock.ts'
import { DeliveryConnections, type HostConnections } from './host-connections.ts'
import type { DestinationControl } from './destination-control.ts'
import type { RunningDelivery } from './destination-table.ts'
import type { DueQueue } from './due-queue.ts'
import type { Expiry } from './expiry.ts'
import type { GiveBack } from './give-back.ts'
import type { Job } from './turns/job-queue.ts'
import { earliestDue } from './lifecycle.ts'
import type { ProviderControl } from './provider-control.ts'
import { NEVER_STARTED, type SettlementWriter } from './settlement-writer.ts'

type State = Pick<SchedulerState, 'store' | 'agent' | 'clock' | 'storeHealth' | 'active'>
interface Loops {
  readonly settlements: SettlementWriter
  readonly connections: HostConnections
  readonly control: DestinationControl
  readonly providers: ProviderControl
  readonly giveBack: GiveBack
  readonly due: DueQueue
  readonly expiry: Expiry
}

/** Number of reads that fail with ReadFailed after which a content is unreadable, and the pause between two reads. */
const READS = 3
const PAUSE: Duration = SECOND

export class Deliveries {
  readonly #state: State
  readonly #loops: Loops

  constructor(state: State, loops: Loops) {
    this.#state = state
    this.#loops = loops
  }

  /** Makes a delivery that has a slot. Resolves when its outcome is durable; `written` as in QueueStore.settle. */
  make(running: RunningDelivery, written: () => void): Promise<void> {
    const { settlements } = this.#loops
    const { job, destination } = running
    const isLate = waitedTooLong(job, this.#state.clock.now() - destination.settings.minimal_backoff_time)
    return isLate ? settlements.expired(job.request, NEVER_STARTED, written) : this.#attempt(running, written)
  }

  async #attempt(running: RunningDelivery, written: () => void): Promise<void> {
    const { agent, clock, storeHealth } = this.#state
    const { settlements, connections, control, providers, due, expiry } = this.#loops
    const { job, destination } = running
    const made = new DeliveryConnections()
    const result = await agent.deliver(job.request, {
      keepConnection: destination.keepsConnection(clock.monotonic()),
      signal: storeHealth.abandoned,
      admits: (provider) => providers.admits(running, provider),
      connecting: (address) => connections.connecting(running, made, address),
    })
    if (result === 'passed-over') return this.#passedOver(running, made)
    if (result === 'not-begun') return this.#returnUnbegun(running)
    const unread = await unreadRecipients(this.#state, job.request, result)
    if (unread.length === job.request.recipients.length) return this.#returnUnbegun(running)
    // Other deliveries to the destination are in progress, so it is congested, not dead. The attempt is not a step of the retry
    // schedule.
    const returned = result.congestion === 'early' && destination.inFlight > 1
    connections.learn(made, result)
    control.learn(running, result, made.silentHost)
    providers.learn(running, result)
    if (result.unreadable !== undefined) return settlements.unreadable(job.request.message, result.unreadable)
    const answered = unread.length === 0 ? job : { ...job, request: withoutRecipients(job.request, unread) }
    const settlement = await settlements.attempted(answered, result, { returned, written: unread.length === 0 ? written : undefined })
    if (unread.length > 0) await this.#returnUnbegun(running, unread)
    const dueAt = earliestDue(settlement)
    if (dueAt === null) return
    // The destination may have left memory and be here again.
    due.expect(destination.name, dueAt, this.#state.active.wasRecalled(job.request.message.id) ? undefined : [job.band])
    for (const recipient of job.request.recipients) expiry.expect(recipient.expiresAt)
  }

  /** Returns a delivery without an attempt, all of whose hosts were passed over. */
  async #passedOver(running: RunningDelivery, made: DeliveryConnections): Promise<void> {
    const { connections, giveBack } = this.#loops
    connections.passedOver(running, made)
    const { access } = running.destination
    await this.#returnUnbegun(running)
    giveBack.reportDeferred([running.job], access)
  }

  /**
   * Returns recipients without an attempt, because the lease of this node has ended or the store was away. The commit fails when another
   * node has them.
   */
  async #returnUnbegun({ job: { request }, destination }: RunningDelivery, recipients = request.recipients): Promise<void> {
    await this.#loops.giveBack.unexpired(destination, [{ ...request, recipients }])
  }
}

/**
 * True when a job entered the active queue, and all its recipients expired, before `latest`. Its mail then expires without a last attempt,
 * because it has waited `minimal_backoff_time` for a slot.
 */
const waitedTooLong = ({ activatedAt, request }: Job, latest: QueueTime): boolean =>
  activatedAt < latest && request.recipients.every(({ expiresAt }) => expiresAt < latest)

/**
 * Recipients without an outcome, because the content could not be read for a while. An absence of the store is no attempt: it costs neither a
 * step of the retry schedule nor, at the end of the lifetime, the mail. Resolves when the store commits and reads again. Empty
 * when only this content stays unreadable: then the outcome is a deferral, whose waits grow. Rejects as retryUntilCommitted.
 */
async function unreadRecipients(
  { store, clock, storeHealth }: State,
  { message, recipients }: Pick<DeliveryRequest, 'message' | 'recipients'>,
  { outcomes }: Pick<AttemptResult, 'outcomes'>,
): Promise<readonly LeasedRecipient[]> {
  const unread = recipients.filter(({ id }) => outcomes.get(id)?.unreadChunk !== undefined)
  const [chunk] = unread.map(({ id }) => outcomes.get(id)?.unreadChunk)
  if (chunk === undefined) return []
  for (let failures = 0; failures < READS;) {
    await storeHealth.retryUntilCommitted(() => store.upkeep.ping())
    try {
      await store.readChunk(message.contentId, chunk)
      return unread
    } catch (error) {
      // The next delivery reports a content that is damaged for good.
      if (!(error instanceof StoreUnavailable)) return unread
      if (storeHealth.abandoned.aborted) throw error
      if (error instanceof ReadFailed) failures++
    }
    await sleep(clock, PAUSE, storeHealth.abandoned)
  }
  return []
}

/** The request without these recipients. */
const withoutRecipients = (request: DeliveryRequest, without: readonly LeasedRecipient[]): DeliveryRequest => ({
  ...request,
  recipients: request.recipients.filter((recipient) => !without.includes(recipient)),
})
