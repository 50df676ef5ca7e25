/**
 * Attempt times of a message that is never accepted, from arrival to expiry, or to the limit of attempts. Attempts take no time. As
 * in the queue, the last attempt is made at the expiry. With a scan grid, which only Postfix has, it is made at the first scan at or after the expiry.
 */
import { PolicyError, type WaitFacts } from '../backoff/policy.ts'
import { ends, jittered, plannedWait, type RetryPolicy, toMicrosecond } from '../backoff/retry-policy.ts'
import { type Duration, SECOND } from '../system/clock.ts'
import { mulberry32 } from '../system/random.ts'

export interface Schedule {
  readonly policy: RetryPolicy
  readonly lifetime: Duration
  /** maximal_delivery_attempts; 0 or absent for no limit. */
  readonly attempts?: number
  /** Postfix's queue_run_delay: attempts are made at multiples of it. When absent or 0, attempts are made at their due times. */
  readonly grid?: Duration
  /** retry_jitter. */
  readonly jitter?: number
  readonly seed?: number
  /** Named random numbers of one message in a queue. When absent, a stream determined by the seed is used. */
  readonly draw?: (what: 'retry' | 'jitter', step: number) => number
  /** The attempt to plan first: its number, counted from 1, and the age of the message then. The first one of new mail when absent. */
  readonly from?: { readonly step: number; readonly age: Duration }
}

/** Maximum number of attempts, against settings that give no useful plan. */
const MOST_ATTEMPTS = 1_000_000

/** Attempt times in milliseconds from arrival, the first one 0 or `from.age`. Throws PolicyError above a million attempts. */
export function plannedAttempts(schedule: Schedule): readonly Duration[] {
  const { policy, lifetime, attempts: limit = 0, grid = 0, jitter = 0, from = { step: 1, age: 0 } } = schedule
  const draw = schedule.draw ?? mulberry32(schedule.seed ?? 1)
  const planned: Duration[] = []
  // A wait that depends on the previous wait is computed from the waits before jitter, as in the queue.
  const bare: { age: Duration; previousWait: Duration | null } = { age: 0, previousWait: null }
  let age: Duration = from.age
  for (let step = 1; ; step++) {
    const facts: WaitFacts = { step, age, previousWait: bare.previousWait, draw: drawnOnce(() => draw('retry', step)) }
    let bareWait: Duration | null = null
    if (step >= from.step) {
      planned.push(age)
      if (age >= lifetime || (limit > 0 && step >= limit) || ends(policy, facts)) return planned
      if (planned.length >= MOST_ATTEMPTS)
        throw new PolicyError(`the policy makes more than ${MOST_ATTEMPTS} attempts before the mail expires`)
      const wait = plannedWait(policy, facts)
      if (age === bare.age) bareWait = wait
      const due = age + (jitter > 0 ? jittered(wait, jitter, draw('jitter', step)) : wait)
      age = grid > 0 ? nextScan(due, age, grid) : Math.min(toMicrosecond(due), lifetime)
    }
    bare.previousWait = bareWait ?? plannedWait(policy, { ...facts, age: bare.age })
    bare.age = toMicrosecond(bare.age + bare.previousWait)
  }
}

/** Caches a named draw, so that each call returns the same number. */
function drawnOnce(draw: () => number): () => number {
  let drawn: number | undefined
  return () => (drawn ??= draw())
}

/** Time of the first scan that finds mail due at `due`. Postfix's scan includes mail due up to 1 s later (qmgr_scan.c). */
const nextScan = (due: Duration, now: Duration, grid: Duration): Duration =>
  Math.max(Math.ceil((due - SECOND) / grid), Math.floor(now / grid) + 1) * grid
