/**
 * Message rate of one destination, learned from its refusals: a refusal that asks for less mail halves the rate at which it accepted
 * mail, time without refusals raises the rate, and the limit ends at twice the refused rate. Complements the concurrency window, which
 * even at one delivery at a time does not limit deliveries per minute. Passive: the scheduler reports deliveries and reads the rate.
 */
import type { RecipientOutcome } from '../../delivery/delivery-agent.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import { HOUR, MINUTE, type Duration } from '../../system/clock.ts'

/** Lowest rate, per minute. */
const LOWEST = 1

/** Messages that a destination must have accepted in the last minute, so that a refusal tells a rate. */
const EVIDENCE = 10

/** Part of the refused rate that is added in each quiet minute. */
const GROWTH = 1 / 16

/** The limit ends above this multiple of the refused rate. */
const END = 2

const CODES: ReadonlySet<string> = new Set(['4.3.2', '4.4.5', '4.7.0', '4.7.28', '5.7.28'])

/**
 * True when the reply asks for less mail: 421, or status 4.3.2, 4.4.5, 4.7.0 or x.7.28 (RFC 3463 and IANA’s registry of enhanced status codes), at any stage
 * except STARTTLS and AUTH, where these codes concern TLS and logins. Only codes are tested, not texts.
 */
export const asksForLowerRate = ({ reply, status, stage }: DeliveryStatus): boolean =>
  reply !== undefined && stage !== 'starttls' && stage !== 'auth' && (reply.startsWith('421') || CODES.has(status))

/** Facts about the delivery that has just ended. */
export interface RateFacts {
  readonly outcomes: Iterable<Pick<RecipientOutcome, 'outcome' | 'status'>>
  /** True for the first attempt of the mail. */
  readonly fresh: boolean
  /** Time on the monotonic clock. */
  readonly now: Duration
}

export interface LoweredRate {
  /** Deliveries per minute. */
  readonly rate: number
  readonly refusal: DeliveryStatus
}

interface Limit {
  /** Deliveries per minute at the beginning of the quiet time. */
  readonly base: number
  /** Rate at which the destination refused mail. */
  readonly refused: number
  readonly halvedAt: Duration
  /** Time of the last refusal. */
  readonly quietSince: Duration
}

export class AdaptiveRate {
  readonly #accepted = new MinuteCount()
  #limit: Limit | null = null
  #freshAcceptedAt: Duration | null = null

  /** Deliveries per minute that may start at `now`; null without a limit. */
  at(now: Duration): number | null {
    const limit = this.#limit
    if (limit === null) return null
    const rate = limit.base + (limit.refused * GROWTH * (now - limit.quietSince)) / MINUTE
    return rate < END * limit.refused ? rate : null
  }

  /** Ends the limit, by order of an operator. */
  forget(): void {
    this.#limit = null
  }

  /** Learns from a delivery. Returns the lower rate and the refusal that caused it, undefined when the rate is not lowered. */
  learn({ outcomes, fresh, now }: RateFacts): LoweredRate | undefined {
    let refusal: DeliveryStatus | undefined
    let delivered = false
    for (const { outcome, status } of outcomes) {
      if (outcome === 'delivered') delivered = true
      else if (asksForLowerRate(status)) refusal = status
    }
    if (delivered) {
      this.#accepted.add(now)
      if (fresh) this.#freshAcceptedAt = now
    }
    const rate = refusal === undefined ? undefined : this.#lower(now)
    return refusal === undefined || rate === undefined ? undefined : { rate, refusal }
  }

  /**
   * Halves the rate and returns the new one, at most once a minute: the deliveries of that minute were begun too fast already. Two kinds of
   * destinations are left alone: one that has accepted no first attempt for an hour, because greylisting refuses every first attempt, and
   * one without a limit that has accepted few messages in the last minute, because its refusal tells no rate.
   */
  #lower(now: Duration): number | undefined {
    if (this.#freshAcceptedAt === null || now - this.#freshAcceptedAt > HOUR) return undefined
    const limit = this.#limit
    const current = this.at(now)
    if (limit !== null && current !== null && now - limit.halvedAt < MINUTE) {
      this.#limit = { ...limit, quietSince: now }
      return undefined
    }
    if (current === null && this.#accepted.perMinute(now) < EVIDENCE) return undefined
    const refused = Math.max(2 * LOWEST, Math.min(current ?? Infinity, this.#accepted.perMinute(now)))
    const base = refused / 2
    this.#limit = { base, refused, halvedAt: now, quietSince: now }
    return base
  }
}

/** Number of events in the last minute, from the counts of this and of the last minute of the clock. */
class MinuteCount {
  #minute = 0
  #count = 0
  #before = 0

  add(now: Duration): void {
    this.#turn(now)
    this.#count++
  }

  /** Estimates the number in the 60 s before `now`: events of the last minute of the clock count as evenly spread over it. */
  perMinute(now: Duration): number {
    this.#turn(now)
    return this.#count + this.#before * (1 - (now % MINUTE) / MINUTE)
  }

  #turn(now: Duration): void {
    const minute = Math.floor(now / MINUTE)
    if (minute === this.#minute) return
    this.#before = minute === this.#minute + 1 ? this.#count : 0
    this.#count = 0
    this.#minute = minute
  }
}
