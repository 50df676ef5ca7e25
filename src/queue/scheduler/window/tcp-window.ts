/**
 * Concurrency window by TCP's congestion control (RFC 5681): slow start up to ssthresh, and congestion avoidance above it. A failed
 * delivery cuts the window, unless that delivery was in flight at the last cut: a delivery that began before a cut carries no
 * information about the window after the cut.
 */
import type { WindowPolicy } from './window-policy.ts'

export interface CongestionWindow {
  readonly control: 'reno' | 'tahoe'
  readonly cwnd: number
  readonly ssthresh: number
  /** Highest serial number that was in flight at the last cut. Failures of deliveries up to this number are ignored. */
  readonly ignoredUpTo: number
}

/** Value above any window: slow start continues until the first cut. */
const NO_THRESHOLD = 1024

export const freshCongestionWindow = (control: 'reno' | 'tahoe', cwnd: number): CongestionWindow => ({
  control,
  cwnd,
  ssthresh: NO_THRESHOLD,
  ignoredUpTo: 0,
})

/** Maximum number of concurrent deliveries. A delivery may start while at most cwnd are in flight. */
export const allowedBy = ({ cwnd }: CongestionWindow, { limit }: WindowPolicy): number => {
  const allowed = Math.floor(cwnd) + 1
  return limit > 0 ? Math.min(allowed, limit) : allowed
}

/** Window after positive feedback: grows by one per delivery in slow start, else by one per window of deliveries. */
export function grown(window: CongestionWindow, policy: WindowPolicy, inFlight: number): CongestionWindow {
  // A window that was not fully used gives no evidence that a larger one is possible.
  if ((policy.limit > 0 && window.cwnd >= policy.limit) || window.cwnd >= inFlight + policy.initial) return window
  return { ...window, cwnd: window.cwnd + (window.cwnd < window.ssthresh ? 1 : 1 / window.cwnd) }
}

export interface CutFacts {
  /** Number of deliveries in flight, including the failed one. */
  readonly inFlight: number
  /** Serial number of the failed delivery. */
  readonly begunAs: number
  /** Serial number of the delivery that was started last. */
  readonly latestBegun: number
}

/** Window after negative feedback: a failure of the whole site, or congestion reported by the remote server. */
export function cut(window: CongestionWindow, { decrease }: Pick<WindowPolicy, 'decrease'>, facts: CutFacts): CongestionWindow {
  const { inFlight, begunAs, latestBegun } = facts
  if (begunAs <= window.ignoredUpTo) return window
  const ssthresh = Math.max(inFlight * decrease, 2)
  return { ...window, ssthresh, cwnd: window.control === 'reno' ? ssthresh + 3 : 1, ignoredUpTo: latestBegun }
}
