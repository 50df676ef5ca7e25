/** A message that enters the queue, as the store takes it. */
import type { Band } from '../config/values/mail-classes.ts'
import type { NewEvent } from '../events/kept-event.ts'
import type { DestinationName, Message, Recipient } from '../mail/message.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { QueueTime } from '../system/clock.ts'
import type { IdempotentRequest } from './records/audit-log.ts'
import type { QuotaCharge } from './records/quota-count.ts'

/** A recipient of a new message. A recipient's position is its index in the list, counted from 0. */
export interface NewRecipient {
  readonly address: string
  readonly notify?: Recipient['notify']
  readonly orcpt?: string | undefined
  readonly destination: DestinationName
  readonly dueAt: QueueTime
  readonly expiresAt: QueueTime
  /** True when the recipient enters the active queue at once: it is queued with a lease, so that its delivery needs no claim. */
  readonly leased: boolean
  /** Attempts of another mail system that had the message before. Not for a recipient with a lease. */
  readonly tried?: Tried | undefined
}

/** Attempts that were made before the message was queued here. */
export interface Tried extends Pick<Recipient, 'steps' | 'attempts'> {
  /** Outcome of the last one; null when it is unknown. */
  readonly last: DeliveryStatus | null
}

/** A new message. Its content is the part that was staged under its content id, if any, followed by `content`. */
export interface NewMessage {
  readonly message: Message
  /** Band of its class; 0 when absent. */
  readonly band?: Band | undefined
  readonly recipients: readonly NewRecipient[]
  /** The content, or its remainder after the staged part, in chunks (see chunks.ts). Must not change before the answer. */
  readonly content: readonly Uint8Array[]
  /**
   * True when the caller does not use `content` after the call: the store may then move the buffers to another thread instead of
   * copying them.
   */
  readonly givesContent?: boolean | undefined
  /** True to queue the message on hold. */
  readonly hold?: boolean | undefined
  /** Number of delay warnings that another mail system has sent. */
  readonly warnings?: number | undefined
  /**
   * Key of the file that held the message: in the maildrop, or in the queue of another mail system. The store rejects a second
   * message with the same key until the key is forgotten.
   */
  readonly maildropFile?: string | undefined
  /**
   * The request that queues the message, with the answer to it. The store keeps both with the message, and rejects a second message of the
   * same request with RequestRepeated.
   */
  readonly request?: (IdempotentRequest & { readonly answer: string }) | undefined
  /** Charges of the message to quotas, kept with it; absent without a quota. */
  readonly charges?: readonly QuotaCharge[] | undefined
  /** Events of the message, kept with it. */
  readonly events?: readonly NewEvent[] | undefined
}
