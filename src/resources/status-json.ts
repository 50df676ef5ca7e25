/** The state of a queue in JSON, with what needs an operator. */
import { z } from 'zod'
import type { AttentionItem } from '../queue/attention.ts'
import { troubleHint, troublesOf, troubleText, type Troubled } from '../presentation/destination-troubles.ts'
import { hostOf } from '../mail/smtp-reply.ts'
import type { QueueStatus } from '../queue/queue-status.ts'
import { QUOTA_ACTIONS } from '../config/values/tables/quota-table.ts'
import { fullQuotaText, type FullQuota } from '../queue/intake/quota-reports.ts'
import { limitText, refusesMail } from '../queue/intake/queue-limits.ts'
import { CONNECTING_SHOWN, type DeliverySlots } from '../store/destination-status.ts'
import type { LostNode } from '../store/membership/node-directory.ts'
import { BALANCE_TERMS, type Balance } from '../store/counts/queue-balance.ts'
import { TRAFFIC_KINDS, type TrafficKind } from '../store/counts/traffic.ts'
import { SECOND } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { statusDestinationJson, statusDestinationShape } from './destination-json.ts'
import { count, hint, textOrNull, time, timeOrNull, wholeTime, type Json } from './members.ts'
import { loginTokenJson, loginTokenMembers } from './oauth-json.ts'
import { scheduleJson, scheduleMembers } from './schedule-json.ts'
import { subscriptionJson, subscriptionShape } from './subscription-json.ts'

const traffic = z.object(Object.fromEntries(TRAFFIC_KINDS.map((kind) => [kind, z.number()])) as Record<TrafficKind, z.ZodNumber>)

const attentionShape = z.object({
  kind: z.enum([
    'store-unavailable',
    'nodes-draining',
    'nodes-silent',
    'nodes-lost',
    'oauth-failed',
    'schedule-failed',
    'limits',
    'listings-stopped',
    'quotas',
    'corrupt-messages',
    'expiring-recipients',
    'notices-due',
    'warnings',
  ]),
  count: count.nullable(),
  at_least: z.boolean().describe('true when the count stopped at its limit'),
  within: z.number().nullable().describe('seconds'),
  text: textOrNull,
  since: timeOrNull,
})

export type AttentionJson = Json<typeof attentionShape>

const slotsShape = z.object({
  in_flight: count.describe('delivery slots in use'),
  limit: count.describe('default_process_limit, of all nodes together'),
  connecting: z
    .array(z.object({ address: z.string(), count }))
    .describe(`connections without a greeting yet, for the ${CONNECTING_SHOWN} addresses with most`),
})

const statusMembers = {
  time,
  running: z.boolean(),
  version: textOrNull,
  rates: z.object({ last_10s: traffic, last_5min: traffic }).nullable().describe('recipients per second'),
  deliveries: slotsShape.nullable().describe('null when no daemon runs'),
  last_hour: traffic,
  queues: z.array(z.object({ queue_name: z.string(), messages: count, recipients: count, oldest_arrival_time: z.int() })),
  trash: z.object({ messages: count, recipients: count }),
  oldest_arrival_time: z.int().nullable(),
}

const agesShape = z.object({
  as_of: time,
  limits: z.array(z.int().nullable()).describe('upper limits of the columns in minutes; the last one has none'),
  counts: z.array(count),
})

export type AgesJson = Json<typeof agesShape>

const oldestShape = z.object({ queue_id: z.string(), arrival_time: z.int() })

/** Members that the admin API has beside those of `deferd status --json`. */
const nowMembers = {
  health: z
    .object({ state: z.enum(['good', 'slow', 'failing']), text: z.string() })
    .describe('whether the relay accepts and delivers mail; `slow` while a commit takes 250 ms or more, `failing` from 2 s on'),
  as_of: time.describe(
    'time at which the store was read for the oldest message, what needs attention, subscriptions and schedules: at most 10 s before `time`',
  ),
  oldest: oldestShape.nullable(),
  waited: z
    .object({ time, recipients: count, hold: count.describe('recipients that were on hold then') })
    .nullable()
    .describe('recipients that waited (incoming, active, deferred) at the first count of the last hour; null before the first count'),
  ages: agesShape
    .nullable()
    .describe(
      'messages by age, as counted some time ago; null before the first count, for more than 100,000 messages, and for a token with limited destinations',
    ),
  attention: z
    .array(attentionShape)
    .describe('conditions that need an operator, beside closed_destinations; empty for a token of some destinations'),
}

