/**
 * The scheduler: takes due mail from the store, lets deliveries run as windows and limits allow, learns from each and
 * brings its outcome to the store. The decisions are in active-queue, destination, window and lifecycle; this is the
 * loop around them. A slot is free again only when the outcome is committed, so nothing is delivered that could not
 * be recorded.
 */
import type { Settings } from '../config/destination-settings.ts'
import type { AttemptResult, DeliveryAgent } from '../delivery/delivery-agent.ts'
import { MINUTE, SECOND, type Clock, type Duration, type Instant, type Timer } from '../mail/clock.ts'
import type { DeliveryStatus } from '../mail/reply.ts'
import type { Events } from '../telemetry/events.ts'
import { ActiveQueue, type ActiveLimits, type Turn } from './active-queue.ts'
import { jobOf, type Destination, type Job } from './destination.ts'
import { DueHeap } from './due-heap.ts'
import { Expiry } from './expiry.ts'
import { earliestDue, expire, idsOf, settle, whyNobodyIsTold, type LifecycleFacts } from './lifecycle.ts'
import type { DeliveryRequest, DestinationName, Message, MessageId } from './message.ts'
import { StoreGuard } from './store-guard.ts'
import { StoreUnavailable, type DestinationDue, type QueueStore, type Settlement } from './store.ts'

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

/** How long all other mail goes first after a start before mail is tried that two crashes are laid to. */
const SUSPECTS_WAIT: Duration = 5 * SECOND
/** Recipients claimed at once for one destination. */
const CLAIM_LIMIT = 100

const ADMINISTRATIVELY_EXPIRED: DeliveryStatus = { status: '4.7.0', reason: 'message is administratively expired', stage: 'queue' }
const NEVER_STARTED: DeliveryStatus = {
  status: '4.4.7',
  reason: 'the message could not be tried before its time in the queue was over',
  stage: 'queue',
}

export class Scheduler {
  readonly #parts: SchedulerParts
  readonly #active: ActiveQueue
  readonly #due = new DueHeap()
  readonly #guard: StoreGuard
  readonly #expiry: Expiry
  readonly #abandon = new AbortController()
  readonly #running = new Set<Promise<void>>()
  /** Destinations that found no room in the active queue: they ask again when a delivery ends. */
  readonly #crowdedOut = new Set<Destination>()
  #suspectsAlarm: Timer | null = null
  #alarm: { readonly at: Instant; cancel(): void } | null = null
  #turning = false
  #started = false
  #stopping = false

