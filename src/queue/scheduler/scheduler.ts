/**
 * The scheduler delivers mail from the active queue within the windows, rates and limits. Its state is passive (destination-table,
 * active-queue), and its decisions are pure functions (destination-health, lifecycle). Separate loops claim due mail (due-queue), expire
 * mail (expiry, forced-expiry) and retry poison messages (poison-retry); they use the scheduler through SchedulerPort. A delivery keeps its
 * slot until `deliveries` has committed its outcome, so that no mail is delivered while outcomes cannot be recorded.
 */
import type { NoticeSettings } from '../../bounce/notice-writer.ts'
import type { DestinationPolicies } from '../../config/destination-policies.ts'
import type { ProviderDirectory } from '../../config/provider-directory.ts'
import type { DeliveryAgent } from '../../delivery/delivery-agent.ts'
import type { DeliveryRequest, DestinationName, Message, MessageId } from '../../mail/message.ts'
import type { Membership } from '../../store/membership/membership.ts'
import { takenTogether, type TakenBack } from '../../store/membership/taken-back.ts'
import { StoreUnavailable, type DestinationDue, type QueueStore } from '../../store/queue-store.ts'
import type { StoreHealth } from '../../store/store-health.ts'
import type { Clock, Duration } from '../../system/clock.ts'
import { TaskSet } from '../../system/task-set.ts'
import type { EventRecorder } from '../../outbox/event-recorder.ts'
import type { Events } from '../../telemetry/events.ts'
import { Admission, reportActivated, type AdmissionDeps } from './admission.ts'
import { ActiveQueue, type ActiveLimits } from './active-queue.ts'
import type { Destination } from './destination.ts'
import { Deliveries } from './deliveries.ts'
import { DestinationControl } from './destination-control.ts'
import { DestinationTable, type RunningDelivery } from './destination-table.ts'
import { DueQueue } from './due-queue.ts'
import { Expiry } from './expiry.ts'
import { ForcedExpiry } from './forced-expiry.ts'
import { GiveBack } from './give-back.ts'
import { LiveDestinations } from './live-destinations.ts'
import { NodeChanges } from './node-changes.ts'
import { PoisonRetry } from './poison-retry.ts'
import { ProviderControl } from './provider-control.ts'
import { RateDelays } from './rate-delays.ts'
import type { AddedWorkOptions, SchedulerPort } from './scheduler-port.ts'
import { ShardTransfer } from './shard-transfer.ts'
import { TakeBack } from './take-back.ts'
import { SettlementWriter } from './settlement-writer.ts'

export interface SchedulerDeps {
  readonly store: QueueStore
  readonly agent: DeliveryAgent
  readonly clock: Clock
  readonly events: Events
  readonly recorder: EventRecorder
  readonly storeHealth: StoreHealth
  readonly membership: Membership
  readonly limits: () => ActiveLimits
  readonly policies: () => DestinationPolicies
  /** Providers of destinations, from which `policies` chooses settings. */
  readonly providers: ProviderDirectory
  /** True when the scheduler fills `providers`; false when the store does, as that of a shared queue. */
  readonly fillsProviders: boolean
  readonly notices: () => NoticeSettings
  /** Returns a number in [0, 1) that depends only on the name; see Random.draw. */
  readonly draw: (key: string) => number
  /** Called when a notice is due for the message. */
  readonly noticeDue: (message: MessageId) => void
  /** Called when no recipient of the message is left in memory. */
  readonly atRest: (message: Message) => void
}

export class Scheduler {
  /** States of the destinations in memory, and orders of operators about them. */
  readonly destinations: LiveDestinations
  /** Receives changes of the membership among several nodes. */
  readonly nodes: NodeChanges
  readonly #deps: SchedulerDeps
  readonly #active: ActiveQueue
  readonly #table: DestinationTable
  readonly #admission: AdmissionDeps
  readonly #deliveries: Deliveries
  readonly #giveBack: GiveBack
  readonly #takeBack: TakeBack
  readonly #control: DestinationControl
  readonly #rateDelays: RateDelays
  readonly #due: DueQueue
  readonly #expiry: Expiry
  readonly #forcedExpiry: ForcedExpiry
  readonly #poisonRetry: PoisonRetry
  readonly #shards: ShardTransfer
  readonly #providers: ProviderControl
  readonly #tasks = new TaskSet((error) => this.#abandoned(error))
  #dispatching = false
  #started = false
  #stopping = false

