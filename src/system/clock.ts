/** Instants and durations in milliseconds, and the Clock port, which is the only source of time and timers in the project. */

/** Milliseconds since 1970-01-01T00:00:00Z; an integer. */
export type Instant = number

/** A span of time in milliseconds. */
export type Duration = number

export const SECOND: Duration = 1_000
export const MINUTE: Duration = 60 * SECOND
export const HOUR: Duration = 60 * MINUTE
export const DAY: Duration = 24 * HOUR

export const seconds = (n: number): Duration => n * SECOND
export const minutes = (n: number): Duration => n * MINUTE
export const hours = (n: number): Duration => n * HOUR
export const days = (n: number): Duration => n * DAY

/** A pending call of `after` or `alarm`. */
export interface Timer {
  /** Cancels the call. Has no effect when the action has run. */
  cancel(): void
}

/** Time of day, monotonic clock and timers. */
export interface Clock {
  /**
   * The current time. A machine's clock returns the wall clock, which may jump in either direction. A QueueClock continues evenly
   * when the wall clock is set; it decides whether mail is due or expired.
   */
  now(): Instant
  /** `now()` minus the wall clock; 0 for a machine's clock. Subtracting it converts an instant to wall clock time. */
  wallOffset(): Duration
  /** The monotonic clock, which never jumps; only differences are meaningful. */
  monotonic(): Duration
  /** Calls `action` once, after `delay` on the monotonic clock. Used for time limits and pauses. */
  after(delay: Duration, action: () => void): Timer
  /** Calls `action` once, when `now()` reaches `at`. */
  alarm(at: Instant, action: () => void): Timer
  /** Local time zone at a wall clock time: minutes east of UTC, and the zone's abbreviation. */
  zone(at: Instant): { readonly offset: number; readonly name: string }
}

/** The clock of a machine, with what is needed to distinguish elapsed time from a change of the wall clock. */
export interface MachineClock extends Clock {
  /** Time since the machine started, including suspension, which `monotonic` does not include. */
  uptime(): Duration
  /** Identifies the start (boot) of the machine; a safe integer, 0 when unknown. */
  readonly boot: number
}

/** Resolves after `delay` on the monotonic clock, or at once when `signal` aborts. */
export function sleep(clock: Clock, delay: Duration, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve()
    const timer = clock.after(delay, () => {
      signal?.removeEventListener('abort', wake)
      resolve()
    })
    const wake = () => {
      timer.cancel()
      resolve()
    }
    signal?.addEventListener('abort', wake, { once: true })
  })
}

/**
 * Resolves with the result of `answer`. Resolves with undefined when `answer` takes longer than `wait` or `signal` aborts; a
 * later result is ignored.
 */
export function withTimeout<T>(answer: Promise<T>, clock: Clock, wait: Duration, signal?: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      timer.cancel()
      signal?.removeEventListener('abort', resolveEmpty)
    }
    const resolveEmpty = (): void => {
      stop()
      resolve(undefined)
    }
    const timer = clock.after(signal?.aborted === true ? 0 : Math.max(0, wait), resolveEmpty)
    signal?.addEventListener('abort', resolveEmpty, { once: true })
    answer.then(resolve, reject).finally(stop)
  })
}
