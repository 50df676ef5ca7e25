/** Messages in the queue, their recipients, and the states of a recipient. */
import type { QueueTime } from '../system/clock.ts'
import type { EnvelopeRecipient, Notify, Ret } from './envelope.ts'
import type { MessageTimes } from './message-times.ts'
import { formatQueueId } from './queue-id.ts'
import type { DeliveryStatus } from './smtp-reply.ts'

/** Row number of a message. Row numbers ascend and are never reused. */
export type MessageId = number

/** Maximum number of recipients per message. It is also the factor between message ids and recipient ids. */
export const RECIPIENTS_PER_MESSAGE = 131_072

/** Message id × RECIPIENTS_PER_MESSAGE + position, so that the recipients of a message are one range of ids. */
export type RecipientId = number

export const recipientId = (message: MessageId, position: number): RecipientId => message * RECIPIENTS_PER_MESSAGE + position

export const messageOf = (recipient: RecipientId): MessageId => Math.floor(recipient / RECIPIENTS_PER_MESSAGE)

/**
 * Name of a destination, in lower case: the domain alone for delivery to its mail exchangers, `smtp:[host]:port` otherwise.
 * Concurrency windows, rates and suspension apply to a destination.
 */
export type DestinationName = string

/** Destination of aliases that are replaced by their addresses. No mail is sent there; deliveries are success notices. */
export const EXPANDED: DestinationName = 'expanded:'
/** Destination of aliases that lead back to themselves. No mail is sent there; deliveries are failures. */
export const LOOPING: DestinationName = 'looping:'

/** Destination of an alias to which nothing is sent; null for other recipients. */
export function aliasDestination({ alias }: Pick<EnvelopeRecipient, 'alias'>): DestinationName | null {
  if (alias === undefined) return null
  return alias === 'expanded' ? EXPANDED : LOOPING
}

export const isOfAliases = (destination: DestinationName): boolean => destination === EXPANDED || destination === LOOPING

/** True for a destination whose deliveries are relays to a next hop, and not final. */
export const isRelayed = (destination: DestinationName): boolean => !isOfAliases(destination) && !/^(?:lmtp|discard):/.test(destination)

/** Properties of a message that do not change while it is queued. */
export interface Message extends MessageTimes {
  readonly id: MessageId
  /** Start of the lifetime and of the retry schedule. A requeue resets it. */
  readonly createdAt: QueueTime
  /** Time of arrival from the client, from which ages and delay warnings are counted. */
  readonly arrivedAt: QueueTime
  /** Reverse-path; empty for `<>`. */
  readonly sender: string
  /** Size in bytes of the whole message: prepended header fields plus content. */
  readonly size: number
  /** Header fields that are sent before the content, each with its CRLF. They do not change after the message is queued. */
  readonly prependedHeaders?: string | undefined
  /** The stored content, see QueueStore.readChunk. */
  readonly contentId: ContentId
  readonly ret?: Ret | undefined
  readonly envid?: string | undefined
  readonly smtputf8: boolean
  readonly bodyType?: '7bit' | '8bitmime' | undefined
  /** Value of the Message-ID field, for the log and for enable_threaded_bounces. */
  readonly messageId?: string | undefined
  /** Subject for people (mail/mime/shown-fields); absent without one, and with `queue_index_headers = no`. */
  readonly subject?: string | undefined
  /** From of the header for people; empty without one, and absent with `queue_index_headers = no`. */
  readonly fromHeader?: string | undefined
  /** Client from which the message came: `mx.example[192.0.2.1]`; absent for mail of this machine. */
  readonly client?: string | undefined
  /** User name of the client's login, or name of the access token with which it was submitted: who may change or cancel the message. */
  readonly saslUsername?: string | undefined
  /** Share of the queue to which the message counts: the client, user, token or sender that `share_key` names. */
  readonly share?: string | undefined
  /** Class by which the message is scheduled ([class.NAME]); absent without classes. */
  readonly class?: string | undefined
  /** Number of steps of the retry schedule that may fail, as the client asked (maximum_attempts of the API); see Progress. */
  readonly maxAttempts?: number | undefined
}

