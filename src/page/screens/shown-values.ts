/** Values that the screens show, in the members of deferd's JSON. Times are in seconds. */
import type { messageStory } from '../../api/queries/message-story.ts'
import type { AttentionJson } from '../../presentation/attention-json.ts'
import type { CauseJson } from '../../presentation/cause-json.ts'
import type { DestinationJson } from '../../presentation/destination-json.ts'
import type { HistoryJson } from '../../presentation/history-json.ts'
import type { AuditEntryJson } from '../../presentation/operation-json.ts'
import type { MessageJson } from '../../presentation/message-json.ts'
import type { StatusJson } from '../../presentation/status-json.ts'

export type StatusDestination = StatusJson['largest_destinations'][number]

export interface NowValue extends StatusJson {
  readonly oldest: { readonly queue_id: string; readonly arrival_time: number } | null
  readonly attention: readonly AttentionJson[]
  /** Messages by age; null before they are counted. Limits are in minutes. */
  readonly ages: { readonly as_of: number; readonly limits: readonly (number | null)[]; readonly counts: readonly number[] } | null
}

/** Recipients per second in intervals of equal length, oldest first. */
export interface SeriesValue {
  readonly range: '1h' | '6h' | '24h'
  readonly interval: number
  readonly counts: readonly { readonly accepted: number; readonly delivered: number; readonly deferred: number; readonly bounced: number }[]
}

export interface DestinationValue extends DestinationJson {
  readonly last_outcomes?: readonly string[]
  readonly last_windows?: readonly number[]
}

export interface CausesValue {
  readonly as_of: number
  readonly causes: readonly CauseJson[]
}

export type ListedMessage = MessageJson & { readonly recipient_count?: number }

export interface MessagesValue {
  readonly messages: readonly ListedMessage[]
  readonly next: string | null
}

export interface CountValue {
  readonly count: number
  readonly at_least: boolean
}

export type MessageValue = Awaited<ReturnType<typeof messageStory>>

export type FutureValue = MessageValue['future'][number]

/** A record of the audit log; that of an operation has its progress. */
export type OperationValue = AuditEntryJson

export interface PlanValue {
  readonly token: string
  readonly operation: string
  readonly matched: number
  readonly bytes: number
  readonly oldest: number | null
  readonly destinations: number
  readonly in_transfer: number
  readonly examples: readonly { readonly queue_id: string }[]
  readonly told_senders: boolean
  /** Time until which the operation can be undone; null when it cannot be undone. */
  readonly undo: number | null
}

export type HistoryValue = { readonly messages: readonly HistoryJson[]; readonly next: string | null }

export type AuditValue = { readonly entries: readonly OperationValue[]; readonly next: string | null }
