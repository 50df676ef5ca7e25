/**
 * The messages in the queue, their recipients, and the states a recipient passes through.
 */
import type { Instant } from '../mail/clock.ts'
import type { EnvelopeRecipient, Notify, Ret } from '../mail/envelope.ts'
import { formatQueueId } from '../mail/queue-id.ts'
import type { DeliveryStatus } from '../mail/reply.ts'

/** Row number of a message: rises with time, never reused. */
export type MessageId = number

/** The most recipients a message can have; also what makes a recipient id out of a message id. */
export const RECIPIENTS_PER_MESSAGE = 131_072

/** Message id × 131,072 + position: the recipients of a message are one range of ids. */
export type RecipientId = number

export const recipientId = (message: MessageId, position: number): RecipientId => message * RECIPIENTS_PER_MESSAGE + position

/** The message a recipient belongs to. */
export const messageOf = (recipient: RecipientId): MessageId => Math.floor(recipient / RECIPIENTS_PER_MESSAGE)

/**
 * What mail is counted, throttled and suspended by: transport and next hop in lower case, printed as the bare domain
 * for MX delivery and as `smtp:[host]:port` otherwise.
 */
export type DestinationName = string

/** Facts of a message that never change while it is queued. */
export interface Message {
  readonly id: MessageId
  /** When this queue entry was made; lifetime and backoff count from here. Requeueing resets it. */
  readonly createdAt: Instant
  /** When the client handed the message in; ages and delay warnings count from here. */
  readonly arrivedAt: Instant
  /** The reverse-path; empty for `<>`. */
  readonly sender: string
  /** Bytes as stored, our Received line included. */
  readonly size: number
  /** Where the content is kept; see QueueStore.readBody. */
  readonly body: BodyId
  readonly ret?: Ret | undefined
  readonly envid?: string | undefined
  readonly smtputf8: boolean
  readonly bodyType?: '7bit' | '8bitmime' | undefined
  /** The Message-ID header, for the log and for threading notices. */
  readonly messageId?: string | undefined
}

/** A message without its wishes for transport and notices: enough to list it and to log that it is there. */
export type MessageSummary = Omit<Message, 'ret' | 'envid' | 'smtputf8' | 'bodyType'>

/** Names a stored content. A message keeps its content when it is requeued under a new id. */
export type BodyId = number

export const queueIdOf = (message: Pick<Message, 'id' | 'createdAt'>): string => formatQueueId(message.createdAt, message.id)

/** A kind of notice that MAILER-DAEMON owes the sender for a recipient. */
export type Debt = 'failure' | 'delay' | 'success'

/**
 * What becomes of a recipient. `waiting` recipients are found by (destination, due); `leased` ones are in the active
 * queue; `parked` ones are on hold, corrupt or in the trash and nobody looks for them. The rest are final.
 */
export type RecipientState = 'waiting' | 'leased' | 'parked' | 'delivered' | 'bounced' | 'expired' | 'removed'

export type LiveState = Extract<RecipientState, 'waiting' | 'leased' | 'parked'>
export type FinalState = Exclude<RecipientState, LiveState>

/** How far a live recipient is on its retry schedule. */
export interface Progress {
  /** When it is to be tried next. Kept through leases, holds and restarts. */
  readonly dueAt: Instant
  /** When the queue gives up: `dueAt` is never later. */
  readonly expiresAt: Instant
  /** Failed attempts that counted: the position on the retry schedule. */
  readonly steps: number
  /** All attempts made, flushed ones included. */
  readonly attempts: number
}

export interface Recipient extends EnvelopeRecipient, Progress {
  readonly id: RecipientId
  readonly destination: DestinationName
  readonly state: RecipientState
  /** Leases begun since the last attempt that ended; three without an end and the message is corrupt. */
  readonly starts: number
  /** The outcome of the last attempt; null while there was none. */
  readonly last: DeliveryStatus | null
  /** When it became final. */
  readonly settledAt?: Instant | undefined
  /** The notice MAILER-DAEMON still owes for this recipient. */
  readonly debt?: Debt | undefined
}

/** Where a whole message is when it is not simply in the queue. */
export type Placement = 'queued' | 'hold' | 'corrupt' | 'trash'

/** One try to deliver one message to some recipients at one destination. */
export interface DeliveryRequest {
  readonly message: Message
  readonly destination: DestinationName
  /** At most `default_destination_recipient_limit` of them. */
  readonly recipients: readonly LeasedRecipient[]
  /** Mail that was never tried, as opposed to a retry: the two take turns. */
  readonly fresh: boolean
  /** The operator gave up on this message: it is returned without another attempt. */
  readonly forcedExpire: boolean
}

/** What a delivery needs to know of a recipient. */
export interface LeasedRecipient extends Progress {
  readonly id: RecipientId
  readonly address: string
  readonly notify?: Notify | undefined
  readonly orcpt?: string | undefined
  /** The last outcome, if any: what an expired recipient's notice quotes. */
  readonly last: DeliveryStatus | null
  /** Delay warnings already sent for the message. */
  readonly warnings: number
  /** Leased by an operator's flush: a failure leaves its step and its due time alone. */
  readonly flushed: boolean
}

/** A recipient that was just leased, with what is shared by its request. */
export interface Lease {
  readonly message: Message
  readonly destination: DestinationName
  readonly recipient: LeasedRecipient
  readonly fresh: boolean
  readonly forcedExpire: boolean
}

/** Packs leases into requests: one per message and destination, in the order given, split at the recipient limit. */
export function packRequests(leases: Iterable<Lease>, recipientLimit: number): DeliveryRequest[] {
  const open = new Map<string, { request: DeliveryRequest; recipients: LeasedRecipient[] }>()
  const requests: DeliveryRequest[] = []
  for (const { message, destination, recipient, fresh, forcedExpire } of leases) {
    const key = `${message.id} ${destination}`
    let batch = open.get(key)
    if (batch === undefined || (recipientLimit > 0 && batch.recipients.length >= recipientLimit)) {
      const recipients: LeasedRecipient[] = []
      batch = { recipients, request: { message, destination, recipients, fresh, forcedExpire } }
      open.set(key, batch)
      requests.push(batch.request)
    }
    batch.recipients.push(recipient)
  }
  return requests
}
