/**
 * Meter of the current traffic: recipients by kind in rings of intervals, counted from the events. A count is one addition per ring;
 * nothing runs between events. The store keeps the minutes (store/counts/traffic), which survive a restart.
 */
import { MINUTE, SECOND, type Clock, type Duration } from '../system/clock.ts'
import { NO_TRAFFIC, TRAFFIC_KINDS, type Traffic, type TrafficKind } from '../store/counts/traffic.ts'
import type { Listen } from './events.ts'

/** Intervals of each ring: 5 minutes by the second, 1 hour by 10 seconds, 2 days by 5 minutes. */
const RINGS = {
  second: { interval: SECOND, length: 300 },
  tenSeconds: { interval: 10 * SECOND, length: 360 },
  fiveMinutes: { interval: 5 * MINUTE, length: 576 },
} as const
export type Resolution = keyof typeof RINGS

/** Recipients per second, as averages over the last 10 seconds and the last 5 minutes, or since the start if that is shorter. */
export interface Rates {
  readonly last10s: Traffic
  readonly last5min: Traffic
}

/** Counts of the last intervals on the monotonic clock. */
class Ring {
  readonly #interval: Duration
  readonly #length: number
  readonly #counts = new Map<TrafficKind, Float64Array>()
  /** Number of the newest interval. */
  #newest = 0

  constructor({ interval, length }: { readonly interval: Duration; readonly length: number }, now: Duration) {
    this.#interval = interval
    this.#length = length
    for (const kind of TRAFFIC_KINDS) this.#counts.set(kind, new Float64Array(length))
    this.#newest = Math.floor(now / interval)
  }

  add(kind: TrafficKind, recipients: number, now: Duration): void {
    this.#advance(now)
    const counts = this.#counts.get(kind)
    const slot = this.#newest % this.#length
    if (counts !== undefined) counts[slot] = (counts[slot] ?? 0) + recipients
  }

  /** Counts of the last `count` intervals that have ended, oldest first; at most one less than the ring holds. */
  ended(count: number, now: Duration): readonly Traffic[] {
    this.#advance(now)
    return Array.from({ length: Math.min(count, this.#length - 1) }, (_, n, all = Math.min(count, this.#length - 1)) =>
      this.#at(this.#newest - all + n),
    )
  }

  #at(number: number): Traffic {
    const slot = ((number % this.#length) + this.#length) % this.#length
    return Object.fromEntries(TRAFFIC_KINDS.map((kind) => [kind, this.#counts.get(kind)?.[slot] ?? 0])) as Record<TrafficKind, number>
  }

  #advance(now: Duration): void {
    const number = Math.floor(now / this.#interval)
    for (let next = Math.max(this.#newest + 1, number - this.#length + 1); next <= number; next++) {
      for (const counts of this.#counts.values()) counts[next % this.#length] = 0
    }
    this.#newest = Math.max(this.#newest, number)
  }
}

export class Meter {
  readonly #clock: Clock
  readonly #startedAt: Duration
  readonly #rings: Readonly<Record<Resolution, Ring>>
  readonly #allRings: readonly Ring[]

  constructor(clock: Clock) {
    const now = clock.monotonic()
    this.#clock = clock
    this.#startedAt = now
    this.#rings = {
      second: new Ring(RINGS.second, now),
      tenSeconds: new Ring(RINGS.tenSeconds, now),
      fiveMinutes: new Ring(RINGS.fiveMinutes, now),
    }
    this.#allRings = Object.values(this.#rings)
  }

  readonly listen: Listen = (event) => {
    if (event.kind === 'attempted') {
      for (const { outcome } of event.attempts) if (outcome !== 'expired') this.#add(outcome, 1)
    } else if (event.kind === 'accepted') {
      // A requeued message was counted when it was first accepted.
      if (event.originalId === undefined) this.#add('accepted', event.recipients.length)
    } else if (event.kind === 'notice-sent') {
      this.#add('accepted', 1)
    } else if (event.kind === 'expired') {
      this.#add('expired', event.recipients.length)
    }
  }

  /** Traffic of the last intervals that have ended, oldest first. */
  series(resolution: Resolution): readonly Traffic[] {
    return this.#rings[resolution].ended(RINGS[resolution].length, this.#clock.monotonic())
  }

  rates(): Rates {
    return { last10s: this.#average(10), last5min: this.#average(299) }
  }

  #add(kind: TrafficKind, recipients: number): void {
    const now = this.#clock.monotonic()
    for (const ring of this.#allRings) ring.add(kind, recipients, now)
  }

  #average(seconds: number): Traffic {
    const now = this.#clock.monotonic()
    const running = Math.max(1, Math.floor((now - this.#startedAt) / SECOND))
    const counted = this.#rings.second.ended(seconds, now)
    const average = { ...NO_TRAFFIC } as Record<TrafficKind, number>
    for (const kind of TRAFFIC_KINDS) average[kind] = counted.reduce((sum, one) => sum + one[kind], 0) / Math.min(seconds, running)
    return average
  }
}
