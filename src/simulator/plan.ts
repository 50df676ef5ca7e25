/**
 * What a schedule means to those who wait: tries, the delay by greylisting, the extra wait after outages, lost mail, and when the sender
 * hears of it. Computed from the attempt times alone, exactly, without drawing lots. All times in milliseconds.
 */
import { DAY, type Duration, HOUR, MINUTE } from '../mail/clock.ts'
import { plannedAttempts, type Schedule } from './schedule.ts'

/** What is to be planned. */
export interface Setup {
  /** As the operator wrote it. */
  readonly name: string
  readonly schedule: Schedule
  /** delay_warning_time. */
  readonly warnings: readonly Duration[]
}

export interface OutagePlan {
  readonly outage: Duration
  /** Extra wait after recovery of mail that arrived when the outage began; null when all of it is returned before. */
  readonly mean: Duration | null
  readonly worst: Duration | null
  /** Share of the mail arriving during the outage that is returned before it ends. */
  readonly lost: number
}

export interface Plan {
  readonly name: string
  readonly attempts: readonly Duration[]
  readonly tries: { readonly by1h: number; readonly by24h: number; readonly lifetime: number }
  /** How much longer than its greylisting a server makes the mail wait. */
  readonly greylisting: readonly { readonly delay: Duration; readonly extra: Duration | null }[]
  readonly outages: readonly OutagePlan[]
  /** Age at which the sender is warned first; null for never. */
  readonly warning: Duration | null
  /** Age at which the mail is returned. */
  readonly bounce: Duration
}

export const OUTAGES: readonly Duration[] = [5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR, DAY, 2 * DAY, 5 * DAY]
const GREYLISTINGS: readonly Duration[] = [MINUTE, 5 * MINUTE, 15 * MINUTE]
/** Nobody knows when an outage ends: a tenth to both sides, evenly. */
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
    greylisting: GREYLISTINGS.map((delay) => ({ delay, extra: waitAt(attempts, delay) })),
    outages: outages.map((outage) => planOutage(attempts, outage)),
    // With the last failure the bounce goes out instead.
    warning: warned === undefined ? null : (attempts.find((at) => at >= warned && at < bounce) ?? null),
    bounce,
  }
}

/** From an age to the next attempt; null after the last one. */
function waitAt(attempts: readonly Duration[], age: Duration): Duration | null {
  const next = attempts.find((at) => at >= age)
  return next === undefined ? null : next - age
}

/** The outage ends evenly within ± a tenth of its length; the integrals over that range are exact. */
export function planOutage(attempts: readonly Duration[], outage: Duration): OutagePlan {
  const from = outage * (1 - UNCERTAINTY)
  const to = outage * (1 + UNCERTAINTY)
  let area = 0
  let survived = 0
  let worst = 0
  for (const [i, next] of attempts.entries()) {
    const start = Math.max(from, attempts[i - 1] ?? 0)
    const end = Math.min(to, next)
    if (end <= start) continue
    area += (end - start) * (next - (start + end) / 2)
    survived += end - start
    worst = Math.max(worst, next - start)
  }
  const some = survived > 0
  return { outage, mean: some ? area / survived : null, worst: some ? worst : null, lost: shareLost(attempts.at(-1) ?? 0, from, to) }
}

/** Mail that arrived evenly during an outage of length e is lost when it is older than the last attempt: 1 − last/e, averaged over e. */
function shareLost(last: Duration, from: Duration, to: Duration): number {
  const start = Math.max(from, last)
  if (start >= to) return 0
  return (to - start - last * Math.log(to / start)) / (to - from)
}
