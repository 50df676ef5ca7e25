/**
 * Retry policies compiled for use. In a queue, minimal_backoff_time and maximal_backoff_time set a policy's base and cap, and
 * every wait is clamped between them; the waits of `table`, `exim` and `tcp` are used unchanged. Outside a queue, a policy has
 * its own defaults. Some policies end after a number of attempts or a time. In a queue, such a policy repeats its last wait
 * instead, because only maximal_queue_lifetime ends mail.
 */
import type { Duration } from '../system/clock.ts'
import { eximEnds, eximWait } from './exim.ts'
import { formulaOf } from './policies.ts'
import { parsePolicy, type Policy } from './policy-text.ts'
import { type Formula, type Parameters, PolicyError, type WaitFacts } from './policy.ts'
import { tableWait } from './plain.ts'
import { formatDuration } from '../system/duration.ts'

/** A policy with values for all its parameters. Callers treat it as opaque and use `nextWait`. */
export interface RetryPolicy {
  readonly policy: Policy
  /** Values for a formula; empty for `table` and `exim`. */
  readonly parameters: Parameters
  /** True for the policy of a queue: waits are whole milliseconds and the policy never ends. False for a client of the library. */
  readonly inQueue: boolean
  /** Shortest and longest wait in milliseconds; null for literal policies and outside queues. */
  readonly bounds: { readonly minimal: Duration; readonly maximal: Duration } | null
}

/** Retry settings of a queue; times in milliseconds. */
export interface RetrySettings {
  /** Policy as text, such as `doubling`; see parsePolicy. */
  readonly retry_backoff: string
  /** minimal_backoff_time in milliseconds, at least 1. */
  readonly minimal: Duration
  /** maximal_backoff_time in milliseconds, at least `minimal`. */
  readonly maximal: Duration
}

/** Compiles the settings of a queue. Throws PolicyError for settings that cannot work, with the reason. */
export function compileRetryPolicy({ retry_backoff, minimal, maximal }: RetrySettings): RetryPolicy {
  if (minimal > maximal)
    throw new PolicyError(`minimal_backoff_time (${formatDuration(minimal)}) is above maximal_backoff_time (${formatDuration(maximal)})`)
  if (minimal < 1) throw new PolicyError('minimal_backoff_time is 0, which would retry without end')
  if (!Number.isSafeInteger(minimal) || !Number.isSafeInteger(maximal))
    throw new PolicyError('minimal_backoff_time and maximal_backoff_time must be whole milliseconds below 2^53')
  const policy = parsePolicy(retry_backoff)
  if (policy.kind !== 'formula') return { policy, parameters: {}, inQueue: true, bounds: null }
  const formula = formulaOf(policy.name)
  const filled: Record<string, number> = { ...defaultsOf(formula) }
  if (formula.literal !== true) {
    if (formula.base !== undefined) filled[formula.base] = minimal
    if (formula.cap !== undefined) filled[formula.cap] = maximal
  }
  for (const name of formula.endsByTime ?? []) filled[name] = 0
  const parameters = { ...filled, ...policy.given }
  checkOrder(formula, parameters)
  return { policy, parameters, inQueue: true, bounds: formula.literal === true ? null : { minimal, maximal } }
}

/** Compiles a policy with its own defaults, for `attempts` and the planner. Throws PolicyError. */
export function compileAlone(text: string | Policy): RetryPolicy {
  const policy = typeof text === 'string' ? parsePolicy(text) : text
  if (policy.kind !== 'formula') return { policy, parameters: {}, inQueue: false, bounds: null }
  const formula = formulaOf(policy.name)
  const parameters = { ...defaultsOf(formula), ...policy.given }
  checkOrder(formula, parameters)
  return { policy, parameters, inQueue: false, bounds: null }
}

const defaultsOf = (formula: Formula): Parameters =>
  Object.fromEntries(Object.entries(formula.parameters).map(([name, parameter]) => [name, parameter.default]))

function checkOrder({ base, cap }: Formula, parameters: Parameters): void {
  const first = base === undefined ? undefined : parameters[base]
  const longest = cap === undefined ? undefined : parameters[cap]
  // A cap of 0 means no cap.
  if (first !== undefined && longest !== undefined && longest > 0 && first > longest)
    throw new PolicyError(`the first wait (${base} = ${formatDuration(first)}) is above the longest (${cap} = ${formatDuration(longest)})`)
}

/** Wait by the formula in milliseconds, not rounded; clamped for the policy of a queue. Throws PolicyError when this is not a number. */
export function exactWait({ policy, parameters, bounds }: RetryPolicy, facts: WaitFacts): number {
  const wait = unclamped(policy, parameters, facts)
  if (Number.isNaN(wait)) throw new PolicyError(`the policy overflows after ${facts.step} attempts`)
  return bounds === null ? wait : Math.max(bounds.minimal, Math.min(wait, bounds.maximal))
}

function unclamped(policy: Policy, parameters: Parameters, facts: WaitFacts): number {
  if (policy.kind === 'table') return tableWait(policy.waits, facts.step)
  if (policy.kind === 'exim') return eximWait(policy.rules, facts)
  const formula = formulaOf(policy.name)
  const stays = formula.endsByTime !== undefined && formula.ends?.(parameters, facts) === true
  return stays && facts.previousWait !== null ? facts.previousWait : formula.wait(parameters, facts)
}

/** Wait of a queue after a failed attempt: whole milliseconds, at least 1. Throws PolicyError when the formula overflows. */
export const nextWait = (policy: RetryPolicy, facts: WaitFacts): Duration => Math.max(1, Math.round(exactWait(policy, facts)))

/** Wait as schedules count it: `nextWait` for a queue, otherwise with a resolution of 1 µs (Ethernet's slot is 51.2 µs). */
export const plannedWait = (policy: RetryPolicy, facts: WaitFacts): Duration =>
  policy.inQueue ? nextWait(policy, facts) : toMicrosecond(exactWait(policy, facts))

/** Rounds milliseconds to whole microseconds. */
export const toMicrosecond = (duration: Duration): Duration => Math.round(duration * 1000) / 1000

/** True if the policy ends with this failure; never for the policy of a queue. */
export function ends({ policy, parameters, inQueue }: RetryPolicy, facts: WaitFacts): boolean {
  if (inQueue) return false
  if (policy.kind === 'exim') return eximEnds(policy.rules, facts.age)
  return policy.kind === 'formula' && formulaOf(policy.name).ends?.(parameters, facts) === true
}

/** True if the policy ends by itself, however late; never for the policy of a queue. */
export const hasEnd = (policy: RetryPolicy): boolean =>
  ends(policy, { step: Number.MAX_SAFE_INTEGER, age: Number.MAX_SAFE_INTEGER, previousWait: null, draw: () => 0 })

/** Applies retry_jitter: spreads a wait over [w, w·(1+j)] by a draw from [0, 1); whole milliseconds, never shorter than the wait. */
export const jittered = (wait: Duration, jitter: number, draw: number): Duration => Math.round(wait * (1 + jitter * draw))

/** True if a wait depends on the previous one, which a queue must then compute first. */
export function buildsOnPreviousWait({ policy }: RetryPolicy): boolean {
  if (policy.kind !== 'formula') return policy.kind === 'exim'
  const { usesPreviousWait, endsByTime } = formulaOf(policy.name)
  return usesPreviousWait === true || endsByTime !== undefined
}
