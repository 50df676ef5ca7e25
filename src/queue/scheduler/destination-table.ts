/**
 * The destinations in memory, and the order in which their jobs are delivered. Classes have turns by their weights. Within a class, shares
 * have turns by theirs or, without fair shares, destinations one after the other. Within a destination, class and share, new mail and retries
 * take turns. Small messages preempt large ones of their class and share. The table is passive: the scheduler makes the deliveries.
 */
import type { Band, MailClasses } from '../../config/values/mail-classes.ts'
import type { DestinationPolicies } from '../../config/destination-policies.ts'
import type { DeliveryRequest, DestinationName, MessageId } from '../../mail/message.ts'
import type { Duration, QueueTime } from '../../system/clock.ts'
import type { ActiveLimits, ActiveQueue } from './active-queue.ts'
import { Destination } from './destination.ts'
import type { Job } from './turns/job-queue.ts'
import { Preemptions } from './preemption.ts'
import { Provider } from './provider.ts'
import { ClassTurns } from './turns/class-turns.ts'
import { NO_SHARE, type Flow } from './turns/flow.ts'
import { placesLeft, RunningDeliveries } from './turns/running-deliveries.ts'
import { ShareActivity, type BandShare } from './turns/share-activity.ts'

/** A job that was selected for delivery. */
export interface RunningDelivery {
  readonly job: Job
  readonly destination: Destination
  /** Serial number of the delivery at its destination. */
  readonly begunAs: number
  /** True for a delivery that ignores turns: the process limit does not count the delivery, and no rate delay follows. */
  readonly alone: boolean
  /** The provider under whose limits it was begun; null for none. */
  readonly provider: Provider | null
}

export class DestinationTable {
  readonly #active: ActiveQueue
  readonly #limits: () => ActiveLimits
  readonly #policies: () => DestinationPolicies
  readonly #destinations = new Map<DestinationName, Destination>()
  /** Flows that may be ready. */
  readonly #turns: ClassTurns<Destination>
  readonly #providers = new Map<string, Provider>()
  /** Flows of ready destinations that wait for the limits of a provider. */
  readonly #blocked = new Map<Provider, ClassTurns<Destination>>()
  /** Providers of waiting jobs. */
  readonly #providerOfJob = new Map<Job, Provider>()
  readonly #preemptions: Preemptions
  /** Transports with a delivery in progress, or with a delay after a delivery. */
  readonly #busyTransports = new Set<string>()
  /** Deliveries that have a slot. */
  readonly #running = new RunningDeliveries()
  /** Deliveries of shares. */
  readonly #activity = new ShareActivity()
  /** True when there may be flows of shares. */
  #isFair = false

  constructor(active: ActiveQueue, limits: () => ActiveLimits, policies: () => DestinationPolicies) {
    this.#active = active
    this.#limits = limits
    this.#policies = policies
    this.#turns = new ClassTurns<Destination>(policies)
    this.#preemptions = new Preemptions(() => this.#limits().slots)
  }