const troubleShape = z.object({
  kind: z.enum(['dead', 'suspended', 'refusing', 'throttled']),
  destinations: count.describe('number of destinations with this reason'),
  largest_destinations: z.array(z.string()).describe('up to five of them, those with the most waiting recipients first'),
  waiting: count.describe('recipients that wait for them'),
  host: textOrNull.describe('the host that does not answer or refuses, as `mx.example[192.0.2.1]`'),
  text: z.string().describe('the sentence that `deferd status` prints'),
  probe_time: timeOrNull.describe('time of the earliest probe'),
  hint,
})

export type DestinationTroubleJson = Json<typeof troubleShape>

const limitShape = z.object({
  share: textOrNull.describe('null for a limit of the whole queue'),
  measure: z.enum(['messages', 'bytes']),
  used: count,
  limit: count,
  refuses: z.boolean().describe('true while it has no room for mail'),
  refused_since: timeOrNull.describe('null while the limit is open, and until it has refused mail'),
  text: z.string().describe('the sentence that `deferd status` prints'),
})

const fullQuotaShape = z.object({
  quota: z.string().describe('name of the table `[quota.NAME]`'),
  key: z.string(),
  limit: z.string(),
  action: z.enum(QUOTA_ACTIONS),
  refuses: z.boolean().describe('true while mail is refused: also by a quota that holds, when it would be held longer than `hold_limit`'),
  since: time,
  text: z.string().describe('the sentence that `deferd status` prints'),
})

const listMembers = {
  troubles: z
    .array(troubleShape)
    .describe(
      'closed_destinations, refusing_destinations and throttled destinations with a large part of the queue; those of one reason and host as one',
    ),
  closed_destinations: z.array(statusDestinationShape),
  refusing_destinations: z.array(statusDestinationShape).describe('open destinations that delivered nothing in their last attempts'),
  largest_destinations: z.array(statusDestinationShape),
  subscriptions: z.array(subscriptionShape).describe('empty for a token of some destinations'),
  oauth: z
    .array(z.object({ oauth: z.string().describe('name of the table `[oauth.NAME]`'), ...loginTokenMembers }))
    .describe('access tokens for next hops that are in use; empty for a token of some destinations'),
  schedules: z.array(z.object(scheduleMembers)).describe('work at times of the calendar; empty for a token of some destinations'),
  limits: z
    .array(limitShape)
    .describe('limits of the queue that are set, and of the shares that use most; empty for a token of some destinations'),
  quotas: z
    .array(fullQuotaShape)
    .describe('quotas that are used up, each with the limit that has room last; empty for a token of some destinations'),
  balance: z.object(Object.fromEntries(BALANCE_TERMS.map((term) => [term, z.number()])) as Record<keyof Balance, z.ZodNumber>),
}

export const nowShape = z
  .object({ name: z.string().describe('myhostname'), ...statusMembers, ...nowMembers, ...listMembers })
  .meta({ id: 'Now' })

export type NowJson = Json<typeof nowShape>
export type StatusJson = Omit<NowJson, 'name' | keyof typeof nowMembers>

export function statusJson(status: QueueStatus, wall: WallView): StatusJson {
  const {
    at,
    running,
    queues,
    trash,
    oldestArrival,
    lastHour,
    closed,
    refusing,
    largest,
    subscriptions,
    tokens,
    schedules,
    limits,
    quotas,
    balance,
  } = status
  return {
    time: wall.seconds(at),
    running: running !== null,
    version: running?.version ?? null,
    rates: running === null ? null : { last_10s: running.rates.last10s, last_5min: running.rates.last5min },
    deliveries: slotsJson(running?.deliveries),
    last_hour: lastHour,
    queues: queues.map(({ queue, messages, recipients, oldestArrival: oldest }) => ({
      queue_name: queue,
      messages,
      recipients,
      oldest_arrival_time: wholeTime(oldest, wall),
    })),
    trash,
    oldest_arrival_time: oldestArrival === null ? null : wholeTime(oldestArrival, wall),
    troubles: troublesJson(status, wall),
    closed_destinations: closed.map((one) => statusDestinationJson(one, wall)),
    refusing_destinations: refusing.map((one) => statusDestinationJson(one, wall)),
    largest_destinations: largest.map((one) => statusDestinationJson(one, wall)),
    subscriptions: subscriptions.map((one) => subscriptionJson(one, wall)),
    oauth: tokens.map((one) => ({ oauth: one.name, ...loginTokenJson(one) })),
    schedules: schedules.map((one) => scheduleJson(one, at, wall)),
    limits: limits.map((one) => ({
      share: one.share,
      measure: one.measure,
      used: one.used,
      limit: one.limit,
      refuses: refusesMail(one),
      refused_since: wall.secondsOrNull(one.refusedSince),
      text: limitText(one),
    })),
    quotas: quotas.map((one) => fullQuotaJson(one, wall)),
    balance: { ...balance },
  }
}

