/** Records the events `store-unavailable` and `store-recovered`. Both are written when the store can commit again. */
import type { OutboxStore } from '../store/outbox-store.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
import type { QueueTime } from '../system/clock.ts'
import type { EventRecorder } from './event-recorder.ts'

export class StoreTroubles {
  readonly #outbox: Pick<OutboxStore, 'recordEvents'>
  readonly #recorder: EventRecorder
  readonly #now: () => QueueTime
  /** The first failure without an event; null when every failure has one. */
  #begun: { readonly at: QueueTime; readonly why: string } | null = null

  constructor(outbox: Pick<OutboxStore, 'recordEvents'>, recorder: EventRecorder, now: () => QueueTime) {
    this.#outbox = outbox
    this.#recorder = recorder
    this.#now = now
  }

  began(why: string): void {
    this.#begun ??= { at: this.#now(), why }
  }

  /** Called when the store commits again. When the commit of the events fails, they are written after the next recovery. */
  async ended(): Promise<void> {
    const trouble = this.#begun
    if (trouble === null) return
    this.#begun = null
    const begin = (this.#recorder.of({ kind: 'store-unavailable', why: trouble.why }) ?? []).map((event) => ({ ...event, at: trouble.at }))
    const events = [...begin, ...(this.#recorder.of({ kind: 'store-recovered' }) ?? [])]
    if (events.length === 0) return
    try {
      await this.#outbox.recordEvents(events)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      this.#begun = trouble
    }
  }
}
