/**
 * A retry policy: data plus one formula. A formula is a function of WaitFacts alone: equal facts and draws give equal waits,
 * in any order of calls.
 */
import type { Duration } from '../system/clock.ts'

/** A policy or a setting of it that cannot work; the message is one sentence with the setting and the reason. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError'
}

/** Input of a formula after a failed attempt. */
export interface WaitFacts {
  /** Position on the retry schedule: failed attempts, without flushed ones; 1 after the first failure. */
  readonly step: number
  /** Time from arrival to the end of the failed attempt, in milliseconds. */
  readonly age: Duration
  /** Wait before the failed attempt, in milliseconds; null after the first attempt. */
  readonly previousWait: Duration | null
  /** Draws a random number in [0, 1). */
  readonly draw: () => number
}

/** One number that the text of a policy can set. */
export interface Parameter {
  /** `time`: milliseconds; `count`: a whole number. */
  readonly unit: 'time' | 'number' | 'count'
  readonly default: number
  /** Smallest accepted value. */
  readonly least: number
  /** Meaning, for docs/backoff.md. */
  readonly about: string
}

/** Values of parameters by name; times in milliseconds. */
export type Parameters<K extends string = string> = Readonly<Record<K, number>>

/** A formula with its parameters: an entry in the table of policies. */
export type Formula<K extends string = string> =
  | (FormulaOf<K, Omit<WaitFacts, 'previousWait'>> & { readonly usesPreviousWait?: undefined })
  /** Its waits depend on the previous one. */
  | (FormulaOf<K, WaitFacts> & { readonly usesPreviousWait: true })

interface FormulaOf<K extends string, Facts> {
  /** Meaning in one line, for docs/backoff.md and the help of commands. */
  readonly about: string
  /** Origin of the formula and of its defaults. */
  readonly source: string
  readonly parameters: Readonly<Record<K, Parameter>>
  /** Parameter that takes the value of minimal_backoff_time in a queue. */
  readonly base?: NoInfer<K>
  /** Parameter that takes the value of maximal_backoff_time in a queue. */
  readonly cap?: NoInfer<K>
  /** Parameters that end the policy by elapsed time; 0 in a queue, where maximal_queue_lifetime ends mail. */
  readonly endsByTime?: readonly NoInfer<K>[]
  /** Set if a queue does not clamp the wait between minimal_backoff_time and maximal_backoff_time. */
  readonly literal?: true
  /** Computes the wait in milliseconds, not rounded. After the end of the policy it returns the last wait again. */
  wait(parameters: Parameters<NoInfer<K>>, facts: Facts): number
  /** True if the policy ends with this failure; absent for a policy without an end. */
  ends?(parameters: Parameters<NoInfer<K>>, facts: Facts): boolean
}

/** Returns its argument; the compiler infers the names of the parameters from it. */
export const formula = <K extends string>(definition: Formula<K>): Formula<K> => definition

export const time = (byDefault: Duration, about: string, least = 0.001): Parameter => ({ unit: 'time', default: byDefault, least, about })
export const number = (byDefault: number, about: string, least = 0): Parameter => ({ unit: 'number', default: byDefault, least, about })
export const count = (byDefault: number, about: string, least = 0): Parameter => ({ unit: 'count', default: byDefault, least, about })
