/**
 * A backlog for a destination with a limiter, in a few milliseconds for any length of time: starts of deliveries, the concurrency window,
 * kept connections and the retry schedule as in the scheduler, round trips in place of SMTP. `AdaptiveRate` is the real one.
 */
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'
import { AdaptiveRate } from '../../src/queue/scheduler/rate/adaptive-rate.ts'
import { MINUTE, SECOND, type Duration } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

/** Returns true when it accepts a message at `now`. */
export type Limiter = (now: Duration) => boolean

/** A token bucket that grants `perSecond` and saves up to `burst`. */
export function tokenBucket(perSecond: number, burst = Math.max(1, perSecond)): Limiter {
  let [tokens, at] = [burst, 0]
  return (now) => {
    tokens = Math.min(burst, tokens + ((now - at) * perSecond) / SECOND)
    at = now
    if (tokens < 1 - 1e-9) return false
    tokens--
    return true
  }
}

/** A counter that begins anew in each period of the clock. */
export function countPerPeriod(count: number, period: Duration): Limiter {
  let [current, counted] = [-1, 0]
  return (now) => {
    const next = Math.floor(now / period)
    if (next !== current) [current, counted] = [next, 0]
    return counted++ < count
  }
}

export interface Circumstances {
  readonly limiter: Limiter
  readonly messages: number
  /** Round trip. */
  readonly latency: Duration
  /** Deviation of a round trip, as a part of it. */
  readonly jitter: number
  /** Whether a refusal closes the connection, as 421 does. */
  readonly closes: boolean
  readonly seed?: number
  /** Maximum of the concurrency window. */
  readonly window?: number
  readonly until?: Duration
}

export interface Drained {
  /** Times of the acceptances. */
  readonly accepted: readonly Duration[]
  /** Times of the refusals. */
  readonly refused: readonly Duration[]
}

const outcomeOf = (refused: boolean): { readonly outcome: 'deferred' | 'delivered'; readonly status: DeliveryStatus } =>
  refused
    ? { outcome: 'deferred', status: { reply: '450 4.7.28 rate', status: '4.7.28', stage: 'rcpt', reason: 'rate' } }
    : { outcome: 'delivered', status: { reply: '250 2.0.0 Ok', status: '2.0.0', stage: 'end-of-data', reason: 'Ok' } }

class Backlog {
  readonly #rate = new AdaptiveRate()
  readonly #clock = new VirtualClock()
  readonly #random
  readonly #facts: Circumstances
  readonly #kept: Duration[] = []
  readonly #retries: number[] = []
  readonly accepted: Duration[] = []
  readonly refused: Duration[] = []
  #fresh: number
  #turns = 0
  #inFlight = 0
  #delays = 0
  #window = 5

  constructor(facts: Circumstances) {
    this.#facts = facts
    this.#fresh = facts.messages
    this.#random = seededRandom(facts.seed ?? 1).stream('round trips')
  }

  run(): Drained {
    this.#dispatch()
    const { until = Infinity } = this.#facts
    while (this.#now < until && this.#clock.runNext());
    return this
  }

  get #now(): Duration {
    return this.#clock.monotonic()
  }

  #roundTrip(): Duration {
    const { latency, jitter } = this.#facts
    return latency * (1 - jitter + 2 * jitter * this.#random())
  }

  #dispatch(): void {
    const { window = 20 } = this.#facts
    while (this.#delays === 0 && this.#inFlight < Math.min(window, Math.floor(this.#window)) && this.#fresh + this.#retries.length > 0)
      this.#begin()
  }

  /** New mail and retries take turns. */
  #next(): number {
    const isRetry = this.#retries.length > 0 && (this.#fresh === 0 || this.#turns++ % 2 === 1)
    if (isRetry) return this.#retries.shift() ?? 0
    this.#fresh--
    return 0
  }

  #begin(): void {
    const steps = this.#next()
    this.#inFlight++
    const rate = this.#rate.at(this.#now)
    if (rate !== null) this.#delay(MINUTE / rate)
    const isKept = this.#kept.some((since) => this.#now - since <= 2 * SECOND)
    this.#kept.length = isKept ? this.#kept.length - 1 : 0
    const setUp = isKept ? 0 : this.#roundTrip() + this.#roundTrip() + this.#roundTrip()
    this.#clock.after(setUp, () => {
      const sentAt = this.#now
      this.#clock.after(this.#roundTrip() / 2, () => {
        const refused = !this.#facts.limiter(this.#now)
        this.#clock.after(this.#roundTrip() * (refused ? 0.5 : 1.5), () => this.#ended({ steps, sentAt, refused }))
      })
    })
  }

  #ended({ steps, sentAt, refused }: { readonly steps: number; readonly sentAt: Duration; readonly refused: boolean }): void {
    const now = this.#now
    this.#rate.learn({ outcomes: [outcomeOf(refused)], fresh: steps === 0, now, sentAt, others: this.#inFlight - 1 })
    this.#delay(this.#rate.pauseAfterMail(now))
    this.#inFlight--
    if (!(refused && this.#facts.closes)) this.#kept.push(now)
    if (refused) this.#defer(steps + 1)
    else this.accepted.push(now)
    this.#window = refused && this.#facts.closes ? Math.max(1, this.#window - 1 / this.#window) : this.#window + 1 / this.#window
    this.#window = Math.min(this.#window, this.#inFlight + 6, 20)
    this.#dispatch()
  }

  #defer(steps: number): void {
    this.refused.push(this.#now)
    this.#clock.after(Math.min(5 * MINUTE * 2 ** (steps - 1), 67 * MINUTE), () => {
      this.#retries.push(steps)
      this.#dispatch()
    })
  }

  #delay(delay: Duration): void {
    if (delay === 0) return
    this.#delays++
    this.#clock.after(delay, () => {
      this.#delays--
      this.#dispatch()
    })
  }
}

export const drain = (circumstances: Circumstances): Drained => new Backlog(circumstances).run()
