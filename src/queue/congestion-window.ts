/**
 * The window by TCP's congestion control (RFC 5681; "Improve on exponential backoff"): slow start up to ssthresh, one
 * more per round above it, and a cut when a delivery fails that was not under way already at the last cut: what was
 * sent before a cut says nothing about the window after it.
 */
import type { WindowPolicy } from './window.ts'

export interface CongestionWindow {
  readonly control: 'reno' | 'tahoe'
  readonly cwnd: number
  readonly ssthresh: number
  /** Deliveries begun up to this number were in flight at the last cut: their failures are ignored. */
  readonly ignoredUpTo: number
}

/** Far above any window: slow start goes on until the first cut. */
const NO_THRESHOLD = 1024

export const freshCongestionWindow = (control: 'reno' | 'tahoe', cwnd: number): CongestionWindow => ({
  control,
  cwnd,
  ssthresh: NO_THRESHOLD,
  ignoredUpTo: 0,
})

/** Deliveries allowed at once. One may start while those in flight are no more than cwnd. */
export const allowedBy = ({ cwnd }: CongestionWindow, { limit }: WindowPolicy): number => {
  const allowed = Math.floor(cwnd) + 1
  return limit > 0 ? Math.min(allowed, limit) : allowed
}

/** After a delivery that was answered: one more in slow start, else one more per window of answers. */
export function grown(window: CongestionWindow, policy: WindowPolicy, inFlight: number): CongestionWindow {
  // A window that is not used teaches nothing about what it could be.
  if ((policy.limit > 0 && window.cwnd >= policy.limit) || window.cwnd >= inFlight + policy.initial) return window
  return { ...window, cwnd: window.cwnd + (window.cwnd < window.ssthresh ? 1 : 1 / window.cwnd) }
}

export interface CutFacts {
  /** Deliveries in flight, the failed one included. */
  readonly inFlight: number
  /** The number of the failed delivery, and of the latest one begun. */
  readonly begunAs: number
  readonly latestBegun: number
}

/** After a delivery that failed for the whole site, or for which the far side asked for less. */
export function cut(window: CongestionWindow, { inFlight, begunAs, latestBegun }: CutFacts): CongestionWindow {
  if (begunAs <= window.ignoredUpTo) return window
  const ssthresh = Math.max(inFlight / 2, 2)
  return { ...window, ssthresh, cwnd: window.control === 'reno' ? ssthresh + 3 : 1, ignoredUpTo: latestBegun }
}
