/** Instants of the queue's clock and of the wall clock, and the conversion between them. The two differ after the wall clock was set. */

/**
 * An instant of the queue's clock, in milliseconds since 1970-01-01T00:00:00Z; an integer. Stored times, due times and expiry are of this
 * type. A sum or difference is a plain number, which fits either clock.
 */
export type QueueTime = number & { readonly clock?: 'queue' }

/** An instant of the wall clock, in the same unit: what people, mail, signatures and the log show. */
export type WallTime = number & { readonly clock?: 'wall' }

/** The conversion at one moment. It does not follow a later step of the wall clock: each answer takes its own from `Clock.wall`. */
export class WallView {
  readonly #now: () => QueueTime
  /** The queue's clock minus the wall clock, in ms. */
  readonly offset: number

  constructor(now: () => QueueTime, offset = 0) {
    this.#now = now
    this.offset = offset
  }

  now(): WallTime {
    return this.of(this.#now())
  }

  of(at: QueueTime): WallTime {
    return at - this.offset
  }

  orNull(at: QueueTime | null): WallTime | null {
    return at === null ? null : this.of(at)
  }

  /** The reverse of `of`. */
  queueTime(at: WallTime): QueueTime {
    return at + this.offset
  }

  /** Seconds since 1970 with a fraction, the unit of times in deferd's JSON. */
  seconds(at: QueueTime): number {
    return this.of(at) / 1_000
  }

  secondsOrNull(at: QueueTime | null | undefined): number | null {
    return at === null || at === undefined ? null : this.seconds(at)
  }
}
