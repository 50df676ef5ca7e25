/**
 * The scheduler: takes due mail from the store, lets deliveries run as windows and limits allow, learns from each and
 * brings its outcome to the store. The decisions are in active-queue, destination, window and lifecycle; this is the
 * loop around them, with due-mail (what waits in the store), standings (how destinations stand), settling (outcomes),
 * expiry, suspects and pauses at its side. A slot is free again only when the outcome is committed, so nothing is
 * delivered that could not be recorded.
 */
import type { Settings } from '../config/destination-settings.ts'
import type { DeliveryAgent } from '../delivery/delivery-agent.ts'
import { SECOND, type Clock, type Duration, type Instant } from '../mail/clock.ts'
import type { Events } from '../telemetry/events.ts'
import { ActiveQueue, type ActiveLimits, type Turn } from './active-queue.ts'
import { jobOf, type Destination, type Job } from './destination.ts'
import { DueMail } from './due-mail.ts'
import { Expiry } from './expiry.ts'
import { GivenUp } from './given-up.ts'
import { earliestDue, type LifecycleFacts } from './lifecycle.ts'
import { Pauses } from './pauses.ts'
import { ADMINISTRATIVELY_EXPIRED, NEVER_STARTED, Settling } from './settling.ts'
import { Standings } from './standings.ts'
import { Suspects } from './suspects.ts'
import type { DeliveryRequest, DestinationName, Message, MessageId } from './message.ts'
import { StoreGuard } from './store-guard.ts'
import { StoreUnavailable, type DestinationDue, type QueueStore } from './store.ts'

export interface SchedulerParts {
  readonly store: QueueStore
  readonly agent: DeliveryAgent
  readonly clock: Clock
  readonly events: Events
  readonly limits: () => ActiveLimits
  readonly settingsOf: (destination: DestinationName) => Settings
  readonly factsFor: (destination: DestinationName) => LifecycleFacts
  /** A message owes its sender a notice. */
  readonly owes: (message: MessageId) => void
  /** Nothing of the message is in memory any more: for now, its round is over. */
  readonly atRest: (message: Message) => void
}

export class Scheduler {
  readonly #parts: SchedulerParts
  readonly #active: ActiveQueue
  readonly #due: DueMail
  readonly #guard: StoreGuard
  readonly #standings: Standings
  readonly #settling: Settling
  readonly #expiry: Expiry
  readonly #givenUp: GivenUp
  readonly #suspects: Suspects
  readonly #pauses: Pauses
  readonly #abandon = new AbortController()
  readonly #running = new Set<Promise<void>>()
  #turning = false
  #started = false
  #stopping = false

