/**
 * The Clock of a queue. It continues evenly when the wall clock is set, so that no wait ends late and no mail expires early.
 * While the process runs, elapsed time is measured on the monotonic clock, plus the time for which the machine was suspended.
 * Across a restart, it is measured by the machine's uptime or, after a reboot, by the wall clock. The store keeps a record, from
 * which the next process continues the clock. All stored instants are times of this clock.
 */
import { SECOND, type Clock, type Duration, type MachineClock, type QueueTime, type Timer, type WallTime } from './clock.ts'
import { WallView } from './wall-view.ts'

/** State of the clock in the store. `uptime` and `boot` are those of the machine at `time`. */
export interface ClockRecord {
  readonly time: QueueTime
  /** `time` minus the wall clock. */
  readonly offset: Duration
  readonly uptime: Duration
  readonly boot: number
}

/** Minimum difference that counts as a step of the wall clock. Smaller differences are due to the time between two readings. */
const STEP: Duration = SECOND

type MachineFacts = { readonly wall: WallTime } & Pick<ClockRecord, 'uptime' | 'boot'>

/**
 * Time of the queue at the start of a process: the wall clock without a record, else the time of the record plus the time since
 * the record. The latter is the growth of the uptime when the machine was not rebooted, else the growth of the wall clock. After
 * a reboot, a wall clock earlier than the record gives no information; the time since the record is then assumed to be `unknown`
 * or the uptime, whichever is longer.
 */
export function resumedAt(record: ClockRecord | null, { wall, uptime, boot }: MachineFacts, unknown: Duration): QueueTime {
  const byWall = wall + (record?.offset ?? 0)
  if (record === null) return byWall
  const sameBoot = boot !== 0 && boot === record.boot && uptime >= record.uptime
  if (!sameBoot) return byWall >= record.time ? byWall : record.time + Math.max(uptime, unknown)
  const byUptime = record.time + uptime - record.uptime
  return Math.abs(byWall - byUptime) < STEP ? byWall : byUptime
}

interface Alarm {
  readonly at: QueueTime
  readonly action: () => void
  timer: Timer
}

export class QueueClock implements Clock {
  readonly #machine: MachineClock
  readonly #alarms = new Set<Alarm>()
  /** Time of the queue when the monotonic clock is 0. */
  #base: QueueTime
  #offset: Duration = 0
  /** Offset from the wall clock at the last `observe`. */
  #observed: Duration = 0
  #wall = new WallView(() => this.now())
  /** Uptime minus the monotonic clock when `#base` was corrected last. It grows only while the machine is suspended. */
  #suspended: Duration

  /** Creates a clock that starts at the time of the wall clock. */
  constructor(machine: MachineClock) {
    this.#machine = machine
    this.#base = machine.now() - machine.monotonic()
    this.#suspended = machine.uptime() - machine.monotonic()
  }

  /**
   * Continues the clock of the last process. Must be called before the first use. Returns the step of the wall clock since the
   * record. For `unknown`, see resumedAt.
   */
  resume(record: ClockRecord | null, unknown: Duration): Duration {
    const machine = this.#machine
    const wall = machine.now()
    this.#offset = this.#observed = record?.offset ?? 0
    this.#base = resumedAt(record, { wall, uptime: machine.uptime(), boot: machine.boot }, unknown) - machine.monotonic()
    return this.observe()
  }

  now(): QueueTime {
    return this.#base + this.#machine.monotonic()
  }

  /**
   * This clock minus the wall clock. 0 for less than a second: such an offset is due to the time between two readings, of which one may be that of a database, so that
   * other processes have another one. Instants converted by it would differ by these milliseconds.
   */
  wallOffset(): Duration {
    const offset = this.#measuredOffset()
    return Math.abs(offset) < STEP ? 0 : offset
  }

  get wall(): WallView {
    const offset = this.wallOffset()
    if (offset !== this.#wall.offset) this.#wall = new WallView(() => this.now(), offset)
    return this.#wall
  }

  monotonic(): Duration {
    return this.#machine.monotonic()
  }

  after(delay: Duration, action: () => void): Timer {
    return this.#machine.after(delay, action)
  }

  alarm(at: QueueTime, action: () => void): Timer {
    const alarm: Alarm = { at, action, timer: this.#arm(at, () => this.#ring(alarm)) }
    this.#alarms.add(alarm)
    return {
      cancel: () => {
        this.#alarms.delete(alarm)
        alarm.timer.cancel()
      },
    }
  }

  zone(at: WallTime): ReturnType<Clock['zone']> {
    return this.#machine.zone(at)
  }

  /**
   * Adds suspensions of the machine, of 1 s or more, to the time of the queue, and sets the alarms again. Returns the step of the
   * wall clock since the last call: 0 for none, negative when the clock was set back. Must be called about once a second.
   */
  observe(): Duration {
    const suspended = this.#machine.uptime() - this.#machine.monotonic()
    if (suspended - this.#suspended >= STEP) {
      this.#base += suspended - this.#suspended
      this.#suspended = suspended
      for (const alarm of this.#alarms) {
        alarm.timer.cancel()
        alarm.timer = this.#arm(alarm.at, () => this.#ring(alarm))
      }
    }
    const before = this.#observed
    this.#observed = this.#measuredOffset()
    return before - this.#observed
  }

  /** State from which another process can continue this clock. */
  record(): ClockRecord {
    return { offset: this.#measuredOffset(), time: this.now(), uptime: this.#machine.uptime(), boot: this.#machine.boot }
  }

  /** Offset at the last step of the wall clock, or at the start, so that it does not change between steps. */
  #measuredOffset(): Duration {
    const measured = this.now() - this.#machine.now()
    if (Math.abs(measured - this.#offset) >= STEP) this.#offset = measured
    return this.#offset
  }

  #arm(at: QueueTime, action: () => void): Timer {
    return this.#machine.after(at - this.now(), action)
  }

  #ring(alarm: Alarm): void {
    this.#alarms.delete(alarm)
    alarm.action()
  }
}

/** The clock of a queue as the record tells it; `machine` itself without a record. */
export function clockOf(record: ClockRecord | null, machine: MachineClock): QueueClock {
  const clock = new QueueClock(machine)
  clock.resume(record, 0)
  return clock
}
