/**
 * Types of the events that programs can subscribe to, with the members of their data. The members are those of the records of
 * `log_format = "json"`; times are in seconds since 1970. Members and types may be added, but are never removed or renamed.
 */
import type { FailureClass } from '../mail/failure-class.ts'

/** Members of an event about a message. */
export interface MessageMembers {
  readonly queue_id: string
  /** Envelope sender; empty for a notice. */
  readonly sender: string
}

/** Members of the acceptance of a message. */
export interface AcceptedMembers extends MessageMembers {
  /** Bytes of the content. */
  readonly size: number
  readonly message_id: string | null
  /** Addresses. */
  readonly recipients: readonly string[]
  readonly client_name: string | null
  readonly client_address: string | null
  /** User id of a local submission. */
  readonly uid: number | null
  /** Queue id before an operator requeued the message. */
  readonly original_id: string | null
  readonly sasl_username: string | null
  readonly upstream_queue_id: string | null
  readonly upstream_client_name: string | null
  readonly upstream_client_address: string | null
}

/** Members of a delivery attempt for one recipient. */
export interface AttemptMembers extends MessageMembers {
  readonly recipient: string
  readonly destination: string
  /** `mx.example[192.0.2.1]:25`; null when no server was reached. */
  readonly relay: string | null
  /** Number of deliveries over the connection, including this one. */
  readonly connection_use: number
  /** Time since the arrival of the message. */
  readonly delay: number
  /** Times before the queue manager, in it, for the connection, and for the transmission. */
  readonly delays: readonly number[]
  /** Enhanced status code. */
  readonly status: string
  /** Class of the failure; null for a delivery. */
  readonly class: FailureClass | null
  readonly outcome: 'delivered' | 'deferred' | 'bounced' | 'expired'
  readonly stage: string
  /** Reply of the server; null when none replied. */
  readonly reply: string | null
  readonly reason: string
  readonly login: 'refused' | 'missing' | null
  /** Level and use of TLS, as in `tls=` of the log; null without a session. */
  readonly tls: string | null
}

/** Members of an outcome for one recipient. */
export interface RecipientMembers extends AttemptMembers {
  /** True when an operator forced the message to expire. */
  readonly forced: boolean
  /** Attempts so far, including this one. */
  readonly attempts: number
  /** Time of the next attempt at an open destination; null after the final outcome. */
  readonly next_attempt_time: number | null
  /** False when another attempt follows. */
  readonly final: boolean
}

/** Members of the data of each type. */
export interface EventData {
  readonly 'message.accepted': AcceptedMembers
  readonly 'message.removed': MessageMembers
  readonly 'message.quarantined': MessageMembers & { readonly text: string }
  readonly 'message.operated': { readonly queue_id: string; readonly operation: string; readonly by: string }
  readonly 'recipient.delivered': RecipientMembers
  readonly 'recipient.deferred': RecipientMembers
  readonly 'recipient.bounced': RecipientMembers
  readonly 'recipient.expired': RecipientMembers
  readonly 'notice.sent': MessageMembers & {
    readonly notice: 'failure' | 'delay' | 'success'
    readonly to: 'sender' | 'postmaster'
    /** Queue id of the notice. */
    readonly notice_id: string
  }
  readonly 'notice.dropped': MessageMembers & { readonly text: string }
  readonly 'destination.died': { readonly destination: string; readonly until: number; readonly text: string }
  readonly 'destination.revived': { readonly destination: string }
  readonly 'destination.suspended': {
    readonly destination: string
    readonly by: string
    readonly until: number | null
    readonly text: string | null
  }
  readonly 'destination.resumed': { readonly destination: string; readonly by: string }
  readonly 'oauth.failed': {
    readonly oauth: string
    readonly user: string | null
    readonly result: 'temporary' | 'refused'
    readonly text: string
  }
  readonly 'store.trouble': { readonly text: string }
  readonly 'store.recovered': Readonly<Record<string, never>>
  /** Events that were deleted before the subscription had them: the first and last number, and how many it had asked for. */
  readonly 'events.lost': { readonly from: number; readonly to: number; readonly count: number }
}