/** Time from which the ages of a message are counted: delays, delay warnings. */
export const releasedAt = ({ arrivedAt, notBefore }: Pick<Message, 'arrivedAt' | 'notBefore'>): QueueTime =>
  notBefore === undefined ? arrivedAt : Math.max(arrivedAt, notBefore)

/** Time from which the lifetime and the retry schedule of a message are counted. */
export const startOf = ({ createdAt, notBefore }: Pick<Message, 'createdAt' | 'notBefore'>): QueueTime =>
  notBefore === undefined ? createdAt : Math.max(createdAt, notBefore)

/** End of the lifetime of a recipient, at the latest at the time that the client named. */
export const expiryOf = (message: Pick<Message, 'createdAt' | 'notBefore' | 'expires'>, lifetime: number): QueueTime =>
  Math.min(startOf(message) + lifetime, message.expires ?? Infinity)

/** A message without the members that only transport and notices need, for listings and the log. */
export type MessageSummary = Omit<
  Message,
  | 'prependedHeaders'
  | 'ret'
  | 'envid'
  | 'smtputf8'
  | 'bodyType'
  | 'subject'
  | 'fromHeader'
  | 'client'
  | 'saslUsername'
  | 'deliverBy'
  | 'byMode'
  | 'maxAttempts'
>

/** Size in bytes of the stored content, which does not include the prepended header fields. */
export const contentSize = ({ size, prependedHeaders = '' }: Pick<Message, 'size' | 'prependedHeaders'>): number =>
  size - Buffer.byteLength(prependedHeaders)

/** Id of a stored content. A requeued message gets a new message id and keeps its content. */
export type ContentId = number

export const queueIdOf = (message: Pick<Message, 'id' | 'createdAt'>): string => formatQueueId(message.createdAt, message.id)

/** Kind of a notice that is to be sent for a recipient. */
export type NoticeDue = 'failure' | 'delay' | 'success'

/**
 * State of a recipient:
 * - `waiting`: in the store, found by destination and due time;
 * - `leased`: in the active queue;
 * - `parked`: on hold, corrupt or in the trash, so never scheduled;
 * - all others: final.
 */
export type RecipientState = LiveState | FinalState

export const LIVE_STATES = ['waiting', 'leased', 'parked'] as const
type LiveState = (typeof LIVE_STATES)[number]

export const FINAL_STATES = ['delivered', 'bounced', 'expired', 'removed'] as const
export type FinalState = (typeof FINAL_STATES)[number]

/** True for a recipient that is undelivered and neither returned to the sender nor removed. */
export const isLive = ({ state }: { readonly state: RecipientState }): boolean =>
  state === 'waiting' || state === 'leased' || state === 'parked'

/** Number of delivery starts after which a recipient is tried alone. Only deliveries during which the daemon crashed are counted. */
export const STARTS_UNTIL_SUSPECT = 2

/** Number of deliveries during which the daemon crashed, after which the message becomes corrupt. */
export const STARTS_UNTIL_CORRUPT = 3

/** The same number for a queue of several nodes: higher, because a node that was only disconnected is taken over like a crashed one. */
export const SHARED_STARTS_UNTIL_CORRUPT = 5

/** Position of a live recipient on its retry schedule. */
export interface Progress {
  /** Time of the next attempt. Leases, holds and restarts do not change it. */
  readonly dueAt: QueueTime
  /** End of the lifetime. `dueAt` is never later. */
  readonly expiresAt: QueueTime
  /** Number of failed attempts that the retry policy counts. */
  readonly steps: number
  /** Number of all attempts, including those after a flush. */
  readonly attempts: number
}

