/** Time of a world: advances its clock, alone or until work of its relay has ended, and refuses both where the clock stands. */
import type { OutsideCalls } from './virtual/outside-calls.ts'
import { TimeDriver, type Busy } from './virtual/time-driver.ts'
import type { VirtualClock } from './virtual/virtual-clock.ts'
import type { RestartableRelay } from './restartable-relay.ts'
import { toDuration, type Time } from './options/time.ts'

interface WorldTimeDeps {
  readonly clock: VirtualClock
  readonly ports: Readonly<Record<string, Busy>>
  readonly outside: OutsideCalls
  readonly lives: () => RestartableRelay
}

export class WorldTime {
  readonly #deps: WorldTimeDeps
  readonly #driver: TimeDriver
  #catchingUp = false
  #isClosed = false
  /** False if the queue was not empty at the last count and no message has left it since. */
  #mayBeEmpty = true

  constructor(deps: WorldTimeDeps) {
    this.#deps = deps
    this.#driver = new TimeDriver(deps.clock, deps.ports, deps.outside)
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  close(): void {
    this.#isClosed = true
  }

  /** Has the next `isEmpty` count the queue. */
  mailMayHaveLeft(): void {
    this.#mayBeEmpty = true
  }

  /** True when the queue has no mail, apart from held and corrupt mail. False while the relay is down. */
  async isEmpty(): Promise<boolean> {
    const { life, queue } = this.#deps.lives()
    if (!this.#mayBeEmpty || !life.alive) return false
    this.#mayBeEmpty = false
    const counts = await queue.reader.counts()
    return counts.every(({ queue: name, messages }) => messages === 0 || name === 'hold' || name === 'corrupt')
  }

  /** Runs everything that is due up to and including the end of a time. Rejects with the failure of a handler. */
  async advance(time: Time): Promise<void> {
    this.requireClock()
    await this.#driver.runUntil(this.#deps.clock.now() + toDuration(time))
    this.#deps.outside.throwFailure()
  }

  /** Advances from timer to timer while `wanted` resolves with true, also when all that was due then has happened. */
  async runTimersWhile(wanted: () => boolean | Promise<boolean>): Promise<boolean> {
    this.requireClock()
    let isDone: boolean
    do {
      this.#mayBeEmpty = true
      isDone = await this.#driver.runWhile(wanted)
      await this.#driver.catchUp()
      this.#mayBeEmpty = true
    } while (isDone && (await wanted()))
    this.#deps.outside.throwFailure()
    return isDone
  }

  /** As `drive`; rejects also with the failure of a handler. */
  async driven<T>(work: Promise<T>): Promise<T> {
    const result = await this.drive(work)
    this.#deps.outside.throwFailure()
    return result
  }

  /** Advances the clock until `work` has settled. Rejects if the relay is killed first. */
  async drive<T>(work: Promise<T>): Promise<T> {
    const { life } = this.#deps.lives()
    let done = false
    const end = () => {
      done = true
    }
    work.then(end, end)
    await this.#driver.runWhile(() => !done && life.alive)
    if (!done) throw new Error('the relay was killed before the call ended')
    const result = await work
    await this.#driver.catchUp()
    return result
  }

  /** Runs all that is due now. Rejects with the failure of a handler. */
  async catchUp(): Promise<void> {
    await this.#driver.catchUp()
    this.#deps.outside.throwFailure()
  }

  /** Runs the timers that are due now, so that a test need not advance the clock by 0. */
  timerIsDue(): void {
    this.#driver.timerIsDue()
    if (this.#catchingUp) return
    this.#catchingUp = true
    void this.#driver.catchUp().finally(() => (this.#catchingUp = false))
  }

  /** Throws for a closed world. */
  requireOpen(): void {
    if (this.#isClosed) throw new Error('the world is closed: its relay takes no mail and its clock does not advance; create another world')
  }

  /** Throws in a handler, too: the clock would wait for the handler, and the handler for the clock. */
  requireClock(): void {
    if (this.#deps.outside.isInside)
      throw new Error('a handler of a webhook cannot advance the clock of its world, which stands while it runs')
    this.requireOpen()
  }
}
