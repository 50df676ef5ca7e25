/**
 * Small messages overtake big ones, by Postfix's slots (SCHEDULER_README, qmgr_job.c): a message with many entries
 * earns one slot for every `cost` of its entries that are selected; a small message that waits may spend them to go
 * first. A big message is slowed down by cost/(cost − 1) at worst, and is never starved.
 */
import type { Instant } from '../mail/clock.ts'
import type { Job } from './destination.ts'
import type { MessageId } from './message.ts'

/** `default_delivery_slot_cost`, `…_loan`, `…_discount` (percent), `default_minimum_delivery_slots`. */
export interface SlotPolicy {
  readonly cost: number
  readonly loan: number
  readonly discount: number
  readonly minimum: number
}

/** The entries of one message in the active queue. */
interface Standing {
  readonly message: MessageId
  readonly activatedAt: Instant
  /** Not selected yet, in the order they came. */
  readonly waiting: Set<Job>
  selected: number
  /** Entries selected that were not yet spent on slots. */
  available: number
  /** While it goes before another: what it may still use, negative until it is used up. */
  used: number
  parent: Standing | null
  overtaken: boolean
}

export class Preemption {
  readonly #policy: () => SlotPolicy
  readonly #messages = new Map<MessageId, Standing>()
  /** Messages that go first, the last to overtake first of all. */
  readonly #stack: Standing[] = []
  /** The best candidate of the last search, and when that was: it is made once a second at most. */
  #searched: { readonly at: Instant; readonly current: Standing; readonly found: Standing | undefined } | null = null

  constructor(policy: () => SlotPolicy) {
    this.#policy = policy
  }

  added(job: Job): void {
    const message = job.request.message.id
    let standing = this.#messages.get(message)
    if (standing === undefined) {
      standing = {
        message,
        activatedAt: job.activatedAt,
        waiting: new Set(),
        selected: 0,
        available: 0,
        used: 0,
        parent: null,
        overtaken: false,
      }
      this.#messages.set(message, standing)
      this.#searched = null
    }
    standing.waiting.add(job)
  }

  /** The entry was selected for delivery. */
  selected(job: Job): void {
    const standing = this.#messages.get(job.request.message.id)
    if (standing === undefined || !standing.waiting.delete(job)) return
    standing.selected++
    standing.available++
    standing.used++
    this.#retire(standing)
  }

  /** The entry left the active queue unselected. */
  withdrawn(job: Job): void {
    const standing = this.#messages.get(job.request.message.id)
    if (standing === undefined || !standing.waiting.delete(job)) return
    this.#retire(standing)
  }

  /** The entry that goes before `head`, whose turn it is by the order of destinations; undefined when none does. */
  before(head: Job, now: Instant, ready: (job: Job) => boolean): Job | undefined {
    if (this.#policy().cost < 2) return undefined
    for (let level = this.#stack.length - 1; level >= 0; level--) {
      const job = firstReady(this.#stack[level], ready)
      if (job !== undefined) return job
    }
    const current = this.#messages.get(head.request.message.id)
    if (current === undefined) return undefined
    const candidate = this.#candidate(current, now, ready)
    if (candidate === undefined || !this.#overtakes(candidate, current)) return undefined
    return firstReady(candidate, ready)
  }

  #candidate(current: Standing, now: Instant, ready: (job: Job) => boolean): Standing | undefined {
    const { cost, minimum } = this.#policy()
    if (current.available <= 0 || current.waiting.size + current.selected < minimum * cost) return undefined
    if (this.#searched?.current !== current || now - this.#searched.at >= 1000 || this.#searched.found?.waiting.size === 0) {
      this.#searched = { at: now, current, found: this.#search(current, now, ready) }
    }
    return this.#searched.found
  }

  /** The message that has waited longest for its size, among those that `current` can ever earn the slots for. */
  #search(current: Standing, now: Instant, ready: (job: Job) => boolean): Standing | undefined {
    const affordable = Math.floor((current.waiting.size + current.available) / this.#policy().cost)
    let best: Standing | undefined
    let bestScore = 0
    let later = false
    for (const standing of this.#messages.values()) {
      if (standing === current) later = true
      if (!later || standing === current || standing.overtaken) continue
      const need = standing.waiting.size
      if (need > affordable || firstReady(standing, ready) === undefined) continue
      const score = (Math.floor((now - standing.activatedAt) / 1000) + 1) / (need + standing.selected)
      if (score > bestScore) [best, bestScore] = [standing, score]
    }
    return best
  }

  /** Spends the slots when there are enough. */
  #overtakes(candidate: Standing, current: Standing): boolean {
    const { cost, loan, discount } = this.#policy()
    const need = candidate.waiting.size
    if (Math.floor(current.available / cost) + loan < (need * (100 - discount)) / 100) return false
    current.available -= need * cost
    current.overtaken = true
    candidate.used = -need
    candidate.parent = current
    this.#stack.push(candidate)
    this.#searched = null
    return true
  }

  /** A message without waiting entries goes; what it did not use of its slots is given back. */
  #retire(standing: Standing): void {
    if (standing.waiting.size > 0) return
    this.#messages.delete(standing.message)
    if (standing.parent === null) return
    standing.parent.available -= standing.used * this.#policy().cost
    standing.parent.overtaken = this.#stack.some((other) => other !== standing && other.parent === standing.parent)
    this.#stack.splice(this.#stack.indexOf(standing), 1)
  }
}

function firstReady(standing: Standing | undefined, ready: (job: Job) => boolean): Job | undefined {
  for (const job of standing?.waiting ?? []) if (ready(job)) return job
  return undefined
}
