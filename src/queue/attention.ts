/** Conditions that need an operator's attention besides those of destinations, from facts that are at hand. */
import type { TokenState } from '../oauth/access-tokens.ts'
import type { SuppressionStop } from '../store/records/suppression-entry.ts'
import type { QueueTally } from '../store/counts/queue-tally.ts'
import type { QueueTime } from '../system/clock.ts'
import { fullQuotaText, type FullQuota } from './intake/quota-reports.ts'
import { limitText, refusesMail, type LimitState } from './intake/queue-limits.ts'
import type { LiveStatus } from './queue-status.ts'
import { runState, runText, type ScheduleState } from './schedule-state.ts'

/** One entry of the list. */
export type AttentionItem =
  /** The store cannot commit: no mail is accepted or delivered. */
  | { readonly kind: 'store-unavailable'; readonly why: string; readonly since: QueueTime }
  /** Logins at next hops without an access token, or whose authority refuses another one: mail waits, or soon will. */
  | {
      readonly kind: 'oauth-failed'
      readonly count: number
      /** `m365: invalid_client: …` */ readonly why: string
      readonly since: QueueTime
    }
  /** Tables whose last run failed. */
  | { readonly kind: 'schedule-failed'; readonly count: number; /** `nightly: …` */ readonly why: string; readonly since: QueueTime }
  /** The fullest limit of those that refuse mail, or of those from NEARLY_FULL on. */
  | { readonly kind: 'limits'; readonly count: number; readonly why: string; readonly since: QueueTime | null }
  /** Sender domains and destinations whose recipients are not put on the suppression list. */
  | { readonly kind: 'listings-stopped'; readonly count: number; readonly why: string; readonly since: QueueTime | null }
  /** Limits of quotas that are used up, so that mail of their keys is refused or held. */
  | { readonly kind: 'quotas'; readonly count: number; readonly why: string; readonly since: QueueTime }
  | { readonly kind: 'corrupt-messages'; readonly messages: number }
  /** Recipients whose lifetime ends within `within` ms; counted up to `count`. */
  | { readonly kind: 'expiring-recipients'; readonly count: number; readonly isAtLeast: boolean; readonly within: number }
  | { readonly kind: 'notices-due'; readonly messages: number; readonly isAtLeast: boolean }
  | { readonly kind: 'warnings'; readonly count: number; readonly last: string; readonly since: QueueTime }

/** A count that stops at a limit. */
interface Bounded {
  readonly count: number
  readonly isAtLeast: boolean
}

/** Facts of the store, which are the same for all nodes of a shared queue, and of this process. */
export interface AttentionFacts {
  /** Why the store cannot commit, and since when; null while it can. */
  readonly storeUnavailable: { readonly why: string; readonly since: QueueTime } | null
  readonly schedules: readonly ScheduleState[]
  /** Sender domains with too many entries of the suppression list. */
  readonly stopped: readonly SuppressionStop[]
  readonly now: QueueTime
  readonly tally: Pick<QueueTally, 'queues'>
  /** Recipients whose lifetime ends within `within` ms. */
  readonly expiring: Bounded & { readonly within: number }
  readonly noticesDue: Bounded
  /** Notes with a warning or an error in the log of this node in the last hour, the last and the time of the first of them; null for none. */
  readonly warnings: { readonly count: number; readonly last: string; readonly since: QueueTime } | null
}

