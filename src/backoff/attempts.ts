/**
 * Computes the attempt times of a policy, counted from arrival, on the assumption that every attempt fails and takes no time. The
 * first attempt is at 0.
 */
import type { Duration } from '../system/clock.ts'
import { mulberry32 } from '../system/random.ts'
import type { Policy } from './policy-text.ts'
import { PolicyError, type WaitFacts } from './policy.ts'
import { compileAlone, ends, plannedWait, type RetryPolicy, toMicrosecond } from './retry-policy.ts'
import { parseExactDuration } from '../system/duration.ts'

/** End of a schedule. The limit that is reached first applies (as in `try for 1 hour or 3 times` of D. Thain's fault tolerant shell). */
export interface Limit {
  /** Age of the last possible attempt, in milliseconds since arrival; Infinity for no limit. */
  readonly within: Duration
  /** Largest number of attempts, the first included; Infinity for no limit. */
  readonly tries: number
}

/** Parses a limit: `'1h'`, `'5 tries'`, `'1h or 5 tries'`. Throws PolicyError for any other text. */
export function retryUntil(text: string): Limit {
  let limit: Limit = { within: Infinity, tries: Infinity }
  for (const part of text.split(/\bor\b/)) {
    const tries = /^\s*(\d+)\s*(?:tries|try|times|attempts?)\s*$/.exec(part)?.[1]
    const within = tries === undefined ? parseExactDuration(part) : undefined
    if (tries === undefined && within === undefined)
      throw new PolicyError(`"${text.trim()}" is not a limit: write a time, a count or both, such as "1h or 5 tries"`)
    limit = tries === undefined ? { ...limit, within: within ?? Infinity } : { ...limit, tries: Number(tries) }
  }
  return limit
}

/** Options of `attempts`. */
export interface ScheduleOptions {
  /** Limit of the schedule, or its text as `retryUntil` reads it. */
  readonly until: Limit | string
  /** Seed of the random numbers in the policy, default 1; equal seeds give equal schedules. */
  readonly seed?: number
}

/**
 * Yields the attempt times of a policy in milliseconds since arrival, with a resolution of one microsecond (one millisecond for a
 * policy compiled for a queue). A text or a Policy is used with its own defaults. Ends with the limit or with the policy, whichever
 * is first. Throws PolicyError for a text that is not a policy, and when waits grow beyond exact numbers without a limit of time.
 */
export function* attempts(
  policy: string | Policy | RetryPolicy,
  { until, seed = 1 }: ScheduleOptions,
): Generator<Duration, void, undefined> {
  const compiled = typeof policy === 'string' || 'kind' in policy ? compileAlone(policy) : policy
  const limit = typeof until === 'string' ? retryUntil(until) : until
  const draw = mulberry32(seed)
  let previousWait: Duration | null = null
  let age: Duration = 0
  for (let step = 1; step <= limit.tries && age <= limit.within; step++) {
    yield age
    const facts: WaitFacts = { step, age, previousWait, draw }
    if (ends(compiled, facts)) return
    previousWait = plannedWait(compiled, facts)
    age = toMicrosecond(age + previousWait)
    if (age > Number.MAX_SAFE_INTEGER && limit.within === Infinity)
      throw new PolicyError(`the policy overflows after ${step} attempts: set a limit of time`)
  }
}
