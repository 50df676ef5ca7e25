/**
 * Concurrency window of one destination: how many deliveries may run at once. It grows with answered deliveries and
 * shrinks when the site itself fails, by Postfix's arithmetic including its half-step (postfix qmgr_queue.c,
 * SCHEDULER_README); a window full of failures in a row means that the destination is dead.
 */
import type { FeedbackRate } from '../config/values.ts'

export interface Window {
  /** Deliveries allowed at once; at least 1. */
  readonly size: number
  /** Fractions of a step gathered so far, upwards and downwards. */
  readonly success: number
  readonly failure: number
  /** Failures since the last answer, each counted as 1/size: at `failedCohortLimit` the destination is dead. */
  readonly cohorts: number
}

export interface WindowPolicy {
  readonly initial: number
  /** The most deliveries at once; 0 for no limit. */
  readonly limit: number
  readonly positive: FeedbackRate
  readonly negative: FeedbackRate
  /** 0: never dead. */
  readonly failedCohortLimit: number
}

/** The window of a destination that nothing is known of. */
export function freshWindow(policy: WindowPolicy): Window {
  const size = policy.limit > 0 ? Math.min(policy.initial, policy.limit) : policy.initial
  return { size, success: 0, failure: 0, cohorts: 0 }
}

const amount = (rate: FeedbackRate, size: number): number => (rate.perConcurrency ? rate.rate / size : rate.rate)

/** After a delivery that was answered. `inFlight` counts the one that is just finishing. */
export function answered(window: Window, policy: WindowPolicy, inFlight: number): Window {
  const { size } = window
  const grows = (policy.limit === 0 || size < policy.limit) && size < inFlight + policy.initial
  if (!grows) return { ...window, cohorts: 0 }
  const step = amount(policy.positive, size)
  let next: Window = { ...window, cohorts: 0, success: window.success + step }
  while (next.success + step / 2 >= 1) next = { ...next, size: next.size + 1, success: next.success - 1, failure: 0 }
  return policy.limit > 0 && next.size > policy.limit ? { ...next, size: policy.limit } : next
}

/** After a delivery that failed for the whole site: the window shrinks, and `'dead'` when a cohort has failed. */
export function failed(window: Window, policy: WindowPolicy): Window | 'dead' {
  const cohorts = window.cohorts + 1 / window.size
  // A sum of 1/5 and its like falls short of 1 by a rounding error that is no part of the rule.
  if (policy.failedCohortLimit > 0 && cohorts >= policy.failedCohortLimit - 1e-9) return 'dead'
  return narrowed({ ...window, cohorts }, policy)
}

/** After the far side asked for less: the window shrinks, but nobody is called dead for it. */
export function narrowed(window: Window, policy: WindowPolicy): Window {
  const step = amount(policy.negative, window.size)
  let next: Window = { ...window, failure: window.failure - step }
  // The comparison tolerates rounding, as above: 5 × 1/5 is one whole step.
  while (next.failure - step / 2 < -1e-9) next = { ...next, size: next.size - 1, success: 0, failure: next.failure + 1 }
  return next.size < 1 ? { ...next, size: 1 } : next
}
