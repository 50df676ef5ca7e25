/**
 * The scheduler delivers mail from the active queue within the windows, rates and limits. Its state is passive (destination-table,
 * active-queue), and its decisions are pure functions (destination-health, lifecycle). Separate loops claim due mail (due-queue), expire
 * mail (expiry, forced-expiry) and retry poison messages (poison-retry); they use the scheduler through SchedulerLoop. A delivery keeps its
 * slot until its outcome is written, so that no mail is delivered while outcomes cannot be recorded; a destination has a limit of outcomes that
 * are written and not durable.
 */
import type { DeliveryRequest, DestinationName, Message, MessageId } from '../../mail/message.ts'
import { takenTogether, type TakenBack } from '../../store/membership/taken-back.ts'
import { StoreUnavailable } from '../../store/queue-store.ts'
import type { DestinationDue } from '../../store/message-operation.ts'
import type { Duration } from '../../system/clock.ts'
import { TaskSet } from '../../system/task-set.ts'
import { AddressLimits } from './hosts/address-limits.ts'
import { Admission, reportActivated, type AdmissionLoops } from './admission.ts'
import { ArrivingMail } from './arriving-mail.ts'
import { HostConnections } from './host-connections.ts'
import type { Destination } from './destination.ts'
import { Deliveries } from './deliveries.ts'
import { DestinationControl } from './destination-control.ts'
import type { RunningDelivery } from './destination-table.ts'
import { DueQueue } from './due-queue.ts'
import { Expiry } from './expiry.ts'
import { ForcedExpiry } from './forced-expiry.ts'
import { GiveBack } from './give-back.ts'
import { LiveDestinations } from './live-destinations.ts'
import { NodeChanges } from './node-changes.ts'
import { PoisonRetry } from './poison-retry.ts'
import { ProviderControl } from './provider-control.ts'
import { RateDelays } from './rate-delays.ts'
import { ScheduledShards } from './scheduled-shards.ts'
import type { AddedWorkOptions, SchedulerLoop, SchedulerPorts, SchedulerState } from './scheduler-state.ts'
import { SilentHosts } from './hosts/silent-host.ts'
import { ShardTransfer } from './shard-transfer.ts'
import { TakeBack } from './take-back.ts'
import { Schedules } from './due/schedules.ts'
import { SettlementWriter } from './settlement-writer.ts'

export class Scheduler implements SchedulerLoop {
  /** States of the destinations in memory, and orders of operators about them. */
  readonly destinations: LiveDestinations
  /** Receives changes of the membership among several nodes. */
  readonly nodes: NodeChanges
  readonly #state: SchedulerState
  readonly #due: DueQueue
  readonly #expiry: Expiry
  readonly #schedules: Schedules
  readonly #giveBack: GiveBack
  readonly #forcedExpiry: ForcedExpiry
  readonly #takeBack: TakeBack
  readonly #poisonRetry: PoisonRetry
  readonly #rateDelays: RateDelays
  readonly #control: DestinationControl
  readonly #providers: ProviderControl
  readonly #deliveries: Deliveries
  readonly #admission: AdmissionLoops
  #dispatching = false
  #started = false
  #stopping = false

