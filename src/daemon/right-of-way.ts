/**
 * Mail has the right of way: while it flows, operators' orders for many messages are carried out no faster than leaves
 * most of the machine to it. Alone, they go as fast as they can.
 */
import { SECOND, sleep, type Clock, type Duration } from '../mail/clock.ts'
import type { Events } from '../telemetry/events.ts'

/** A hundred thousand messages in nine seconds. */
const PER_MESSAGE: Duration = 0.09
/** What slow commits and late timers have taken from an order is made good as far as this. */
const SLACK: Duration = 50

/** Mail flows while the last of it moved no longer ago than this. */
const LULL: Duration = SECOND

export class RightOfWay {
  readonly #clock: Clock
  /** When mail last moved, on the stopwatch. */
  #movedAt: Duration = -Infinity
  /** When work goes on. */
  #nextAt: Duration = 0
  #over = false

  constructor(clock: Clock, events: Events) {
    this.#clock = clock
    events.listen((event) => {
      // Requeued mail is an order's own doing.
      if (event.kind === 'attempted' || (event.kind === 'accepted' && event.originalId === undefined)) this.#movedAt = clock.monotonic()
    })
  }

  /** To be awaited after work on so many messages: while mail flows, until the next may begin. */
  async giveWay(messages: number): Promise<void> {
    const now = this.#clock.monotonic()
    const isFree = this.#over || now - this.#movedAt > LULL
    this.#nextAt = isFree ? now : Math.max(this.#nextAt, now - SLACK) + messages * PER_MESSAGE
    if (this.#nextAt > now) await sleep(this.#clock, this.#nextAt - now)
  }

  /** The daemon ends: what is still to be done is done as fast as can be. */
  end(): void {
    this.#over = true
  }
}