  constructor(parts: SchedulerParts) {
    const { store, clock, events, factsFor, owes } = parts
    const active = new ActiveQueue(parts.limits, parts.settingsOf)
    const guard = new StoreGuard({ store, clock, events, abandon: this.#abandon.signal, recovered: () => this.#resumeWork() })
    const settling = new Settling({ store, clock, events, guard, factsFor, owes })
    const turn = () => this.#turn()
    const shared = { store, clock, events, guard, active, settling, turn, track: (work: Promise<void>) => this.#track(work) }
    const due = new DueMail({
      ...shared,
      claimed: (destination, requests) => this.#claimed(destination, requests),
      returned: (message) => this.#restIfIdle(message),
      expires: (at) => this.#expiry.expect(at),
    })
    this.#parts = parts
    this.#active = active
    this.#guard = guard
    this.#settling = settling
    this.#due = due
    this.#expiry = new Expiry({ ...shared, due })
    this.#standings = new Standings({ ...shared, due })
    this.#givenUp = new GivenUp({ ...shared, settle: (request) => this.#giveUp(request) })
    this.#suspects = new Suspects({ ...shared, tryAlone: (suspect) => this.#tryAlone(suspect) })
    this.#pauses = new Pauses({ ...shared, transportPause: () => parts.limits().transportPause })
  }

  /** Takes up the queue as the last run left it: destinations known dead or suspended, and what is due where. */
  async start(): Promise<void> {
    const { store } = this.#parts
    await this.#standings.recall()
    for (const { destination, dueAt } of await store.destinationsDue()) this.#due.expect(destination, dueAt)
    this.#started = true
    this.#suspects.start()
    this.#track(this.#expiry.run())
    this.#turn()
  }

  /** Lets running deliveries end, at most for `grace`, then abandons them; what only waited goes back to the store. */
  async stop(grace: Duration): Promise<void> {
    this.#stopping = true
    this.#suspects.stop()
    this.#expiry.stop()
    this.#due.arm(true)
    for (const request of this.#givenUp.drain()) this.#track(this.#giveBack(request))
    const deadline = this.#parts.clock.after(grace, () => this.#abandon.abort())
    await this.#ended()
    deadline.cancel()
    this.#abandon.abort()
    for (const destination of this.#active.destinations) this.#track(this.#due.giveBackWaiting(destination))
    await this.#ended()
  }

  // --- mail comes in

  /** May new mail for a destination go straight into the active queue? Counts it in when it may. */
  admit(message: MessageId, name: DestinationName, recipients: number): boolean {
    if (!this.#started || this.#stopping) return false
    const destination = this.#active.destination(name)
    if (destination.standing.kind !== 'open') return false
    if (this.#active.room(destination, true) < recipients) return false
    this.#active.reserve(message, recipients)
    return true
  }

  /** What was admitted as one makes more than one request. */
  admitFurther(message: MessageId): void {
    this.#active.reserve(message, 0)
  }

  /** New mail that was admitted could not be stored after all. */
  unadmit(message: MessageId, recipients: number): void {
    this.#active.release(message, recipients)
  }

  /** New mail that was admitted is now stored and leased. */
  offer(requests: readonly DeliveryRequest[]): void {
    const activatedAt = this.#parts.clock.now()
    this.#sayActivated(requests)
    for (const request of requests) {
      this.#active.push(jobOf(request, activatedAt))
      this.#due.giveBackWhereClosed(this.#active.destination(request.destination))
    }
    this.#turn()
  }

  /** Mail waits in the store: new mail that found no room, or what an operator changed. */
  woken(due: readonly DestinationDue[], options: { readonly revive?: boolean; readonly expiresAt?: Instant } = {}): void {
    for (const { destination, dueAt } of due) {
      if (options.revive === true) this.#standings.revive(destination)
      this.#due.expect(destination, dueAt)
    }
    // What an operator brings back may have outlived its time meanwhile.
    this.#expiry.expect(options.expiresAt ?? this.#parts.clock.now())
    this.#turn()
  }

  /** Is some recipient of the message in delivery or about to be? Then its round is not over. */
  roundIsOpen(message: MessageId): boolean {
    return this.#active.holds(message)
  }

  // --- destinations

  /** Is mail there not tried now? */
  isClosed(name: DestinationName): boolean {
    return this.#standings.isClosed(name)
  }

  async suspend(name: DestinationName, by: string): Promise<void> {
    await this.#standings.suspend(name, by)
    await this.#expiry.run()
  }

  async resume(name: DestinationName, by: string): Promise<void> {
    await this.#standings.resume(name, by)
  }

  /** Settings have changed: every destination goes by the new ones from now on. */
  reconfigure(): void {
    for (const destination of this.#active.destinations) destination.settings = this.#parts.settingsOf(destination.name)
    this.#turn()
  }

  /** The destinations as they are now, for those who look. */
  get destinations(): IterableIterator<Destination> {
    return this.#active.destinations
  }

  /** While the store cannot commit, nothing is accepted and nothing is delivered. */
  get storeIsIll(): boolean {
    return this.#guard.ill
  }

  /** Resolves when the loop turns: it has been started, may work, and takes its turns. */
  async alive(): Promise<void> {
    if (!this.#started || this.#guard.ill) throw new Error(this.#guard.ill ? 'the queue rests: the store cannot commit' : 'not started')
    this.#turn()
  }

  /** The safety scan: whatever waits is found again, whatever was overlooked. */
  async scan(): Promise<void> {
    for (const { destination, dueAt } of await this.#parts.store.destinationsDue()) this.#due.expect(destination, dueAt)
    await this.#suspects.run()
    await this.#expiry.run()
    this.#forgetTheIdle()
    this.#turn()
  }

  // --- the loop

  /** Starts whatever may start, and arms the alarm for what may start next. Never runs inside itself. */
  #turn(): void {
    if (this.#turning || !this.#started) return
    this.#turning = true
    if (!this.#stopping && !this.#guard.ill) {
      this.#due.claim()
      const { clock } = this.#parts
      const next = () => this.#active.next(clock.now(), clock.monotonic())
      for (let turn = next(); turn !== undefined; turn = next()) this.#track(this.#deliver(turn))
    }
    this.#turning = false
    this.#due.arm(this.#stopping || this.#guard.ill)
  }

  /** A claim has ended. */
  #claimed(destination: Destination, requests: readonly DeliveryRequest[]): void {
    this.#take(requests)
    this.#due.giveBackWhereClosed(destination)
    this.#due.schedule(destination)
    this.#turn()
  }

  /** Leased mail enters the active queue. */
  #take(requests: readonly DeliveryRequest[]): void {
    const activatedAt = this.#parts.clock.now()
    this.#sayActivated(requests.filter(({ message }) => !this.#active.holds(message.id)))
    for (const request of requests) {
      this.#active.reserve(request.message.id, request.recipients.length)
      if (request.forcedExpire) this.#givenUp.add(request)
      else this.#active.push(jobOf(request, activatedAt))
    }
  }

  /** Once for each message that enters the active queue, with as many recipients as enter with it. */
  #sayActivated(requests: readonly DeliveryRequest[]): void {
    for (const its of Map.groupBy(requests, (request) => request.message.id).values()) {
      const recipientCount = its.reduce((sum, { recipients }) => sum + recipients.length, 0)
      const [first] = its
      if (first !== undefined) this.#parts.events.emit({ kind: 'activated', message: first.message, recipientCount })
    }
  }

  /** Returns the mail to its sender without another attempt. */
  async #giveUp(request: DeliveryRequest): Promise<void> {
    await this.#settling.expired(request, ADMINISTRATIVELY_EXPIRED)
    const destination = this.#active.destination(request.destination)
    this.#active.release(request.message.id, request.recipients.length)
    this.#restIfIdle(request.message)
    if (destination.todo + destination.inFlight === 0 && !destination.claiming) destination.probing(false)
    this.#due.schedule(destination)
    this.#due.letIn()
    this.#turn()
  }

  async #deliver(turn: Turn): Promise<void> {
    const { job, destination } = turn
    this.#pauses.begun(turn)
    if (this.#waitedTooLong(job, destination)) await this.#settling.expired(job.request, NEVER_STARTED)
    else await this.#attempt(turn)
    this.#active.finished(turn, this.#parts.clock.monotonic())
    this.#restIfIdle(job.request.message)
    destination.probing(false)
    this.#pauses.ended(turn)
    this.#due.schedule(destination)
    this.#due.letIn()
    this.#turn()
  }

  /** A last attempt that found no slot for too long is not made any more. */
  #waitedTooLong(job: Job, destination: Destination): boolean {
    const latest = this.#parts.clock.now() - destination.settings.minimal_backoff_time
    return job.activatedAt < latest && job.request.recipients.every((recipient) => recipient.expiresAt < latest)
  }

  async #attempt(turn: Turn): Promise<void> {
    const { job, destination } = turn
    const result = await this.#parts.agent.deliver(job.request, {
      keepConnection: this.#keepsConnection(destination),
      signal: this.#abandon.signal,
    })
    // Others are served there right now, so it is full rather than broken: this mail just waits its turn.
    const returned = result.congestion === 'early' && destination.inFlight > 1
    this.#standings.learn(turn, result)
    if (result.unreadable !== undefined) return this.#settling.unreadable(job.request.message, result.unreadable)
    const settlement = await this.#settling.attempted(job, result, returned)
    const due = earliestDue(settlement)
    if (due === null) return
    destination.expect(due)
    for (const recipient of job.request.recipients) this.#expiry.expect(recipient.expiresAt)
  }

  /** Deliveries that follow each other closely share connections (Postfix smtp_connection_cache_on_demand). */
  #keepsConnection(destination: Destination): boolean {
    if (destination.todo > 0 || destination.inFlight > 1) return true
    return destination.lastEndedAt !== null && this.#parts.clock.monotonic() - destination.lastEndedAt <= SECOND
  }

  /** Mail that may be what kills the daemon is tried with a slot of its own, which no limit counts. */
  async #tryAlone(suspect: DeliveryRequest): Promise<void> {
    if (suspect.forcedExpire) return this.#take([suspect])
    const { clock } = this.#parts
    const destination = this.#active.destination(suspect.destination)
    // Nobody is asked there now, suspects neither: it waits there like all other mail.
    if (destination.standing.kind !== 'open') return this.#due.giveBack(destination, [suspect])
    await this.#deliver(this.#active.startAlone(jobOf(suspect, clock.now()), clock.monotonic()))
  }