/** The conditions by these facts and by those that the nodes have in memory. */
export function attentionOf(
  { storeUnavailable, schedules, stopped, now, tally, expiring, noticesDue, warnings }: AttentionFacts,
  { tokens = [], limits = [], quotas = [], braked = [] }: Pick<LiveStatus, 'tokens' | 'limits' | 'quotas' | 'braked'>,
): readonly AttentionItem[] {
  const corrupt = tally.queues.find(({ queue }) => queue === 'corrupt')?.messages ?? 0
  return [
    ...(storeUnavailable === null ? [] : [{ kind: 'store-unavailable' as const, ...storeUnavailable }]),
    ...tokenItem(tokens),
    ...scheduleItem(schedules, now),
    ...limitItem(limits),
    ...listingItem(stopped, braked),
    ...quotaItem(quotas),
    ...(corrupt === 0 ? [] : [{ kind: 'corrupt-messages' as const, messages: corrupt }]),
    ...(expiring.count === 0 ? [] : [{ kind: 'expiring-recipients' as const, ...expiring }]),
    ...(noticesDue.count === 0 ? [] : [{ kind: 'notices-due' as const, messages: noticesDue.count, isAtLeast: noticesDue.isAtLeast }]),
    ...(warnings === null ? [] : [{ kind: 'warnings' as const, ...warnings }]),
  ]
}

/** The entry of the failed logins, as a list: empty for none. It has the cause of the one that failed first. */
function tokenItem(tokens: readonly TokenState[]): readonly AttentionItem[] {
  const failed = tokens.flatMap(({ name, problem, failedSince }) =>
    failedSince === null ? [] : [{ why: `${name}: ${problem ?? ''}`, since: failedSince }],
  )
  const [first] = failed.toSorted((a, b) => a.since - b.since)
  return first === undefined ? [] : [{ kind: 'oauth-failed', count: failed.length, ...first }]
}

/** Part of a limit from which it needs attention. */
const NEARLY_FULL = 0.8

/** The limits that refuse mail, then those that are nearly full, the fullest first. */
export function nearlyFull(limits: readonly LimitState[]): readonly LimitState[] {
  return limits
    .filter((one) => refusesMail(one) || one.used >= one.limit * NEARLY_FULL)
    .toSorted((a, b) => Number(refusesMail(b)) - Number(refusesMail(a)) || b.used / b.limit - a.used / a.limit)
}

/** The entry of the full and nearly full limits, as a list: empty for none. */
function limitItem(limits: readonly LimitState[]): readonly AttentionItem[] {
  const found = nearlyFull(limits)
  const [first] = found
  return first === undefined ? [] : [{ kind: 'limits', count: found.length, why: limitText(first), since: first.refusedSince }]
}

/** The entry of the stopped listings, as a list: empty for none. Those that wait for an operator come first. */
function listingItem(stopped: readonly SuppressionStop[], braked: readonly string[]): readonly AttentionItem[] {
  const count = stopped.length + braked.length
  const [first] = stopped
  if (first !== undefined)
    return [
      {
        kind: 'listings-stopped',
        count,
        why: `no more addresses are listed for ${first.scope}, because too many were within an hour`,
        since: first.at,
      },
    ]
  const [destination] = braked
  if (destination === undefined) return []
  return [
    {
      kind: 'listings-stopped',
      count,
      why: `no address at ${destination} is listed, because too many recipients there are refused as unknown`,
      since: null,
    },
  ]
}

/** The entry of the quotas that are used up, as a list: empty for none. One by which mail is refused comes before those that hold it. */
function quotaItem(quotas: readonly FullQuota[]): readonly AttentionItem[] {
  const first = quotas.find(({ refuses }) => refuses) ?? quotas[0]
  return first === undefined ? [] : [{ kind: 'quotas', count: quotas.length, why: fullQuotaText(first), since: first.since }]
}

/** The entry of the tables whose last run failed, as a list: empty for none. It has the reason of the one that failed last. */
function scheduleItem(schedules: readonly ScheduleState[], now: QueueTime): readonly AttentionItem[] {
  const failed = schedules.flatMap(({ table, last }) =>
    last === null || runState(last, now) !== 'failed'
      ? []
      : [{ why: `${table.name}: ${runText(last, now)}`, since: last.endedAt ?? last.until }],
  )
  const latest = failed.toSorted((a, b) => a.since - b.since).at(-1)
  return latest === undefined ? [] : [{ kind: 'schedule-failed', count: failed.length, ...latest }]
}
