/**
 * Message rate of one destination, learned from its refusals: refusals that ask for less mail start a search for the rate that the
 * destination accepts (rate-search.ts). Complements the concurrency window, which even at one delivery at a time does not limit deliveries
 * per minute. Passive: the scheduler reports deliveries and reads the rate.
 */
import type { RecipientOutcome } from '../../../delivery/delivery-agent.ts'
import { OF_SESSION, requestForLess } from '../../../mail/less-mail.ts'
import type { DeliveryStatus } from '../../../mail/smtp-reply.ts'
import { HOUR, MINUTE, type Duration } from '../../../system/clock.ts'
import { afterAccepted, afterRefused, busier, isOver, noticed, type Busy, paceOf, type RateSample, type RateSearch } from './rate-search.ts'

/** True when the reply asks for less mail, at any stage except STARTTLS and AUTH, where its codes concern TLS and logins. */
export const asksForLowerRate = (status: DeliveryStatus): boolean =>
  status.reply !== undefined && !OF_SESSION.has(status.stage) && requestForLess('rate', status) !== null

/** Facts about the delivery that has just ended. Times are of the monotonic clock. */
export interface RateFacts extends RateSample {
  readonly outcomes: Iterable<Pick<RecipientOutcome, 'outcome' | 'status'>>
  /** True for the first attempt of the mail. */
  readonly fresh: boolean
}

export interface LoweredRate {
  /** Deliveries per minute. */
  readonly rate: number
  readonly refusal: DeliveryStatus
}

export class AdaptiveRate {
  #search: RateSearch | null = null
  #refusal: DeliveryStatus | null = null
  #freshAcceptedAt: Duration | null = null
  #busy: Busy | null = null
  /** Time of the last MAIL. */
  #sentAt: Duration = 0
  #reportedAt: Duration = 0

  /** Deliveries per minute that may start at `now`; null without a limit. */
  at(now: Duration): number | null {
    return this.#search === null || isOver(this.#search, now) ? null : paceOf(this.#search, now)
  }

  /**
   * Time from `now` until the next delivery may start, so that MAIL follows MAIL at the rate. The pause from start to start is too short
   * when the next delivery uses an open connection and the last one had to open its own.
   */
  pauseAfterMail(now: Duration): Duration {
    const rate = this.at(now)
    return rate === null ? 0 : Math.max(0, this.#sentAt + MINUTE / rate - now)
  }

  /** Ends the limit, by order of an operator. */
  forget(): void {
    this.#search = null
  }

  /** Learns from a delivery. Returns the rate and the last refusal when the rate is lowered, at most once a minute unless it is found. */
  learn(facts: RateFacts): LoweredRate | undefined {
    const { outcomes, fresh, now, sentAt } = facts
    let refused = false
    let delivered = false
    for (const { outcome, status } of outcomes) {
      if (outcome === 'delivered') delivered = true
      else if (asksForLowerRate(status)) {
        refused = true
        this.#refusal = status
      }
    }
    if (delivered && fresh) this.#freshAcceptedAt = now
    if (delivered) this.#busy = busier(this.#busy, sentAt, this.#sentAt)
    if (delivered || refused) this.#sentAt = Math.max(this.#sentAt, sentAt)
    const [former, pace] = [this.#search, this.at(now)]
    if (refused) this.#refused(facts)
    else if (delivered && former !== null) this.#search = afterAccepted(former, facts)
    return this.#lowered(former, pace, now)
  }

  /**
   * A destination that has accepted no first attempt for an hour starts no search: greylisting refuses every first attempt, at whatever
   * rate.
   */
  #refused(facts: RateFacts): void {
    const { now } = facts
    const search = this.#search === null || isOver(this.#search, now) ? null : this.#search
    if (search !== null) this.#search = afterRefused(search, facts)
    else if (this.#busy === null || this.#freshAcceptedAt === null || now - this.#freshAcceptedAt > HOUR) this.#search = null
    else {
      this.#search = noticed(facts, this.#busy)
      this.#reportedAt = now
    }
  }

  #lowered(former: RateSearch | null, formerPace: number | null, now: Duration): LoweredRate | undefined {
    const rate = this.at(now)
    if (rate === null || this.#refusal === null || (formerPace !== null && formerPace <= rate)) return undefined
    const isFound = this.#search?.phase === 'found' && former?.phase !== 'found'
    if (!isFound && now - this.#reportedAt < MINUTE) return undefined
    this.#reportedAt = now
    return { rate, refusal: this.#refusal }
  }
}
