/**
 * Looks after a store that cannot commit: takes note, lets the queue rest, knocks once a second until a commit succeeds
 * again. Our own trouble never costs mail: an outcome is brought to the store however long that takes.
 */
import { SECOND, sleep, type Clock, type Duration } from '../mail/clock.ts'
import type { Events } from '../telemetry/events.ts'
import { StoreUnavailable, type QueueStore } from './store.ts'

const PAUSE: Duration = SECOND

export interface StoreGuardParts {
  readonly store: QueueStore
  readonly clock: Clock
  readonly events: Events
  /** The store commits again: the queue goes on. */
  readonly recovered: () => void
  /** Aborts when the daemon can wait no longer. */
  readonly abandon: AbortSignal
}

export class StoreGuard {
  readonly #parts: StoreGuardParts
  #ill = false

  constructor(parts: StoreGuardParts) {
    this.#parts = parts
  }

  /** While it is, nothing is accepted and nothing is delivered. */
  get ill(): boolean {
    return this.#ill
  }

  /** Repeats a store call until it succeeds; gives up only when the daemon must end. */
  async insist<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        this.failed(error)
        if (this.#parts.abandon.aborted) throw error
        await sleep(this.#parts.clock, PAUSE, this.#parts.abandon)
      }
    }
  }

  /** Takes note of a store that cannot commit; anything else is a bug and is thrown on. */
  failed(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) throw error
    if (this.#ill) return
    this.#ill = true
    this.#parts.events.emit({ kind: 'store-trouble', why: error.message })
    this.#knockLater()
  }

  #knockLater(): void {
    this.#parts.clock.after(PAUSE, () => {
      if (this.#parts.abandon.aborted) return
      this.#parts.store.ping().then(
        () => this.#recovered(),
        (error: unknown) => {
          if (!(error instanceof StoreUnavailable)) throw error
          this.#knockLater()
        },
      )
    })
  }

  #recovered(): void {
    this.#ill = false
    this.#parts.events.emit({ kind: 'store-recovered' })
    this.#parts.recovered()
  }
}
