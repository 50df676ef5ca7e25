/** Conditions that need an operator's attention, as JSON. Dead and suspended destinations are members of their own in the status. */
import type { AttentionItem } from '../queue/attention.ts'
import { SECOND } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'

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

export const attentionJson = (items: readonly AttentionItem[], wall: WallView): readonly AttentionJson[] =>
  items.flatMap((item) => conditionJson(item, wall))

/** The condition as a list; empty for a destination, which the status has elsewhere. */
function conditionJson(item: AttentionItem, wall: WallView): readonly AttentionJson[] {
  switch (item.kind) {
    case 'dead-destination':
    case 'suspended-destination':
      return []
    case 'store-unavailable':
      return [{ ...EMPTY, kind: item.kind, text: item.why, since: wall.seconds(item.since) }]
    case 'oauth-failed':
      return [{ ...EMPTY, kind: item.kind, count: item.count, text: item.why, since: wall.seconds(item.since) }]
    case 'corrupt-messages':
      return [{ ...EMPTY, kind: item.kind, count: item.messages }]
    case 'expiring-recipients':
      return [{ ...EMPTY, kind: item.kind, count: item.count, at_least: item.isAtLeast, within: item.within / SECOND }]
    case 'notices-due':
      return [{ ...EMPTY, kind: item.kind, count: item.messages, at_least: item.isAtLeast }]
    case 'warnings':
      return [{ ...EMPTY, kind: item.kind, count: item.count, text: item.last, since: wall.seconds(item.since) }]
  }
}