  constructor(deps: SchedulerDeps) {
    const { store, agent, clock, events, recorder, storeHealth, membership, providers: directory, limits, policies } = deps
    const active = new ActiveQueue(limits)
    const table = new DestinationTable(active, limits, policies)
    const scheduler: SchedulerPort = {
      claimed: (destination, requests) => this.#claimed(destination, requests),
      claiming: (claim) => this.#takeBack.claiming(claim),
      claimingExpired: (claim) => this.#takeBack.claimingExpired(claim),
      schedules: (name) => this.#shards.schedules(name),
      workAdded: (due, options) => this.workAdded(due, options),
      scan: () => this.scan(),
      dispatch: () => this.#dispatch(),
      dispatchAlone: (request) => this.#dispatchAlone(request),
      settle: (request, status) => settlements.expired(request, status),
      left: (message, destination) => this.#left(message, destination),
      giveBack: (destination, requests) => this.#giveBack.requests(destination, requests),
      giveBackWaiting: (destination) => this.#giveBack.waiting(destination),
    }
    const loop = { store, clock, storeHealth, active, table, scheduler, tasks: this.#tasks }
    const settlements = new SettlementWriter(deps)
    this.#deps = deps
    this.#active = active
    this.#table = table
    const due = (this.#due = new DueQueue(loop))
    const expiry = (this.#expiry = new Expiry(loop))
    this.#forcedExpiry = new ForcedExpiry(loop)
    this.#poisonRetry = new PoisonRetry(loop)
    this.#rateDelays = new RateDelays({ clock, table, scheduler, transportDelay: () => limits().transportDelay })
    const parts = { ...loop, events, recorder, membership, directory, due, expiry }
    const giveBack = (this.#giveBack = new GiveBack({
      ...parts,
      returning: ({ id }) => this.#takeBack.returning(id),
      returned: (message) => this.#reportAtRest(message),
    }))
    this.#takeBack = new TakeBack({ ...parts, giveBack, forcedExpiry: this.#forcedExpiry })
    const control = (this.#control = new DestinationControl(parts))
    const shards = (this.#shards = new ShardTransfer({ ...parts, control, recallProviders: (wanted) => this.#providers.recall(wanted) }))
    const providers = (this.#providers = new ProviderControl({ ...parts, shards, fillsDirectory: deps.fillsProviders }))
    const all = { ...parts, agent, settlements, shards, control, providers, takeBack: this.#takeBack }
    this.#admission = { clock, events, active, table, giveBack, takeBack: this.#takeBack, scheduler }
    this.#deliveries = new Deliveries({ ...all, giveBack: this.#giveBack })
    this.destinations = new LiveDestinations(all)
    this.nodes = new NodeChanges({ ...all, forcedExpiry: this.#forcedExpiry, poisonRetry: this.#poisonRetry })
    storeHealth.onRecovery(() => this.resumeWork())
  }

  /**
   * Loads the saved state of the queue: the dead and suspended destinations, and the earliest due time of each destination. Then
   * starts deliveries.
   */
  async start(): Promise<void> {
    await this.#providers.recall()
    this.#providers.refresh()
    await this.#control.recall()
    for (const { destination, dueAt } of await this.#deps.store.destinationsDue()) this.#due.expect(destination, dueAt)
    this.#started = true
    this.#poisonRetry.start()
    this.#tasks.add(this.#expiry.run())
    this.#dispatch()
  }

  /** Waits at most `grace` for running deliveries, then aborts them. Waiting mail returns to the store. */
  async stop(grace: Duration): Promise<void> {
    const { clock, storeHealth } = this.#deps
    this.#stopping = true
    this.nodes.stop()
    this.#poisonRetry.stop()
    this.#expiry.stop()
    this.#control.stop()
    this.#providers.stop()
    this.#due.stop()
    this.#tasks.add(this.#forcedExpiry.giveBack())
    const deadline = clock.after(grace, () => storeHealth.abandon())
    await this.#tasks.settled()
    deadline.cancel()
    storeHealth.abandon()
    for (const destination of this.#table.all) this.#tasks.add(this.#giveBack.waiting(destination))
    await this.#tasks.settled()
  }

  // --- new mail

  /**
   * Reserves room in the active queue for a new message, by destination with its number of recipients, where the destination is open and this
   * node schedules it. The mail for other destinations must wait.
   */
  admit(message: MessageId, byDestination: ReadonlyMap<DestinationName, number>): Admission {
    const admission = new Admission(message, this.#admission)
    if (!this.#started || this.#stopping) return admission
    for (const [name, recipients] of byDestination) {
      if (!this.#shards.schedules(name)) continue
      const destination = this.#table.get(name)
      // A destination whose provider is being changed may be that of another node in a moment.
      if (destination.access.kind === 'open' && !destination.isReleased) admission.reserve(destination, recipients)
    }
    return admission
  }

  /** Schedules mail in the store: new mail for which there was no room, or mail that an operator or another node changed. */
  workAdded(due: readonly DestinationDue[], options: AddedWorkOptions = {}): void {
    for (const { destination, dueAt } of due) {
      if (!this.#shards.schedules(destination)) continue
      if (options.revive === true) this.#control.revive(destination)
      this.#due.expect(destination, dueAt)
    }
    // Mail restored by an operator may be past its lifetime.
    this.#expiry.expect(options.expiresAt ?? this.#deps.clock.now())
    this.#dispatch()
  }

  /** Gives the mail of these messages back that has no slot, at all nodes; see TakeBack. Rejects as Membership.recall does. */
  async takeBack(messages: readonly MessageId[], options: { readonly rests: boolean }): Promise<TakenBack> {
    const here = this.#takeBack.messages(messages, options)
    return takenTogether(await Promise.all([here, this.#deps.membership.recall({ messages, destination: null, ...options })]))
  }

  /** Messages in transfer at this node: a recipient has a slot, and its outcome is not committed. */
  get transfers(): readonly MessageId[] {
    return this.#active.transfers
  }

  /** True while a recipient of the message is in memory, waiting for a slot or in delivery. */
  roundIsOpen(message: MessageId): boolean {
    return this.#active.holds(message)
  }

  // --- a request: claimed, dispatched, finished

  /** Handles the result of a claim. */
  #claimed(destination: Destination, requests: readonly DeliveryRequest[]): void {
    this.#enter(this.#takeBack.passing(requests))
    this.#giveBack.whereClosed(destination)
    this.#due.schedule(destination)
    this.#dispatch()
  }

  /** Adds leased mail to the active queue. */
  #enter(requests: readonly DeliveryRequest[]): void {
    const activatedAt = this.#deps.clock.now()
    reportActivated(
      this.#deps.events,
      requests.filter(({ message }) => !this.#active.holds(message.id)),
    )
    for (const request of requests) {
      this.#active.reserve(request.message.id, request.recipients.length)
      if (request.forcedExpire) this.#forcedExpiry.add(request)
      else this.#table.enter({ request, activatedAt })
    }
  }

  /** Claims due mail, starts the deliveries that the limits allow, and sets the alarm for the next claim. Not reentrant. */
  #dispatch(): void {
    if (this.#dispatching || !this.#started) return
    this.#dispatching = true
    const { clock, storeHealth } = this.#deps
    if (!this.#stopping && !storeHealth.unavailable) {
      this.#due.claim()
      // A process that was stopped may resume here, after the end of its lease.
      const next = () => (storeHealth.unavailable ? undefined : this.#table.next(clock.now(), clock.monotonic()))
      for (let running = next(); running !== undefined; running = next()) this.#tasks.add(this.#deliver(running))
    }
    this.#dispatching = false
    this.#due.arm(this.#stopping || storeHealth.unavailable)
  }

  async #dispatchAlone(request: DeliveryRequest): Promise<void> {
    if (this.#takeBack.passing([request]).length === 0) return
    if (request.forcedExpire) return this.#enter([request])
    const { clock, storeHealth } = this.#deps
    const destination = this.#table.get(request.destination)
    const isOpen = destination.access.kind === 'open' && !destination.isReleased && destination.provider?.hasRoom !== false
    const mayStart = isOpen && this.#shards.schedules(destination.name) && !storeHealth.unavailable
    if (!mayStart) return this.#giveBack.requests(destination, [request])
    await this.#deliver(this.#table.beginAlone({ request, activatedAt: clock.now() }, clock.monotonic()))
  }

  async #deliver(running: RunningDelivery): Promise<void> {
    if (!running.alone) this.#rateDelays.begun(running)
    await this.#deliveries.make(running)
    this.#finished(running)
  }

  /** Frees the slot of a delivery whose outcome is committed. */
  #finished(running: RunningDelivery): void {
    const { job, destination, alone } = running
    this.#table.finished(running, this.#deps.clock.monotonic())
    destination.probing(false)
    if (!alone) this.#rateDelays.ended(running)
    this.#left(job.request.message, destination)
  }

  /** Uses the room that a request has left. */
  #left(message: Message, destination: Destination): void {
    this.#reportAtRest(message)
    this.#due.schedule(destination)
    this.#due.admitNext()
    this.#dispatch()
  }

  #reportAtRest(message: Message): void {
    if (!this.#active.holds(message.id)) this.#deps.atRest(message)
  }

  // --- maintenance

  /** Applies changed settings. They may allow more deliveries, which are started. What rules did ends with them. */
  reconfigure(): void {
    this.#providers.refresh()
    this.#due.scheduleAll()
    this.#dispatch()
  }

  /** Health check: starts due deliveries and resolves. Rejects when the scheduler is not started or the store cannot commit. */
  async alive(): Promise<void> {
    if (!this.#started) throw new Error('not started')
    if (this.#deps.storeHealth.unavailable) throw new Error('store unavailable: commits are failing')
    this.#dispatch()
  }

  /** Safety scan: schedules all waiting mail again, in case the schedule in memory has missed some. */
  async scan(): Promise<void> {
    for (const { destination, dueAt } of await this.#deps.store.destinationsDue()) this.#due.expect(destination, dueAt)
    await this.#poisonRetry.run()
    await this.#expiry.run()
    this.#table.forgetIdle(this.#deps.clock.monotonic())
    this.#dispatch()
  }

  /** Resumes work when the store commits again, or when the node may deliver again. */
  resumeWork(): void {
    this.#due.scheduleAll()
    this.#tasks.add(this.#expiry.run())
    this.#dispatch()
  }

  /**
   * Logs that an outcome was not committed before the daemon ended: the mail is delivered again after the next start. Rethrows
   * every other error, because it is a bug.
   */
  #abandoned(error: unknown): void {
    const { events, storeHealth } = this.#deps
    if (!(error instanceof StoreUnavailable) || !storeHealth.abandoned.aborted) throw error
    events.emit({ kind: 'note', level: 'error', text: `stopped without recording an outcome: ${error.message}` })
  }
}
