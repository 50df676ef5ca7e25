/**
 * Consequences of a schedule: number of attempts, delay by greylisting, extra wait after outages, lost mail, and the times of
 * notices. They are computed exactly from the attempt times, without random numbers. All times are in milliseconds.
 */
import { DAY, type Duration, HOUR, MINUTE, SECOND } from '../system/clock.ts'
import { plannedAttempts, type Schedule } from './schedule.ts'

export interface Setup {
  /** Label of the plan: the text of the policy as the operator entered it. */
  readonly name: string
  readonly schedule: Schedule
  /** delay_warning_time. */
  readonly warnings: readonly Duration[]
}

interface OutagePlan {
  readonly outage: Duration
  /** Mean extra wait after recovery, for mail that arrived when the outage began. Null when that mail expires before recovery. */
  readonly mean: Duration | null
  /** Longest extra wait after recovery of the same mail. Null when that mail expires before recovery. */
  readonly worst: Duration | null
  /** Of the mail that arrives during the outage: the share that expires before the end, from 0 to 1. */
  readonly lost: number
  /** Attempts of one message per second at the end of the outage: all messages of a backlog fail as often, each at its own time. */
  readonly attemptRate: number
}

export interface Plan {
  readonly name: string
  readonly attempts: readonly Duration[]
  readonly tries: { readonly by1h: number; readonly by24h: number; readonly lifetime: number }
  /** maximal_delivery_attempts; null for no limit. */
  readonly limit: number | null
  /** Extra wait beyond the delay that a greylisting server requires. Null when the mail expires within that delay. */
  readonly greylisting: readonly { readonly delay: Duration; readonly extra: Duration | null }[]
  readonly outages: readonly OutagePlan[]
  /** Age at the first delay warning; null for none. */
  readonly warning: Duration | null
  /** Age at the failure notice. */
  readonly bounce: Duration
}

export const OUTAGES: readonly Duration[] = [5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR, DAY, 2 * DAY, 5 * DAY]
const GREYLISTINGS: readonly Duration[] = [MINUTE, 5 * MINUTE, 15 * MINUTE]
/** The end of an outage is uniform within ± this share of its length. */
const UNCERTAINTY = 0.1

export function planOf({ name, schedule, warnings }: Setup, outages: readonly Duration[] = OUTAGES): Plan {
  const attempts = plannedAttempts(schedule)
  const bounce = attempts.at(-1) ?? 0
  const by = (age: Duration): number => attempts.filter((at) => at <= age).length
  const warned = warnings.filter((time) => time > 0).toSorted((a, b) => a - b)[0]
  return {
    name,
    attempts,
    tries: { by1h: by(HOUR), by24h: by(DAY), lifetime: attempts.length },
    limit: schedule.attempts === undefined || schedule.attempts === 0 ? null : schedule.attempts,
    greylisting: GREYLISTINGS.map((delay) => ({ delay, extra: waitAt(attempts, delay) })),
    outages: outages.map((outage) => planOutage(attempts, outage)),
    // At the last failure, the failure notice replaces a delay warning.
    warning: warned === undefined ? null : (attempts.find((at) => at >= warned && at < bounce) ?? null),
    bounce,
  }
}

/** Time from an age to the next attempt. Null after the last attempt. */
function waitAt(attempts: readonly Duration[], age: Duration): Duration | null {
  const next = attempts.find((at) => at >= age)
  return next === undefined ? null : next - age
}

/** Plans an outage whose end is uniformly distributed within ± 10 % of its length. The integrals over that range are exact. */
export function planOutage(attempts: readonly Duration[], outage: Duration): OutagePlan {
  const from = outage * (1 - UNCERTAINTY)
  const to = outage * (1 + UNCERTAINTY)
  let area = 0
  let survived = 0
  let worst = 0
  let attempted = 0
  for (const [i, next] of attempts.entries()) {
    const last = attempts[i - 1] ?? 0
    const start = Math.max(from, last)
    const end = Math.min(to, next)
    if (end <= start) continue
    area += (end - start) * (next - (start + end) / 2)
    survived += end - start
    worst = Math.max(worst, next - start)
    attempted += (end - start) / (next - last)
  }
  const some = survived > 0
  const lost = shareLost(attempts.at(-1) ?? 0, from, to)
  return { outage, mean: some ? area / survived : null, worst: some ? worst : null, lost, attemptRate: (attempted / (to - from)) * SECOND }
}

/**
 * Share of lost mail, for an outage whose length e is uniform between `from` and `to`. Mail arrives evenly, and is lost when it
 * is older than `last`, the age at the last attempt, at the end of the outage: the share 1 − last/e. The result is the mean over
 * e.
 */
function shareLost(last: Duration, from: Duration, to: Duration): number {
  const start = Math.max(from, last)
  if (start >= to) return 0
  return (to - start - last * Math.log(to / start)) / (to - from)
}
