/**
 * The plan of one message that nobody takes: when the queue tries it, from arrival to expiry. Attempts take no time. The last attempt
 * falls on the expiry itself, as in the queue; with a scan grid, which only Postfix has, on the first scan at or after it.
 */
import { ends, jittered, plannedWait, PolicyError, type RetryPolicy, toMicrosecond, type WaitFacts } from '../backoff/index.ts'
import { type Duration, SECOND } from '../mail/clock.ts'
import { mulberry32 } from '../mail/random.ts'

export interface Schedule {
  readonly policy: RetryPolicy
  readonly lifetime: Duration
  /** Postfix's queue_run_delay: mail is looked for at multiples of it only. Absent or 0: the queue meets due times exactly. */
  readonly grid?: Duration
  /** retry_jitter. */
  readonly jitter?: number
  readonly seed?: number
}

/** More would be a mistake in the settings, not a plan. */
const MOST_ATTEMPTS = 1_000_000

/** Milliseconds from arrival, the first one 0; the mail is given up when the last one has failed. */
export function plannedAttempts({ policy, lifetime, grid = 0, jitter = 0, seed = 1 }: Schedule): readonly Duration[] {
  const draw = mulberry32(seed)
  const planned: Duration[] = []
  let previousWait: Duration | null = null
  let age: Duration = 0
  for (let step = 1; ; step++) {
    planned.push(age)
    const facts: WaitFacts = { step, age, previousWait, draw }
    if (age >= lifetime || ends(policy, facts)) return planned
    if (step >= MOST_ATTEMPTS) throw new PolicyError(`the policy makes more than ${MOST_ATTEMPTS} attempts before the mail expires`)
    previousWait = plannedWait(policy, facts)
    const due = age + (jitter > 0 ? jittered(previousWait, jitter, draw()) : previousWait)
    age = grid > 0 ? nextScan(due, age, grid) : Math.min(toMicrosecond(due), lifetime)
  }
}

/** Postfix takes what is due up to a second after the scan (qmgr_scan.c). */
const nextScan = (due: Duration, now: Duration, grid: Duration): Duration =>
  Math.max(Math.ceil((due - SECOND) / grid), Math.floor(now / grid) + 1) * grid
