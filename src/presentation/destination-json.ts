/** Formats a destination as JSON. */
import { healthOf } from './destination-state.ts'
import type { DestinationRow } from './destination-list.ts'
import { hintOf } from '../mail/login-refusal.ts'
import { actionText } from '../config/values/provider-table.ts'
import { SECOND } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'

const rounded = (rate: number | null): number | null => (rate === null ? null : Math.round(rate * 10) / 10)

/** Builds the object of `destination list --json`. `node` is the name of the node that schedules the destination; null without one. */
export function destinationJson(row: DestinationRow, node: string | null, wall: WallView) {
  const { name, load, live, provider } = row
  const { state, deadUntil, probeInterval, suspension, siteStatus } = healthOf(row)
  return {
    destination: name,
    node,
    state,
    window: live?.window ?? null,
    message_rate: rounded(live?.messageRate ?? null),
    provider: provider?.name ?? null,
    provider_rules: (provider?.effects ?? []).map(({ rule, action, until, reply }) => ({
      rule,
      action: actionText(action),
      until: wall.seconds(until),
      reply,
    })),
    in_flight: live?.inFlight ?? load?.leased ?? 0,
    waiting: load?.waiting ?? 0,
    next_due_time: wall.secondsOrNull(load?.nextDueAt),
    dead_until: wall.secondsOrNull(deadUntil),
    probe_interval: probeInterval === null ? null : probeInterval / SECOND,
    suspended_by: suspension?.by ?? null,
    suspended_until: wall.secondsOrNull(suspension?.until),
    suspend_reason: suspension?.reason ?? null,
    last_reply: siteStatus === null ? null : (siteStatus.reply ?? siteStatus.reason),
    hint: hintOf(siteStatus),
  }
}

export type DestinationJson = ReturnType<typeof destinationJson>
