/**
 * Concurrency window of one destination: how many deliveries may run at once. It widens with answered deliveries and
 * narrows when the site itself fails or asks for less; a window full of failures in a row means that the destination
 * is dead. How it moves is `default_destination_concurrency_control`: Postfix's feedback, or TCP's Reno or Tahoe.
 */
import type { FeedbackRate } from '../config/values.ts'
import { allowedBy, cut, freshCongestionWindow, grown, type CongestionWindow, type CutFacts } from './congestion-window.ts'
import { freshPostfixWindow, narrowed, widened, type PostfixWindow } from './postfix-window.ts'

export interface Window {
  readonly by: PostfixWindow | CongestionWindow
  /** Failures since the last answer, each counted as 1/size: at `failedCohortLimit` the destination is dead. */
  readonly cohorts: number
}

export interface WindowPolicy {
  readonly control: 'postfix' | 'reno' | 'tahoe'
  readonly initial: number
  /** The most deliveries at once; 0 for no limit. */
  readonly limit: number
  readonly positive: FeedbackRate
  readonly negative: FeedbackRate
  /** 0: never dead. */
  readonly failedCohortLimit: number
}

/** The window of a destination that nothing is known of, or one that begins with `size`. */
export function freshWindow(policy: WindowPolicy, size: number = policy.initial): Window {
  const start = policy.limit > 0 ? Math.min(size, policy.limit) : size
  const by = policy.control === 'postfix' ? freshPostfixWindow(start) : freshCongestionWindow(policy.control, start)
  return { by, cohorts: 0 }
}

/** Deliveries allowed at once; at least 1. */
export const sizeOf = ({ by }: Window, policy: WindowPolicy): number => (by.control === 'postfix' ? by.size : allowedBy(by, policy))

/** After a delivery that was answered. `inFlight` counts the one that is just finishing. */
export function answered({ by }: Window, policy: WindowPolicy, inFlight: number): Window {
  return { by: by.control === 'postfix' ? widened(by, policy, inFlight) : grown(by, policy, inFlight), cohorts: 0 }
}

/** After the far side asked for less: the window narrows, but nobody is called dead for it. */
export function askedForLess({ by, cohorts }: Window, policy: WindowPolicy, facts: CutFacts): Window {
  return { by: by.control === 'postfix' ? narrowed(by, policy) : cut(by, facts), cohorts }
}

/** After a delivery that failed for the whole site: the window narrows; `'dead'` when a cohort has failed. */
export function failed(window: Window, policy: WindowPolicy, facts: CutFacts): Window | 'dead' {
  const cohorts = window.cohorts + 1 / sizeOf(window, policy)
  // A sum of 1/5 and its like falls short of 1 by a rounding error that is no part of the rule.
  if (policy.failedCohortLimit > 0 && cohorts >= policy.failedCohortLimit - 1e-9) return 'dead'
  return askedForLess({ ...window, cohorts }, policy, facts)
}
