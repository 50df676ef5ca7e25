/**
 * The window by Postfix's arithmetic, its half-step included (postfix qmgr_queue.c, SCHEDULER_README): fractions of a
 * step are gathered until they make a whole one.
 */
import type { FeedbackRate } from '../config/values.ts'
import type { WindowPolicy } from './window.ts'

export interface PostfixWindow {
  readonly control: 'postfix'
  /** Deliveries allowed at once; at least 1. */
  readonly size: number
  /** Fractions of a step gathered so far, upwards and downwards. */
  readonly success: number
  readonly failure: number
}

export const freshPostfixWindow = (size: number): PostfixWindow => ({ control: 'postfix', size, success: 0, failure: 0 })

const amount = (rate: FeedbackRate, size: number): number => (rate.perConcurrency ? rate.rate / size : rate.rate)

/** After a delivery that was answered. `inFlight` counts the one that is just finishing. */
export function widened(window: PostfixWindow, policy: WindowPolicy, inFlight: number): PostfixWindow {
  const { size } = window
  if ((policy.limit > 0 && size >= policy.limit) || size >= inFlight + policy.initial) return window
  const step = amount(policy.positive, size)
  let next: PostfixWindow = { ...window, success: window.success + step }
  while (next.success + step / 2 >= 1) next = { ...next, size: next.size + 1, success: next.success - 1, failure: 0 }
  return policy.limit > 0 && next.size > policy.limit ? { ...next, size: policy.limit } : next
}

/** After a delivery that failed for the whole site, or for which the far side asked for less. */
export function narrowed(window: PostfixWindow, policy: WindowPolicy): PostfixWindow {
  const step = amount(policy.negative, window.size)
  let next: PostfixWindow = { ...window, failure: window.failure - step }
  // The comparison tolerates rounding: 5 × 1/5 is one whole step.
  while (next.failure - step / 2 < -1e-9) next = { ...next, size: next.size - 1, success: 0, failure: next.failure + 1 }
  return next.size < 1 ? { ...next, size: 1 } : next
}
