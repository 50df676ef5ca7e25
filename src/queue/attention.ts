/** Conditions that need an operator's attention, from facts that are at hand. The list is bounded. */
import type { DestinationName } from '../mail/message.ts'
import type { TokenState } from '../oauth/access-tokens.ts'
import type { LiveDestination } from '../store/destination-status.ts'
import type { QueueTally } from '../store/queue-tally.ts'
import type { QueueTime } from '../system/clock.ts'
import { runState, runText, type ScheduleState } from './schedule-state.ts'

/** One entry of the list. */
export type AttentionItem =
  /** The store cannot commit: no mail is accepted or delivered. */
  | { readonly kind: 'store-unavailable'; readonly why: string; readonly since: QueueTime }
  | {
      readonly kind: 'dead-destination'
      readonly destination: DestinationName
      /** Recipients that wait for it. */
      readonly waiting: number
      /** Time of the next probe. */
      readonly until: QueueTime
    }
  | {
      readonly kind: 'suspended-destination'
      readonly destination: DestinationName
      readonly waiting: number
      readonly by: string
      readonly reason: string | null
      /** Time when it ends by itself; null for never. */
      readonly until: QueueTime | null
    }
  /** Logins at next hops without an access token, or whose authority refuses another one: mail waits, or soon will. */
  | {
      readonly kind: 'oauth-failed'
      readonly count: number
      /** `m365: invalid_client: …` */ readonly why: string
      readonly since: QueueTime
    }
  /** Tables whose last run failed. */
  | { readonly kind: 'schedule-failed'; readonly count: number; /** `nightly: …` */ readonly why: string; readonly since: QueueTime }
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

export interface AttentionFacts {
  /** Why the store cannot commit, and since when; null while it can. */
  readonly storeUnavailable: { readonly why: string; readonly since: QueueTime } | null
  readonly destinations: readonly LiveDestination[]
  readonly tokens: readonly TokenState[]
  readonly schedules: readonly ScheduleState[]
  readonly now: QueueTime
  readonly tally: Pick<QueueTally, 'queues' | 'waiting'>
  /** Recipients whose lifetime ends within `within` ms. */
  readonly expiring: Bounded & { readonly within: number }
  readonly noticesDue: Bounded
  /** Warnings and errors of the log since a time, and the last of them; null for none. */
  readonly warnings: { readonly count: number; readonly last: string; readonly since: QueueTime } | null
}

/** Maximum number of destinations in the list: those with the most waiting recipients. */
const DESTINATIONS = 40

export function attentionOf({
  storeUnavailable,
  destinations,
  tokens,
  schedules,
  now,
  tally,
  expiring,
  noticesDue,
  warnings,
}: AttentionFacts): readonly AttentionItem[] {
  const waiting = new Map(tally.waiting.map((one) => [one.destination, one.recipients]))
  const closed = destinations.flatMap((one) => closedItem(one, waiting.get(one.destination) ?? one.waiting))
  const corrupt = tally.queues.find(({ queue }) => queue === 'corrupt')?.messages ?? 0
  return [
    ...(storeUnavailable === null ? [] : [{ kind: 'store-unavailable' as const, ...storeUnavailable }]),
    ...tokenItem(tokens),
    ...scheduleItem(schedules, now),
    ...closed.toSorted((a, b) => b.waiting - a.waiting).slice(0, DESTINATIONS),
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

type Closed = Extract<AttentionItem, { readonly kind: 'dead-destination' | 'suspended-destination' }>

/** The entry of a destination that is dead or suspended, as a list: empty for another one. */
function closedItem({ destination, state, suspension, deadUntil }: LiveDestination, waiting: number): readonly Closed[] {
  if (suspension !== null) return [{ kind: 'suspended-destination', destination, waiting, ...suspension }]
  return state === 'dead' && deadUntil !== null ? [{ kind: 'dead-destination', destination, waiting, until: deadUntil }] : []
}
