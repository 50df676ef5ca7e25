/** Durations in milliseconds, and the Clock port, which is the only source of time and timers in the project. */
import type { QueueTime, WallTime, WallView } from './wall-view.ts'

export type { QueueTime, WallTime } from './wall-view.ts'

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

/** Timers on the monotonic clock, which never jumps. */
export interface Timers {
  /** The monotonic clock; only differences are meaningful. */
  monotonic(): Duration
  /** Calls `action` once, after `delay` on the monotonic clock. Used for time limits and pauses. */
  after(delay: Duration, action: () => void): Timer
}

interface TimeOfDay<Time> extends Timers {
  now(): Time
  /** Calls `action` once, when `now()` reaches `at`. */
  alarm(at: Time, action: () => void): Timer
  /** Local time zone at a wall clock time: minutes east of UTC, and the zone's abbreviation. */
  zone(at: WallTime): { readonly offset: number; readonly name: string }
}

/** The clock of a queue. It continues evenly when the wall clock is set, and decides whether mail is due or expired. */
export interface Clock extends TimeOfDay<QueueTime> {
  /** Converts instants of this clock to wall clock time. */
  readonly wall: WallView
}

/** The clock of a machine: the wall clock, and what is needed to distinguish elapsed time from a change of it. */
export interface MachineClock extends TimeOfDay<WallTime> {
  /** Time since the machine started, including suspension, which `monotonic` does not include. */
  uptime(): Duration
  /** Identifies the start (boot) of the machine; a safe integer, 0 when unknown. */
  readonly boot: number
}

/** Resolves after `delay` on the monotonic clock, or at once when `signal` aborts. */
export function sleep(clock: Pick<Timers, 'after'>, delay: Duration, signal?: AbortSignal): Promise<void> {
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

/** Resolves with the result of `answer`, or with undefined after `wait` or when `signal` aborts; a later result is ignored. */
export function withTimeout<T>(
  answer: Promise<T>,
  clock: Pick<Timers, 'after'>,
  wait: Duration,
  signal?: AbortSignal,
): Promise<T | undefined> {
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
