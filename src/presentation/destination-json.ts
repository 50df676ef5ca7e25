/** Formats a destination as JSON. */
import { healthOf } from './destination-state.ts'
import type { DestinationRow } from './destination-list.ts'
import { hintOf } from '../mail/login-refusal.ts'
import { actionText } from '../config/values/provider-table.ts'
import { epochSeconds } from './text.ts'

const rounded = (rate: number | null): number | null => (rate === null ? null : Math.round(rate * 10) / 10)

const seconds = (value: number | null | undefined): number | null => (value === null || value === undefined ? null : epochSeconds(value))

/** Builds the object of `destination list --json`. `node` is the name of the node that schedules the destination; null without one. */
export function destinationJson(row: DestinationRow, node: string | null) {
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
      until: epochSeconds(until),
      reply,
    })),
    in_flight: live?.inFlight ?? load?.leased ?? 0,
    waiting: load?.waiting ?? 0,
    next_due_time: seconds(load?.nextDueAt),
    dead_until: seconds(deadUntil),
    probe_interval: seconds(probeInterval),
    suspended_by: suspension?.by ?? null,
    suspended_until: seconds(suspension?.until),
    suspend_reason: suspension?.reason ?? null,
    last_reply: siteStatus === null ? null : (siteStatus.reply ?? siteStatus.reason),
    hint: hintOf(siteStatus),
  }
}

export type DestinationJson = ReturnType<typeof destinationJson>