  constructor(ports: SchedulerPorts) {
    const { storeHealth, membership } = ports
    const tasks = new TaskSet((error) => this.#abandoned(error))
    const addresses = new AddressLimits<Destination>(() => ports.limits().deliveries)
    const hosts = new SilentHosts<Destination>((members) => {
      for (const destination of members) this.#due.schedule(destination)
    })
    const state = { ...ports, shards: new ScheduledShards(membership), arriving: new ArrivingMail(), addresses, hosts, tasks }
    const settlements = new SettlementWriter(state)
    const due = new DueQueue(state, this)
    const expiry = new Expiry(state, { settlements, scheduler: this })
    const giveBack = new GiveBack(state, { due, expiry, scheduler: this })
    const forcedExpiry = new ForcedExpiry(state, { settlements, giveBack, scheduler: this })
    const schedules = new Schedules(state)
    const takeBack = new TakeBack(state, { giveBack, forcedExpiry })
    const poisonRetry = new PoisonRetry(state, this)
    const control = new DestinationControl(state, { due, giveBack, scheduler: this })
    const connections = new HostConnections(state, { control, due, scheduler: this })
    const transfer = new ShardTransfer(state, { due, giveBack })
    const providers = new ProviderControl(state, { due, giveBack, transfer, scheduler: this })
    this.#state = state
    this.#due = due
    this.#expiry = expiry
    this.#schedules = schedules
    this.#giveBack = giveBack
    this.#forcedExpiry = forcedExpiry
    this.#takeBack = takeBack
    this.#poisonRetry = poisonRetry
    this.#rateDelays = new RateDelays(state, this)
    this.#control = control
    this.#providers = providers
    this.#deliveries = new Deliveries(state, { settlements, connections, control, providers, giveBack, due, expiry })
    this.#admission = { giveBack, takeBack, scheduler: this }
    this.destinations = new LiveDestinations(state, { control, providers, expiry })
    this.nodes = new NodeChanges(state, {
      transfer,
      due,
      control,
      providers,
      expiry,
      schedules,
      forcedExpiry,
      poisonRetry,
      takeBack,
      scheduler: this,
    })
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
    for (const { destination, dueAt } of await this.#state.store.destinationsDue()) this.#due.expect(destination, dueAt)
    this.#started = true
    this.#poisonRetry.start()
    this.#state.tasks.add(this.#expiry.run())
    this.#state.tasks.add(this.#schedules.run())
    this.dispatch()
  }

  /** Waits at most `grace` for running deliveries, then aborts them. Waiting mail returns to the store. */
  async stop(grace: Duration): Promise<void> {
    const { clock, storeHealth } = this.#state
    this.#stopping = true
    this.nodes.stop()
    this.#poisonRetry.stop()
    this.#expiry.stop()
    this.#schedules.stop()
    this.#control.stop()
    this.#providers.stop()
    this.#due.stop()
    this.#state.tasks.add(this.#forcedExpiry.giveBack())
    const deadline = clock.after(grace, () => storeHealth.abandon())
    await this.#state.tasks.settled()
    deadline.cancel()
    storeHealth.abandon()
    for (const destination of this.#state.table.all) this.#state.tasks.add(this.#giveBack.waiting(destination))
    await this.#state.tasks.settled()
  }

  // --- new mail

  /**
   * Reserves room in the active queue for a new message, by destination with its number of recipients, where the destination is open and this
   * node schedules it. The mail for other destinations must wait.
   */
  admit(message: Pick<Message, 'id' | 'class'>, byDestination: ReadonlyMap<DestinationName, number>): Admission {
    const admission = new Admission(message, this.#state, this.#admission)
    if (!this.#started || this.#stopping) return admission
    const band = this.#state.policies().classes.bands.of(message.class)
    for (const [name, recipients] of byDestination) {
      if (!this.#state.shards.schedules(name)) continue
      const destination = this.#state.table.get(name)
      // A destination whose provider is being changed may be that of another node in a moment.
      const mayEnter = destination.access.kind === 'open' && !destination.isReleased && destination.hosts.waitsFor.length === 0
      if (mayEnter && !this.#due.holdsBack(destination, band)) admission.reserve(destination, recipients)
    }
    return admission
  }

  /** Schedules mail in the store: new mail for which there was no room, or mail that an operator or another node changed. */
  workAdded(due: readonly DestinationDue[], options: AddedWorkOptions = {}): void {
    for (const { destination, dueAt } of due) {
      if (!this.#state.shards.schedules(destination)) continue
      if (options.revive === true) this.#control.revive(destination)
      this.#due.expect(destination, dueAt, options.bands)
    }
    if (options.scheduled !== undefined) this.#schedules.expect(options.scheduled)
    // Mail restored by an operator may be past its lifetime.
    this.#expiry.expect(options.expiresAt ?? this.#state.clock.now())
    this.dispatch()
  }

  /** Gives the mail of these messages back that has no slot, at all nodes; see TakeBack. Rejects as Membership.recall does. */
  async takeBack(messages: readonly MessageId[], options: { readonly rests: boolean }): Promise<TakenBack> {
    const here = this.#takeBack.messages(messages, options)
    return takenTogether(await Promise.all([here, this.#state.membership.recall({ messages, destination: null, ...options })]))
  }

  /** Messages in transfer at this node: a recipient has a slot, and its outcome is not committed. */
  get transfers(): readonly MessageId[] {
    return this.#state.active.transfers
  }

  /** True while a recipient of the message is in memory, waiting for a slot or in delivery. */
  roundIsOpen(message: MessageId): boolean {
    return this.#state.active.holds(message)
  }

  // --- a request: claimed, dispatched, finished

  /** Handles the result of a claim. */
  claimed(destination: Destination, requests: readonly DeliveryRequest[]): void {
    this.#enter(this.#takeBack.passing(requests))
    this.#giveBack.whereClosed(destination)
    this.#due.schedule(destination)
    this.dispatch()
  }

  /** Adds leased mail to the active queue. */
  #enter(requests: readonly DeliveryRequest[]): void {
    const activatedAt = this.#state.clock.now()
    reportActivated(
      this.#state.events,
      requests.filter(({ message }) => !this.#state.active.holds(message.id)),
    )
    for (const request of requests) {
      this.#state.active.reserve(request.message.id, request.recipients.length)
      if (request.forcedExpire) this.#forcedExpiry.add(request)
      else this.#state.table.enter(request, activatedAt)
    }
  }

  /** Claims due mail, starts the deliveries that the limits allow, and sets the alarm for the next claim. Not reentrant. */
  dispatch(): void {
    if (this.#dispatching || !this.#started) return
    this.#dispatching = true
    const { clock, storeHealth } = this.#state
    if (!this.#stopping && !storeHealth.unavailable) {
      this.#due.claim()
      // A process that was stopped may resume here, after the end of its lease.
      const next = () => (storeHealth.unavailable ? undefined : this.#state.table.next(clock.now(), clock.monotonic()))
      for (let running = next(); running !== undefined; running = next()) this.#state.tasks.add(this.#deliver(running))
    }
    this.#dispatching = false
    this.#due.arm(this.#stopping || storeHealth.unavailable)
  }

  async dispatchAlone(request: DeliveryRequest): Promise<void> {
    if (this.#takeBack.passing([request]).length === 0) return
    if (request.forcedExpire) return this.#enter([request])
    const { clock, storeHealth } = this.#state
    const destination = this.#state.table.get(request.destination)
    const isOpen = destination.access.kind === 'open' && !destination.isReleased && destination.provider?.hasRoom !== false
    const mayStart = isOpen && this.#state.shards.schedules(destination.name) && !storeHealth.unavailable
    if (!mayStart) return this.#giveBack.requests(destination, [request])
    await this.#deliver(this.#state.table.beginAlone(request, clock.now(), clock.monotonic()))
  }

  async #deliver(running: RunningDelivery): Promise<void> {
    if (!running.alone) this.#rateDelays.begun(running)
    let isWritten = false
    await this.#deliveries.make(running, () => {
      if (isWritten) return
      isWritten = true
      running.destination.beginSettling()
      this.#freeSlot(running)
      this.#due.schedule(running.destination)
      this.dispatch()
    })
    if (isWritten) running.destination.endSettling()
    else this.#freeSlot(running)
    this.#state.table.finished(running)
    this.left(running.job.request.message, running.destination)
  }

  /** Frees the slot of a delivery whose outcome is written. */
  #freeSlot(running: RunningDelivery): void {
    this.#state.table.freeSlot(running, this.#state.clock.monotonic())
    running.destination.probing(false)
    if (!running.alone) this.#rateDelays.ended(running)
  }

  /** Uses the room that a request has left. */
  left(message: Message, destination: Destination): void {
    this.checkRest(message)
    this.#due.schedule(destination)
    this.#due.admitNext()
    this.dispatch()
  }

  /** Reports a message of which nothing is left in memory. */
  checkRest(message: Message): void {
    const { active, contents, notices } = this.#state
    if (active.holds(message.id)) return
    contents.release(message.contentId)
    notices.atRest(message.id)
  }

  /** Gives requests back to the store without an attempt. */
  giveBack(destination: Destination, requests: readonly DeliveryRequest[]): Promise<void> {
    return this.#giveBack.requests(destination, requests)
  }

  // --- maintenance

  /** Applies changed settings. They may allow more deliveries, which are started. What rules did ends with them. */
  reconfigure(): void {
    this.#providers.refresh()
    this.#state.table.reconfigure()
    this.#due.scheduleAll()
    this.dispatch()
  }

  /** Health check: starts due deliveries and resolves. Rejects when the scheduler is not started or the store cannot commit. */
  async alive(): Promise<void> {
    if (!this.#started) throw new Error('not started')
    if (this.#state.storeHealth.unavailable) throw new Error('store unavailable: commits are failing')
    this.dispatch()
  }

  /** Safety scan: schedules all waiting mail again, in case the schedule in memory has missed some. */
  async scan(): Promise<void> {
    for (const { destination, dueAt } of await this.#state.store.destinationsDue()) this.#due.expect(destination, dueAt)
    await this.#poisonRetry.run()
    await this.#expiry.run()
    await this.#schedules.run()
    this.#state.table.forgetIdle(this.#state.clock.monotonic())
    this.dispatch()
  }

  /** Resumes work when the store commits again, or when the node may deliver again. */
  resumeWork(): void {
    this.#due.scheduleAll()
    this.#state.tasks.add(this.#expiry.run())
    this.dispatch()
  }

  /**
   * Logs that an outcome was not committed before the daemon ended: the mail is delivered again after the next start. Rethrows
   * every other error, because it is a bug.
   */
  #abandoned(error: unknown): void {
    const { events, storeHealth } = this.#state
    if (!(error instanceof StoreUnavailable) || !storeHealth.abandoned.aborted) throw error
    events.emit({ kind: 'note', level: 'error', text: `stopped without recording an outcome: ${error.message}` })
  }
}
