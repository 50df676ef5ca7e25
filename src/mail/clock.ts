/**
 * Time, as the queue sees it: instants and durations in milliseconds, and the Clock port through which every part
 * learns what time it is and asks to be woken. Nothing else in the project may read the time.
 */

/** Milliseconds since 1970-01-01T00:00:00Z on the wall clock; an integer. */
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

/** Something that was asked to happen later. */
export interface Timer {
  /** Forgets the request; harmless when it already happened. */
  cancel(): void
}

/** The wall, the stopwatch and the alarm clock. */
export interface Clock {
  /** The wall clock; it may jump in either direction. Decides what is due and what has expired. */
  now(): Instant
  /** Milliseconds on a clock that never jumps; only differences mean anything. */
  monotonic(): Duration
  /** Calls `action` once, when the stopwatch has advanced by `delay`: deadlines and pauses. */
  after(delay: Duration, action: () => void): Timer
  /** Calls `action` once, when the wall shows `at` or later, also when the wall was set forward meanwhile. */
  alarm(at: Instant, action: () => void): Timer
  /** The local zone at an instant: minutes east of UTC and its abbreviation. */
  zone(at: Instant): { readonly offset: number; readonly name: string }
}

/** Resolves after `delay` on the stopwatch, or at once when `signal` aborts. */
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
