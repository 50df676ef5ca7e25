/** Values that the screens show, in the members of deferd's JSON. Times are in seconds. */
import type { AuditJson } from '../../presentation/audit-json.ts'
import type { CauseJson } from '../../presentation/cause-json.ts'
import type { DestinationJson } from '../../presentation/destination-json.ts'
import type { HistoryJson } from '../../presentation/history-json.ts'
import type { MessageJson } from '../../presentation/message-json.ts'
import type { StatusJson } from '../../presentation/status-json.ts'
import type { StoryJson } from '../../presentation/story-json.ts'

export interface AttentionValue {
  readonly kind: string
  readonly sentence: string
  readonly destination?: string | null
  readonly queue_id?: string | null
  readonly since: number | null
}

export type StatusDestination = StatusJson['largest_destinations'][number]

export interface NowValue extends StatusJson {
  readonly health: { readonly ok: boolean; readonly text: string }
  readonly oldest: { readonly queue_id: string; readonly arrival_time: number } | null
  readonly attention: readonly AttentionValue[]
}

/** Recipients per second in intervals of equal length, oldest first. */
export interface SeriesValue {
  readonly range: '1h' | '6h' | '24h'
  readonly interval: number
  readonly counts: readonly { readonly accepted: number; readonly delivered: number; readonly deferred: number; readonly bounced: number }[]
}

/** Waiting recipients by age, from a walk of the queue that ended at `as_of`. */
export interface AgesValue {
  readonly as_of: number
  readonly ages: readonly { readonly label: string; readonly recipients: number }[]
}

export interface DestinationValue extends DestinationJson {
  readonly last_outcomes: readonly string[] | null
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

export interface FutureValue {
  readonly recipient: string
  readonly attempts: readonly number[]
  readonly warnings: readonly number[]
  readonly expire_time: number
}

export interface MessageValue extends StoryJson {
  readonly message_id: string | null
  readonly client: string | null
  readonly sasl_username: string | null
  readonly operations: readonly OperationValue[]
  readonly future: readonly FutureValue[]
}

export type OperationState = 'running' | 'done' | 'failed' | 'cancelled'

export interface OperationValue extends AuditJson {
  readonly id: string
  readonly state: OperationState
  readonly matched: number
  readonly expected: number | null
  readonly unknown: number
  readonly reason: string | null
  readonly error: string | null
  readonly undo_until: number | null
  readonly undoes: string | null
  readonly undone_by: string | null
}

export interface PlanValue {
  readonly token: string
  readonly operation: string
  readonly matched: number
  readonly bytes: number
  readonly oldest: number | null
  readonly destinations: number
  readonly in_delivery: number
  readonly examples: readonly string[]
  readonly told_senders: boolean
  readonly undo: boolean
  readonly undo_until: number | null
}

export type HistoryValue = { readonly messages: readonly HistoryJson[]; readonly next: string | null }

export type AuditValue = { readonly entries: readonly OperationValue[]; readonly next: string | null }
