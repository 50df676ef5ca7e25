/**
 * A policy at work: in a queue, where minimal_backoff_time is its base and maximal_backoff_time its cap and every formula is clamped
 * between them (`table`, `exim` and `tcp` are literal), or alone, with its own defaults. In a queue a policy that ends stays at its last
 * wait: only the lifetime ends mail.
 */
import type { Duration } from '../mail/clock.ts'
import { eximEnds, eximWait } from './exim.ts'
import { formulaOf } from './policies.ts'
import { parsePolicy, type Policy } from './policy-text.ts'
import { type Formula, type Parameters, PolicyError, type WaitFacts } from './policy.ts'
import { tableWait } from './plain.ts'
import { formatTime } from './time-text.ts'

/** A policy whose parameters are all known. Opaque to the queue: it asks nextWait. */
export interface RetryPolicy {
  readonly policy: Policy
  /** Of a formula, else empty. */
  readonly parameters: Parameters
  /** A queue's policy waits whole milliseconds and never ends: the lifetime ends the mail. */
  readonly inQueue: boolean
  /** What every wait is clamped between; null for literal policies and outside of queues. */
  readonly bounds: { readonly minimal: Duration; readonly maximal: Duration } | null
}

export interface QueueBackoff {
  readonly retry_backoff: string
  readonly minimal: Duration
  readonly maximal: Duration
}

/** Reads a queue's settings; throws a PolicyError for settings that cannot work. */
export function compileRetryPolicy({ retry_backoff, minimal, maximal }: QueueBackoff): RetryPolicy {
  if (minimal > maximal)
    throw new PolicyError(`minimal_backoff_time (${formatTime(minimal)}) is above maximal_backoff_time (${formatTime(maximal)})`)
  if (minimal < 1) throw new PolicyError('minimal_backoff_time is 0, which would try without end')
  if (!Number.isSafeInteger(minimal) || !Number.isSafeInteger(maximal)) throw new PolicyError('a backoff time overflows')
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

/** The policy with its own defaults, for the library and the planner. */
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
  // A cap of 0 is the writing for "none".
  if (first !== undefined && longest !== undefined && longest > 0 && first > longest)
    throw new PolicyError(`the first wait (${base} = ${formatTime(first)}) is above the longest (${cap} = ${formatTime(longest)})`)
}

/** The wait by the formula, clamped where the policy is a queue's; not rounded. */
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

/** How long a queue waits after a failed attempt, in whole milliseconds. */
export const nextWait = (policy: RetryPolicy, facts: WaitFacts): Duration => Math.max(1, Math.round(exactWait(policy, facts)))

/** The wait as the schedules count it: like nextWait in a queue, to the microsecond alone (Ethernet's slot is 51.2 µs). */
export const plannedWait = (policy: RetryPolicy, facts: WaitFacts): Duration =>
  policy.inQueue ? nextWait(policy, facts) : toMicrosecond(exactWait(policy, facts))

export const toMicrosecond = (duration: Duration): Duration => Math.round(duration * 1000) / 1000

/** Does the policy give up after this failure? Never in a queue. */
export function ends({ policy, parameters, inQueue }: RetryPolicy, facts: WaitFacts): boolean {
  if (inQueue) return false
  if (policy.kind === 'exim') return eximEnds(policy.rules, facts.age)
  return policy.kind === 'formula' && formulaOf(policy.name).ends?.(parameters, facts) === true
}

/** retry_jitter: spreads a wait over [w, w·(1+j)], whole milliseconds; never earlier than the policy says. */
export const jittered = (wait: Duration, jitter: number, draw: number): Duration => Math.round(wait * (1 + jitter * draw))

/** Does the next wait depend on the one before it? Then a queue must know that one to ask for the next. */
export const buildsOnPreviousWait = ({ policy }: RetryPolicy): boolean =>
  policy.kind === 'exim' ||
  (policy.kind === 'formula' && (policy.name === 'aws-decorrelated' || formulaOf(policy.name).endsByTime !== undefined))
