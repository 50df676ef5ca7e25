/**
 * The scheduler delivers mail from the active queue within the windows, rates and limits, and commits each outcome to the store.
 * Its state is passive (destination-table, active-queue), and its decisions are pure functions (destination-health, lifecycle).
 * Separate loops claim due mail (due-queue), expire mail (expiry, forced-expiry) and retry poison messages (poison-retry); they
 * use the scheduler through SchedulerPort. A delivery keeps its slot until its outcome is committed, so that no mail is delivered
 * while outcomes cannot be recorded.
 */
import type { NoticeSettings } from '../../bounce/notice-writer.ts'
import type { DestinationPolicies } from '../../config/destination-policies.ts'
import { nameOfProvider, type ProviderDirectory } from '../../config/provider-directory.ts'
import type { DeliveryAgent } from '../../delivery/delivery-agent.ts'
import type { DeliveryRequest, DestinationName, Message, MessageId } from '../../mail/message.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { Membership } from '../../store/membership/membership.ts'
import type { Arrivals } from '../../store/membership/node-table.ts'
import type { Shard } from '../../store/membership/shards.ts'
import type { LiveDestination, Suspension } from '../../store/destination-status.ts'
import { StoreUnavailable, type DestinationDue, type QueueStore } from '../../store/queue-store.ts'
import type { StoreHealth } from '../../store/store-health.ts'
import { SECOND, type Clock, type Duration, type Instant } from '../../system/clock.ts'
import { TaskSet } from '../../system/task-set.ts'
import type { EventRecorder } from '../../outbox/event-recorder.ts'
import type { Events } from '../../telemetry/events.ts'
import { ActiveQueue, type ActiveLimits } from './active-queue.ts'
import type { Destination } from './destination.ts'
import { DestinationControl, ordered, suspended } from './destination-control.ts'
import { DestinationTable, type RunningDelivery } from './destination-table.ts'
import { DueQueue } from './due-queue.ts'
import { Expiry } from './expiry.ts'
import { ForcedExpiry } from './forced-expiry.ts'
import { GiveBack } from './give-back.ts'
import { earliestDue } from './lifecycle.ts'
import { PoisonRetry } from './poison-retry.ts'
import { endSavedSuspension, ProviderControl } from './provider-control.ts'
import { RateDelays } from './rate-delays.ts'
import type { SchedulerPort } from './scheduler-port.ts'
import { ShardTransfer } from './shard-transfer.ts'
import { ADMINISTRATIVELY_EXPIRED, NEVER_STARTED, SettlementWriter } from './settlement-writer.ts'
import { unreadRecipients, withoutRecipients } from './unread-content.ts'

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
  readonly #deps: SchedulerDeps
  readonly #active: ActiveQueue
  readonly #table: DestinationTable
  readonly #giveBack: GiveBack
  readonly #control: DestinationControl
  readonly #rateDelays: RateDelays
  readonly #settlements: SettlementWriter
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
    const { store, clock, events, recorder, storeHealth, membership, limits, policies } = deps
    const active = new ActiveQueue(limits)
    const table = new DestinationTable(active, limits, policies)
    const scheduler: SchedulerPort = {
      claimed: (destination, requests) => this.#claimed(destination, requests),
      schedules: (name) => this.#shards.schedules(name),
      dispatch: () => this.#dispatch(),
      dispatchAlone: (request) => this.#dispatchAlone(request),
      settle: (request, status) => this.#settlements.expired(request, status),
      giveBack: (destination, requests) => this.#giveBack.requests(destination, requests),
      giveBackWaiting: (destination) => this.#giveBack.waiting(destination),
    }
    const loop = { store, clock, storeHealth, active, table, scheduler, tasks: this.#tasks }
    this.#deps = deps
    this.#active = active
    this.#table = table
    this.#settlements = new SettlementWriter(deps)
    this.#due = new DueQueue(loop)
    this.#expiry = new Expiry(loop)
    this.#forcedExpiry = new ForcedExpiry(this.#tasks, (request) => this.#expireForced(request))
    this.#poisonRetry = new PoisonRetry(loop)
    this.#rateDelays = new RateDelays({ clock, table, scheduler, transportDelay: () => limits().transportDelay })
    const loops = { ...loop, due: this.#due, expiry: this.#expiry }
    this.#giveBack = new GiveBack({ ...loops, events, returned: (message) => this.#reportAtRest(message) })
    this.#control = new DestinationControl({ ...loops, events, recorder })
    this.#shards = new ShardTransfer({
      ...loops,
      membership,
      control: this.#control,
      recallProviders: (wanted) => this.#providers.recall(wanted),
    })
    this.#providers = new ProviderControl({
      ...loops,
      events,
      directory: deps.providers,
      fillsDirectory: deps.fillsProviders,
      shards: this.#shards,
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
    this.#poisonRetry.stop()
    this.#expiry.stop()
    this.#control.stop()
    this.#providers.stop()
    this.#due.arm(true)
    for (const request of this.#forcedExpiry.drain()) this.#tasks.add(this.#giveBackForced(request))
    const deadline = clock.after(grace, () => storeHealth.abandon())
    await this.#tasks.settled()
    deadline.cancel()
    storeHealth.abandon()
    for (const destination of this.#table.all) this.#tasks.add(this.#giveBack.waiting(destination))
    await this.#tasks.settled()
  }

  // --- new mail

  /** Reserves room for new mail in the active queue if its destination is open and this node schedules it. Returns false when the mail must wait. */
  admit(message: MessageId, name: DestinationName, recipients: number): boolean {
    if (!this.#started || this.#stopping || !this.#shards.schedules(name)) return false
    const destination = this.#table.get(name)
    // A destination whose provider is being changed may be that of another node in a moment.
    if (destination.access.kind !== 'open' || destination.isReleased) return false
    if (this.#table.room(destination, true) < recipients) return false
    this.#active.reserve(message, recipients)
    destination.beginCommit()
    return true
  }

  /** Counts one more request of admitted mail. `admit` has counted all its recipients, as one request. */
  admitFurther(message: MessageId): void {
    this.#active.reserve(message, 0)
  }

  /** Releases the room of admitted mail that could not be committed. */
  unadmit(message: MessageId, name: DestinationName, recipients: number): void {
    this.#active.release(message, recipients)
    this.#table.get(name).endCommit()
  }

  /** Adds admitted mail, which is committed and leased, to the active queue. */
  offer(requests: readonly DeliveryRequest[]): void {
    const activatedAt = this.#deps.clock.now()
    this.#emitActivated(requests)
    for (const request of requests) this.#giveBack.whereClosed(this.#table.enter({ request, activatedAt }))
    for (const name of new Set(requests.map(({ destination }) => destination))) this.#table.get(name).endCommit()
    this.#dispatch()
  }

  /**
   * Schedules mail in the store: new mail for which there was no room, or mail that an operator changed. With `revive`, dead
   * destinations are opened. `expiresAt` is the earliest expiry; absent when unknown.
   */
  workAdded(due: readonly DestinationDue[], options: { readonly revive?: boolean; readonly expiresAt?: Instant } = {}): void {
    for (const { destination, dueAt } of due) {
      if (!this.#shards.schedules(destination)) continue
      if (options.revive === true) this.#control.revive(destination)
      this.#due.expect(destination, dueAt)
    }
    // Mail restored by an operator may be past its lifetime.
    this.#expiry.expect(options.expiresAt ?? this.#deps.clock.now())
    this.#dispatch()
  }

  /** True while a recipient of the message is in memory, waiting for a slot or in delivery. */
  roundIsOpen(message: MessageId): boolean {
    return this.#active.holds(message)
  }

  // --- a request: claimed, dispatched, finished

  /** Handles the result of a claim. */
  #claimed(destination: Destination, requests: readonly DeliveryRequest[]): void {
    this.#enter(requests)
    this.#giveBack.whereClosed(destination)
    this.#due.schedule(destination)
    this.#dispatch()
  }

  /** Adds leased mail to the active queue. */
  #enter(requests: readonly DeliveryRequest[]): void {
    const activatedAt = this.#deps.clock.now()
    this.#emitActivated(requests.filter(({ message }) => !this.#active.holds(message.id)))
    for (const request of requests) {
      this.#active.reserve(request.message.id, request.recipients.length)
      if (request.forcedExpire) this.#forcedExpiry.add(request)
      else this.#table.enter({ request, activatedAt })
    }
  }

  /** Emits one event per message, with the number of recipients that enter the active queue. */
  #emitActivated(requests: readonly DeliveryRequest[]): void {
    const { events } = this.#deps
    const [only] = requests
    if (only !== undefined && requests.length === 1)
      return events.emit({ kind: 'activated', message: only.message, recipientCount: only.recipients.length })
    for (const ofMessage of Map.groupBy(requests, (request) => request.message.id).values()) {
      const recipientCount = ofMessage.reduce((sum, { recipients }) => sum + recipients.length, 0)
      const [first] = ofMessage
      if (first !== undefined) events.emit({ kind: 'activated', message: first.message, recipientCount })
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
    if (request.forcedExpire) return this.#enter([request])
    const { clock, storeHealth } = this.#deps
    const destination = this.#table.get(request.destination)
    const isOpen = destination.access.kind === 'open' && !destination.isReleased && destination.provider?.hasRoom !== false
    const mayStart = isOpen && this.#shards.schedules(destination.name) && !storeHealth.unavailable
    if (!mayStart) return this.#giveBack.requests(destination, [request])
    await this.#deliver(this.#table.beginAlone({ request, activatedAt: clock.now() }, clock.monotonic()))
  }

  async #deliver(running: RunningDelivery): Promise<void> {
    const { job, alone } = running
    if (!alone) this.#rateDelays.begun(running)
    if (this.#waitedTooLong(running)) await this.#settlements.expired(job.request, NEVER_STARTED)
    else await this.#attempt(running)
    this.#finished(running)
  }

  /**
   * True when mail entered the active queue and expired more than `minimal_backoff_time` ago, and has only now got a delivery slot.
   * The mail then expires without its last attempt.
   */
  #waitedTooLong({ job, destination }: RunningDelivery): boolean {
    const latest = this.#deps.clock.now() - destination.settings.minimal_backoff_time
    return job.activatedAt < latest && job.request.recipients.every((recipient) => recipient.expiresAt < latest)
  }

  async #attempt(running: RunningDelivery): Promise<void> {
    const { job, destination } = running
    const result = await this.#deps.agent.deliver(job.request, {
      keepConnection: this.#keepsConnection(destination),
      signal: this.#deps.storeHealth.abandoned,
      admits: (provider) => this.#providers.admits(running, provider),
    })
    if (result === 'not-begun') return this.#returnUnbegun(running)
    const unread = await unreadRecipients(this.#deps, job.request, result)
    if (unread.length === job.request.recipients.length) return this.#returnUnbegun(running)
    // Other deliveries to the destination are in progress, so it is congested, not dead. The attempt is not a step of the retry
    // schedule.
    const returned = result.congestion === 'early' && destination.inFlight > 1
    this.#control.learn(running, result)
    this.#providers.learn(running, result)
    if (result.unreadable !== undefined) return this.#settlements.unreadable(job.request.message, result.unreadable)
    const answered = unread.length === 0 ? job : { ...job, request: withoutRecipients(job.request, unread) }
    const settlement = await this.#settlements.attempted(answered, result, returned)
    if (unread.length > 0) await this.#returnUnbegun(running, unread)
    const due = earliestDue(settlement)
    if (due === null) return
    // The destination may have left memory and be here again.
    this.#due.expect(destination.name, due)
    for (const recipient of job.request.recipients) this.#expiry.expect(recipient.expiresAt)
  }

  /**
   * Returns recipients without an attempt, because the lease of this node has ended or the store was away. The commit fails when another
   * node has them.
   */
  async #returnUnbegun({ job: { request }, destination }: RunningDelivery, recipients = request.recipients): Promise<void> {
    await this.#giveBack.requests(destination, [{ ...request, recipients }])
    for (const { expiresAt } of recipients) this.#expiry.expect(expiresAt)
  }

  /** True when deliveries follow each other closely enough to share a connection (Postfix smtp_connection_cache_on_demand). */
  #keepsConnection({ waitingJobs, inFlight, lastEndedAt }: Destination): boolean {
    if (waitingJobs > 0 || inFlight > 1) return true
    return lastEndedAt !== null && this.#deps.clock.monotonic() - lastEndedAt <= SECOND
  }

  /** Frees the slot of a delivery whose outcome is committed. */
  #finished(running: RunningDelivery): void {
    const { job, destination, alone } = running
    this.#table.finished(running, this.#deps.clock.monotonic())
    this.#reportAtRest(job.request.message)
    destination.probing(false)
    if (!alone) this.#rateDelays.ended(destination)
    this.#roomIsFree(destination)
  }

  async #expireForced(request: DeliveryRequest): Promise<void> {
    await this.#settlements.expired(request, ADMINISTRATIVELY_EXPIRED)
    const destination = this.#table.get(request.destination)
    this.#active.release(request.message.id, request.recipients.length)
    this.#reportAtRest(request.message)
    if (destination.isIdle && !destination.claiming) destination.probing(false)
    this.#roomIsFree(destination)
  }

  /** Returns a request whose forced expiry has not started. */
  async #giveBackForced(request: DeliveryRequest): Promise<void> {
    this.#active.release(request.message.id, request.recipients.length)
    await this.#giveBack.requests(this.#table.get(request.destination), [request])
  }

  #roomIsFree(destination: Destination): void {
    this.#due.schedule(destination)
    this.#due.admitNext()
    this.#dispatch()
  }

  #reportAtRest(message: Message): void {
    if (!this.#active.holds(message.id)) this.#deps.atRest(message)
  }

  // --- destinations

  /** True for a dead or suspended destination. */
  isClosed(name: DestinationName): boolean {
    return (this.#table.known(name)?.access.kind ?? 'open') !== 'open'
  }

  /** Failure for which a destination is dead; undefined when it is not dead. */
  deadStatus(name: DestinationName): DeliveryStatus | undefined {
    const access = this.#table.known(name)?.access
    return access?.kind === 'dead' ? access.siteStatus : undefined
  }

  /** A destination in memory; undefined when it is not. */
  status(name: DestinationName): LiveDestination | undefined {
    return this.#table.known(name)?.status(this.#deps.clock.monotonic())
  }

  /** Destinations in memory, for operators and metrics. */
  snapshot(): readonly LiveDestination[] {
    const now = this.#deps.clock.monotonic()
    return Array.from(this.#table.all, (destination) => destination.status(now))
  }

  /** Suspends a destination. Its owner applies an order for a destination of another node. */
  async suspend(name: DestinationName, suspension: Suspension): Promise<void> {
    await this.#shards.loaded(name)
    if (!this.#shards.schedules(name))
      return this.#deps.store.saveDestination(ordered(name, suspension), this.#deps.recorder.of(suspended(name, suspension)))
    await this.#control.suspend(name, suspension)
    await this.#expiry.run()
  }

  /** Ends a suspension of a destination, and that of its provider by a rule. */
  async resume(name: DestinationName, by: string): Promise<void> {
    await this.#shards.loaded(name)
    if (!this.#shards.schedules(name)) {
      const { store, recorder, providers } = this.#deps
      await endSavedSuspension(store, providers.of(name))
      return store.saveDestination(ordered(name, null), recorder.of({ kind: 'resumed', destination: name, by }))
    }
    const provider = this.#table.providerOf(name)
    if (provider !== null) await this.#providers.resume(provider, by)
    await this.#control.resume(name, by)
  }

  // --- several nodes

  /** Schedules the destinations of shards that this node now owns. Rejects with StoreUnavailable only while it stops. */
  async takeShards(shards: readonly Shard[]): Promise<void> {
    if (this.#stopping) return
    await this.#shards.take(shards)
    this.#providers.refresh()
    this.#poisonRetry.start()
    this.#tasks.add(this.#expiry.run())
    this.#dispatch()
  }

  /** Calls `given` for each shard when no mail of it is in memory, or after 10 s when only deliveries in progress are left. */
  async releaseShards(shards: readonly Shard[], given: (shard: Shard) => void): Promise<void> {
    const isReleased = new Set(shards)
    for (const request of this.#forcedExpiry.drain(({ destination }) => isReleased.has(this.#deps.membership.shardOf(destination)))) {
      this.#tasks.add(this.#giveBackForced(request))
    }
    await this.#shards.release(shards, given)
  }

  /** Reads all work anew, because changes by other nodes may have been lost. */
  missed(): void {
    const { storeHealth } = this.#deps
    const read = async () => {
      await this.#control.compare((name) => this.#shards.schedules(name))
      await this.#providers.compare((name) => this.#shards.schedules(name))
      await this.scan()
    }
    this.#tasks.add(storeHealth.retryUntilCommitted(read))
  }

  /** Applies changes that other nodes made. */
  arrived({ due, destinations, providers }: Arrivals): void {
    const { clock, storeHealth } = this.#deps
    if (due.length > 0) {
      // The mail may be past its lifetime. One check a second is enough.
      const expiresAt = clock.now() + SECOND
      this.workAdded(
        due.filter(({ revive }) => revive),
        { revive: true, expiresAt },
      )
      this.workAdded(
        due.filter(({ revive }) => !revive),
        { expiresAt },
      )
    }
    for (const record of destinations) {
      if (!this.#shards.schedules(record.name)) continue
      this.#tasks.add(storeHealth.retryUntilCommitted(() => this.#control.received(record)).then(() => this.#expiry.run()))
    }
    for (const record of providers) if (this.#shards.schedules(nameOfProvider(record.provider))) this.#providers.received(record)
  }

  // --- maintenance

  /** Applies changed settings. They may allow more deliveries, which are started. What rules did ends with them. */
  reconfigure(): void {
    this.#providers.refresh()
    this.#due.scheduleAll()
    this.#dispatch()
  }

  /** True while the store cannot commit: no mail is accepted and no delivery starts. */
  get storeUnavailable(): boolean {
    return this.#deps.storeHealth.unavailable
  }

  /** Health check: starts due deliveries and resolves. Rejects when the scheduler is not started or the store cannot commit. */
  async alive(): Promise<void> {
    if (!this.#started) throw new Error('not started')
    if (this.storeUnavailable) throw new Error('store unavailable: commits are failing')
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
