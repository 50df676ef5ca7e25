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
  /** The chance of one message in a queue, which names its draws; else a stream by the seed. */
  readonly draw?: (what: 'retry' | 'jitter', step: number) => number
}

/** More would be a mistake in the settings, not a plan. */
const MOST_ATTEMPTS = 1_000_000

/** Milliseconds from arrival, the first one 0; the mail is given up when the last one has failed. */
export function plannedAttempts(schedule: Schedule): readonly Duration[] {
  const { policy, lifetime, grid = 0, jitter = 0 } = schedule
  const draw = schedule.draw ?? mulberry32(schedule.seed ?? 1)
  const planned: Duration[] = []
  // The waits that the next one builds on are those of the policy, before jitter: the queue retraces them like this.
  const bare: { age: Duration; previousWait: Duration | null } = { age: 0, previousWait: null }
  let age: Duration = 0
  for (let step = 1; ; step++) {
    planned.push(age)
    const facts: WaitFacts = { step, age, previousWait: bare.previousWait, draw: drawnOnce(() => draw('retry', step)) }
    if (age >= lifetime || ends(policy, facts)) return planned
    if (step >= MOST_ATTEMPTS) throw new PolicyError(`the policy makes more than ${MOST_ATTEMPTS} attempts before the mail expires`)
    const wait = plannedWait(policy, facts)
    const due = age + (jitter > 0 ? jittered(wait, jitter, draw('jitter', step)) : wait)
    const bareWait = age === bare.age ? wait : plannedWait(policy, { ...facts, age: bare.age })
    bare.previousWait = bareWait
    bare.age = toMicrosecond(bare.age + bareWait)
    age = grid > 0 ? nextScan(due, age, grid) : Math.min(toMicrosecond(due), lifetime)
  }
}

/** A draw that is named gives the same number however often it is asked for. */
function drawnOnce(draw: () => number): () => number {
  let drawn: number | undefined
  return () => (drawn ??= draw())
}

/** Postfix takes what is due up to a second after the scan (qmgr_scan.c). */
const nextScan = (due: Duration, now: Duration, grid: Duration): Duration =>
  Math.max(Math.ceil((due - SECOND) / grid), Math.floor(now / grid) + 1) * grid
