/** `deferd/backoff`: retry policies as data, pure and seeded. Times are in milliseconds. */
export { attempts, type Limit, retryUntil, type ScheduleOptions } from './attempts.ts'
export { EXIM_DEFAULT, type EximRule, parseEximRules } from './exim.ts'
export { FORMULAS, type FormulaName, SCHEDULES } from './policies.ts'
export { type Formula, type Parameter, type Parameters, PolicyError, type WaitFacts } from './policy.ts'
export { formatPolicy, isPolicyName, parsePolicy, type Policy, POLICY_NAMES } from './policy-text.ts'
export {
  compileAlone,
  compileRetryPolicy,
  ends,
  exactWait,
  jittered,
  nextWait,
  plannedWait,
  type QueueBackoff,
  type RetryPolicy,
  toMicrosecond,
} from './retry-policy.ts'
