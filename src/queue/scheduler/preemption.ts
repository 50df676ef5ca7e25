/**
 * Job preemption by Postfix's delivery slots (SCHEDULER_README, qmgr_job.c). A message earns one slot for every `cost` of its
 * entries that are selected for delivery. A smaller message that waits may spend the slots to preempt the larger one. The larger
 * message is slowed down by a factor of at most cost/(cost − 1), so it never starves.
 */
import type { Band } from '../../config/values/mail-classes.ts'
import type { QueueTime } from '../../system/clock.ts'
import { NO_SHARE } from './turns/flow.ts'
import type { Job } from './turns/job-queue.ts'
import type { MessageId } from '../../mail/message.ts'

/** `default_delivery_slot_cost`, `…_loan`, `…_discount` (percent), `default_minimum_delivery_slots`. */
export interface SlotPolicy {
  readonly cost: number
  readonly loan: number
  readonly discount: number
  readonly minimum: number
}

/** The entries of one message in the active queue. */
interface Candidate {
  readonly message: MessageId
  readonly activatedAt: QueueTime
  /** Entries that are not selected yet, in order of arrival. */
  readonly waiting: Set<Job>
  selected: number
  /** Number of selected entries that have not been exchanged for slots yet. */
  available: number
  /** Number of slots used while the message preempts another. Negative while slots that it took are unused. */
  used: number
  parent: Candidate | null
  preempted: boolean
}

export class Preemption {
  readonly #policy: () => SlotPolicy
  readonly #messages = new Map<MessageId, Candidate>()
  /** Preempting messages. The last one is selected first. */
  readonly #stack: Candidate[] = []
  /** Time and result of the last search. A search is made at most once a second. */
  #searched: { readonly at: QueueTime; readonly current: Candidate; readonly found: Candidate | undefined } | null = null

  constructor(policy: () => SlotPolicy) {
    this.#policy = policy
  }

  /** True when no message has entries that are not selected. */
  get isEmpty(): boolean {
    return this.#messages.size === 0
  }

  added(job: Job): void {
    const message = job.request.message.id
    let candidate = this.#messages.get(message)
    if (candidate === undefined) {
      candidate = {
        message,
        activatedAt: job.activatedAt,
        waiting: new Set(),
        selected: 0,
        available: 0,
        used: 0,
        parent: null,
        preempted: false,
      }
      this.#messages.set(message, candidate)
      this.#searched = null
    }
    candidate.waiting.add(job)
  }

  /** Records that the entry was selected for delivery. */
  selected(job: Job): void {
    const candidate = this.#messages.get(job.request.message.id)
    if (candidate === undefined || !candidate.waiting.delete(job)) return
    candidate.selected++
    candidate.available++
    candidate.used++
    this.#retire(candidate)
  }

  /** Entries of a message that are not selected yet. */
  waitingOf(message: MessageId): readonly Job[] {
    return [...(this.#messages.get(message)?.waiting ?? [])]
  }

  /** Records that the entry left the active queue without being selected. */
  withdrawn(job: Job): void {
    const candidate = this.#messages.get(job.request.message.id)
    if (candidate === undefined || !candidate.waiting.delete(job)) return
    this.#retire(candidate)
  }

  /** The entry that preempts `head`, which is the next entry in the order of destinations; undefined when none does. */
  before(head: Job, now: QueueTime, ready: (job: Job) => boolean): Job | undefined {
    if (this.#policy().cost < 2) return undefined
    for (let level = this.#stack.length - 1; level >= 0; level--) {
      const job = firstReady(this.#stack[level], ready)
      if (job !== undefined) return job
    }
    const current = this.#messages.get(head.request.message.id)
    if (current === undefined) return undefined
    const candidate = this.#candidate(current, now, ready)
    if (candidate === undefined || !this.#preempts(candidate, current)) return undefined
    return firstReady(candidate, ready)
  }

  #candidate(current: Candidate, now: QueueTime, ready: (job: Job) => boolean): Candidate | undefined {
    const { cost, minimum } = this.#policy()
    if (current.available <= 0 || current.waiting.size + current.selected < minimum * cost) return undefined
    if (this.#searched?.current !== current || now - this.#searched.at >= 1000 || this.#searched.found?.waiting.size === 0) {
      this.#searched = { at: now, current, found: this.#search(current, now, ready) }
    }
    return this.#searched.found
  }

  /**
   * Finds the message with the longest wait in proportion to its size, among those small enough that `current` can earn their
   * slots.
   */
  #search(current: Candidate, now: QueueTime, ready: (job: Job) => boolean): Candidate | undefined {
    const affordable = Math.floor((current.waiting.size + current.available) / this.#policy().cost)
    let best: Candidate | undefined
    let bestScore = 0
    let later = false
    for (const candidate of this.#messages.values()) {
      if (candidate === current) later = true
      if (!later || candidate === current || candidate.preempted) continue
      const need = candidate.waiting.size
      if (need > affordable || firstReady(candidate, ready) === undefined) continue
      const score = (Math.floor((now - candidate.activatedAt) / 1000) + 1) / (need + candidate.selected)
      if (score > bestScore) [best, bestScore] = [candidate, score]
    }
    return best
  }

  /** Spends the slots if there are enough of them. Returns whether the candidate preempts the current message. */
  #preempts(candidate: Candidate, current: Candidate): boolean {
    const { cost, loan, discount } = this.#policy()
    const need = candidate.waiting.size
    if (Math.floor(current.available / cost) + loan < (need * (100 - discount)) / 100) return false
    current.available -= need * cost
    current.preempted = true
    candidate.used = -need
    candidate.parent = current
    this.#stack.push(candidate)
    this.#searched = null
    return true
  }

  /** Removes a message that has no waiting entries, and returns its unused slots to the message that it preempted. */
  #retire(candidate: Candidate): void {
    if (candidate.waiting.size > 0) return
    this.#messages.delete(candidate.message)
    if (candidate.parent === null) return
    candidate.parent.available -= candidate.used * this.#policy().cost
    candidate.parent.preempted = this.#stack.some((other) => other !== candidate && other.parent === candidate.parent)
    this.#stack.splice(this.#stack.indexOf(candidate), 1)
  }
}

/** The preemptions of each class and share: a message preempts only messages of its own. */
export class Preemptions {
  readonly #policy: () => SlotPolicy
  readonly #all = new Map<Band, Map<string, Preemption>>()

  constructor(policy: () => SlotPolicy) {
    this.#policy = policy
  }

  of({ band, share }: Pick<Job, 'band' | 'share'>): Preemption {
    let ofBand = this.#all.get(band)
    if (ofBand === undefined) this.#all.set(band, (ofBand = new Map()))
    let preemption = ofBand.get(share)
    if (preemption === undefined) ofBand.set(share, (preemption = new Preemption(this.#policy)))
    return preemption
  }

  /** Forgets the preemption of a share without entries that wait. */
  tidy({ band, share }: Pick<Job, 'band' | 'share'>): void {
    if (share !== NO_SHARE && this.#all.get(band)?.get(share)?.isEmpty === true) this.#all.get(band)?.delete(share)
  }

  /** Entries of a message that are not selected yet. */
  waitingOf(message: MessageId): readonly Job[] {
    return [...this.#all.values()].flatMap((ofBand) => [...ofBand.values()].flatMap((one) => one.waitingOf(message)))
  }

  clear(): void {
    this.#all.clear()
  }
}

function firstReady(candidate: Candidate | undefined, ready: (job: Job) => boolean): Job | undefined {
  for (const job of candidate?.waiting ?? []) if (ready(job)) return job
  return undefined
}