  constructor(parts: SchedulerParts) {
    const { store, clock, events } = parts
    this.#parts = parts
    this.#active = new ActiveQueue(parts.limits, parts.settingsOf)
    this.#guard = new StoreGuard({ store, clock, events, abandon: this.#abandon.signal, recovered: () => this.#resumeWork() })
    this.#expiry = new Expiry({
      store,
      clock,
      guard: this.#guard,
      track: (work) => this.#track(work),
      over: (requests) => this.#over(requests),
    })
  }

  /** Takes up the queue as the last run left it: destinations known dead or suspended, and what is due where. */
  async start(): Promise<void> {
    const { store } = this.#parts
    for (const record of await store.destinations()) this.#active.destination(record.name).recall(record)
    for (const { destination, dueAt } of await store.destinationsDue()) this.#expect(destination, dueAt)
    this.#started = true
    this.#suspectsAlarm = this.#parts.clock.after(SUSPECTS_WAIT, () => this.#track(this.#tryTheSuspects()))
    this.#track(this.#expiry.run())
    this.#turn()
  }

  /** Lets running deliveries end, at most for `grace`, then abandons them; what only waited goes back to the store. */
  async stop(grace: Duration): Promise<void> {
    this.#stopping = true
    this.#alarm?.cancel()
    this.#suspectsAlarm?.cancel()
    this.#expiry.stop()
    const deadline = this.#parts.clock.after(grace, () => this.#abandon.abort())
    while (this.#running.size > 0) await Promise.all(this.#running)
    deadline.cancel()
    for (const destination of this.#active.destinations) await this.#giveBackWaiting(destination)
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
    for (const request of requests) {
      this.#push(jobOf(request, activatedAt))
      this.#giveBackWhereClosed(this.#active.destination(request.destination))
    }
    this.#turn()
  }

  /** Mail waits in the store: new mail that found no room, or what an operator changed. */
  woken(due: readonly DestinationDue[], options: { readonly revive?: boolean; readonly expiresAt?: Instant } = {}): void {
    for (const { destination, dueAt } of due) {
      if (options.revive === true) this.#revive(this.#active.destination(destination))
      this.#expect(destination, dueAt)
    }
    if (options.expiresAt !== undefined) this.#expiry.expect(options.expiresAt)
    this.#turn()
  }

  /** Is some recipient of the message in delivery or about to be? Then its round is not over. */
  roundIsOpen(message: MessageId): boolean {
    return this.#active.holds(message)
  }

  // --- destinations

  /** Is mail there not tried now? */
  isClosed(name: DestinationName): boolean {
    return (this.#active.known(name)?.standing.kind ?? 'open') !== 'open'
  }

  async suspend(name: DestinationName, by: string): Promise<void> {
    const destination = this.#active.destination(name)
    destination.standing = { kind: 'suspended', by }
    await this.#remember(destination)
    await this.#giveBackWaiting(destination)
    this.#schedule(destination)
    this.#parts.events.emit({ kind: 'suspended', destination: name, by })
    await this.#expiry.run()
  }

  async resume(name: DestinationName, by: string): Promise<void> {
    const destination = this.#active.destination(name)
    if (destination.standing.kind !== 'suspended') return
    destination.reopen()
    await this.#remember(destination)
    this.#parts.events.emit({ kind: 'resumed', destination: name, by })
    this.#schedule(destination)
    this.#turn()
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
    for (const { destination, dueAt } of await this.#parts.store.destinationsDue()) this.#expect(destination, dueAt)
    await this.#tryTheSuspects()
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
      this.#claimDueMail()
      const now = this.#parts.clock.now()
      for (let turn = this.#active.next(now); turn !== undefined; turn = this.#active.next(now)) this.#track(this.#deliver(turn))
    }
    this.#turning = false
    this.#arm()
  }

  /** Asks the store for the work of every destination whose time has come and that has room. */
  #claimDueMail(): void {
    const now = this.#parts.clock.now()
    for (let first = this.#due.first(); first !== undefined && first.at <= now; first = this.#due.first()) {
      const destination = this.#active.destination(first.name)
      const limit = this.#claimLimit(destination)
      if (limit > 0) {
        destination.claiming = true
        this.#track(this.#claim(destination, now, limit))
      } else if (destination.todo + destination.inFlight === 0) {
        this.#crowdedOut.add(destination)
      }
      // Without a claim it comes back into the heap when a delivery ends: its own, or any if it has none.
      this.#due.set(first.name, null)
    }
  }

  #claimLimit(destination: Destination): number {
    if (destination.standing.kind === 'dead') return destination.inFlight === 0 ? 1 : 0
    // A few windows' worth keeps the deliveries busy; more would only be leased for nothing.
    if (destination.todo >= 2 * destination.window) return 0
    const othersWait = this.#due.size > 1
    return Math.min(CLAIM_LIMIT, Math.max(10, 4 * destination.window), this.#active.room(destination, othersWait))
  }

  async #claim(destination: Destination, now: Instant, limit: number): Promise<void> {
    destination.probing(true)
    try {
      const recipientLimit = destination.settings.destination_recipient_limit
      destination.nextDueAt = null // what is expected from here on is news to the store's answer
      const claimed = await this.#parts.store.claimDue({ destination: destination.name, now, limit, recipientLimit })
      if (claimed.nextDueAt !== null) destination.expect(claimed.nextDueAt)
      this.#take(claimed.requests)
    } catch (error) {
      destination.expect(now)
      this.#guard.failed(error)
    }
    destination.claiming = false
    if (destination.todo === 0) destination.probing(false)
    this.#giveBackWhereClosed(destination)
    this.#schedule(destination)
    this.#turn()
  }

  /** Leased mail enters the active queue. */
  #take(requests: readonly DeliveryRequest[]): void {
    const activatedAt = this.#parts.clock.now()
    for (const request of requests) {
      this.#active.reserve(request.message.id, request.recipients.length)
      this.#push(jobOf(request, activatedAt))
    }
  }

  #push(job: Job): void {
    this.#parts.events.emit({ kind: 'activated', message: job.request.message, recipientCount: job.request.recipients.length })
    this.#active.destination(job.request.destination).refresh(this.#parts.clock.monotonic())
    this.#active.push(job)
  }

  async #deliver(turn: Turn): Promise<void> {
    const { job, destination } = turn
    const { destination_message_rate_limit: perMinute, destination_rate_delay: pause } = destination.settings
    if (perMinute > 0) this.#rest(destination, MINUTE / perMinute)
    if (job.request.forcedExpire) await this.#expire(job.request, ADMINISTRATIVELY_EXPIRED)
    else if (this.#waitedTooLong(job, destination)) await this.#expire(job.request, NEVER_STARTED)
    else await this.#attempt(turn)
    this.#active.finished(turn)
    this.#restIfIdle(job.request.message)
    destination.probing(false)
    if (pause > 0) this.#rest(destination, pause)
    destination.lastEndedAt = this.#parts.clock.monotonic()
    this.#schedule(destination)
    for (const crowded of this.#crowdedOut) {
      this.#crowdedOut.delete(crowded)
      this.#schedule(crowded)
      break
    }
    this.#turn()
  }

  /** A last attempt that found no slot for too long is not made any more. */
  #waitedTooLong(job: Job, destination: Destination): boolean {
    const latest = this.#parts.clock.now() - destination.settings.minimal_backoff_time
    return job.activatedAt < latest && job.request.recipients.every((recipient) => recipient.expiresAt < latest)
  }

  async #attempt({ job, destination, begunAs }: Turn): Promise<void> {
    const { agent, events, factsFor } = this.#parts
    const result = await agent.deliver(job.request, { keepConnection: this.#keepsConnection(destination), signal: this.#abandon.signal })
    // Others are served there right now, so it is full rather than broken: this mail just waits its turn.
    const returned = result.congestion === 'early' && destination.inFlight > 1
    this.#learn(destination, result, begunAs)
    if (result.unreadable !== undefined) return this.#quarantine(job.request.message, result.unreadable)
    const settlement = settle(job.request, result, job, { ...factsFor(destination.name), returned })
    await this.#settle(job.request, settlement, () => {
      events.emit({ kind: 'attempted', request: job.request, result, attempts: settlement.attempts })
    })
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

  #learn(destination: Destination, result: AttemptResult, begunAs: number): void {
    const { clock, events } = this.#parts
    const before = destination.window
    const { name, inFlight } = destination
    const alone = inFlight === 1 && destination.todo === 0 && destination.nextDueAt === null && !destination.claiming
    const change = destination.learn(result, { now: clock.now(), alone, begunAs })
    const { standing, window } = destination
    if (change !== 'same') this.#track(this.#remember(destination))
    if (change === 'revived') events.emit({ kind: 'revived', destination: name })
    else if (standing.kind === 'dead' && change === 'died') {
      events.emit({ kind: 'died', destination: name, until: standing.until, reason: standing.reason.reason })
      this.#track(this.#giveBackWaiting(destination))
    } else if (window !== before) events.emit({ kind: 'window', destination: name, window, inFlight, feedback: result.feedback })
  }

  // --- outcomes

  /** Brings an outcome to the store, however long that takes: without it the mail would be delivered again. */
  async #settle(request: DeliveryRequest, settlement: Settlement, tell: () => void): Promise<void> {
    const { store, events, owes } = this.#parts
    const result = await this.#guard.insist(() => store.settle(settlement))
    tell()
    const expired = settlement.recipients.filter((one) => one.state === 'expired').map((one) => one.recipient)
    if (expired.length > 0) events.emit({ kind: 'expired', message: request.message, forced: request.forcedExpire, recipients: expired })
    const silence = whyNobodyIsTold(request, settlement, this.#parts.factsFor(request.destination))
    if (silence !== undefined) events.emit({ kind: 'notice-dropped', message: request.message, why: silence })
    if (result.indebted) owes(request.message.id)
    if (result.removed) events.emit({ kind: 'removed', message: request.message })
  }

  /** Mail that cannot be read is set aside, and nobody is told: our own trouble bounces nobody's mail. */
  async #quarantine(message: Message, why: string): Promise<void> {
    await this.#guard.insist(() => this.#parts.store.quarantine(message.id, why))
    this.#parts.events.emit({ kind: 'quarantined', message, why })
  }

  async #expire(request: DeliveryRequest, fallback: DeliveryStatus): Promise<void> {
    const { clock, factsFor } = this.#parts
    const settlement = expire(request, clock.now(), fallback, factsFor(request.destination))
    await this.#settle(request, settlement, () => undefined)
  }

  /** Mail whose lifetime is over: where nobody may be asked it expires at once, elsewhere it gets its last attempt. */
  async #over(requests: readonly DeliveryRequest[]): Promise<void> {
    const open: DeliveryRequest[] = []
    for (const request of requests) {
      const { standing } = this.#active.destination(request.destination)
      if (standing.kind === 'open') open.push(request)
      else await this.#expire(request, standing.kind === 'dead' ? standing.reason : NEVER_STARTED)
    }
    this.#take(open)
    this.#turn()
  }

  /** Mail that was in flight at two crashes is tried one by one: a third crash convicts the right message. */
  async #tryTheSuspects(): Promise<void> {
    const { store, clock } = this.#parts
    while (!this.#stopping) {
      const suspect = await store.claimSuspect(clock.now())
      if (suspect === undefined) return
      this.#active.reserve(suspect.message.id, suspect.recipients.length)
      const destination = this.#active.destination(suspect.destination)
      const begunAs = destination.begin()
      if (suspect.forcedExpire) await this.#expire(suspect, ADMINISTRATIVELY_EXPIRED)
      else await this.#attempt({ job: jobOf(suspect, clock.now()), destination, begunAs })
      destination.inFlight--
      this.#active.release(suspect.message.id, suspect.recipients.length)
      this.#restIfIdle(suspect.message)
      this.#schedule(destination)
    }
  }

  // --- small things

  /** No delivery to the destination starts for a while. */
  #rest(destination: Destination, pause: Duration): void {
    destination.rests++
    this.#parts.clock.after(pause, () => {
      destination.rests--
      this.#active.stir(destination)
      this.#turn()
    })
  }

  #restIfIdle(message: Message): void {
    if (!this.#active.holds(message.id)) this.#parts.atRest(message)
  }

  #expect(name: DestinationName, dueAt: Instant): void {
    const destination = this.#active.destination(name)
    destination.expect(dueAt)
    this.#schedule(destination)
  }

  /** Puts the destination into the heap at the time it next needs attention. */
  #schedule(destination: Destination): void {
    this.#due.set(destination.name, destination.wakesAt)
  }

  #arm(): void {
    const first = this.#due.first()
    if (this.#alarm !== null && this.#alarm.at === first?.at) return
    this.#alarm?.cancel()
    this.#alarm = null
    if (first === undefined || this.#stopping || this.#guard.ill) return
    const timer = this.#parts.clock.alarm(first.at, () => {
      this.#alarm = null
      this.#turn()
    })
    this.#alarm = { at: first.at, cancel: () => timer.cancel() }
  }

  /** The store commits again. */
  #resumeWork(): void {
    for (const destination of this.#active.destinations) this.#schedule(destination)
    this.#turn()
  }

  #revive(destination: Destination): void {
    if (destination.standing.kind !== 'dead') return
    destination.reopen()
    this.#parts.events.emit({ kind: 'revived', destination: destination.name })
    this.#track(this.#remember(destination))
  }

  async #remember(destination: Destination): Promise<void> {
    await this.#guard.insist(() => this.#parts.store.saveDestination(destination.record()))
  }

  /** Jobs that arrived in memory after their destination had closed go back to the store. */
  #giveBackWhereClosed(destination: Destination): void {
    const { standing, todo } = destination
    if (standing.kind === 'open' || todo === 0) return
    if (standing.kind === 'dead' && standing.probing && todo === 1) return
    this.#track(this.#giveBackWaiting(destination))
  }

  async #giveBackWaiting(destination: Destination): Promise<void> {
    const requests = this.#active.withdraw(destination)
    if (requests.length === 0) return
    if (destination.inFlight === 0) destination.probing(false)
    await this.#guard.insist(() => this.#parts.store.giveBack(requests.flatMap(idsOf)))
    for (const { message, recipients } of requests) {
      for (const recipient of recipients) destination.expect(recipient.dueAt)
      this.#restIfIdle(message)
    }
    this.#schedule(destination)
    this.#turn()
  }

  #forgetTheIdle(): void {
    const now = this.#parts.clock.monotonic()
    for (const destination of this.#active.destinations) {
      destination.refresh(now)
      if (destination.forgettable) this.#active.forget(destination)
    }
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
