/**
 * The system's Clock. Long waits are divided into slices, because setTimeout fires at once for more than 24.8 days. Alarms are
 * compared with the wall clock once a second, so that they follow changes of the clock.
 */
import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import { HOUR, SECOND, type Duration, type WallTime, type MachineClock, type Timer } from './clock.ts'

const TIMER_LIMIT: Duration = HOUR
/** Maximum time until an alarm notices that the wall clock was set forward. */
const WALL_CHECK: Duration = SECOND

// Created at first use, because that takes 10 ms and most commands do not need it.
let formats: Intl.DateTimeFormat | undefined

function zoneName(date: Date): string {
  formats ??= new Intl.DateTimeFormat('en-US', { timeZoneName: 'short' })
  return formats.formatToParts(date).find((part) => part.type === 'timeZoneName')?.value ?? 'UTC'
}

/** Linux has a random number for each start of the machine (random(4)); 48 bits of it fit into an integer. */
function bootId(): number {
  try {
    return Number.parseInt(readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').replaceAll('-', '').slice(0, 12), 16) || 0
  } catch {
    // Other systems, and containers without /proc: unknown.
    return 0
  }
}

class SystemClock implements MachineClock {
  #boot: number | undefined

  now(): WallTime {
    return Date.now()
  }

  uptime(): Duration {
    return Math.round(uptime() * SECOND)
  }

  get boot(): number {
    return (this.#boot ??= bootId())
  }

  monotonic(): Duration {
    return Math.floor(performance.now())
  }

  after(delay: Duration, action: () => void): Timer {
    const deadline = this.monotonic() + Math.max(0, delay)
    return new SlicedTimer(() => deadline - this.monotonic(), TIMER_LIMIT, action)
  }

  alarm(at: WallTime, action: () => void): Timer {
    return new SlicedTimer(() => at - this.now(), WALL_CHECK, action)
  }

  zone(at: WallTime): { readonly offset: number; readonly name: string } {
    const date = new Date(at)
    return {
      // `0 - x` avoids minus zero, which would be printed as "-0000" and mean "zone unknown" (RFC 5322 §3.3).
      offset: 0 - date.getTimezoneOffset(),
      get name() {
        return zoneName(date)
      },
    }
  }
}

/** Runs `action` when `left` returns 0 or less. Checks after each slice. One object, because each connection has several timers. */
class SlicedTimer implements Timer {
  readonly #left: () => Duration
  readonly #slice: Duration
  readonly #action: () => void
  #handle: NodeJS.Timeout

  constructor(left: () => Duration, slice: Duration, action: () => void) {
    this.#left = left
    this.#slice = slice
    this.#action = action
    // The action runs asynchronously even when `left` is 0, because the caller must have the Timer first.
    this.#handle = this.#wait()
  }

  cancel(): void {
    clearTimeout(this.#handle)
  }

  #wait(): NodeJS.Timeout {
    return setTimeout(SlicedTimer.#check, Math.min(this.#slice, Math.max(0, this.#left())), this)
  }

  static #check(this: void, timer: SlicedTimer): void {
    if (timer.#left() <= 0) timer.#action()
    else timer.#handle = timer.#wait()
  }
}

export const systemClock: MachineClock = new SystemClock()

/** Time in ms with fractions, from a fixed point in the past. Measures short durations; the clock counts whole ms. */
export const stopwatch = (): number => performance.now()