  get #classes(): MailClasses {
    return this.#policies().classes
  }

  /** True when flows have turns by weights, so that each with mail has its place, whether or not its destination has room. */
  get #competes(): boolean {
    const { classes, shares } = this.#policies()
    return classes.compete || shares !== null
  }

  get all(): IterableIterator<Destination> {
    return this.#destinations.values()
  }

  /** Returns the destination with this name, and creates it when it is missing. */
  get(name: DestinationName): Destination {
    let destination = this.#destinations.get(name)
    if (destination === undefined) {
      destination = new Destination(name, this.#policies, () => this.providerOf(name))
      this.#destinations.set(name, destination)
    }
    return destination
  }

  /** The provider with this name, which is created when it is missing. */
  provider(name: string): Provider {
    let provider = this.#providers.get(name)
    if (provider === undefined) {
      provider = new Provider(name, () => this.#policies().providers.get(name))
      this.#providers.set(name, provider)
    }
    return provider
  }

  /** The shares with deliveries. */
  sharesAt(monotonicTime: Duration): readonly BandShare[] {
    return this.#policies().shares === null ? [] : this.#activity.at(monotonicTime)
  }

  /** Number of deliveries that have a slot. */
  get running(): number {
    return this.#running.all
  }

  get providers(): IterableIterator<Provider> {
    return this.#providers.values()
  }

  /** The provider whose limits a destination shares; null for none. */
  providerOf(destination: DestinationName): Provider | null {
    if (this.#policies().providers.size === 0) return null
    const { provider } = this.#policies().for(destination)
    return provider === null ? null : this.provider(provider)
  }

  /** True for a dead or suspended destination. */
  isClosed(name: DestinationName): boolean {
    return (this.known(name)?.access.kind ?? 'open') !== 'open'
  }

  known(name: DestinationName): Destination | undefined {
    return this.#destinations.get(name)
  }

  /** Drops destinations that have no work and whose window is at its initial state. `now` is on the monotonic clock. */
  forgetIdle(now: Duration): void {
    for (const destination of this.#destinations.values()) {
      destination.refresh(now)
      if (destination.forgettable) this.forget(destination)
    }
  }

  /** Drops a destination. Deliveries in progress may still end. */
  forget(destination: Destination): void {
    if (this.#destinations.get(destination.name) === destination) this.#destinations.delete(destination.name)
    this.#leaveTurns(destination)
    destination.hosts.leave()
  }

  /** Number of recipients of a band for which the active queue has room at a destination. */
  room(destination: Destination, band: Band, othersWait: boolean): number {
    // The destinations of a provider count as one, so that they do not fill the active queue.
    const waiting = Math.max(destination.mail.waitingOf(band).recipients, destination.provider?.waitingRecipients ?? 0)
    const [highest] = this.#classes.all
    const isLower = this.#classes.compete && this.#classes.ofBand(band) !== highest
    return this.#active.room(waiting, { othersWait, leavesRoom: isLower })
  }

  /** Adds a request that the active queue has already counted. */
  enter(request: DeliveryRequest, activatedAt: QueueTime): Destination {
    const destination = this.get(request.destination)
    const job = this.#jobOf(request, activatedAt)
    const flow = destination.mail.flowOf(job)
    flow.jobs.push(job)
    this.#preemptions.of(job).added(job)
    this.#entered(job, destination.provider)
    this.stir(destination, flow)
    return destination
  }

  #jobOf(request: DeliveryRequest, activatedAt: QueueTime): Job {
    const { classes, shares } = this.#policies()
    const { class: name, share = NO_SHARE } = request.message
    if (shares !== null) this.#isFair = true
    return { request, activatedAt, band: classes.bands.of(name), share: shares === null ? NO_SHARE : share }
  }

  /**
   * Gives the flows of a destination their turns: a flow with new mail at once, if classes or shares compete, and otherwise when the
   * destination has room; the parked flow whose turn it is at the destination, when that has room. With fair shares only `changed`, which may
   * lack a place: there can be many flows.
   */
  stir(destination: Destination, changed?: Flow<Destination>): void {
    const flows = this.#policies().shares === null ? destination.mail.flows : changed === undefined ? [] : [changed]
    for (const flow of flows) if (!flow.isParked && this.#mayJoin(flow)) this.#join(flow)
    const [next] = destination.mail.parked.filter((flow) => destination.isReadyFor(flow))
    if (next !== undefined) this.#join(next)
  }

  #mayJoin(flow: Flow<Destination>): boolean {
    return this.#competes ? flow.jobs.size > 0 : flow.destination.isReadyFor(flow)
  }

  /** Appends a flow to the order of turns, or to those that wait for the limits of its provider. */
  #join(flow: Flow<Destination>): void {
    const { provider } = flow.destination
    const blocked = provider === null ? undefined : this.#blocked.get(provider)
    if (blocked !== undefined && blocked.size > 0) this.#block(flow, blocked)
    else this.#turns.add(flow)
  }

  /**
   * Selects the next job and counts its delivery. Returns undefined when there is no job, no free slot or no room in a window.
   */
  next(now: QueueTime, monotonicTime: Duration): RunningDelivery | undefined {
    if (this.#running.all >= this.#limits().deliveries) return undefined
    do {
      const selected = this.#select(now, monotonicTime)
      if (selected !== undefined) return selected
    } while (this.#admitBlocked())
    return undefined
  }

  #select(now: QueueTime, monotonicTime: Duration): RunningDelivery | undefined {
    for (const flow of this.#turns.inOrder((band) => this.#leavesSlotTo(band))) {
      const { destination } = flow
      if (this.#busyTransports.has(destination.transport)) continue
      const head = destination.isReadyFor(flow) ? flow.jobs.peek() : undefined
      if (head === undefined) {
        this.#turns.delete(flow)
        if (this.#competes && flow.jobs.size > 0) destination.mail.park(flow)
        continue
      }
      const { provider } = destination
      if (provider?.fits(flow.band, this.#classes) === false) {
        this.#block(flow, this.#blockedBy(provider))
        continue
      }
      const preempting = this.#preemptions.of(head).before(head, now, (job) => this.#mayStart(job))
      return preempting === undefined ? this.#begin(head, monotonicTime, true) : this.#preempt(flow, preempting, monotonicTime)
    }
    return undefined
  }

  /** False while the classes above reserve the slots that are left. */
  #leavesSlotTo(band: Band): boolean {
    const { deliveries } = this.#limits()
    return !this.#classes.compete || this.#running.leavesRoomTo(band, this.#classes, (reserved) => placesLeft(deliveries, reserved))
  }

  /** Begins a job in place of the head of a flow. With fair shares, that flow has its turn after the delivery is counted. */
  #preempt(flow: Flow<Destination>, job: Job, monotonicTime: Duration): RunningDelivery {
    if (this.#policies().shares === null) return this.#begin(job, monotonicTime, false)
    this.#turns.delete(flow)
    const running = this.#begin(job, monotonicTime, false)
    this.stir(flow.destination, flow)
    return running
  }

  #mayStart(job: Job): boolean {
    const { request, band } = job
    const destination = this.get(request.destination)
    const hasRoom = destination.isReadyFor(destination.mail.flowOf(job)) && destination.provider?.fits(band, this.#classes) !== false
    return hasRoom && !this.#busyTransports.has(destination.transport)
  }

  /** With `isTurn`, the job begins in the turn of its own flow. */
  #begin(job: Job, monotonicTime: Duration, isTurn: boolean): RunningDelivery {
    const destination = this.get(job.request.destination)
    const flow = destination.mail.flowOf(job)
    flow.jobs.take(job)
    this.#preemptions.of(job).selected(job)
    this.#preemptions.tidy(job)
    this.#left(job)
    this.#active.begin(job.request.message.id)
    this.#running.begin(job.band)
    if (this.#policies().shares !== null) this.#activity.begun(job, monotonicTime)
    this.#turns.begun(flow, job.request.recipients.length, isTurn)
    if (this.#limits().transportDelay > 0) this.#busyTransports.add(destination.transport)
    const begunAs = destination.begin(job, monotonicTime)
    const { provider } = destination
    if (provider !== null) {
      provider.begin(job)
      this.#blocked.get(provider)?.begun(flow, job.request.recipients.length, false)
    }
    this.#dropIfEmpty(flow)
    this.stir(destination, flow)
    return { job, destination, begunAs, alone: false, provider }
  }

  #blockedBy(provider: Provider): ClassTurns<Destination> {
    let blocked = this.#blocked.get(provider)
    if (blocked === undefined) this.#blocked.set(provider, (blocked = new ClassTurns<Destination>(this.#policies)))
    return blocked
  }

  /** Lets a flow wait for the limits of its provider, after those of its class that wait already. */
  #block(flow: Flow<Destination>, blocked: ClassTurns<Destination>): void {
    this.#turns.delete(flow)
    flow.isParked = false
    blocked.add(flow)
  }

  /** Takes the places of all flows of a destination. */
  #leaveTurns({ mail }: Destination): void {
    for (const flow of mail.flows) {
      flow.isParked = false
      this.#leaveTurn(flow)
    }
  }

  #leaveTurn(flow: Flow<Destination>): void {
    this.#turns.delete(flow)
    for (const blocked of this.#blocked.values()) blocked.delete(flow)
  }

  /** Forgets a flow of a share without mail. */
  #dropIfEmpty(flow: Flow<Destination>): void {
    if (this.#policies().shares === null || flow.jobs.size > 0) return
    this.#leaveTurn(flow)
    flow.destination.mail.drop(flow)
  }

  /** Gives a turn to the flow whose turn it is at each provider that has room. Returns false when there is none. */
  #admitBlocked(): boolean {
    let admitted = false
    for (const [provider, blocked] of this.#blocked) {
      const [first] = blocked.inOrder((band) => provider.fits(band, this.#classes))
      if (first === undefined) continue
      blocked.delete(first)
      first.isParked = this.#classes.compete && this.#policies().shares === null
      this.#turns.add(first)
      admitted = true
    }
    return admitted
  }

  /** Applies changed classes, and the begin or the end of fair shares, to the order of turns. */
  reconfigure(): void {
    if (this.#isFair || this.#policies().shares !== null) return this.#reenter()
    this.#turns.regroup()
    for (const blocked of this.#blocked.values()) blocked.regroup()
  }

  /** Gives all jobs that wait other places, since their flows may be others. */
  #reenter(): void {
    this.#isFair = this.#policies().shares !== null
    const waiting = [...this.#destinations.values()].flatMap((destination) => {
      this.#leaveTurns(destination)
      return destination.mail.drain()
    })
    this.#turns.regroup()
    for (const blocked of this.#blocked.values()) blocked.regroup()
    this.#preemptions.clear()
    for (const before of waiting.toSorted((a, b) => a.activatedAt - b.activatedAt)) {
      const destination = this.get(before.request.destination)
      const job = this.#jobOf(before.request, before.activatedAt)
      const provider = this.#providerOfJob.get(before)
      this.#providerOfJob.delete(before)
      if (provider !== undefined) this.#providerOfJob.set(job, provider)
      const flow = destination.mail.flowOf(job)
      flow.jobs.push(job)
      this.#preemptions.of(job).added(job)
      this.stir(destination, flow)
    }
  }

  #entered(job: Job, provider: Provider | null): void {
    if (provider === null) return
    this.#providerOfJob.set(job, provider)
    provider.addWaiting(job.request.recipients.length)
  }

  #left(job: Job): void {
    this.#providerOfJob.get(job)?.addWaiting(-job.request.recipients.length)
    this.#providerOfJob.delete(job)
  }

  /** Counts a delivery that ignores turns. */
  beginAlone(request: DeliveryRequest, activatedAt: QueueTime, monotonicTime: Duration): RunningDelivery {
    const { message, recipients, destination: name } = request
    const destination = this.get(name)
    const job = this.#jobOf(request, activatedAt)
    this.#active.reserve(message.id, recipients.length)
    this.#active.begin(message.id)
    const { provider } = destination
    provider?.begin(job)
    return { job, destination, begunAs: destination.begin(job, monotonicTime), alone: true, provider }
  }

  /** Frees the slot and the places in the window and at the provider after the outcome of a delivery is written. */
  freeSlot({ job, destination, alone, provider }: RunningDelivery, monotonicTime: Duration): void {
    if (!alone) this.#running.end(job.band)
    this.#activity.ended(job)
    provider?.end(job)
    destination.end(job, monotonicTime)
    this.stir(destination)
  }

  /** Ends the transfer of a delivery after its outcome is durable. */
  finished({ job, destination }: RunningDelivery): void {
    const { request } = job
    destination.finished(job)
    this.#active.end(request.message.id)
    this.#active.release(request.message.id, request.recipients.length)
    this.stir(destination)
  }

  /** Ends the rate delay of a transport, which began with its last delivery (default_transport_rate_delay). */
  freeTransport(transport: string): void {
    this.#busyTransports.delete(transport)
  }

  /** Ends a rate delay of the destination. */
  endDelay(destination: Destination): void {
    destination.endDelay()
    this.stir(destination)
  }

  /** Removes the waiting jobs of a destination, also from the counts of the active queue. */
  withdraw(destination: Destination): readonly Job[] {
    this.#leaveTurns(destination)
    const jobs = destination.mail.drain()
    for (const job of jobs) this.#withdrawn(job)
    return jobs
  }

  /** Removes the waiting jobs of messages, also from the counts of the active queue. */
  withdrawOf(messages: readonly MessageId[]): readonly Job[] {
    const jobs = messages.flatMap((message) => this.#preemptions.waitingOf(message))
    for (const job of jobs) {
      const flow = this.get(job.request.destination).mail.flowOf(job)
      flow.jobs.remove(job)
      this.#withdrawn(job)
      this.#dropIfEmpty(flow)
    }
    return jobs
  }

  #withdrawn(job: Job): void {
    this.#left(job)
    this.#preemptions.of(job).withdrawn(job)
    this.#preemptions.tidy(job)
    this.#active.release(job.request.message.id, job.request.recipients.length)
  }
}
