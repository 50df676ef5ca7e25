/**
 * The QueueReader port: the queue as operators look at it. It reads in short pages, beside a running daemon or without
 * one, and never holds more than a page in memory.
 */
import type { Duration, Instant } from '../mail/clock.ts'
import type { AuditRecord, AttemptRecord, DestinationRecord } from './store.ts'
import type { DestinationName, Message, MessageId, MessageSummary, Recipient } from './message.ts'

/** Postfix's queue names (design: active = leased, incoming = never tried and due, deferred = everything else alive). */
export type QueueName = 'incoming' | 'active' | 'deferred' | 'hold' | 'corrupt'

/** Every part that is given must hold; texts may contain `*`. */
export interface QueueFilter {
  readonly queueId?: string | undefined
  readonly sender?: string | undefined
  readonly recipient?: string | undefined
  readonly destination?: string | undefined
  /** Mail in the trash is listed only when it is asked for. */
  readonly queue?: QueueName | 'trash' | undefined
  readonly arrivedBefore?: Instant | undefined
  readonly attemptsOver?: number | undefined
  /** A part of the last reply or reason of some live recipient, in any case. */
  readonly reply?: string | undefined
}

/** What listings know of a recipient. */
export type ListedRecipient = Omit<Recipient, 'notify' | 'starts' | 'settledAt' | 'debt'>

/** A message with its live recipients, as listings show it: not all that is kept, for a queue may hold millions. */
export interface ListedMessage {
  readonly message: MessageSummary
  readonly queue: QueueName | 'trash'
  readonly forcedExpire: boolean
  readonly recipients: readonly ListedRecipient[]
}

/** Everything known of one message, in the queue or gone. */
export interface MessageStory {
  readonly message: Message
  /** `gone` when it has left and only history remembers it, `trash` when it can be restored. */
  readonly queue: QueueName | 'trash' | 'gone'
  readonly forcedExpire: boolean
  readonly leftAt?: Instant | undefined
  readonly warnings: number
  /** In all states. */
  readonly recipients: readonly Recipient[]
  /** Oldest first. */
  readonly history: readonly AttemptRecord[]
}

/** How much waits at a destination. */
export interface DestinationLoad {
  readonly destination: DestinationName
  readonly waiting: number
  readonly leased: number
  readonly nextDueAt: Instant | null
}

/** Messages with ids after `after` and up to `through`, at most `limit` of them, as of `now`. */
export interface ListPage {
  readonly after: MessageId
  /** No end when absent. */
  readonly through?: MessageId | undefined
  readonly limit: number
  readonly now: Instant
}

export interface QueueReader {
  /** One page of messages, in the order they arrived. */
  list(filter: QueueFilter, page: ListPage): readonly ListedMessage[]
  /** The id of the last of the next `size` messages after `after`, wherever they are; null when there are none. */
  sliceEnd(after: MessageId, size: number): MessageId | null
  /** One message; undefined when neither queue nor history knows the id. */
  story(queueId: string, now: Instant): MessageStory | undefined
  /** The n-th part of a message's content. */
  readBody(message: Pick<Message, 'body'>, index: number): Uint8Array | undefined
  destinationLoads(page: { readonly after: DestinationName; readonly limit: number }): readonly DestinationLoad[]
  destinationRecords(): readonly DestinationRecord[]
  audit(page: { readonly after: number; readonly limit: number }): readonly (AuditRecord & { readonly id: number })[]
  /** Live recipients by domain and age, for qshape: `count(domain or sender domain, arrivedAt)` is called once for each. */
  ages(page: { readonly after: number; readonly limit: number; readonly queues: readonly QueueName[]; readonly now: Instant }): readonly {
    readonly cursor: number
    readonly sender: string
    readonly address: string
    readonly arrivedAt: Instant
    readonly message: MessageId
  }[]
  /** Messages and recipients by queue, and the age of the oldest: for metrics and summaries. */
  counts(
    now: Instant,
  ): readonly { readonly queue: QueueName; readonly messages: number; readonly recipients: number; readonly oldest: Duration }[]
  close(): void
}
