/** State of a rule between occasions: counters, known triplets, open connections, token buckets. `acts` is called once per occasion. */
import type { Duration } from '../../system/clock.ts'
import type { Random } from '../../system/random.ts'
import { countedAs, type RuleFacts } from './rule-facts.ts'
import type { Rule, When } from './rule.ts'

interface Bucket {
  tokens: number
  filledAt: Duration
  penaltyUntil: Duration
}

type Times = Pick<When, 'from' | 'until' | 'flapping'>
/** A condition that is tested after those on the time. */
type Condition = Exclude<keyof When, keyof Times | 'per'>

/** Whether a condition of a rule holds. Occasions of equal `key` are counted together. */
type Tests = { readonly [Key in Condition]: (wanted: NonNullable<When[Key]>, facts: RuleFacts, key: string) => boolean }

interface RuleStateDeps {
  readonly random: Random
  /** Number of messages in a mailbox. */
  held(recipient: string): number
}

export class RuleState {
  readonly #rule: Rule
  readonly #deps: RuleStateDeps
  /** Those of the rule. */
  readonly #conditions: readonly Condition[]
  readonly #occasions = new Map<string, number>()
  readonly #firstSeen = new Map<string, Duration>()
  readonly #known = new Set<string>()
  readonly #open = new Map<string, Set<number>>()
  readonly #buckets = new Map<string, Bucket>()
  #draws = 0
  #used = 0

  constructor(rule: Rule, deps: RuleStateDeps) {
    this.#rule = rule
    this.#deps = deps
    const conditions = Object.keys(this.#tests) as readonly Condition[]
    this.#conditions = conditions.filter((one) => rule.when[one] !== undefined)
  }

  /** Number of occasions on which the rule has acted. */
  get used(): number {
    return this.#used
  }

  /** Returns true if the rule acts on this occasion, and updates the state. */
  acts(facts: RuleFacts): boolean {
    const doesAct = this.#decide(facts)
    if (doesAct) this.#used++
    return doesAct
  }

  #decide(facts: RuleFacts): boolean {
    const { when } = this.#rule
    if (!isTime(when, facts.age)) return false
    const key = countedAs(when.per, facts)
    return this.#conditions.every((condition) => this.#holds(condition, when, facts, key))
  }

  #holds<Key extends Condition>(condition: Key, when: Pick<When, Key>, facts: RuleFacts, key: string): boolean {
    const wanted: When[Key] = when[condition]
    return wanted === undefined || this.#tests[condition](wanted, facts, key)
  }

  /** In the order in which they are tested. One that does not hold leaves those below it uncounted. */
  readonly #tests: Tests = {
    recipientsOver: (limit, { accepted }) => accepted >= limit,
    quota: (limit, { recipients }) => recipients.some((address) => this.#deps.held(address) >= limit),
    connectionsOver: (limit, { connection }, key) => this.#isCrowded(key, connection, limit),
    greylist: (wait, facts) => !this.#letsIn(wait, facts),
    rate: (rate, { age }, key) => !this.#hasToken(rate, key, age),
    // A rule has one of these three at most.
    first: (most, _, key) => this.#occasion(key) <= most,
    nth: (those, _, key) => those.includes(this.#occasion(key)),
    every: (nth, _, key) => this.#occasion(key) % nth === 0,
    probability: (probability) => this.#deps.random.draw(`${this.#rule.name} ${this.#draws++}`) < probability,
  }

  /** Counts a connection to which the rule applies. */
  opened(facts: RuleFacts): void {
    if (this.#rule.when.connectionsOver === undefined) return
    const key = countedAs(this.#rule.when.per, facts)
    const open = this.#open.get(key) ?? new Set()
    this.#open.set(key, open.add(facts.connection))
  }

  closed(connection: number): void {
    for (const open of this.#open.values()) open.delete(connection)
  }

  #isCrowded(key: string, connection: number, limit: number): boolean {
    const open = this.#open.get(key)
    if (open === undefined) return limit === 0
    // At the stage `connect`, the connection is not among the open ones yet.
    return (open.has(connection) ? open.size : open.size + 1) > limit
  }

  #letsIn({ delay, window }: { readonly delay: Duration; readonly window: Duration }, facts: RuleFacts): boolean {
    const triplet = countedAs('triplet', facts)
    if (this.#known.has(triplet)) return true
    const seen = this.#firstSeen.get(triplet)
    if (seen !== undefined && facts.age < seen + delay) return false
    // The first attempt, and an attempt after the window, start a new wait.
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

  /** Number of this occasion, from 1. */
  #occasion(key: string): number {
    const occasion = (this.#occasions.get(key) ?? 0) + 1
    this.#occasions.set(key, occasion)
    return occasion
  }
}

/** True if the conditions `from`, `until` and `flapping` of a rule hold at an age in milliseconds. */
export function isTime({ from = 0, until = Infinity, flapping }: Times, age: Duration): boolean {
  if (age < from || age >= until) return false
  return flapping === undefined || (age - from) % (flapping.bad + flapping.good) < flapping.bad
}
