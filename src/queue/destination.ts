/**
 * One destination while it matters: its window, whether it is open, dead or suspended, the jobs that wait for it in
 * memory and the earliest due time of what waits in the store. Decisions only; the scheduler acts on them.
 */
import type { Settings } from '../config/destination-settings.ts'
import type { Duration, Instant } from '../mail/clock.ts'
import type { DeliveryStatus } from '../mail/reply.ts'
import type { CutFacts } from './congestion-window.ts'
import type { AttemptResult } from '../delivery/delivery-agent.ts'
import { answered, askedForLess, failed, freshWindow, sizeOf, type Window, type WindowPolicy } from './window.ts'
import type { DeliveryRequest, DestinationName } from './message.ts'
import type { DestinationRecord } from './store.ts'

/** A delivery request in the active queue. */
export interface Job {
  readonly request: DeliveryRequest
  /** When it entered the active queue. */
  readonly activatedAt: Instant
  /** Selected out of turn: its place in the lane is empty. */
  taken: boolean
}

export const jobOf = (request: DeliveryRequest, activatedAt: Instant): Job => ({ request, activatedAt, taken: false })

export type Standing =
  | { readonly kind: 'open' }
  /** Nobody opened the door for a whole cohort: one probe at `until`, the others wait. */
  | {
      readonly kind: 'dead'
      readonly until: Instant
      readonly interval: Duration
      readonly reason: DeliveryStatus
      readonly probing: boolean
    }
  | { readonly kind: 'suspended'; readonly by: string }

export interface LearnFacts {
  readonly now: Instant
  readonly alone: boolean
  /** The number that `begin` gave the delivery. */
  readonly begunAs: number
}

export class Destination {
  readonly name: DestinationName
  settings: Settings
  #window: Window
  standing: Standing = { kind: 'open' }
  /** Deliveries running now. */
  inFlight = 0
  /** Deliveries ever begun: gives each its number. */
  #begun = 0
  /** When the last delivery ended, on the stopwatch; windows are forgotten some time after. */
  lastEndedAt: Duration | null = null
  /** The earliest due time of what waits in the store; null when nothing does. */
  nextDueAt: Instant | null = null
  /** A claim is on its way to the store. */
  claiming = false
  /** Pauses between deliveries that are running: rate delay, message rate. */
  rests = 0
  /** What it last said no with. */
  lastTrouble: DeliveryStatus | null = null
  readonly #fresh = new Lane()
  readonly #retries = new Lane()
  #freshNext = true
  #todo = 0
  #waitingRecipients = 0

  constructor(name: DestinationName, settings: Settings) {
    this.name = name
    this.settings = settings
    this.#window = freshWindow(windowPolicy(settings))
  }

  get policy(): WindowPolicy {
    return windowPolicy(this.settings)
  }

