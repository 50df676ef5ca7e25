/**
 * What the far side remembers of a rule from one occasion to the next: how often it was asked, whom it has seen, how
 * many connections are open, how full the bucket is. `acts` is asked once for each occasion.
 */
import type { Duration } from '../../mail/clock.ts'
import type { Random } from '../../mail/random.ts'
import { countedAs, type Circumstances } from './circumstances.ts'
import type { Rule, When } from './rule.ts'

interface Bucket {
  tokens: number
  filledAt: Duration
  penaltyUntil: Duration
}

export interface Surroundings {
  readonly random: Random
  /** How many messages the mailbox holds. */
  held(recipient: string): number
}

export class RuleMemory {
  readonly #rule: Rule
  readonly #surroundings: Surroundings
  readonly #occasions = new Map<string, number>()
  readonly #firstSeen = new Map<string, Duration>()
  readonly #known = new Set<string>()
  readonly #open = new Map<string, Set<number>>()
  readonly #buckets = new Map<string, Bucket>()
  #draws = 0

  constructor(rule: Rule, surroundings: Surroundings) {
    this.#rule = rule
    this.#surroundings = surroundings
  }

  /** Does the rule act on this occasion? */
  acts(facts: Circumstances): boolean {
    const { when } = this.#rule
    if (!isTime(when, facts.age)) return false
    if (when.recipientsOver !== undefined && facts.accepted < when.recipientsOver) return false
    if (when.quota !== undefined && !facts.recipients.some((address) => this.#surroundings.held(address) >= (when.quota ?? 0))) return false
    const key = countedAs(when.per, facts)
    if (when.connectionsOver !== undefined && !this.#crowded(key, facts.connection, when.connectionsOver)) return false
    if (when.greylist !== undefined && this.#letsIn(when.greylist, facts)) return false
    if (when.rate !== undefined && this.#hasToken(when.rate, key, facts.age)) return false
    return this.#isTurn(when, key) && this.#isChance(when.probability)
  }

  /** A connection that the rule is about was opened. */
  opened(facts: Circumstances): void {
    if (this.#rule.when.connectionsOver === undefined) return
    const key = countedAs(this.#rule.when.per, facts)
    const open = this.#open.get(key) ?? new Set()
    this.#open.set(key, open.add(facts.connection))
  }

  closed(connection: number): void {
    for (const open of this.#open.values()) open.delete(connection)
  }

  #crowded(key: string, connection: number, limit: number): boolean {
    const open = this.#open.get(key)
    if (open === undefined) return limit === 0
    // Before the connection is made it is not among the open ones yet.
    return (open.has(connection) ? open.size : open.size + 1) > limit
  }

  #letsIn({ delay, window }: { readonly delay: Duration; readonly window: Duration }, facts: Circumstances): boolean {
    const triplet = countedAs('triplet', facts)
    if (this.#known.has(triplet)) return true
    const seen = this.#firstSeen.get(triplet)
    if (seen !== undefined && facts.age < seen + delay) return false
    // Whoever comes for the first time, or comes back too late, begins anew.
    if (seen === undefined || facts.age > seen + window) {
      this.#firstSeen.set(triplet, facts.age)
      return false
    }
    this.#firstSeen.delete(triplet)
    this.#known.add(triplet)
    return true
  }

  #hasToken(
    { count, per, penalty }: { readonly count: number; readonly per: Duration; readonly penalty: Duration },
    key: string,
    now: Duration,
  ) {
    const bucket = this.#buckets.get(key) ?? { tokens: count, filledAt: now, penaltyUntil: -Infinity }
    this.#buckets.set(key, bucket)
    bucket.tokens = Math.min(count, bucket.tokens + (Math.max(0, now - bucket.filledAt) * count) / per)
    bucket.filledAt = now
    if (now < bucket.penaltyUntil) return false
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1
      return true
    }
    bucket.penaltyUntil = now + penalty
    return false
  }

  #isTurn(when: When, key: string): boolean {
    const { first, nth, every } = when
    if (first === undefined && nth === undefined && every === undefined) return true
    const occasion = (this.#occasions.get(key) ?? 0) + 1
    this.#occasions.set(key, occasion)
    return occasion <= (first ?? Infinity) && (nth?.includes(occasion) ?? true) && occasion % (every ?? 1) === 0
  }

  #isChance(probability: number | undefined): boolean {
    return probability === undefined || this.#surroundings.random.draw(`${this.#rule.name} ${this.#draws++}`) < probability
  }
}

/** Do the times of a rule hold, so long after the beginning? */
export function isTime({ from = 0, until = Infinity, flapping }: Pick<When, 'from' | 'until' | 'flapping'>, age: Duration): boolean {
  if (age < from || age >= until) return false
  return flapping === undefined || (age - from) % (flapping.bad + flapping.good) < flapping.bad
}