export interface Recipient extends EnvelopeRecipient, Progress {
  readonly id: RecipientId
  readonly destination: DestinationName
  readonly state: RecipientState
  /** Number of deliveries started since the last one that ended; see STARTS_UNTIL_CORRUPT. */
  readonly deliveryStarts: number
  /** Outcome of the last attempt; null before the first attempt. */
  readonly last: DeliveryStatus | null
  /** Time when the recipient reached its final state. */
  readonly settledAt?: QueueTime | undefined
  readonly noticeDue?: NoticeDue | undefined
  /** Queue id of the message with which it was sent again after it had failed. */
  readonly resentAs?: string | undefined
  /** Name of the node that delivers to the recipient now, in the details of a message; only in a queue of several nodes. */
  readonly node?: string | undefined
}

/** Placement of a message, which applies to all its recipients. */
export type Placement = 'queued' | 'hold' | 'corrupt' | 'trash'

/** Postfix's queue names: `active` is in delivery, `incoming` was never attempted, `deferred` is other mail not on hold or corrupt. `scheduled` waits for the time that its client named. */
export const QUEUE_NAMES = ['incoming', 'active', 'deferred', 'scheduled', 'hold', 'corrupt'] as const
export type QueueName = (typeof QUEUE_NAMES)[number]

/** Identifies one opening of the queue by one process. Each opening has a higher number. */
export type OwnerId = number

/** Terms of a lease. Only the owner may settle the mail or give it back. */
export interface LeaseTerms {
  readonly owner: OwnerId
  /** Time from which another owner may claim the mail. Infinity when a queue has one owner at a time. */
  readonly until: QueueTime
}

/** One delivery of a message to some of its recipients at one destination. */
export interface DeliveryRequest {
  readonly lease: LeaseTerms
  readonly message: Message
  readonly destination: DestinationName
  /** Recipients, at most `default_destination_recipient_limit`. */
  readonly recipients: readonly LeasedRecipient[]
  /** True for the first attempt. The scheduler alternates between first attempts and retries. */
  readonly fresh: boolean
  /** True when an operator has expired the message. It is settled without another attempt. */
  readonly forcedExpire: boolean
}

/** A recipient, with the data that a delivery needs. */
export interface LeasedRecipient extends Progress {
  readonly id: RecipientId
  readonly address: string
  readonly notify?: Notify | undefined
  readonly orcpt?: string | undefined
  /** Outcome of the last attempt, for the notice when the recipient expires; null before the first attempt. */
  readonly last: DeliveryStatus | null
  /** Number of delay warnings sent for the message. */
  readonly warnings: number
  /** True when an operator's flush caused the attempt. A failure then changes neither the step nor a due time in the future. */
  readonly flushed: boolean
}

/** A leased recipient, with the values that all recipients of its delivery share. */
export interface LeasedMail {
  readonly message: Message
  readonly destination: DestinationName
  readonly recipient: LeasedRecipient
  readonly fresh: boolean
  readonly forcedExpire: boolean
}

/** Packs leased mail into requests, one per message and destination, in the given order. Splits at the recipient limit (0 for none). */
export function packRequests(leased: Iterable<LeasedMail>, lease: LeaseTerms, recipientLimit: number): DeliveryRequest[] {
  const open = new Map<string, { request: DeliveryRequest; recipients: LeasedRecipient[] }>()
  const requests: DeliveryRequest[] = []
  for (const { message, destination, recipient, fresh, forcedExpire } of leased) {
    const key = `${message.id} ${destination}`
    let batch = open.get(key)
    if (batch === undefined || (recipientLimit > 0 && batch.recipients.length >= recipientLimit)) {
      const recipients: LeasedRecipient[] = []
      batch = { recipients, request: { lease, message, destination, recipients, fresh, forcedExpire } }
      open.set(key, batch)
      requests.push(batch.request)
    }
    batch.recipients.push(recipient)
  }
  return requests
}
