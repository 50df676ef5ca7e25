/**
 * Concurrency window by Postfix's feedback algorithm, including its hysteresis (Postfix qmgr_queue.c, SCHEDULER_README). Feedback
 * adds fractions of a step, and the window changes when the fractions add up to a whole step.
 */
import type { FeedbackRate } from '../../../config/values/values.ts'
import type { WindowPolicy } from './window-policy.ts'

export interface PostfixWindow {
  readonly control: 'postfix'
  /** Deliveries allowed at once; at least 1. */
  readonly size: number
  /** Accumulated positive feedback, less the steps that have widened the window; in steps. Set to 0 when the window narrows. */
  readonly success: number
  /** Steps that have narrowed the window, less the accumulated negative feedback; in steps. Set to 0 when the window widens. */
  readonly failure: number
}

export const freshPostfixWindow = (size: number): PostfixWindow => ({ control: 'postfix', size, success: 0, failure: 0 })

const amount = (rate: FeedbackRate, size: number): number => (rate.perConcurrency ? rate.rate / size : rate.rate)

/** Window after positive feedback. `inFlight` includes the delivery that has just ended. */
export function widened(window: PostfixWindow, policy: WindowPolicy, inFlight: number): PostfixWindow {
  const { size } = window
  if ((policy.limit > 0 && size >= policy.limit) || size >= inFlight + policy.initial) return window
  const step = amount(policy.positive, size)
  let next: PostfixWindow = { ...window, success: window.success + step }
  while (next.success + step / 2 >= 1) next = { ...next, size: next.size + 1, success: next.success - 1, failure: 0 }
  return policy.limit > 0 && next.size > policy.limit ? { ...next, size: policy.limit } : next
}

/** Window after negative feedback: a failure of the whole site, or congestion reported by the remote server. */
export function narrowed(window: PostfixWindow, policy: WindowPolicy): PostfixWindow {
  const step = amount(policy.negative, window.size)
  let next: PostfixWindow = { ...window, failure: window.failure - step }
  // The comparison tolerates rounding: 5 × 1/5 is one whole step.
  while (next.failure - step / 2 < -1e-9) next = { ...next, size: next.size - 1, success: 0, failure: next.failure + 1 }
  return next.size < 1 ? { ...next, size: 1 } : next
}
