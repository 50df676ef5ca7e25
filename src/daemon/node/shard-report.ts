/** Reports shards that were taken or released, as sums over ten seconds, because a division of shards takes many small steps. */
import { seconds, type Clock, type Duration, type Timer } from '../../system/clock.ts'
import type { Events } from '../../telemetry/events.ts'

const INTERVAL: Duration = seconds(10)

export class ShardReport {
  readonly #clock: Clock
  readonly #events: Events
  readonly #sums = { 'shards-taken': 0, 'shards-released': 0 }
  #timer: Timer | null = null

  constructor(clock: Clock, events: Events) {
    this.#clock = clock
    this.#events = events
  }

  add(kind: 'shards-taken' | 'shards-released', shards: number): void {
    this.#sums[kind] += shards
    this.#timer ??= this.#clock.after(INTERVAL, () => this.flush())
  }

  /** Reports the unreported rest. */
  flush(): void {
    this.#timer?.cancel()
    this.#timer = null
    for (const kind of ['shards-taken', 'shards-released'] as const) {
      if (this.#sums[kind] > 0) this.#events.emit({ kind, shards: this.#sums[kind] })
      this.#sums[kind] = 0
    }
  }
}
