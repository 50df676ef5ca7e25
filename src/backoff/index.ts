/**
 * `deferd/backoff`: retry policies as data and formulas. Pure and seeded: equal arguments give equal results. Times are
 * milliseconds. docs/backoff.md lists the policies.
 */
import '../system/supported-node.ts'

export { attempts, type Limit, retryUntil, type ScheduleOptions } from './attempts.ts'
export type { EximRule } from './exim.ts'
export type { FormulaName } from './policies.ts'
export { type Parameters, PolicyError, type WaitFacts } from './policy.ts'
export { formatPolicy, parsePolicy, type Policy, POLICY_NAMES } from './policy-text.ts'
export type { Duration, Timer, Timers } from '../system/clock.ts'
export { retry, type RetryAttempt, type RetryOptions, type RetryRun } from './retry.ts'
export { compileRetryPolicy, jittered, nextWait, type RetrySettings, type RetryPolicy } from './retry-policy.ts'
