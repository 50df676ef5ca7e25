/** Conditions that need an operator's attention, as JSON. Dead and suspended destinations are members of their own in the status. */
import type { AttentionItem } from '../queue/attention.ts'
import { SECOND, type Duration } from '../system/clock.ts'
import { epochSeconds } from './text.ts'

export interface AttentionJson {
  readonly kind: Exclude<AttentionItem['kind'], 'dead-destination' | 'suspended-destination'>
  readonly count: number | null
  /** True when the count stopped at its limit. */
  readonly at_least: boolean
  /** Seconds. */
  readonly within: number | null
  readonly text: string | null
  readonly since: number | null
}

const EMPTY = { count: null, at_least: false, within: null, text: null, since: null } as const

/** `offset` is the clock of the queue minus the wall clock, in ms. */
export const attentionJson = (items: readonly AttentionItem[], offset: Duration): readonly AttentionJson[] =>
  items.flatMap((item) => conditionJson(item, offset))

/** The condition as a list: empty for a destination. */
function conditionJson(item: AttentionItem, offset: Duration): readonly AttentionJson[] {
  switch (item.kind) {
    case 'dead-destination':
    case 'suspended-destination':
      return []
    case 'store-unavailable':
      return [{ ...EMPTY, kind: item.kind, text: item.why, since: epochSeconds(item.since - offset) }]
    case 'oauth-failed':
      return [{ ...EMPTY, kind: item.kind, count: item.count, text: item.why, since: epochSeconds(item.since - offset) }]
    case 'corrupt-messages':
      return [{ ...EMPTY, kind: item.kind, count: item.messages }]
    case 'expiring-recipients':
      return [{ ...EMPTY, kind: item.kind, count: item.count, at_least: item.isAtLeast, within: item.within / SECOND }]
    case 'notices-due':
      return [{ ...EMPTY, kind: item.kind, count: item.messages, at_least: item.isAtLeast }]
    case 'warnings':
      return [{ ...EMPTY, kind: item.kind, count: item.count, text: item.last, since: epochSeconds(item.since - offset) }]
  }
}
