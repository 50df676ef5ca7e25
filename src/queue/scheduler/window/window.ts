/**
 * Concurrency window of one destination: the maximum number of concurrent deliveries. Positive feedback widens the window.
 * Negative feedback (a failure of the whole site, congestion) narrows it. A destination becomes dead after failures that add up
 * to `failedCohortLimit` windows without a success between them. `default_destination_concurrency_control` selects the algorithm:
 * Postfix's, or TCP's Reno or Tahoe.
 */
import { allowedBy, cut, freshCongestionWindow, grown, type CongestionWindow, type CutFacts } from './tcp-window.ts'
import { freshPostfixWindow, narrowed, widened, type PostfixWindow } from './postfix-window.ts'
import type { WindowPolicy } from './window-policy.ts'

export interface Window {
  readonly by: PostfixWindow | CongestionWindow
  /**
   * Failed cohorts: the sum of 1/size for each failure since the last positive feedback. The destination is dead at
   * `failedCohortLimit`.
   */
  readonly cohorts: number
}

/** Initial window of `size` deliveries. */
export function freshWindow(policy: WindowPolicy, size: number = policy.initial): Window {
  const start = policy.limit > 0 ? Math.min(size, policy.limit) : size
  const by = policy.control === 'postfix' ? freshPostfixWindow(start) : freshCongestionWindow(policy.control, start)
  return { by, cohorts: 0 }
}

/** Number of concurrent deliveries allowed; at least 1. */
export const sizeOf = ({ by }: Window, policy: WindowPolicy): number => (by.control === 'postfix' ? by.size : allowedBy(by, policy))

/** Window after positive feedback. `inFlight` includes the delivery that has just ended. */
export function succeeded({ by }: Window, policy: WindowPolicy, inFlight: number): Window {
  return { by: by.control === 'postfix' ? widened(by, policy, inFlight) : grown(by, policy, inFlight), cohorts: 0 }
}

/** Window after congestion at the remote server. The window narrows, but the destination does not approach the dead state. */
export function congested({ by, cohorts }: Window, policy: WindowPolicy, facts: CutFacts): Window {
  return { by: by.control === 'postfix' ? narrowed(by, policy) : cut(by, policy, facts), cohorts }
}

/**
 * Window after a delivery that failed for the whole site. The window narrows; `'dead'` is returned when enough cohorts have
 * failed.
 */
export function failed(window: Window, policy: WindowPolicy, facts: CutFacts): Window | 'dead' {
  const cohorts = window.cohorts + 1 / sizeOf(window, policy)
  // The comparison tolerates rounding, because a sum of terms such as 1/5 may fall short of 1.
  if (policy.failedCohortLimit > 0 && cohorts >= policy.failedCohortLimit - 1e-9) return 'dead'
  return congested({ ...window, cohorts }, policy, facts)
}
