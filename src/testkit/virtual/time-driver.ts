/**
 * Drives virtual time. It runs all code that is ready, and then advances the clock to the next timer. It neither replaces the
 * timers of the process nor waits for them, except while a function of the test runs (outside-calls.ts).
 */
import type { WallTime } from '../../system/clock.ts'
import { eventLoopTurn } from '../../system/event-loop.ts'
import type { OutsideCalls } from './outside-calls.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** A port that reports whether it is busy. */
export interface Busy {
  /** Number of calls that will be answered without the clock. */
  readonly inFlight: number
  /** Counter of all events in the port. */
  readonly activity: number
}

/**
 * The world is idle after this number of turns of the event loop without activity. Libraries defer some work by a turn, and its result by
 * another.
 */
const QUIET_TURNS = 2
/** An open call counts as lost after this number of turns without activity. The driver then fails instead of waiting forever. */
const LOST_AFTER_TURNS = 5_000_000

export class TimeDriver {
  readonly #clock: VirtualClock
  readonly #ports: ReadonlyMap<string, Busy>
  readonly #outside: Pick<OutsideCalls, 'ended'>
  #last: Promise<unknown> = Promise.resolve()
  #wake: () => void = () => undefined

  constructor(clock: VirtualClock, ports: Readonly<Record<string, Busy>>, outside: Pick<OutsideCalls, 'ended'> = { ended: null }) {
    this.#clock = clock
    this.#outside = outside
    this.#ports = new Map(Object.entries(ports))
  }

  /** Tells that a timer is due at this instant. */
  timerIsDue(): void {
    this.#wake()
  }

  /** Runs all code that is ready. */
  rest(): Promise<void> {
    return this.#exclusively(() => this.#rest())
  }

  /** Runs the timers that are due, and all code that they make ready. The time does not change. */
  catchUp(): Promise<void> {
    return this.#exclusively(async () => {
      await this.#rest()
      for (let next = this.#clock.nextAt(); next !== null && next <= this.#clock.now(); next = this.#clock.nextAt()) {
        this.#clock.runNext()
        await this.#rest()
      }
    })
  }

  /** Runs timers up to and including `until`, and all code that they make ready at that instant. */
  runUntil(until: WallTime): Promise<void> {
    return this.#exclusively(async () => {
      await this.#rest()
      for (let next = this.#clock.nextAt(); next !== null && next <= until; next = this.#clock.nextAt()) {
        this.#clock.runNext()
        await this.#rest()
      }
      // The wall clock may have been set past `until` by then.
      if (this.#clock.now() < until) this.#clock.jumpTo(until)
    })
  }

  /** Advances from timer to timer while `wanted` returns true. Returns false when no timer is left and `wanted` still returns true. */
  runWhile(wanted: () => boolean | Promise<boolean>): Promise<boolean> {
    return this.#exclusively(async () => {
      await this.#rest()
      while (await wanted()) {
        if (!this.#clock.runNext()) return false
        await this.#rest()
      }
      return true
    })
  }

  /** Runs one task at a time, because two concurrent tasks would both advance the clock. */
  #exclusively<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task)
    // The caller receives the error. The next task only waits for the end of this one.
    this.#last = result.catch(() => undefined)
    return result
  }

  async #rest(): Promise<void> {
    let seen = this.#activity()
    let unchanged = 0
    for (let quiet = 0; quiet < QUIET_TURNS;) {
      await this.#outsideCalls()
      await eventLoopTurn()
      const now = this.#activity()
      unchanged = now === seen ? unchanged + 1 : 0
      quiet = now === seen && !this.#busy() && this.#outside.ended === null ? quiet + 1 : 0
      seen = now
      if (unchanged > LOST_AFTER_TURNS) throw new Error(`virtual time cannot advance: ${this.#openCalls()}`)
    }
  }

  /** Waits for the functions of the test that run now. Timers that they make due at this instant run, but the time does not change. */
  async #outsideCalls(): Promise<void> {
    for (let ended = this.#outside.ended; ended !== null; ended = this.#outside.ended) {
      const due = new Promise<void>((resolve) => (this.#wake = resolve))
      const next = this.#clock.nextAt()
      if (next !== null && next <= this.#clock.now()) this.#clock.runNext()
      else await Promise.race([ended, due])
    }
  }

  #activity(): number {
    let sum = 0
    for (const port of this.#ports.values()) sum += port.activity
    return sum
  }

  #busy(): boolean {
    for (const port of this.#ports.values()) if (port.inFlight > 0) return true
    return false
  }

  #openCalls(): string {
    const open = [...this.#ports].filter(([, port]) => port.inFlight > 0)
    return open.map(([name, port]) => `${port.inFlight} call(s) of the ${name} port are never answered`).join(', ')
  }
}
