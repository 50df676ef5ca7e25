/**
 * The destinations in memory, and the order in which their jobs are delivered. Destinations take turns. Within a destination, new
 * mail and retries take turns. Small messages preempt large ones. The table is passive: the scheduler makes the deliveries.
 */
import type { DestinationPolicies } from '../../config/destination-policies.ts'
import type { DestinationName, MessageId } from '../../mail/message.ts'
import type { Duration, QueueTime } from '../../system/clock.ts'
import type { ActiveLimits, ActiveQueue } from './active-queue.ts'
import { Destination } from './destination.ts'
import type { Job } from './job-queue.ts'
import { Preemption } from './preemption.ts'
import { Provider } from './provider.ts'

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
  /** Destinations that may be ready, in the order of their turns. */
  readonly #turns = new Set<Destination>()
  readonly #providers = new Map<string, Provider>()
  /** Ready destinations that wait for the limits of a provider, in the order of their turns. */
  readonly #blocked = new Map<Provider, Set<Destination>>()
  /** Providers of waiting jobs. */
  readonly #providerOfJob = new Map<Job, Provider>()
  readonly #preemption: Preemption
  /** Transports with a delivery in progress, or with a delay after a delivery. */
  readonly #busyTransports = new Set<string>()
  #running = 0

  constructor(active: ActiveQueue, limits: () => ActiveLimits, policies: () => DestinationPolicies) {
    this.#active = active
    this.#limits = limits
    this.#policies = policies
    this.#preemption = new Preemption(() => limits().slots)
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

  /** Number of deliveries that have a slot. */
  get running(): number {
    return this.#running
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
    this.#turns.delete(destination)
    this.#unblock(destination)
    destination.hosts.leave()
  }

  /** Number of recipients for which the active queue has room at a destination. */
  room(destination: Destination, othersWait: boolean): number {
    // The destinations of a provider count as one, so that they do not fill the active queue.
    return this.#active.room(Math.max(destination.waitingRecipients, destination.provider?.waitingRecipients ?? 0), othersWait)
  }

  /** Adds a job that the active queue has already counted. */
  enter(job: Job): Destination {
    const destination = this.get(job.request.destination)
    destination.push(job)
    this.#preemption.added(job)
    this.#entered(job, destination.provider)
    this.stir(destination)
    return destination
  }

  /** If the destination is ready, appends it to the order of turns, or to those that wait for the limits of its provider. */
  stir(destination: Destination): void {
    if (!destination.ready) return
    const { provider } = destination
    if (provider !== null && (this.#blocked.get(provider)?.size ?? 0) > 0) this.#block(destination, provider)
    else this.#turns.add(destination)
  }

  /**
   * Selects the next job and counts its delivery. Returns undefined when there is no job, no free slot or no room in a window.
   */
  next(now: QueueTime, monotonicTime: Duration): RunningDelivery | undefined {
    if (this.#running >= this.#limits().deliveries) return undefined
    do {
      const selected = this.#select(now, monotonicTime)
      if (selected !== undefined) return selected
    } while (this.#admitBlocked())
    return undefined
  }

  #select(now: QueueTime, monotonicTime: Duration): RunningDelivery | undefined {
    for (const destination of this.#turns) {
      if (this.#busyTransports.has(destination.transport)) continue
      const head = destination.ready ? destination.peek() : undefined
      if (head === undefined) {
        this.#turns.delete(destination)
        continue
      }
      const { provider } = destination
      if (provider?.hasRoom === false) {
        this.#block(destination, provider)
        continue
      }
      const preempting = this.#preemption.before(head, now, (job) => this.#mayStart(this.get(job.request.destination)))
      if (preempting !== undefined) return this.#begin(preempting, monotonicTime)
      this.#turns.delete(destination)
      return this.#begin(head, monotonicTime)
    }
    return undefined
  }

  #mayStart(destination: Destination): boolean {
    return destination.ready && destination.provider?.hasRoom !== false && !this.#busyTransports.has(destination.transport)
  }

  #begin(job: Job, monotonicTime: Duration): RunningDelivery {
    const destination = this.get(job.request.destination)
    destination.take(job)
    this.#preemption.selected(job)
    this.#left(job)
    this.#active.begin(job.request.message.id)
    this.#running++
    if (this.#limits().transportDelay > 0) this.#busyTransports.add(destination.transport)
    const begunAs = destination.begin(job.request.message.id, monotonicTime)
    const { provider } = destination
    provider?.begin()
    this.stir(destination)
    return { job, destination, begunAs, alone: false, provider }
  }

  /** Lets a destination wait for the limits of its provider, after those that wait already. */
  #block(destination: Destination, provider: Provider): void {
    this.#turns.delete(destination)
    const blocked = this.#blocked.get(provider) ?? new Set()
    this.#blocked.set(provider, blocked.add(destination))
  }

  #unblock(destination: Destination): void {
    for (const blocked of this.#blocked.values()) blocked.delete(destination)
  }

  /** Gives a turn to the destination that has waited longest for each provider that has room. Returns false when there is none. */
  #admitBlocked(): boolean {
    let admitted = false
    for (const [provider, blocked] of this.#blocked) {
      const [first] = provider.hasRoom ? blocked : []
      if (first === undefined) continue
      blocked.delete(first)
      this.#turns.add(first)
      admitted = true
    }
    return admitted
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
  beginAlone(job: Job, monotonicTime: Duration): RunningDelivery {
    const { message, recipients, destination: name } = job.request
    const destination = this.get(name)
    this.#active.reserve(message.id, recipients.length)
    this.#active.begin(message.id)
    const { provider } = destination
    provider?.begin()
    return { job, destination, begunAs: destination.begin(message.id, monotonicTime), alone: true, provider }
  }

  /** Frees the slot and the place in the window after the outcome of a delivery is committed. */
  finished({ job, destination, alone, provider }: RunningDelivery, monotonicTime: Duration): void {
    if (!alone) this.#running--
    provider?.end()
    destination.end(job.request.message.id, monotonicTime)
    this.#active.end(job.request.message.id)
    this.#active.release(job.request.message.id, job.request.recipients.length)
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
    this.#turns.delete(destination)
    this.#unblock(destination)
    const jobs = destination.drain()
    for (const job of jobs) this.#withdrawn(job)
    return jobs
  }

  /** Removes the waiting jobs of messages, also from the counts of the active queue. */
  withdrawOf(messages: readonly MessageId[]): readonly Job[] {
    const jobs = messages.flatMap((message) => this.#preemption.waitingOf(message))
    for (const job of jobs) {
      this.get(job.request.destination).remove(job)
      this.#withdrawn(job)
    }
    return jobs
  }

  #withdrawn(job: Job): void {
    this.#left(job)
    this.#preemption.withdrawn(job)
    this.#active.release(job.request.message.id, job.request.recipients.length)
  }
}
