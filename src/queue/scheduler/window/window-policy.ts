/** Parameters of a destination's concurrency window (Postfix SCHEDULER_README). */
import type { FeedbackRate } from '../../../config/values/values.ts'

export interface WindowPolicy {
  readonly control: 'postfix' | 'reno' | 'tahoe'
  /** Part of the deliveries in flight to which a cut of `reno` and `tahoe` sets the threshold. */
  readonly decrease: number
  readonly initial: number
  /** Maximum number of concurrent deliveries; 0 for no limit. */
  readonly limit: number
  readonly positive: FeedbackRate
  readonly negative: FeedbackRate
  /** Number of failed cohorts after which a destination is dead; 0 for never. */
  readonly failedCohortLimit: number
}
