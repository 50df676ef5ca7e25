/** Operations on messages, and which mail they apply to. */
import type { NewEvent } from '../events/kept-event.ts'
import type { DestinationName, Message, MessageId, Placement, RecipientId } from '../mail/message.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { QueueTime } from '../system/clock.ts'
import type { RecipientTimes } from './former-times.ts'

/** An operation on a whole message. */
export type Operation =
  /**
   * Makes all recipients due now, unless the message is scheduled. The previous due time is kept, so that a failed attempt continues the previous
   * schedule.
   */
  | { readonly kind: 'flush'; readonly now: QueueTime }
  | { readonly kind: 'hold' }
  | { readonly kind: 'release' }
  /** Moves the undelivered recipients to a new message that has the same arrival time and a schedule that starts again, at its `notBefore` at the earliest. */
  | { readonly kind: 'requeue'; readonly now: QueueTime; readonly newId: MessageId; readonly expiresAt: QueueTime }
  /** Returns the message to the sender when it is next activated, without another delivery attempt. */
  | { readonly kind: 'expire' }
  /** Moves the message to the trash. With `purge`, deletes it permanently. */
  | { readonly kind: 'delete'; readonly now: QueueTime; readonly purge: boolean }
  /** Takes the message out of the trash. A message that was on hold when an operation deleted it is on hold again. */
  | { readonly kind: 'restore' }
  /** Gives a message other times. Has no effect while a recipient is leased. */
  | Rescheduling
  /** Gives a message another class. Its recipients in delivery have it after their outcome. */
  | Reclassing
  /** Removes the recipients that are not in delivery, because the submitter cancels the message. */
  | { readonly kind: 'cancel'; readonly now: QueueTime; readonly by: string }

export interface Rescheduling extends Pick<Message, 'notBefore' | 'scheduled' | 'expires'> {
  readonly kind: 'reschedule'
  /** Absent when the request of the message stays; null for none. */
  readonly holdRequest?: string | null | undefined
  readonly times: readonly RecipientTimes[]
  /** False when the operation has no effect on mail that is not scheduled. */
  readonly anyWaiting: boolean
}

interface Reclassing {
  readonly kind: 'reclass'
  /** Null for none. */
  readonly class: string | null
}

/** Outcome of a recipient that its submitter has cancelled. */
export const cancelledStatus = (by: string): DeliveryStatus => ({ status: '2.0.0', reason: `cancelled by ${by}`, stage: 'cancel' })

/** Whether an operation applies to mail of a placement. Its recipients decide then whether it has an effect. */
export function appliesAt(operation: Pick<Operation, 'kind'> & { readonly purge?: boolean }, placement: Placement): boolean {
  switch (operation.kind) {
    case 'flush':
    case 'hold':
      return placement === 'queued'
    case 'release':
      return placement === 'hold' || placement === 'corrupt'
    case 'restore':
      return placement === 'trash'
    case 'expire':
    case 'requeue':
    case 'cancel':
      return placement !== 'trash'
    case 'reschedule':
    case 'reclass':
      return placement === 'queued' || placement === 'hold'
    case 'delete':
      return operation.purge === true || placement !== 'trash'
  }
}

/** False for an operation after which no destination has to be scheduled. */
export const makesMailDue = ({ kind }: Operation): boolean => kind !== 'hold' && kind !== 'delete' && kind !== 'cancel'

/**
 * Deletion time of a message that is to be purged but has a recipient in delivery. It is earlier than any other time, so that the
 * next pruning purges the message.
 */
export const PURGE_PENDING: QueueTime = 0

/** The time of a deletion that can be undone; undefined for any other message. */
export const restorableSince = (deletedAt: QueueTime | null): QueueTime | undefined =>
  deletedAt === null || deletedAt === PURGE_PENDING ? undefined : deletedAt

/** An operation with the message it applies to. */
export interface MessageOperation {
  readonly message: MessageId
  readonly operation: Operation
  /** Events of the change, kept when the message is changed. */
  readonly events?: readonly NewEvent[] | undefined
}

export interface OperationResult {
  /** False when the message does not exist or the operation had no effect. */
  readonly changed: boolean
  /**
   * Destinations with waiting recipients of the message (of the new message after `requeue`), each with its earliest due time.
   * Empty without a change, and for `hold` and `delete`.
   */
  readonly woken: readonly DestinationDue[]
}

export interface DestinationDue {
  readonly destination: DestinationName
  readonly dueAt: QueueTime
}

/** New destination and new expiry of a recipient. */
export interface Move {
  readonly recipient: RecipientId
  readonly destination: DestinationName
  readonly expiresAt: QueueTime
}