  async #giveBack(request: DeliveryRequest): Promise<void> {
    this.#active.release(request.message.id, request.recipients.length)
    await this.#due.giveBack(this.#active.destination(request.destination), [request])
  }

  // --- small things

  #restIfIdle(message: Message): void {
    if (!this.#active.holds(message.id)) this.#parts.atRest(message)
  }

  /** The store commits again. */
  #resumeWork(): void {
    this.#due.scheduleAll()
    this.#turn()
  }

  #forgetTheIdle(): void {
    const now = this.#parts.clock.monotonic()
    for (const destination of this.#active.destinations) {
      destination.refresh(now)
      if (destination.forgettable) this.#active.forget(destination)
    }
  }

  /** Nothing is under way any more. */
  async #ended(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  /** Work under way that a stop must wait for. */
  #track(work: Promise<void>): void {
    const tracked = work.catch((error: unknown) => this.#abandoned(error)).finally(() => this.#running.delete(tracked))
    this.#running.add(tracked)
  }

  /** The daemon ends and the store cannot commit: that is said and left. Anything else is a bug and ends the process. */
  #abandoned(error: unknown): void {
    if (!(error instanceof StoreUnavailable) || !this.#abandon.signal.aborted) throw error
    this.#parts.events.emit({ kind: 'note', level: 'error', text: `stopped without recording an outcome: ${error.message}` })
  }
}