  /** Deliveries allowed at once. */
  get window(): number {
    return sizeOf(this.#window, this.policy)
  }

  /** What carries mail there: `smtp` unless the name says otherwise. */
  get transport(): string {
    return /^(?:smtp|lmtp|discard|error)(?=:)/.exec(this.name)?.[0] ?? 'smtp'
  }

  /** Jobs in memory that wait for a slot. */
  get todo(): number {
    return this.#todo
  }

  /** Recipients in those jobs. */
  get waitingRecipients(): number {
    return this.#waitingRecipients
  }

  /** May a delivery start now? */
  get ready(): boolean {
    if (this.todo === 0 || this.rests > 0 || this.standing.kind === 'suspended') return false
    return this.standing.kind === 'dead' ? this.standing.probing && this.inFlight === 0 : this.inFlight < this.window
  }

  /** When the scheduler should next claim work here; null while there is nothing to claim or nobody may be asked. */
  get wakesAt(): Instant | null {
    if (this.nextDueAt === null || this.claiming || this.standing.kind === 'suspended') return null
    if (this.standing.kind === 'dead') return this.standing.probing ? null : Math.max(this.standing.until, this.nextDueAt)
    return this.nextDueAt
  }

  /** Is it open, or about to be probed? Then a last attempt is worth waiting for. */
  maySoonBeAsked(now: Instant): boolean {
    if (this.standing.kind === 'open') return true
    return this.standing.kind === 'dead' && (this.standing.probing || this.standing.until <= now)
  }

  push(job: Job): void {
    if (this.#todo === 0) this.#freshNext = true
    ;(job.request.fresh ? this.#fresh : this.#retries).push(job)
    this.#todo++
    this.#waitingRecipients += job.request.recipients.length
  }

  /** The job whose turn it is here: new mail and retries alternate. */
  peek(): Job | undefined {
    const [first, second] = this.#freshNext ? [this.#fresh, this.#retries] : [this.#retries, this.#fresh]
    return first.peek() ?? second.peek()
  }

  /** Takes a waiting job out, in its turn or before. */
  take(job: Job): void {
    if (job === this.peek()) this.#freshNext = !job.request.fresh
    job.taken = true
    this.#todo--
    this.#waitingRecipients -= job.request.recipients.length
  }

  /** All jobs that wait, taken out. */
  drain(): Job[] {
    const jobs: Job[] = []
    for (let job = this.peek(); job !== undefined; job = this.peek()) {
      this.take(job)
      jobs.push(job)
    }
    return jobs
  }

  /** Something waits in the store from `dueAt` on. */
  expect(dueAt: Instant): void {
    if (this.nextDueAt === null || dueAt < this.nextDueAt) this.nextDueAt = dueAt
  }

  /** Forgets the window when no delivery has ended there for `minimal_backoff_time`, and none is running. */
  refresh(now: Duration): void {
    if (this.standing.kind === 'dead' || this.inFlight > 0 || this.lastEndedAt === null) return
    if (now - this.lastEndedAt < this.settings.minimal_backoff_time) return
    this.#window = freshWindow(this.policy)
    this.lastEndedAt = null
  }

  /** Nothing about it is worth remembering. */
  get forgettable(): boolean {
    const isBusy = this.todo > 0 || this.inFlight > 0 || this.claiming
    return this.standing.kind === 'open' && !isBusy && this.nextDueAt === null && this.lastEndedAt === null
  }

  /** A delivery begins, at `now` on the stopwatch; returns its number. */
  begin(now: Duration): number {
    this.refresh(now)
    this.inFlight++
    return ++this.#begun
  }

  /** A delivery has ended, and its outcome is on disk. */
  end(now: Duration): void {
    this.inFlight--
    this.lastEndedAt = now
  }

  /**
   * Learns from a delivery that has just ended (`inFlight` still counts it) and says what became of the destination.
   * `alone`: no other mail is concerned, so there is nobody to protect and the mail simply follows its own schedule.
   */
  learn(result: Pick<AttemptResult, 'feedback' | 'congestion' | 'hopStatus'>, facts: LearnFacts): 'died' | 'revived' | 'same' {
    if (result.hopStatus !== undefined) this.lastTrouble = result.hopStatus
    if (result.feedback === 'positive' && result.congestion === undefined) return this.#answered()
    if (this.standing.kind === 'suspended') return 'same'
    if (result.feedback === 'negative' || result.congestion === 'early') return this.#failed(result.hopStatus ?? UNKNOWN, facts)
    if (result.congestion === 'late') {
      if (this.standing.kind === 'dead') return this.#answered()
      this.#window = askedForLess(this.#window, this.policy, this.#cutFacts(facts))
    }
    return this.#inconclusive(facts.now)
  }

  /** A probe that says nothing about the destination (our own trouble, an abandoned attempt) is made again later. */
  #inconclusive(now: Instant): 'died' | 'same' {
    if (this.standing.kind !== 'dead' || !this.standing.probing) return 'same'
    this.standing = { ...this.standing, until: now + this.standing.interval, probing: false }
    return 'died'
  }

  #answered(): 'revived' | 'same' {
    if (this.standing.kind === 'dead') {
      const others = this.inFlight - 1
      this.#window = freshWindow(this.policy, others > 0 ? others : this.policy.initial)
      this.standing = { kind: 'open' }
      return 'revived'
    }
    this.#window = answered(this.#window, this.policy, this.inFlight)
    return 'same'
  }

  #failed(reason: DeliveryStatus, facts: LearnFacts): 'died' | 'same' {
    const { now, alone } = facts
    if (this.standing.kind === 'dead') {
      if (!this.standing.probing) return 'same' // a straggler from before
      const interval = Math.min(this.standing.interval * 2, this.settings.maximal_backoff_time)
      this.standing = { kind: 'dead', until: now + interval, interval, reason, probing: false }
      return 'died'
    }
    const next = failed(this.#window, this.policy, this.#cutFacts(facts))
    if (next !== 'dead') {
      this.#window = next
      return 'same'
    }
    if (alone) {
      this.#window = freshWindow(this.policy)
      return 'same'
    }
    const interval = this.settings.minimal_backoff_time
    this.standing = { kind: 'dead', until: now + interval, interval, reason, probing: false }
    return 'died'
  }

  #cutFacts({ begunAs }: LearnFacts): CutFacts {
    return { inFlight: this.inFlight, begunAs, latestBegun: this.#begun }
  }

  /** A probe is claimed and about to run, or there is none (any more). */
  probing(underWay: boolean): void {
    if (this.standing.kind === 'dead' && this.standing.probing !== underWay) this.standing = { ...this.standing, probing: underWay }
  }

  /** An operator says: not now. */
  suspend(by: string): void {
    this.standing = { kind: 'suspended', by }
  }

  /** An operator says: go on. It starts like one that nothing is known of, so that no wave follows. */
  reopen(): void {
    this.standing = { kind: 'open' }
    this.#window = freshWindow(this.policy)
  }

  /** What the store must remember. */
  record(): DestinationRecord {
    const { standing } = this
    return {
      name: this.name,
      deadUntil: standing.kind === 'dead' ? standing.until : null,
      probeInterval: standing.kind === 'dead' ? standing.interval : null,
      suspendedBy: standing.kind === 'suspended' ? standing.by : null,
      reason: standing.kind === 'dead' ? standing.reason : null,
    }
  }

  /** Takes up what was remembered across a restart: a destination known dead is probed, not stormed. */
  recall(record: DestinationRecord): void {
    if (record.suspendedBy !== null) this.standing = { kind: 'suspended', by: record.suspendedBy }
    else if (record.deadUntil !== null) {
      const interval = record.probeInterval ?? this.settings.minimal_backoff_time
      this.standing = { kind: 'dead', until: record.deadUntil, interval, reason: record.reason ?? UNKNOWN, probing: false }
    }
  }
}

const UNKNOWN: DeliveryStatus = { status: '4.4.0', reason: 'unknown trouble', stage: 'connect' }

export const windowPolicy = (settings: Settings): WindowPolicy => ({
  control: settings.destination_concurrency_control,
  initial: settings.initial_destination_concurrency,
  // A pause after each delivery means one delivery at a time (Postfix default_destination_rate_delay).
  limit: settings.destination_rate_delay > 0 ? 1 : settings.destination_concurrency_limit,
  positive: settings.destination_concurrency_positive_feedback,
  negative: settings.destination_concurrency_negative_feedback,
  failedCohortLimit: settings.destination_concurrency_failed_cohort_limit,
})

/** First in, first out, without moving what remains; places of jobs that were taken are passed over. */
class Lane {
  #jobs: Job[] = []
  #head = 0

  push(job: Job): void {
    this.#jobs.push(job)
  }

  peek(): Job | undefined {
    while (this.#jobs[this.#head]?.taken === true) this.#head++
    if (this.#head > 32 && this.#head * 2 > this.#jobs.length) {
      this.#jobs = this.#jobs.slice(this.#head)
      this.#head = 0
    }
    return this.#jobs[this.#head]
  }
}
