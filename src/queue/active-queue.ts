/**
 * The active queue: the jobs in memory, how many there may be, and whose turn it is. Destinations take turns; at one
 * destination new mail and retries do; small messages overtake big ones. While others wait, one destination holds at
 * most a fifth of it.
 */
import type { Settings } from '../config/destination-settings.ts'
import { Destination, type Job } from './destination.ts'
import type { DeliveryRequest, DestinationName, MessageId } from './message.ts'
import { Preemption, type SlotPolicy } from './preemption.ts'
import type { Duration, Instant } from '../mail/clock.ts'

export interface ActiveLimits {
  /** `default_process_limit`: deliveries at once. */
  readonly deliveries: number
  /** `qmgr_message_active_limit`. */
  readonly messages: number
  /** `qmgr_message_recipient_limit`. */
  readonly recipients: number
  readonly slots: SlotPolicy
  /** `default_transport_rate_delay`: with a pause, a transport makes one delivery at a time; in ms. */
  readonly transportPause: Duration
}

/** A job whose delivery is to run now. */
export interface Turn {
  readonly job: Job
  readonly destination: Destination
  /** The number of the delivery at its destination. */
  readonly begunAs: number
  /** It has a slot of its own, which no limit counts and no pause follows. */
  readonly alone: boolean
}

export class ActiveQueue {
  readonly #limits: () => ActiveLimits
  readonly #settingsOf: (destination: DestinationName) => Settings
  readonly #destinations = new Map<DestinationName, Destination>()
  /** Destinations that may have work and a free place in their window, in the order of their turns. */
  readonly #ring = new Set<Destination>()
  /** Requests in memory, waiting or running, by message: while there are any, its round is not over. */
  readonly #requestsOf = new Map<MessageId, number>()
  readonly #preemption: Preemption
  /** Transports in the middle of a delivery or of the pause after it. */
  readonly #busyTransports = new Set<string>()
  #recipients = 0
  /** Recipients that claims under way may bring. */
  #promised = 0
  #running = 0

  constructor(limits: () => ActiveLimits, settingsOf: (destination: DestinationName) => Settings) {
    this.#limits = limits
    this.#settingsOf = settingsOf
    this.#preemption = new Preemption(() => limits().slots)
  }

  get running(): number {
    return this.#running
  }

  get recipients(): number {
    return this.#recipients
  }

  get destinations(): IterableIterator<Destination> {
    return this.#destinations.values()
  }

  /** The destination of that name, made when it is new. */
  destination(name: DestinationName): Destination {
    let destination = this.#destinations.get(name)
    if (destination === undefined) {
      destination = new Destination(name, this.#settingsOf(name))
      this.#destinations.set(name, destination)
    }
    return destination
  }

  known(name: DestinationName): Destination | undefined {
    return this.#destinations.get(name)
  }

  forget(destination: Destination): void {
    this.#destinations.delete(destination.name)
    this.#ring.delete(destination)
  }

  /** Is some recipient of the message in memory, waiting for its turn or in delivery? */
  holds(message: MessageId): boolean {
    return this.#requestsOf.has(message)
  }

  /** How many more recipients may be taken up for a destination. */
  room(destination: Destination, othersWait: boolean): number {
    const limits = this.#limits()
    if (this.roomForMessages() === 0) return 0
    const free = limits.recipients - this.#recipients - this.#promised
    if (!othersWait) return Math.max(0, free)
    const share = Math.max(1, Math.floor(Math.min(limits.recipients, limits.messages) / 5))
    return Math.max(0, Math.min(free, share - destination.waitingRecipients))
  }

  /** How many more messages may be taken up. */
  roomForMessages(): number {
    return Math.max(0, this.#limits().messages - this.#requestsOf.size - this.#promised)
  }

  /** Keeps room for a claim that is under way: each recipient it brings may be one of another message. */
  promise(recipients: number): void {
    this.#promised += recipients
  }

  /** The claim has ended. */
  redeem(recipients: number): void {
    this.#promised -= recipients
  }

  /** Counts a request in before its commit, so that the limits hold while it is under way. */
  reserve(message: MessageId, recipients: number): void {
    this.#requestsOf.set(message, (this.#requestsOf.get(message) ?? 0) + 1)
    this.#recipients += recipients
  }

  /** Counts a request out: delivered, given back, or never committed. */
  release(message: MessageId, recipients: number): void {
    this.#recipients -= recipients
    const left = (this.#requestsOf.get(message) ?? 1) - 1
    if (left === 0) this.#requestsOf.delete(message)
    else this.#requestsOf.set(message, left)
  }

  /** Takes up a job that was counted in with `reserve`. */
  push(job: Job): void {
    const destination = this.destination(job.request.destination)
    destination.push(job)
    this.#preemption.added(job)
    this.stir(destination)
  }

  /** The destination may have become ready: it joins the turns at their end. */
  stir(destination: Destination): void {
    if (destination.ready) this.#ring.add(destination)
  }

  /**
   * The next job, its delivery counted as running; undefined when there is no work, no place or no slot. `stopwatch` is
   * the same moment as `now`, on the clock that nobody sets.
   */
  next(now: Instant, stopwatch: Duration): Turn | undefined {
    if (this.#running >= this.#limits().deliveries) return undefined
    for (const destination of this.#ring) {
      if (this.#busyTransports.has(destination.transport)) continue
      const head = destination.ready ? destination.peek() : undefined
      if (head === undefined) {
        this.#ring.delete(destination)
        continue
      }
      const overtaker = this.#preemption.before(head, now, (job) => this.#mayStart(this.destination(job.request.destination)))
      if (overtaker !== undefined) return this.#start(overtaker, stopwatch)
      this.#ring.delete(destination)
      return this.#start(head, stopwatch)
    }
    return undefined
  }

  #mayStart(destination: Destination): boolean {
    return destination.ready && !this.#busyTransports.has(destination.transport)
  }

  #start(job: Job, stopwatch: Duration): Turn {
    const destination = this.destination(job.request.destination)
    destination.take(job)
    this.#preemption.selected(job)
    this.#running++
    if (this.#limits().transportPause > 0) this.#busyTransports.add(destination.transport)
    const begunAs = destination.begin(stopwatch)
    this.stir(destination)
    return { job, destination, begunAs, alone: false }
  }

  /** A delivery outside of all turns. */
  startAlone(job: Job, stopwatch: Duration): Turn {
    const { message, recipients, destination: name } = job.request
    const destination = this.destination(name)
    this.reserve(message.id, recipients.length)
    return { job, destination, begunAs: destination.begin(stopwatch), alone: true }
  }

  /** The pause of a transport is over. */
  freeTransport(transport: string): void {
    this.#busyTransports.delete(transport)
  }

  /** A delivery has ended and its outcome is committed: its slot and its place in the window are free. */
  finished({ job, destination, alone }: Turn, stopwatch: Duration): void {
    if (!alone) this.#running--
    destination.end(stopwatch)
    this.release(job.request.message.id, job.request.recipients.length)
    this.stir(destination)
  }

  /** Takes the waiting jobs of a destination out, counted out. */
  withdraw(destination: Destination): DeliveryRequest[] {
    this.#ring.delete(destination)
    const jobs = destination.drain()
    for (const job of jobs) {
      this.#preemption.withdrawn(job)
      this.release(job.request.message.id, job.request.recipients.length)
    }
    return jobs.map((job) => job.request)
  }
}
