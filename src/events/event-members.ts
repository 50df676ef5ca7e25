/** Members of the data of events about messages and recipients, for programs, with the value of each. */
import { failureClass, type FailureClass } from '../mail/failure-class.ts'
import { releasedAt, queueIdOf, type MessageSummary } from '../mail/message.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import { tlsFeature } from '../mail/tls-facts.ts'
import type { Duration, QueueTime } from '../system/clock.ts'
import { same, seconds, type Members } from './event-kind.ts'

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
  /** Id of the dialogue with the host; null when none was kept. */
  readonly session: string | null
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

export const MESSAGE: Members<{ readonly message: MessageSummary }, MessageMembers> = {
  queue_id: ({ message }) => queueIdOf(message),
  sender: ({ message }) => message.sender,
}

/** An attempt for one recipient. */
export interface RecipientAttempt {
  readonly request: { readonly message: MessageSummary; readonly destination: string }
  readonly address: string
  readonly attempt: {
    readonly at: QueueTime
    readonly relay: string | null
    readonly outcome: AttemptMembers['outcome']
    readonly status: DeliveryStatus
    readonly delays: readonly Duration[]
    readonly session?: string | undefined
  }
  readonly result: { readonly connectionUse: number; readonly login?: 'refused' | 'missing' | undefined }
}

export const ATTEMPT: Members<RecipientAttempt, AttemptMembers> = {
  queue_id: ({ request }) => queueIdOf(request.message),
  sender: ({ request }) => request.message.sender,
  recipient: ({ address }) => address,
  destination: ({ request }) => request.destination,
  relay: ({ attempt }) => attempt.relay,
  connection_use: ({ result }) => result.connectionUse,
  delay: ({ request, attempt }) => seconds(attempt.at - releasedAt(request.message)),
  delays: ({ attempt }) => attempt.delays.map(seconds),
  status: ({ attempt }) => attempt.status.status,
  class: ({ attempt }) => (attempt.outcome === 'delivered' ? null : failureClass(attempt.status).class),
  outcome: ({ attempt }) => attempt.outcome,
  stage: ({ attempt }) => attempt.status.stage,
  reply: ({ attempt }) => attempt.status.reply ?? null,
  reason: ({ attempt }) => attempt.status.reason,
  login: ({ result }) => result.login ?? null,
  tls: ({ attempt: { status } }) => (status.tls === undefined ? null : tlsFeature(status.tls)),
  session: ({ attempt }) => attempt.session ?? null,
}

/** An attempt with the state that follows from it. */
interface RecipientResult extends RecipientAttempt {
  readonly forced: boolean
  /** Number of attempts. */
  readonly attempts: number
  /** In seconds since 1970. */
  readonly nextAttemptTime: number | null
}

export const RECIPIENT: Members<RecipientResult, RecipientMembers> = {
  ...ATTEMPT,
  ...same('forced', 'attempts'),
  next_attempt_time: ({ nextAttemptTime }) => nextAttemptTime,
  final: ({ nextAttemptTime }) => nextAttemptTime === null,
}
