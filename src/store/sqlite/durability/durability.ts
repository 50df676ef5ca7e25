/** Makes answers durable: syncs the log after their transactions, in this thread or beside the next transactions (README.md). */
import type { Clock, Timer } from '../../../system/clock.ts'
import { stopwatch } from '../../../system/system-clock.ts'
import type { StoreFailed } from '../../queue-store.ts'
import { syncFailed, type SyncedLog } from './synced-log.ts'
import { SyncOrder } from './sync-order.ts'
import type { SyncPace } from './sync-pace.ts'

interface DurabilityDeps {
  readonly clock: Pick<Clock, 'after'>
  readonly pace: SyncPace
  /** Called after a sync beside other work: there may be more durable answers, or a failure. */
  readonly ended: () => void
}

export class Durability {
  readonly #deps: DurabilityDeps
  readonly #order = new SyncOrder()
  #log: SyncedLog
  #running = 0
  #next: Timer | null = null
  #failure: StoreFailed | null = null
  #idle: (() => void) | null = null

  constructor(log: SyncedLog, deps: DurabilityDeps) {
    this.#log = log
    this.#deps = deps
  }

  /** Number of durable answers, counted from the first one. */
  get durable(): number {
    return this.#order.durable
  }

  /** The failure of a sync, after which no further answer becomes durable; null while there is none. */
  get failure(): StoreFailed | null {
    return this.#failure
  }

  /** Counts answers whose transactions have ended. Their sync has ended, or has begun, or begins by itself. */
  written(answers: number, changed: boolean): void {
    this.#order.written(answers, changed)
    if (this.#order.needsSync && this.#running === 0 && this.#deps.pace.waits) this.#sync()
    else this.#beginIfDue()
  }

  /** Makes all answers durable that are written, in this thread. */
  settle(): void {
    if (this.#order.needsSync || this.#running > 0) this.#sync()
  }

  /** Goes on with the log of a reopened queue. All answers must be durable. */
  reopened(log: SyncedLog): void {
    this.#log = log
  }

  /** Closes the log, and calls `closed` when no sync runs any more. */
  close(closed: () => void): void {
    this.#next?.cancel()
    this.settle()
    this.#log.close()
    if (this.#running === 0) closed()
    else this.#idle = closed
  }

  #sync(): void {
    const begun = stopwatch()
    const included = this.#order.begin()
    try {
      this.#log.sync()
      this.#order.ended(included)
    } catch (error) {
      this.#fail(error)
    }
    this.#deps.pace.ended(stopwatch() - begun, this.#running)
  }

  #beginIfDue(): void {
    if (!this.#order.needsSync || this.#next !== null) return
    const { clock, pace } = this.#deps
    const now = stopwatch()
    const wait = pace.waitFor(this.#running, now)
    if (wait === null) return
    if (wait < 1) return this.#begin(now)
    this.#next = clock.after(wait, () => {
      this.#next = null
      this.#beginIfDue()
    })
  }

  #begin(now: number): void {
    const included = this.#order.begin()
    const others = this.#running++
    this.#deps.pace.begun(now)
    this.#log.begin((error) => {
      this.#running--
      this.#deps.pace.ended(stopwatch() - now, others)
      if (error === null) this.#order.ended(included)
      else this.#fail(error)
      this.#beginIfDue()
      this.#deps.ended()
      if (this.#running === 0) this.#idle?.()
    })
  }

  /** The first failure is that of everything that waits, and of everything after it. */
  #fail(cause: unknown): void {
    this.#order.failed()
    this.#failure ??= syncFailed(cause)
  }
}
