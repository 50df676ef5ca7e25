/**
 * Repeats a function under a retry policy until it succeeds. An attempt begins when the wait after the failure before it has passed, as in a
 * queue: waits count from the end of an attempt.
 */
import type { Duration, Timer, Timers } from '../system/clock.ts'
import { formatDuration } from '../system/duration.ts'
import { systemClock } from '../system/system-clock.ts'
import { systemRandom } from '../system/system-random.ts'
import { type Limit, retryUntil } from './attempts.ts'
import { formatPolicy, type Policy } from './policy-text.ts'
import { PolicyError, type WaitFacts } from './policy.ts'
import { compileAlone, ends, hasEnd, plannedWait, type RetryPolicy } from './retry-policy.ts'

/** An attempt that begins. */
export interface RetryRun {
  /** 1 for the first. */
  readonly attempt: number
  /** Aborts when the caller gives up, and at the limit of time. */
  readonly signal: AbortSignal
}

/** An attempt that has ended. */
export interface RetryAttempt {
  /** 1 for the first. */
  readonly attempt: number
  /** Time of its begin, in milliseconds since the first one began. */
  readonly at: Duration
  /** Error of a failed attempt; absent for a successful one. */
  readonly error?: unknown
  /** Milliseconds until the next attempt; null when there is none. */
  readonly wait: Duration | null
}

/** Options of `retry`. */
export interface RetryOptions {
  /** Policy as text (`'thain(T=1s,M=1m)'`), parsed, or compiled for a queue. A text has its own defaults. */
  readonly policy: string | Policy | RetryPolicy
  /** Limit, such as `'1h'`, `'5 tries'` or `'1h or 5 tries'`; required for a policy without an end. */
  readonly until?: Limit | string | undefined
  /** Ends the wait and the attempt under way. The promise rejects with its reason. */
  readonly signal?: AbortSignal | undefined
  /** Called after each attempt, also after the successful one. */
  readonly onAttempt?: ((attempt: RetryAttempt) => void) | undefined
  /** Clock of waits and limits; that of the system when absent. */
  readonly clock?: Timers | undefined
}

/** Checks the limit of a policy. Throws PolicyError for a limit that allows no attempt, and without one for a policy that never ends. */
export function limitOf(policy: RetryPolicy, until: Limit | string | undefined): Limit {
  const limit = typeof until === 'string' ? retryUntil(until) : (until ?? { within: Infinity, tries: Infinity })
  if (!(limit.within > 0)) throw new PolicyError(`the limit of time is ${formatDuration(0)}: give a time above 0`)
  if (!(limit.tries >= 1)) throw new PolicyError('the limit is 0 tries: give at least 1')
  if (limit.within === Infinity && limit.tries === Infinity && !hasEnd(policy))
    throw new PolicyError(`the policy ${formatPolicy(policy.policy)} never ends: give a limit such as "1h", "5 tries" or "1h or 5 tries"`)
  return limit
}

/** Thrown when the time of the limit is over before an attempt has ended. */
const timeIsOver = (within: Duration): Error => new PolicyError(`no attempt ended within ${formatDuration(within)}`)

/**
 * Calls `fn` until it resolves, and resolves with its value. Rejects with the error of the last attempt that ended when the policy or the limit
 * ends: at once, when no attempt would begin within it; with PolicyError for options that cannot work, or when no attempt ended within the limit;
 * with the reason of `signal` when that aborts. An attempt that goes on then is told by its own signal, and its result is ignored.
 */
export async function retry<T>(fn: (run: RetryRun) => Promise<T> | T, options: RetryOptions): Promise<T> {
  const { policy: given, until, signal, onAttempt, clock = systemClock } = options
  const policy = typeof given === 'string' || 'kind' in given ? compileAlone(given) : given
  const limit = limitOf(policy, until)
  const give = new Stop(signal, clock, limit.within)
  try {
    const began = clock.monotonic()
    const draw = systemRandom.stream('retry')
    let previousWait: Duration | null = null
    for (let attempt = 1; ; attempt++) {
      const at = clock.monotonic() - began
      const result = await give.during(outcomeOf(fn, { attempt, signal: give.signal }))
      if ('value' in result) {
        onAttempt?.({ attempt, at, wait: null })
        return result.value
      }
      const { error } = result
      give.last = { error }
      const facts: WaitFacts = { step: attempt, age: clock.monotonic() - began, previousWait, draw }
      const wait = ends(policy, facts) || attempt >= limit.tries ? null : plannedWait(policy, facts)
      const isLast = wait === null || facts.age + wait > limit.within
      onAttempt?.({ attempt, at, error, wait: isLast ? null : wait })
      if (isLast) throw error
      previousWait = wait
      await give.pause(wait)
    }
  } finally {
    give.end()
  }
}

type Outcome<T> = { readonly value: T } | { readonly error: unknown }

async function outcomeOf<T>(fn: (run: RetryRun) => Promise<T> | T, run: RetryRun): Promise<Outcome<T>> {
  try {
    return { value: await fn(run) }
  } catch (error) {
    return { error }
  }
}

/** The end of all attempts: by the caller, or at the limit of time. */
class Stop {
  readonly #controller = new AbortController()
  readonly #stopped = Promise.withResolvers<never>()
  readonly #clock: Timers
  readonly #caller: AbortSignal | undefined
  readonly #limit: Timer | null
  /** The last attempt that ended. */
  last: { readonly error: unknown } | null = null

  constructor(caller: AbortSignal | undefined, clock: Timers, within: Duration) {
    this.#clock = clock
    this.#caller = caller
    this.#stopped.promise.catch(() => undefined)
    this.#limit = within === Infinity ? null : clock.after(within, () => this.#stop(this.last?.error ?? timeIsOver(within)))
    if (caller?.aborted === true) this.#abort()
    else caller?.addEventListener('abort', this.#abort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  during<R>(work: Promise<R>): Promise<R> {
    return Promise.race([this.#stopped.promise, work])
  }

  async pause(wait: Duration): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = this.#clock.after(wait, resolve)
    try {
      await this.during(promise)
    } finally {
      timer.cancel()
    }
  }

  end(): void {
    this.#limit?.cancel()
    this.#caller?.removeEventListener('abort', this.#abort)
  }

  readonly #abort = (): void => this.#stop(this.#caller?.reason)

  #stop(reason: unknown): void {
    this.#stopped.reject(reason)
    this.#controller.abort(reason)
  }
}
