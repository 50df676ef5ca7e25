/**
 * A retry policy: data plus one formula. What a formula may know is in WaitFacts, so that it can be asked for any wait
 * at any time and gives the same answer for the same facts and draws.
 */
import type { Duration } from '../mail/clock.ts'

/** A setting that cannot work. The message is one sentence that says what and why. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError'
}

/** What a formula sees when an attempt has failed. */
export interface WaitFacts {
  /** How many attempts that counted have failed; 1 after the first failure. */
  readonly step: number
  /** Time since arrival, at the end of the failed attempt. */
  readonly age: Duration
  /** The wait before the failed attempt; null after the first. */
  readonly previousWait: Duration | null
  /** Chance: a number in [0, 1). */
  readonly draw: () => number
}

/** One number that a policy can be given in its text; times are in milliseconds, there and here. */
export interface Parameter {
  readonly unit: 'time' | 'number' | 'count'
  readonly default: number
  readonly least: number
  readonly about: string
}

export type Parameters<K extends string = string> = Readonly<Record<K, number>>

/** A formula with its parameters, as it stands in the table of policies. */
export interface Formula<K extends string = string> {
  readonly about: string
  /** Where formula and defaults come from. */
  readonly source: string
  readonly parameters: Readonly<Record<K, Parameter>>
  /** The parameter that a queue's minimal_backoff_time stands in for. */
  readonly base?: NoInfer<K>
  /** The parameter that a queue's maximal_backoff_time stands in for. */
  readonly cap?: NoInfer<K>
  /** Parameters that end the policy by elapsed time: in a queue the lifetime does that. */
  readonly endsByTime?: readonly NoInfer<K>[]
  /** A queue does not clamp this formula between its minimum and maximum. */
  readonly literal?: true
  /** The wait in milliseconds, not yet rounded; what the formula yields after its end is its last wait. */
  wait(parameters: Parameters<NoInfer<K>>, facts: WaitFacts): number
  /** Does the policy give up after this failure? Absent: never. */
  ends?(parameters: Parameters<NoInfer<K>>, facts: WaitFacts): boolean
}

/** Lets the compiler find the names of the parameters. */
export const formula = <K extends string>(definition: Formula<K>): Formula<K> => definition

export const time = (byDefault: Duration, about: string, least = 0.001): Parameter => ({ unit: 'time', default: byDefault, least, about })
export const number = (byDefault: number, about: string, least = 0): Parameter => ({ unit: 'number', default: byDefault, least, about })
export const count = (byDefault: number, about: string, least = 0): Parameter => ({ unit: 'count', default: byDefault, least, about })
