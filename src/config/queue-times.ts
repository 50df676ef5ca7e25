/** Compares the queue's times with each other, for the relay and for each `[destination."…"]` and `[provider.NAME]` table. */
import { PolicyError } from '../backoff/policy.ts'
import { compileRetryPolicy } from '../backoff/retry-policy.ts'
import type { Duration } from '../system/clock.ts'
import type { Config, DestinationSettings } from './options.ts'
import type { Problem } from './values/problem.ts'
import type { RawValue } from './values/sources.ts'

export const TIMES = [
  'retry_backoff',
  'minimal_backoff_time',
  'maximal_backoff_time',
  'maximal_queue_lifetime',
  'bounce_queue_lifetime',
] as const

export type Times = Pick<Config, (typeof TIMES)[number]>

export class QueueTimes {
  readonly warnings: string[] = []
  readonly #problems: Problem[]

  constructor(problems: Problem[]) {
    this.#problems = problems
  }

  /**
   * Checks effective times. The texts of problems begin with `inside`; `placeOf` returns the position of a value, undefined for a default.
   * Returns the effective bounce_queue_lifetime, which is at most maximal_queue_lifetime.
   */
  check(times: Times, inside: string, placeOf: (name: keyof Times) => string | undefined): Duration {
    if (times.minimal_backoff_time > times.maximal_backoff_time) {
      const where = placeOf('minimal_backoff_time') ?? placeOf('maximal_backoff_time') ?? 'default'
      this.#problems.push({ where, text: `${inside}minimal_backoff_time is above maximal_backoff_time` })
      return times.bounce_queue_lifetime
    }
    const backoffPlace = placeOf('retry_backoff') ?? placeOf('minimal_backoff_time') ?? placeOf('maximal_backoff_time')
    this.#checkBackoff(times, inside, backoffPlace ?? 'default')
    if (times.bounce_queue_lifetime <= times.maximal_queue_lifetime) return times.bounce_queue_lifetime
    const where = placeOf('bounce_queue_lifetime')
    if (where !== undefined) {
      this.warnings.push(`${where}: ${inside}bounce_queue_lifetime is above maximal_queue_lifetime, which is used instead`)
    }
    return times.maximal_queue_lifetime
  }

  /** Checks the shortest and the longest wait. Returns false with a problem, whose text begins with `inside`. */
  agree(times: Times, inside: string, placeOf: (name: keyof Times) => string | undefined): boolean {
    const where = placeOf('minimal_backoff_time') ?? placeOf('maximal_backoff_time')
    if (where === undefined) return true
    const before = this.#problems.length
    if (times.minimal_backoff_time > times.maximal_backoff_time)
      this.#problems.push({ where, text: `${inside}minimal_backoff_time is above maximal_backoff_time; set both in the table` })
    else this.#checkBackoff(times, inside, where)
    return this.#problems.length === before
  }

  #checkBackoff(times: Times, inside: string, where: string): void {
    const { retry_backoff, minimal_backoff_time: minimal, maximal_backoff_time: maximal } = times
    try {
      compileRetryPolicy({ retry_backoff, minimal, maximal })
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      this.#problems.push({ where, text: `${inside}retry_backoff: ${error.message}` })
    }
  }
}

interface TableContext {
  /** Begin of each problem's text. */
  readonly inside: string
  readonly relay: Times
  /** Raw values of the table. */
  readonly own: ReadonlyMap<string, RawValue> | undefined
  /** Raw values of the relay. */
  readonly given: ReadonlyMap<string, RawValue>
  readonly queueTimes: QueueTimes
}

/**
 * Checks the times of one table; where the table has none, the relay's times apply. Returns the table's parameters with the effective
 * bounce_queue_lifetime.
 */
export function fitTable(settings: DestinationSettings, { inside, relay, own, given, queueTimes }: TableContext): DestinationSettings {
  // bounce_queue_lifetime defaults to $maximal_queue_lifetime, also in a table.
  const follows = settings.maximal_queue_lifetime !== undefined && !given.has('bounce_queue_lifetime')
  const times: Times = {
    retry_backoff: settings.retry_backoff ?? relay.retry_backoff,
    minimal_backoff_time: settings.minimal_backoff_time ?? relay.minimal_backoff_time,
    maximal_backoff_time: settings.maximal_backoff_time ?? relay.maximal_backoff_time,
    maximal_queue_lifetime: settings.maximal_queue_lifetime ?? relay.maximal_queue_lifetime,
    bounce_queue_lifetime:
      settings.bounce_queue_lifetime ?? (follows ? settings.maximal_queue_lifetime : undefined) ?? relay.bounce_queue_lifetime,
  }
  const bounces = queueTimes.check(times, inside, (name) => own?.get(name)?.where)
  return bounces === relay.bounce_queue_lifetime ? settings : { ...settings, bounce_queue_lifetime: bounces }
}
