/**
 * The Clock of this machine: wall, stopwatch and alarms. Long waits are slept in slices, because a timer of more than
 * 24.8 days fires at once; alarms look at the wall once a second, so that they follow it when it is set.
 */
import { HOUR, SECOND, type Clock, type Duration, type Instant, type Timer } from '../mail/clock.ts'

/** The longest single sleep. */
const SLICE: Duration = HOUR
/** How late an alarm may notice that the wall clock was set forward. */
const WALL_CHECK: Duration = SECOND

// Made when it is first needed: that takes 10 ms, and most commands never name a zone.
let formats: Intl.DateTimeFormat | undefined

function zoneName(date: Date): string {
  formats ??= new Intl.DateTimeFormat('en-US', { timeZoneName: 'short' })
  return formats.formatToParts(date).find((part) => part.type === 'timeZoneName')?.value ?? 'UTC'
}

class SystemClock implements Clock {
  now(): Instant {
    return Date.now()
  }

  monotonic(): Duration {
    return Math.floor(performance.now())
  }

  after(delay: Duration, action: () => void): Timer {
    const deadline = this.monotonic() + Math.max(0, delay)
    return inSlices(() => deadline - this.monotonic(), SLICE, action)
  }

  alarm(at: Instant, action: () => void): Timer {
    return inSlices(() => at - this.now(), WALL_CHECK, action)
  }

  zone(at: Instant): { readonly offset: number; readonly name: string } {
    const date = new Date(at)
    return {
      // 0 - x, because minus zero would print as "-0000", which means "zone unknown" (RFC 5322 §3.3).
      offset: 0 - date.getTimezoneOffset(),
      get name() {
        return zoneName(date)
      },
    }
  }
}

/** Runs `action` when nothing is left to wait for; asks again after each slice. */
function inSlices(left: () => Duration, slice: Duration, action: () => void): Timer {
  let handle: NodeJS.Timeout
  const wait = () => {
    handle = setTimeout(check, Math.min(slice, Math.max(0, left())))
  }
  const check = () => (left() <= 0 ? action() : wait())
  // Never at once, even when nothing is left: the caller must have the Timer before the action runs.
  wait()
  return { cancel: () => clearTimeout(handle) }
}

export const systemClock: Clock = new SystemClock()
