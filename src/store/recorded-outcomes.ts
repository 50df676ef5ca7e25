/** Outcomes that the store records: of deliveries, and of the notices about them. */
import type { NewEvent, RecipientEvent } from '../events/kept-event.ts'
import type { DestinationName, FinalState, Message, MessageId, NoticeDue, OwnerId, Recipient, RecipientId } from '../mail/message.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { Duration, QueueTime } from '../system/clock.ts'
import type { NewMessage } from './new-message.ts'
import type { StoredSession } from './records/stored-session.ts'

/** One delivery attempt in the history. */
export interface AttemptRecord {
  readonly recipient: RecipientId
  readonly at: QueueTime
  /** `mx.example[192.0.2.1]:25`, or null when no server was reached. */
  readonly relay: string | null
  readonly outcome: 'delivered' | 'deferred' | 'bounced' | 'expired'
  readonly status: DeliveryStatus
  /**
   * Time before the queue manager, in the queue manager, for connection setup, and for transmission: Postfix's delays=a/b/c/d, in
   * ms.
   */
  readonly delays: readonly [Duration, Duration, Duration, Duration]
  /** Id of the dialogue with the host (StoredSession); absent without one. */
  readonly session?: string | undefined
}

/** New state of one recipient. The store applies it only to a leased recipient and ignores it otherwise. */
export type Settled =
  | {
      readonly recipient: RecipientId
      readonly state: 'waiting'
      readonly dueAt: QueueTime
      readonly steps: number
      readonly attempts: number
      readonly last: DeliveryStatus | null
      readonly noticeDue?: NoticeDue | undefined
    }
  | {
      readonly recipient: RecipientId
      readonly state: FinalState
      readonly at: QueueTime
      readonly attempts: number
      readonly last: DeliveryStatus | null
      readonly noticeDue?: NoticeDue | undefined
    }

/** The complete outcome of one delivery request. */
export interface Settlement {
  /** Owner of the leases. Recipients leased by another owner are not settled. */
  readonly owner: OwnerId
  readonly message: MessageId
  readonly recipients: readonly Settled[]
  readonly attempts: readonly AttemptRecord[]
  /** Time of the next delay warning. Null means no further warning; absent leaves the time unchanged. */
  readonly warnAt?: QueueTime | null | undefined
  /** Events of the recipients, of which those of settled ones are kept. */
  readonly events?: readonly RecipientEvent[] | undefined
  /** Dialogues to which the attempts refer, kept unless they are there already. */
  readonly sessions?: readonly StoredSession[] | undefined
  /** Time until which the content is kept when the message leaves without having reached all recipients; absent to delete it. */
  readonly keepUntil?: QueueTime | undefined
}

export interface SettleResult {
  /** True when the message has left the queue: its last recipient is final and no notice is due. */
  readonly removed: boolean
  /** True when a notice to the sender is due for a recipient of the message. */
  readonly noticeDue: boolean
}

/** A message for which notices to its sender are due. */
export interface MessageWithNoticesDue {
  readonly message: Message
  readonly warnings: number
  /** Recipients with a notice due; the live recipients when the message was returned by claimWarnings. */
  readonly recipients: readonly Recipient[]
  /** State of live recipients at destinations of other owners; absent when there are none. */
  readonly elsewhere?: RecipientsElsewhere | undefined
}

/** Live recipients of a message that other owners schedule. */
export interface RecipientsElsewhere {
  /** True while another owner leases one of them. */
  readonly leased: boolean
  /** Their dead and suspended destinations. */
  readonly closed: readonly DestinationName[]
}

/** Notices for one message. The store queues the notices and clears the due marks in one transaction. */
export interface Report {
  readonly message: MessageId
  /** Due marks to clear. */
  readonly noticesSettled: readonly { readonly recipient: RecipientId; readonly noticeDue: NoticeDue }[]
  /** Recipients that the notices list as delayed, whether or not a notice is due for them. */
  readonly late: readonly RecipientId[]
  readonly notices: readonly NewMessage[]
  /** Number of ages of delay_warning_time that have had their warning, including one in `notices`. */
  readonly warnings: number
  /** Time when the next delay warning may be due; null for none. */
  readonly warnAt: QueueTime | null
  /** Events of the notices, kept with them. */
  readonly events?: readonly NewEvent[] | undefined
  /** As in Settlement. */
  readonly keepUntil?: QueueTime | undefined
}
