/**
 * A Clock that advances only when its methods are called. It starts at a fixed instant in UTC and runs timers one by one,
 * earliest first; timers of equal time run in the order in which they were set. `step` sets the wall clock; the monotonic clock
 * never jumps.
 */
import type { Clock, Duration, MachineClock, Timer, WallTime } from '../../system/clock.ts'
import { WallView } from '../../system/wall-view.ts'
import { runsBefore, TimerHeap, type SetTimer } from './timer-heap.ts'

/** 2026-01-01T00:00:00Z, at which every world starts. */
export const BEGINNING = 1_767_225_600_000

type Zone = ReturnType<Clock['zone']>

const UTC: Zone = { offset: 0, name: 'UTC' }

interface VirtualClockOptions {
  readonly startsAt?: WallTime | undefined
  /** The local zone by instant; UTC by default. */
  readonly zone?: ((at: WallTime) => Zone) | undefined
  /** Called when a new timer is due immediately. */
  readonly due?: (() => void) | undefined
}

/** The clock of a machine. It is also a queue's clock that is never apart from the wall clock, so its times fit either clock. */
export class VirtualClock implements MachineClock, Clock {
  readonly wall = new WallView(() => this.now())
  /** Wall clock time when the monotonic clock is 0. */
  #offset: WallTime
  #monotonicTime: Duration = 0
  /** Total time of suspension since the start of the machine. */
  #suspended: Duration = 0
  /** Start of the machine, on the monotonic clock. */
  #startedAt: Duration = 0
  #boot = 1
  #seq = 0
  /** Timers, by times of the monotonic clock. */
  readonly #timers = new TimerHeap()
  /** Alarms, by times of the wall clock. Only they are affected when the wall clock is set. */
  readonly #alarms = new TimerHeap()
  readonly #zone: (at: WallTime) => Zone
  readonly #due: () => void

  constructor({ startsAt = BEGINNING, zone = () => UTC, due = () => undefined }: VirtualClockOptions = {}) {
    this.#offset = startsAt
    this.#zone = zone
    this.#due = due
  }

  now(): number {
    return this.#offset + this.#monotonicTime
  }

  monotonic(): Duration {
    return this.#monotonicTime
  }

  uptime(): Duration {
    return this.#monotonicTime - this.#startedAt + this.#suspended
  }

  get boot(): number {
    return this.#boot
  }

  after(delay: Duration, action: () => void): Timer {
    const timer = this.#set(this.#timers, this.#monotonicTime + Math.max(0, whole(delay)), action)
    if (delay <= 0) this.#due()
    return timer
  }

  alarm(at: number, action: () => void): Timer {
    const alarm = this.#set(this.#alarms, whole(at), action)
    if (at <= this.now()) this.#due()
    return alarm
  }

  zone(at: WallTime): Zone {
    return this.#zone(at)
  }

  /** Number of pending timers and alarms. */
  get pending(): number {
    return this.#timers.size + this.#alarms.size
  }

  /** Wall clock time at which the next timer or alarm runs; null when none is pending. Never in the past. */
  nextAt(): number | null {
    const next = this.#next()
    return next === undefined ? null : next.at + this.#offset
  }

  /** Advances to the next timer or alarm and runs it. Returns false when none is pending. */
  runNext(): boolean {
    const next = this.#next()
    if (next === undefined) return false
    this.#monotonicTime = next.at
    next.heap.take()?.action()
    return true
  }

  /** Advances to an instant without running timers. Throws RangeError for an instant in the past or after a pending timer. */
  jumpTo(at: number): void {
    const target = whole(at) - this.#offset
    if (target < this.#monotonicTime) throw new RangeError(`cannot move to ${at}: it is before ${this.now()}`)
    const next = this.#next()
    if (next !== undefined && next.at < target)
      throw new RangeError(`cannot move to ${at}: a timer is pending at ${next.at + this.#offset}`)
    this.#monotonicTime = target
  }

  /** Sets the wall clock forward, or back when `by` is negative. Timers and the monotonic clock are not affected. */
  step(by: Duration): void {
    this.#offset += whole(by)
  }

  /** Suspends the machine for a time: the wall clock and the uptime advance, but not the monotonic clock and its timers. */
  suspend(time: Duration): void {
    this.#offset += whole(time)
    this.#suspended += whole(time)
  }

  /** Marks a new start of the machine, at which the uptime is 0. */
  reboot(): void {
    this.#boot++
    this.#startedAt = this.#monotonicTime
    this.#suspended = 0
  }

  #set(heap: TimerHeap, at: number, action: () => void): Timer {
    const timer: SetTimer = { at, seq: this.#seq++, action, cancelled: false }
    heap.add(timer)
    return { cancel: () => heap.cancel(timer) }
  }

  /** The next timer or alarm, on the monotonic clock. */
  #next(): { readonly heap: TimerHeap; readonly at: Duration; readonly seq: number } | undefined {
    const timer = this.#timers.peek()
    const alarm = this.#alarms.peek()
    const first = timer && { heap: this.#timers, at: timer.at, seq: timer.seq }
    // An alarm in the past is due now.
    const second = alarm && { heap: this.#alarms, at: Math.max(this.#monotonicTime, alarm.at - this.#offset), seq: alarm.seq }
    if (first === undefined || second === undefined) return first ?? second
    return runsBefore(first, second) ? first : second
  }
}

/** Rounds up to whole milliseconds. */
function whole(time: number): number {
  if (!Number.isFinite(time)) throw new RangeError(`not a time: ${time}`)
  return Math.ceil(time)
}