/** Names of the members of the data of a type; none for a type without members. */
type MemberName<T extends EventType> = string extends keyof EventData[T] ? never : keyof EventData[T]

/** A list that has each of these names: the parameter of `includes` is one of the names that a list has. */
type AllNames<Name> = readonly Name[] & { readonly includes: (name: Name) => boolean }

const MESSAGE = ['queue_id', 'sender'] as const
/** Order of stored values. The record `attempted` of the JSON log has a list of its own: its new members come behind `tls`, here at the end. */
const RECIPIENT = [
  ...MESSAGE,
  'recipient',
  'destination',
  'relay',
  'connection_use',
  'delay',
  'delays',
  'status',
  'class',
  'outcome',
  'stage',
  'reply',
  'reason',
  'login',
  'tls',
  'forced',
  'attempts',
  'next_attempt_time',
  'final',
] as const

/** Names of the members of the data of each type. The queue keeps the values in this order, so new names are added at the end. */
export const EVENT_MEMBERS = {
  'message.accepted': [
    ...MESSAGE,
    'size',
    'message_id',
    'recipients',
    'client_name',
    'client_address',
    'uid',
    'original_id',
    'sasl_username',
    'upstream_queue_id',
    'upstream_client_name',
    'upstream_client_address',
  ],
  'message.removed': MESSAGE,
  'message.quarantined': [...MESSAGE, 'text'],
  'message.operated': ['queue_id', 'operation', 'by'],
  'recipient.delivered': RECIPIENT,
  'recipient.deferred': RECIPIENT,
  'recipient.bounced': RECIPIENT,
  'recipient.expired': RECIPIENT,
  'notice.sent': [...MESSAGE, 'notice', 'to', 'notice_id'],
  'notice.dropped': [...MESSAGE, 'text'],
  'destination.died': ['destination', 'until', 'text'],
  'destination.revived': ['destination'],
  'destination.suspended': ['destination', 'by', 'until', 'text'],
  'destination.resumed': ['destination', 'by'],
  'oauth.failed': ['oauth', 'user', 'result', 'text'],
  'store.trouble': ['text'],
  'store.recovered': [],
  'events.lost': ['from', 'to', 'count'],
} as const satisfies { readonly [T in EventType]: AllNames<MemberName<T>> }

/** Type of an event: what happened. */
export type EventType = keyof EventData

/** An event with its data. */
export type TypedEvent = { readonly [T in EventType]: { readonly type: T; readonly data: EventData[T] } }[EventType]

/** Meaning of each type, in the order of the documentation. */
export const EVENT_MEANINGS: Readonly<Record<EventType, string>> = {
  'message.accepted': 'a message was accepted into the queue; a requeued one has an `original_id`',
  'message.removed': 'a message left the queue: no recipient is left in it, and no notice is due',
  'message.quarantined': 'a message could not be read, or ended the daemon three times, and was moved to the corrupt queue',
  'message.operated': 'an operator changed a message',
  'recipient.delivered': 'a recipient was delivered to the next hop',
  'recipient.deferred': 'an attempt failed for now; the next one follows',
  'recipient.bounced': 'a recipient was refused for ever',
  'recipient.expired': 'the lifetime of a recipient ended, or an operator forced it to end',
  'notice.sent': 'a notice (DSN) about a message was queued',
  'notice.dropped': 'no notice is sent, with the reason',
  'destination.died': 'a destination is dead, or a probe of it failed: it is not tried until then',
  'destination.revived': 'a dead destination is open again',
  'destination.suspended': 'an operator suspended a destination',
  'destination.resumed': 'a suspended destination is open again',
  'oauth.failed':
    'mail of a table `[oauth.NAME]` has no access token, or the authority refuses another one; once until a token comes, on each node',
  'store.trouble': 'the queue could not be written; mail was refused meanwhile',
  'store.recovered': 'the queue can be written again',
  'events.lost': 'events were deleted before the subscription had them, because of `event_retention` or `event_limit`',
}

export const EVENT_TYPES = Object.keys(EVENT_MEANINGS) as readonly EventType[]

export const isEventType = (text: string): text is EventType => Object.hasOwn(EVENT_MEANINGS, text)
