/**
 * The driver of virtual time: lets everything run that can, and only when nothing is left moves the clock, to the next
 * moment somebody waits for. Time stands still otherwise. The timers of the process are neither replaced nor waited for.
 */
import type { Instant } from '../mail/clock.ts'
import { turn } from '../system/turn.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** A port that knows whether it has work at hand. */
export interface Busy {
  /** Calls that were made and will be answered without any help of the clock. */
  readonly inFlight: number
  /** Grows whenever something happens. */
  readonly activity: number
}

/** The libraries put some work off to the next turn, and a second time when they answer it. */
const QUIET_TURNS = 2
/** A call that is still open after so many turns without anything happening is lost: say so instead of spinning for ever. */
const PATIENCE_TURNS = 5_000_000

export class Driver {
  readonly #clock: VirtualClock
  readonly #ports: ReadonlyMap<string, Busy>
  #last: Promise<unknown> = Promise.resolve()

  constructor(clock: VirtualClock, ports: Readonly<Record<string, Busy>>) {
    this.#clock = clock
    this.#ports = new Map(Object.entries(ports))
  }

  /** Lets run what can run now. */
  rest(): Promise<void> {
    return this.#alone(() => this.#rest())
  }

  /** Runs what is due already, with what that sets in motion; no time passes. */
  catchUp(): Promise<void> {
    return this.#alone(async () => {
      await this.#rest()
      for (let next = this.#clock.nextAt(); next !== null && next <= this.#clock.now(); next = this.#clock.nextAt()) {
        this.#clock.runNext()
        await this.#rest()
      }
    })
  }

  /** Runs everything due up to and including `until`, and what that sets in motion at that instant. */
  runUntil(until: Instant): Promise<void> {
    return this.#alone(async () => {
      await this.#rest()
      for (let next = this.#clock.nextAt(); next !== null && next <= until; next = this.#clock.nextAt()) {
        this.#clock.runNext()
        await this.#rest()
      }
      // The wall may have been set past `until` on the way.
      if (this.#clock.now() < until) this.#clock.jumpTo(until)
    })
  }

  /** Moves on from moment to moment while something is `wanted`; false when it still is and nobody waits for any moment. */
  runWhile(wanted: () => boolean): Promise<boolean> {
    return this.#alone(async () => {
      await this.#rest()
      while (wanted()) {
        if (!this.#clock.runNext()) return false
        await this.#rest()
      }
      return true
    })
  }

  /** Two callers at once would each move the clock under the other's feet: the second waits. */
  #alone<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task)
    // Whoever called gets the error; the next caller only waits for the end.
    this.#last = result.catch(() => undefined)
    return result
  }

  async #rest(): Promise<void> {
    let seen = this.#activity()
    let unchanged = 0
    for (let quiet = 0; quiet < QUIET_TURNS;) {
      await turn()
      const now = this.#activity()
      unchanged = now === seen ? unchanged + 1 : 0
      quiet = now === seen && !this.#busy() ? quiet + 1 : 0
      seen = now
      if (unchanged > PATIENCE_TURNS) throw new Error(`time cannot move on: ${this.#openCalls()}`)
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
