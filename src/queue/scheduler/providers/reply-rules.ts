/**
 * Decides which reply rules of a provider begin to apply after a reply. Only replies of remote servers are matched: a failure that
 * deferd itself words must not begin or prolong a rule. Counts of matches are in memory; the caller saves the rules that apply.
 */
import type { ReplyRule } from '../../../config/values/tables/provider-table.ts'
import type { RuleEffect } from '../../../store/records/provider-state.ts'
import type { Duration, QueueTime } from '../../../system/clock.ts'

/** Bytes of a reply that are searched. A longer reply is cut. */
const SEARCHED = 2_000

interface ReplyFacts {
  readonly rules: readonly ReplyRule[]
  /** Effects that apply now. Their rules are not counted. */
  readonly effects: readonly RuleEffect[]
  /** Verbatim replies of one delivery that refused mail. */
  readonly replies: readonly string[]
  readonly now: QueueTime
  /** Time on the monotonic clock. */
  readonly at: Duration
}

export class ReplyRules {
  /** Times of the last matches of each rule. */
  readonly #matches = new Map<string, readonly Duration[]>()

  /** Counts the replies of one delivery, each rule once. Returns the effects that begin. */
  learn({ rules, effects, replies, now, at }: ReplyFacts): readonly RuleEffect[] {
    const applied = new Set(effects.map(({ rule }) => rule))
    const begun: RuleEffect[] = []
    for (const { name, pattern, count, within, action, duration } of rules) {
      if (applied.has(name)) continue
      const reply = replies.find((text) => pattern.match(text.slice(0, SEARCHED), false) !== null)
      if (reply === undefined) continue
      const matches = [...(this.#matches.get(name) ?? []), at].filter((time) => at - time <= within).slice(-count)
      if (matches.length < count) this.#matches.set(name, matches)
      else {
        this.#matches.delete(name)
        begun.push({ rule: name, action, until: now + duration, reply })
      }
    }
    return begun
  }
}
