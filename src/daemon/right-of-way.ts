/**
 * Mail has the right of way: while it flows, operators' orders for many messages are carried out no faster than leaves
 * most of the machine to it. Alone, they go as fast as they can.
 */
import { sleep, type Clock, type Duration } from '../mail/clock.ts'
import type { Events } from '../telemetry/events.ts'

/** A hundred thousand messages in eight and a half seconds. */
const PER_MESSAGE: Duration = 0.085
/** What slow commits and late timers have taken from an order is made good as far as this. */
const SLACK: Duration = 50

export class RightOfWay {
  readonly #clock: Clock
  #mailMoved = false
  /** When work goes on, on the stopwatch. */
  #nextAt: Duration = 0

  constructor(clock: Clock, events: Events) {
    this.#clock = clock
    events.listen(({ kind }) => {
      if (kind === 'accepted' || kind === 'attempted') this.#mailMoved = true
    })
  }

  /** To be awaited after work on so many messages: when mail has moved meanwhile, until the next may begin. */
  async giveWay(messages: number): Promise<void> {
    const now = this.#clock.monotonic()
    this.#nextAt = this.#mailMoved ? Math.max(this.#nextAt, now - SLACK) + messages * PER_MESSAGE : now
    this.#mailMoved = false
    if (this.#nextAt > now) await sleep(this.#clock, this.#nextAt - now)
  }
}
