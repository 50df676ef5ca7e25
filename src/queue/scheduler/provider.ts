/**
 * One provider in memory: the limits that its destinations share. Passive: the scheduler begins and ends deliveries and reads the limits.
 */
import type { Band, MailClasses } from '../../config/values/mail-classes.ts'
import type { DestinationSettings } from '../../config/options.ts'
import type { ProviderTable, RuleAction } from '../../config/values/tables/provider-table.ts'
import type { Suspension } from '../../store/records/suspension.ts'
import { suspensionByRule, type LiveProvider, type ProviderRecord, type RuleEffect } from '../../store/records/provider-state.ts'
import { MINUTE, type Duration } from '../../system/clock.ts'
import type { Job } from './turns/job-queue.ts'
import { AdaptiveRate, type LoweredRate, type RateFacts } from './rate/adaptive-rate.ts'
import { placesLeft, RunningDeliveries } from './turns/running-deliveries.ts'

/** Limits of a provider from its table and from the effects of its rules; null for no limit. */
interface SharedLimits {
  /** Concurrent deliveries. */
  readonly concurrency: number | null
  /** Deliveries per minute. */
  readonly rate: number | null
}

const lowest = (limits: readonly number[]): number | null => (limits.length === 0 ? null : Math.min(...limits))

/** The limits that apply: the lowest of each kind. */
export function sharedLimits(
  { concurrencyLimit, messageRateLimit }: Pick<ProviderTable<unknown>, 'concurrencyLimit' | 'messageRateLimit'>,
  effects: readonly Pick<RuleEffect, 'action'>[],
  adaptiveRate: number | null,
): SharedLimits {
  const actions = effects.map(({ action }) => action)
  const of = <K extends RuleAction['kind']>(kind: K) =>
    actions.filter((action): action is Extract<RuleAction, { kind: K }> => action.kind === kind)
  return {
    concurrency: lowest([...(concurrencyLimit > 0 ? [concurrencyLimit] : []), ...of('concurrency').map(({ limit }) => limit)]),
    rate: lowest([
      ...(messageRateLimit > 0 ? [messageRateLimit] : []),
      ...(adaptiveRate === null ? [] : [adaptiveRate]),
      ...of('rate').map(({ perMinute }) => perMinute),
    ]),
  }
}

export class Provider {
  readonly name: string
  readonly #table: () => ProviderTable<DestinationSettings> | undefined
  readonly #rate = new AdaptiveRate()
  #effects: readonly RuleEffect[] = []
  #ordered: Suspension | null = null
  #suspension: Suspension | null = null
  readonly #running = new RunningDeliveries()
  /** Number of rate delays in progress. */
  #delays = 0
  #waitingRecipients = 0

  constructor(name: string, table: () => ProviderTable<DestinationSettings> | undefined) {
    this.name = name
    this.#table = table
  }

  /** Its table as of the last reload; undefined when there is none any more. */
  get table(): ProviderTable<DestinationSettings> | undefined {
    return this.#table()
  }

  #limits(adaptiveRate: number | null): SharedLimits {
    return sharedLimits(this.table ?? { concurrencyLimit: 0, messageRateLimit: 0 }, this.#effects, adaptiveRate)
  }

  /** True when a delivery may begin, without regard to classes. */
  get hasRoom(): boolean {
    const { concurrency } = this.#limits(null)
    return this.#delays === 0 && (concurrency === null || this.#running.all < concurrency)
  }

  /** True when a delivery of the band may begin. */
  fits(band: Band, classes: MailClasses): boolean {
    const { concurrency } = this.#limits(null)
    if (!this.hasRoom || concurrency === null || !classes.compete) return this.hasRoom
    return this.#running.leavesRoomTo(band, classes, (reserved) => placesLeft(concurrency, reserved))
  }

  /** Suspension by an operator or, without one, by a rule; null for none. */
  get suspension(): Suspension | null {
    return this.#suspension
  }

  /** Suspension by an operator; null for none. */
  get ordered(): Suspension | null {
    return this.#ordered
  }

  get effects(): readonly RuleEffect[] {
    return this.#effects
  }

  // --- deliveries

  begin({ band }: Job): void {
    this.#running.begin(band)
  }

  end({ band }: Job): void {
    this.#running.end(band)
  }

  beginDelay(): void {
    this.#delays++
  }

  endDelay(): void {
    this.#delays--
  }

  /** Number of recipients in memory that wait for a slot at one of its destinations. */
  get waitingRecipients(): number {
    return this.#waitingRecipients
  }

  /** Adds to that number. */
  addWaiting(recipients: number): void {
    this.#waitingRecipients += recipients
  }

  // --- rates

  /** True when a rate is learned from refusals. */
  get #learns(): boolean {
    return this.table?.adaptiveRate === true
  }

  #adaptiveRate(now: Duration): number | null {
    return this.#learns ? this.#rate.at(now) : null
  }

  /** Deliveries per minute that may start at `now`, on the monotonic clock; null without a limit. */
  messageRate(now: Duration): number | null {
    return this.#limits(this.#adaptiveRate(now)).rate
  }

  /** Delay in ms between a start of a delivery at `now` and the next delivery. */
  delayAfterBegin(now: Duration): Duration {
    const rate = this.messageRate(now)
    return rate === null ? 0 : MINUTE / rate
  }

  /** Delay in ms between the end of a delivery at `now` and the next delivery. */
  delayAfterEnd(now: Duration): Duration {
    return this.#learns ? this.#rate.pauseAfterMail(now) : 0
  }

  /** Updates the adaptive rate after a delivery. Returns the lower rate, undefined when it is not lowered. */
  learnRate(facts: Omit<RateFacts, 'others'>): LoweredRate | undefined {
    if (this.#learns) return this.#rate.learn({ ...facts, others: this.#running.all - 1 })
    this.#rate.forget()
    return undefined
  }

  forgetRate(): void {
    this.#rate.forget()
  }

  /** True when deliveries are restricted beyond the table. */
  isThrottled(now: Duration): boolean {
    return this.#delays > 0 || this.#adaptiveRate(now) !== null || this.#effects.length > 0
  }

  // --- effects of rules

  /** Sets the rules that apply, and the suspension by an operator. */
  apply(effects: readonly RuleEffect[], ordered: Suspension | null): void {
    this.#effects = effects
    this.#ordered = ordered === null ? null : { ...ordered, provider: this.name }
    this.#suspension = this.#ordered ?? suspensionByRule(this.record())
  }

  record(): ProviderRecord {
    return { provider: this.name, effects: this.#effects }
  }

  /** State at `now` on the monotonic clock. */
  status(now: Duration): LiveProvider {
    return {
      name: this.name,
      suspension: this.suspension,
      isThrottled: this.isThrottled(now),
      messageRate: this.messageRate(now),
      limit: this.#limits(null).concurrency,
      inFlight: this.#running.all,
      effects: this.#effects,
    }
  }
}
