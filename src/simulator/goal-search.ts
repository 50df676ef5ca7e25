/**
 * Searches for settings of the policy `doubling` that deliver a share of the mail, such as 99 %, within a time after the end of
 * an outage, with the fewest attempts. The mail arrives evenly during the outage. The search grid has several minimums and, for
 * each, maximums in steps of 1 %.
 */
import { compileRetryPolicy } from '../backoff/retry-policy.ts'
import { DAY, type Duration, HOUR, MINUTE, SECOND } from '../system/clock.ts'
import { plannedAttempts } from '../planner/schedule.ts'

export interface Goal {
  /** Share of the mail that arrives during the outage, from 0 to 1. */
  readonly share: number
  readonly within: Duration
  /** Largest number of attempts over the lifetime. */
  readonly tries: number
  readonly outage: Duration
  readonly lifetime: Duration
}

interface GoalResult {
  readonly minimal: Duration
  readonly maximal: Duration
  readonly tries: number
  readonly share: number
}

const MINIMA: readonly Duration[] = [1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 120].map((figure) => figure * MINUTE)
const STEP = 1.01

/**
 * Returns the settings with the fewest attempts that deliver the share in time, even when they make more than `goal.tries`
 * attempts. Null when no settings of the grid deliver the share in time.
 */
export function searchGoal(goal: Goal): GoalResult | null {
  let best: GoalResult | null = null
  for (const minimal of MINIMA) {
    for (let maximal = Math.max(minimal, SECOND); maximal <= Math.max(DAY, minimal); maximal = nextMaximum(maximal)) {
      const attempts = plannedAttempts({
        policy: compileRetryPolicy({ retry_backoff: 'doubling', minimal, maximal }),
        lifetime: goal.lifetime,
      })
      const share = shareWithin(attempts, goal.outage, goal.within)
      const fewer = best === null || attempts.length < best.tries || (attempts.length === best.tries && share > best.share)
      if (share >= goal.share && fewer) best = { minimal, maximal, tries: attempts.length, share }
    }
  }
  return best
}

const nextMaximum = (maximal: Duration): Duration => Math.ceil((maximal * STEP) / SECOND) * SECOND

/**
 * Share, from 0 to 1, of the mail whose first attempt after the outage is at most `within` after its end. The mail arrives evenly
 * during the outage.
 */
export function shareWithin(attempts: readonly Duration[], outage: Duration, within: Duration): number {
  let soon = 0
  for (const [i, next] of attempts.entries()) {
    const previous = attempts[i - 1] ?? 0
    if (previous >= outage) break
    soon += Math.max(0, Math.min(next, outage) - Math.max(previous, next - within))
  }
  return soon / outage
}

/** True if the found settings need no more attempts than the goal allows. */
export const goalIsMet = (goal: Goal, found: GoalResult | null): found is GoalResult => found !== null && found.tries <= goal.tries

/** Members of a goal that the command line may leave out. */
export const DEFAULT_GOAL = { share: 0.99, outage: 12 * HOUR } as const