const fullQuotaJson = (one: FullQuota, wall: WallView): Json<typeof fullQuotaShape> => ({
  quota: one.quota,
  key: one.key,
  limit: one.limit,
  action: one.action,
  refuses: one.refuses,
  since: wall.seconds(one.since),
  text: fullQuotaText(one),
})

const slotsJson = (slots: DeliverySlots | undefined): Json<typeof slotsShape> | null =>
  slots === undefined ? null : { in_flight: slots.inFlight, limit: slots.limit, connecting: slots.connecting.map((one) => ({ ...one })) }

const LARGEST_NAMED = 5

/** The destinations that need attention, of those that a client may see. */
export const troublesJson = ({ at, ...troubled }: Pick<QueueStatus, 'at'> & Troubled, wall: WallView): readonly DestinationTroubleJson[] =>
  troublesOf(troubled).map((one) => ({
    kind: one.kind,
    destinations: one.destinations.length,
    largest_destinations: one.destinations.slice(0, LARGEST_NAMED),
    waiting: one.waiting,
    host: one.status === null ? null : hostOf(one.status),
    text: troubleText(one, at),
    probe_time: wall.secondsOrNull(one.probeAt),
    hint: troubleHint(one),
  }))

/** Nodes of a shared queue that take no mail: names of those without a beat for node_lease, and those that were taken over. */
interface AbsentNodes {
  /** Names of the draining nodes when none is active. */
  readonly drained: readonly string[]
  readonly silent: readonly string[]
  readonly lost: readonly Pick<LostNode, 'name' | 'taker' | 'lostAt'>[]
}

/** The entries of absent nodes: none without one. */
export function absentNodesJson({ silent, drained, lost }: AbsentNodes, wall: WallView): readonly AttentionJson[] {
  const since = wall.secondsOrNull(lost.length === 0 ? null : Math.min(...lost.map(({ lostAt }) => lostAt)))
  const names = lost.map(({ name, taker }) => `${name}, taken over by ${taker}`).join('; ')
  return [
    ...(drained.length === 0 ? [] : [{ ...EMPTY, kind: 'nodes-draining' as const, count: drained.length, text: drained.join(', ') }]),
    ...(silent.length === 0 ? [] : [{ ...EMPTY, kind: 'nodes-silent' as const, count: silent.length, text: silent.join(', ') }]),
    ...(lost.length === 0 ? [] : [{ ...EMPTY, kind: 'nodes-lost' as const, count: lost.length, text: names, since }]),
  ]
}

const EMPTY = { count: null, at_least: false, within: null, text: null, since: null } as const

export const attentionJson = (items: readonly AttentionItem[], wall: WallView): readonly AttentionJson[] =>
  items.map((item) => conditionJson(item, wall))

function conditionJson(item: AttentionItem, wall: WallView): AttentionJson {
  switch (item.kind) {
    case 'store-unavailable':
      return { ...EMPTY, kind: item.kind, text: item.why, since: wall.seconds(item.since) }
    case 'oauth-failed':
    case 'schedule-failed':
    case 'quotas':
      return { ...EMPTY, kind: item.kind, count: item.count, text: item.why, since: wall.seconds(item.since) }
    case 'limits':
    case 'listings-stopped':
      return { ...EMPTY, kind: item.kind, count: item.count, text: item.why, since: wall.secondsOrNull(item.since) }
    case 'corrupt-messages':
      return { ...EMPTY, kind: item.kind, count: item.messages }
    case 'expiring-recipients':
      return { ...EMPTY, kind: item.kind, count: item.count, at_least: item.isAtLeast, within: item.within / SECOND }
    case 'notices-due':
      return { ...EMPTY, kind: item.kind, count: item.messages, at_least: item.isAtLeast }
    case 'warnings':
      return { ...EMPTY, kind: item.kind, count: item.count, text: item.last, since: wall.seconds(item.since) }
  }
}
