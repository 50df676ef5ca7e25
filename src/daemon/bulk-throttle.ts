/**
 * Throttles bulk operations while mail is processed, so that deliveries keep most of the machine. Without mail, operations run at
 * full speed.
 */
import { SECOND, sleep, type Clock, type Duration } from '../system/clock.ts'
import type { Events } from '../telemetry/events.ts'

/** In ms: 100,000 messages take 9 s. */
const TIME_PER_MESSAGE: Duration = 0.09
/** Maximum delay that an operation may catch up. Slow commits and late timers cause delays. */
const MOST_CAUGHT_UP: Duration = 50

/** Mail counts as being processed for this time after the last accepted message or attempt. */
const BUSY_FOR: Duration = SECOND

export class BulkThrottle {
  readonly #clock: Clock
  /** Time of the last accepted message or attempt, on the monotonic clock. */
  #mailAt: Duration = -Infinity
  /** Earliest start of the next round, on the monotonic clock. */
  #nextAt: Duration = 0
  #ended = false

  constructor(clock: Clock, events: Events) {
    this.#clock = clock
    events.listen((event) => {
      // A requeued message comes from an operation, not from a client.
      if (event.kind === 'attempted' || (event.kind === 'accepted' && event.originalId === undefined)) this.#mailAt = clock.monotonic()
    })
  }

  /** Waits after a round of `messages`, while mail is processed, until the next round may begin. */
  async wait(messages: number): Promise<void> {
    const now = this.#clock.monotonic()
    const isFree = this.#ended || now - this.#mailAt > BUSY_FOR
    this.#nextAt = isFree ? now : Math.max(this.#nextAt, now - MOST_CAUGHT_UP) + messages * TIME_PER_MESSAGE
    if (this.#nextAt > now) await sleep(this.#clock, this.#nextAt - now)
  }

  /** Ends throttling, because a stopping daemon waits for running operations. */
  end(): void {
    this.#ended = true
  }
}
