/** Destinations in JSON: in lists, one with its last attempts, and those of the status. */
import { z } from 'zod'
import { actionText } from '../config/values/tables/provider-table.ts'
import { hintOf } from '../mail/login-refusal.ts'
import {
  blockedBy,
  healthOf,
  type KnownDestination,
  lastStatusOf,
  probeTime,
  reasonOf,
  siteReason,
} from '../presentation/destination-state.ts'
import type { StatusDestination } from '../queue/queue-status.ts'
import { DESTINATION_STATES, isRefusing, NONE_QUEUED, waitingAt } from '../store/destination-status.ts'
import type { LiveDestination } from '../queue/scheduler/destination.ts'
import { endOfAll } from '../store/records/suspension.ts'
import type { RuleEffect } from '../store/records/provider-state.ts'
import type { ProviderState } from '../store/records/saved-providers.ts'
import type { DestinationLoad } from '../store/queue-reader.ts'
import { SECOND, type QueueTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import type { RecentAttempts } from '../telemetry/last-outcomes.ts'
import { count, hint, next, textOrNull, time, timeOrNull, type Json } from './members.ts'

/** A destination with its queued mail. `load` is undefined without mail. */
export interface DestinationRow extends KnownDestination {
  readonly name: string
  readonly load: DestinationLoad | undefined
  /** Provider of the destination, with its suspension and the reply rules in effect; null for none. */
  readonly provider: ProviderState | null
}

export const stateShape = z.enum(DESTINATION_STATES)

/** The suspension, the failure for which mail waits, and the attempts since the last delivery. */
const reasonMembers = {
  suspended_by: textOrNull.describe('who suspended the destination or, when it is not suspended itself, its provider'),
  suspended_until: timeOrNull,
  suspend_reason: textOrNull,
  suspended_with: textOrNull.describe('its provider, when it is suspended with the provider and not itself'),
  resume_time: timeOrNull.describe(
    'time at which the suspension of the destination and that of its provider have both ended; null when an operator must end one',
  ),
  last_reply: textOrNull.describe('the reply to the last attempt, or why there was none'),
  last_reply_time: timeOrNull.describe('time of the last attempt; null when none is known since the start of the daemon'),
  hint,
  site_reason: textOrNull.describe('the failure of the destination as a whole for which mail waits; null after an answer'),
  site_stage: textOrNull.describe('the stage of the attempt at which it failed, as in the history of a message'),
  refuses_all: z.boolean().describe('true for an open destination that has mail, and delivered none in its last ten attempts or more'),
  undelivered_attempts: count.describe(
    'attempts since the last delivery, as far as the daemon knows: on several nodes, since its node has the destination',
  ),
  undelivered_since: timeOrNull.describe('time of the first of them'),
  probe_time: timeOrNull.describe('time of the next probe of a dead destination, made with mail that is due'),
  probed: z.boolean().describe('true while a probe is made, by itself or by another destination of the same host'),
  blocked_by: textOrNull.describe('why no further delivery or probe begins now'),
}

const reasonsJson = (known: KnownDestination, wall: WallView): Json<z.ZodObject<typeof reasonMembers>> => {
  const { suspension } = healthOf(known)
  const status = reasonOf(known)
  const last = lastStatusOf(known)
  const { live } = known
  return {
    suspended_by: suspension?.by ?? null,
    suspended_until: wall.secondsOrNull(suspension?.until),
    suspend_reason: suspension?.reason ?? null,
    suspended_with: suspension?.provider ?? null,
    resume_time: suspension === null ? null : wall.secondsOrNull(endOfAll(suspension)),
    last_reply: last === null ? null : (last.reply ?? last.reason),
    last_reply_time: wall.secondsOrNull(live?.lastAttempt?.at),
    hint: hintOf(status),
    site_reason: status === null ? null : siteReason(status),
    site_stage: status?.stage ?? null,
    refuses_all: live !== undefined && isRefusing(live),
    undelivered_attempts: live?.undelivered?.count ?? 0,
    undelivered_since: wall.secondsOrNull(live?.undelivered?.since),
    probe_time: wall.secondsOrNull(probeTime(known)),
    probed: known.live?.isProbed ?? false,
    blocked_by: known.live === undefined ? null : blockedBy(known.live),
  }
}

/** State of a destination, and the reasons. */
export const healthJson = (known: KnownDestination, wall: WallView) => ({
  state: healthOf(known).state,
  dead_until: wall.secondsOrNull(healthOf(known).deadUntil),
  ...reasonsJson(known, wall),
})

export type HealthJson = ReturnType<typeof healthJson>

/** Reply rules that apply to a provider. */
export const rulesShape = z.array(z.object({ rule: z.string(), action: z.string(), until: time, reply: z.string() }))

export const rulesJson = (effects: readonly RuleEffect[], wall: WallView): Json<typeof rulesShape> =>
  effects.map(({ rule, action, until, reply }) => ({ rule, action: actionText(action), until: wall.seconds(until), reply }))

/** The room that a destination gives to deliveries; null without a running daemon. */
const paceMembers = { window: z.number().nullable(), message_rate: z.number().nullable() }

const paceJson = ({ live }: KnownDestination) => ({ window: live?.window ?? null, message_rate: rounded(live?.messageRate ?? null) })

const nextDueShape = timeOrNull.describe('time at which mail is due next: now while recipients wait for a delivery slot')

/** Mail that waits for a slot was due; the time of the store is that of mail which is not claimed. */
function nextDueTime(stored: QueueTime | null | undefined, live: LiveDestination | undefined, wall: WallView): number | null {
  const known = wall.secondsOrNull(stored)
  if (live === undefined || live.waiting === 0) return known
  const now = wall.now() / SECOND
  return known === null ? now : Math.min(known, now)
}

export const destinationShape = z
  .object({
    destination: z.string(),
    node: textOrNull,
    state: stateShape,
    ...paceMembers,
    provider: textOrNull,
    provider_suspended_by: textOrNull.describe('who suspended the provider, and with it the destination'),
    provider_rules: rulesShape,
    provider_in_flight: count.nullable().describe('deliveries to all destinations of the provider'),
    provider_limit: z.number().nullable().describe('of them, at once; null without a limit, and without a running daemon'),
    in_flight: count,
    leased: count.describe('recipients in the active queue'),
    slot_waiting: count.nullable().describe('of them, those that wait for a delivery slot; null without a running daemon'),
    waiting: count.describe('recipients that wait, also for a delivery slot or for a later time; not those on hold'),
    next_due_time: nextDueShape,
    dead_until: timeOrNull,
    probe_interval: z.number().nullable(),
    ...reasonMembers,
  })
  .meta({ id: 'Destination' })

export type DestinationJson = Json<typeof destinationShape>

export const rounded = (rate: number | null): number | null => (rate === null ? null : Math.round(rate * 10) / 10)

/** `node` is the name of the node that schedules the destination; null without one. */
export function destinationJson(row: DestinationRow, node: string | null, wall: WallView): DestinationJson {
  const { name, load, live, provider } = row
  const { state, deadUntil, probeInterval } = healthOf(row)
  return {
    destination: name,
    node,
    state,
    ...paceJson(row),
    provider: provider?.name ?? null,
    provider_suspended_by: provider?.suspension?.by ?? null,
    provider_rules: rulesJson(provider?.effects ?? [], wall),
    provider_in_flight: live?.provider?.inFlight ?? null,
    provider_limit: live?.provider?.limit ?? null,
    in_flight: live?.inFlight ?? load?.leased ?? 0,
    leased: load?.leased ?? 0,
    slot_waiting: live?.waiting ?? null,
    waiting: waitingAt(load ?? NONE_QUEUED, live),
    next_due_time: nextDueTime(load?.nextDueAt, live, wall),
    dead_until: wall.secondsOrNull(deadUntil),
    probe_interval: probeInterval === null ? null : probeInterval / SECOND,
    ...reasonsJson(row, wall),
  }
}

export const destinationPageShape = z.object({ destinations: z.array(destinationShape), next, as_of: time }).meta({ id: 'DestinationPage' })

export type DestinationPageJson = Json<typeof destinationPageShape>

const recentCause = z.object({ cause: z.string(), attempts: count })

export const destinationDetailsShape = destinationShape
  .extend({
    scheduled: count.describe('of the recipients that wait, those of mail that is scheduled for later'),
    last_outcomes: z.array(z.string()).describe('outcomes of the last attempts, oldest first'),
    last_causes: z.array(recentCause),
    last_windows: z.array(z.number()).describe('the window after each of its last changes, oldest first'),
    settings: z.object({
      table: textOrNull,
      values: z.record(z.string(), z.string()),
      origins: z.record(z.string(), z.string()).describe('the table that sets a value, by parameter; absent for a general value'),
    }),
    as_of: time,
  })
  .meta({ id: 'DestinationDetails' })

export type DestinationDetailsJson = Json<typeof destinationDetailsShape>

export interface DestinationDetails {
  readonly row: DestinationRow
  readonly node: string | null
  /** Of the recipients that wait, those of scheduled mail. */
  readonly scheduled: number
  /** Undefined for a destination that is not in memory. */
  readonly recent: RecentAttempts | undefined
  /** Name of the destination table that applies, the settings as texts, and the headings of the tables that set them. */
  readonly settings: {
    readonly table: string | null
    readonly values: Readonly<Record<string, string>>
    readonly origins: Readonly<Record<string, string>>
  }
  readonly asOf: number
}

export const destinationDetailsJson = (
  { row, node, scheduled, recent, settings, asOf }: DestinationDetails,
  wall: WallView,
): DestinationDetailsJson => ({
  ...destinationJson(row, node, wall),
  scheduled,
  last_outcomes: recent?.outcomes ?? [],
  last_causes: recent?.causes ?? [],
  last_windows: recent?.windows ?? [],
  settings,
  as_of: asOf,
})

export const statusDestinationShape = z.object({
  destination: z.string(),
  state: stateShape,
  waiting: count,
  scheduled: count.nullable().describe('of them, those of mail that is scheduled for later; null when they are not counted'),
  ...paceMembers,
  in_flight: z.number().nullable(),
  next_due_time: nextDueShape,
  dead_until: timeOrNull,
  ...reasonMembers,
  last_outcomes: z.array(z.string()).nullable(),
  last_causes: z.array(recentCause).nullable(),
})

export type StatusDestinationJson = Json<typeof statusDestinationShape>

export const statusDestinationJson = (one: StatusDestination, wall: WallView): StatusDestinationJson => ({
  destination: one.destination,
  state: healthOf(one).state,
  waiting: one.waiting,
  scheduled: one.scheduled,
  ...paceJson(one),
  in_flight: one.live?.inFlight ?? null,
  next_due_time: nextDueTime(one.live?.nextDueAt, one.live, wall),
  dead_until: wall.secondsOrNull(healthOf(one).deadUntil),
  ...reasonsJson(one, wall),
  last_outcomes: one.recent?.outcomes ?? null,
  last_causes: one.recent?.causes ?? null,
})

/** The next thing at a destination: an attempt, a probe, the end of a suspension, or an operator who ends it; null for nothing. */
type NextEvent = { readonly kind: 'attempt' | 'probe' | 'resume'; readonly at: number } | { readonly kind: 'operator'; readonly at: null }

/** The times are of one clock, in any unit. */
export function nextEvent({
  state,
  probe_time: probeAt,
  resume_time: until,
  next_due_time: due,
  waiting,
}: Pick<StatusDestinationJson, 'state' | 'probe_time' | 'resume_time' | 'next_due_time' | 'waiting'>): NextEvent | null {
  if (state === 'suspended') return until === null ? { kind: 'operator', at: null } : { kind: 'resume', at: until }
  // A probe is an attempt of mail that waits.
  if (waiting === 0) return null
  if (probeAt !== null) return { kind: 'probe', at: probeAt }
  return due === null ? null : { kind: 'attempt', at: due }
}
