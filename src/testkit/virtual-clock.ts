/**
 * A Clock that moves only when it is told to. It starts at a fixed instant in UTC; timers run one by one, earliest
 * first, and among equals in the order they were set. The wall can be set (`step`); the stopwatch never jumps.
 */
import type { Clock, Duration, Instant, Timer } from '../mail/clock.ts'
import { runsBefore, TimerHeap, type SetTimer } from './timer-heap.ts'

/** 2026-01-01T00:00:00Z: when every world begins. */
export const BEGINNING: Instant = 1_767_225_600_000

type Zone = ReturnType<Clock['zone']>

const UTC: Zone = { offset: 0, name: 'UTC' }

export interface VirtualClockOptions {
  readonly startsAt?: Instant | undefined
  /** The local zone by instant; UTC when absent. */
  readonly zone?: ((at: Instant) => Zone) | undefined
  /** Told when something was set that is due without any time passing. */
  readonly due?: (() => void) | undefined
}

export class VirtualClock implements Clock {
  /** What the wall shows when the stopwatch shows zero. */
  #offset: Instant
  #stopwatch: Duration = 0
  #seq = 0
  /** Timers by stopwatch, and alarms by wall: setting the wall moves all alarms and none of the timers. */
  readonly #timers = new TimerHeap()
  readonly #alarms = new TimerHeap()
  readonly #zone: (at: Instant) => Zone
  readonly #due: () => void

  constructor({ startsAt = BEGINNING, zone = () => UTC, due = () => undefined }: VirtualClockOptions = {}) {
    this.#offset = startsAt
    this.#zone = zone
    this.#due = due
  }

  now(): Instant {
    return this.#offset + this.#stopwatch
  }

  monotonic(): Duration {
    return this.#stopwatch
  }

  after(delay: Duration, action: () => void): Timer {
    const timer = this.#set(this.#timers, this.#stopwatch + Math.max(0, whole(delay)), action)
    if (delay <= 0) this.#due()
    return timer
  }

  alarm(at: Instant, action: () => void): Timer {
    const alarm = this.#set(this.#alarms, whole(at), action)
    if (at <= this.now()) this.#due()
    return alarm
  }

  zone(at: Instant): Zone {
    return this.#zone(at)
  }

  /** How many timers and alarms wait. */
  get pending(): number {
    return this.#timers.size + this.#alarms.size
  }

  /** What the wall will show when the next timer or alarm runs; null when nothing waits. Never in the past. */
  nextAt(): Instant | null {
    const next = this.#next()
    return next === undefined ? null : next.at + this.#offset
  }

  /** Moves to the next timer or alarm and runs it; false when nothing waits. */
  runNext(): boolean {
    const next = this.#next()
    if (next === undefined) return false
    this.#stopwatch = next.at
    next.heap.take()?.action()
    return true
  }

  /** Moves to an instant without running anything. Refuses to go back, or past something that waits to be run. */
  jumpTo(at: Instant): void {
    const target = whole(at) - this.#offset
    if (target < this.#stopwatch) throw new RangeError(`time does not run backwards: ${at} is before ${this.now()}`)
    const next = this.#next()
    if (next !== undefined && next.at < target) throw new RangeError(`a timer waits at ${next.at + this.#offset}, before ${at}`)
    this.#stopwatch = target
  }

  /** Sets the wall clock forward, or back when negative. Alarms follow the wall; timers and the stopwatch do not notice. */
  step(by: Duration): void {
    this.#offset += whole(by)
  }

  #set(heap: TimerHeap, at: number, action: () => void): Timer {
    const timer: SetTimer = { at, seq: this.#seq++, action, cancelled: false }
    heap.add(timer)
    return { cancel: () => heap.cancel(timer) }
  }

  /** The next timer or alarm, on the stopwatch. */
  #next(): { readonly heap: TimerHeap; readonly at: Duration; readonly seq: number } | undefined {
    const timer = this.#timers.peek()
    const alarm = this.#alarms.peek()
    const first = timer && { heap: this.#timers, at: timer.at, seq: timer.seq }
    // An alarm that the wall has passed is due now.
    const second = alarm && { heap: this.#alarms, at: Math.max(this.#stopwatch, alarm.at - this.#offset), seq: alarm.seq }
    if (first === undefined || second === undefined) return first ?? second
    return runsBefore(first, second) ? first : second
  }
}

/** Times are whole milliseconds: a fraction waits for the end of its millisecond. */
function whole(time: number): number {
  if (!Number.isFinite(time)) throw new RangeError(`not a time: ${time}`)
  return Math.ceil(time)
}
