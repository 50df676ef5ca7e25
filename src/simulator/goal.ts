/**
 * The search for settings: the policy `doubling` with the fewest tries that still delivers, say, 99 % within 30 minutes of recovery.
 * The mail counted arrives evenly during the outage. Searches a grid of 1 % steps in the maximum, for each sensible minimum.
 */
import { compileRetryPolicy } from '../backoff/index.ts'
import { DAY, type Duration, HOUR, MINUTE, SECOND } from '../mail/clock.ts'
import { plannedAttempts } from './schedule.ts'

export interface Goal {
  /** Of the mail that arrives during the outage: 0.99. */
  readonly share: number
  readonly within: Duration
  /** Attempts over the lifetime, for mail that nobody ever takes. */
  readonly tries: number
  readonly outage: Duration
  readonly lifetime: Duration
}

export interface Found {
  readonly minimal: Duration
  readonly maximal: Duration
  readonly tries: number
  readonly share: number
}

const MINIMA: readonly Duration[] = [1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 120].map((figure) => figure * MINUTE)
const STEP = 1.01

/** The settings with the fewest tries that deliver the share in time; null when no settings do. They may need more tries than wished. */
export function searchGoal(goal: Goal): Found | null {
  let best: Found | null = null
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

/** The share of mail, arriving evenly during an outage, whose first attempt after it comes soon enough. */
export function shareWithin(attempts: readonly Duration[], outage: Duration, within: Duration): number {
  let soon = 0
  for (const [i, next] of attempts.entries()) {
    const previous = attempts[i - 1] ?? 0
    if (previous >= outage) break
    soon += Math.max(0, Math.min(next, outage) - Math.max(previous, next - within))
  }
  return soon / outage
}

/** Whether a goal asks for more than there is. */
export const goalIsMet = (goal: Goal, found: Found | null): found is Found => found !== null && found.tries <= goal.tries

/** What a goal is when nothing else is said. */
export const DEFAULT_GOAL = { share: 0.99, outage: 12 * HOUR } as const
