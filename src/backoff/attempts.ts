/** Schedules: when a policy tries, counted from arrival. The first attempt is at 0; attempts take no time and fail. */
import type { Duration } from '../mail/clock.ts'
import { mulberry32 } from '../mail/random.ts'
import type { Policy } from './policy-text.ts'
import { PolicyError, type WaitFacts } from './policy.ts'
import { compileAlone, ends, plannedWait, type RetryPolicy, toMicrosecond } from './retry-policy.ts'
import { parseTime } from './time-text.ts'

/** How long to try, as the fault tolerant shell says it: "try for 1 hour or 3 times". */
export interface Limit {
  /** No attempt later than this after arrival. */
  readonly within: Duration
  /** No more attempts than this, the first included. */
  readonly tries: number
}

/** `'1h'`, `'5 tries'`, `'1h or 5 tries'`. */
export function retryUntil(text: string): Limit {
  let limit: Limit = { within: Infinity, tries: Infinity }
  for (const part of text.split(/\bor\b/)) {
    const tries = /^\s*(\d+)\s*(?:tries|try|times|attempts?)\s*$/.exec(part)?.[1]
    const within = tries === undefined ? parseTime(part) : undefined
    if (tries === undefined && within === undefined)
      throw new PolicyError(`"${text.trim()}" is no limit: write a time, a count or both, such as "1h or 5 tries"`)
    limit = tries === undefined ? { ...limit, within: within ?? Infinity } : { ...limit, tries: Number(tries) }
  }
  return limit
}

export interface ScheduleOptions {
  readonly until: Limit | string
  /** Of the chance in the policy; the same seed gives the same schedule. */
  readonly seed?: number
}

/**
 * The times of the attempts, in milliseconds since arrival, down to the microsecond. Ends with the limit or with the policy. A policy
 * compiled for a queue waits whole milliseconds.
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
    if (age > Number.MAX_SAFE_INTEGER && limit.within === Infinity) throw new PolicyError(`the policy overflows after ${step} attempts`)
  }
}
