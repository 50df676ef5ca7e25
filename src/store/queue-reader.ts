/**
 * The QueueReader port: read-only queries for operators. A reader works beside a running daemon or without one. It reads in short
 * pages and holds at most one page in memory.
 */
import type { QueueTime } from '../system/clock.ts'
import type { ClockRecord } from '../system/queue-clock.ts'
import { matchesStatus, type QueueFilter } from './message-conditions.ts'
import type { CausePage, CauseSlice } from './counts/cause-groups.ts'
import type { RecordReader } from './records/records.ts'
import type { AuditId } from './records/audit-log.ts'
import type { Former } from './former-times.ts'
import { addressMatcher } from '../patterns/filter-pattern.ts'
import type { OutboxReader } from './outbox-store.ts'
import type { DestinationRecord } from './queue-store.ts'
import type { AttemptRecord } from './recorded-outcomes.ts'
import type { QueueCount, TrashCount } from './counts/queue-tally.ts'
import type { SearchTerm } from './search/search-terms.ts'
import type { Traffic, TrafficMinute } from './counts/traffic.ts'
import type { DestinationName, Message, MessageId, MessageSummary, QueueName, Recipient, RecipientId, FinalState } from '../mail/message.ts'

/** Returns the recipients of a departed message that match sender, recipient and outcome of a filter. The caller checks the times. */
export function departedRecipients(
  { sender, recipient, outcome, status, class: name }: HistoryFilter,
  { message, recipients }: MessageDetails,
): readonly Recipient[] {
  if (sender !== null && !addressMatcher(sender)(message.sender)) return []
  if (name !== null && message.class !== name) return []
  const isWanted = recipient === null ? () => true : addressMatcher(recipient)
  const hasStatus = ({ last }: Recipient): boolean => status === null || (last !== null && matchesStatus(status, last))
  return recipients.filter((one) => isWanted(one.address) && (outcome === null || one.state === outcome) && hasStatus(one))
}

/** A recipient as a listing shows it. */
export type ListedRecipient = Omit<Recipient, 'notify' | 'deliveryStarts' | 'settledAt' | 'noticeDue'>

/**
 * Live recipients of a message with one state, at one closed destination or at all open ones: the earliest due time, the most attempts and
 * the latest expiry. `destination` is one of the open ones.
 */
export type RecipientGroup = Pick<Recipient, 'state' | 'destination' | 'dueAt' | 'attempts' | 'expiresAt'>

/**
 * A message as a listing shows it, with its live recipients. Listings omit some stored data, because a queue may hold millions of
 * messages.
 */
export interface ListedMessage {
  readonly message: MessageSummary
  readonly queue: QueueName | 'trash'
  readonly forcedExpire: boolean
  /** Live recipients in the order of their ids, all of them unless the page has a limit. */
  readonly recipients: readonly ListedRecipient[]
  /** Number of live recipients. */
  readonly recipientCount: number
  /** All live recipients, summed up, in a page with a limit of recipients. */
  readonly groups?: readonly RecipientGroup[]
}

/** All data of one message, in the queue or in the history. */
export interface MessageDetails {
  readonly message: Message
  /** `gone` when only the history holds the message; `trash` when the message can be restored. */
  readonly queue: QueueName | 'trash' | 'gone'
  readonly forcedExpire: boolean
  /** Why a message in `corrupt` is unreadable. */
  readonly why?: string | undefined
  readonly leftAt?: QueueTime | undefined
  /** Time of the deletion of a message that can be restored. */
  readonly deletedAt?: QueueTime | undefined
  readonly warnings: number
  /** Recipients in all states. */
  readonly recipients: readonly Recipient[]
  /** Attempts, oldest first. */
  readonly history: readonly AttemptRecord[]
}

/** Identifies a message found by a filter, without its contents or recipients. */
export type FoundMessage = Pick<Message, 'id' | 'createdAt'> & Pick<ListedMessage, 'queue'>

/** Number of waiting and of leased recipients of a destination. */
export interface DestinationLoad {
  readonly destination: DestinationName
  readonly waiting: number
  readonly leased: number
  readonly nextDueAt: QueueTime | null
}

/** Live recipients of queued mail of one class and share. */
export interface ShareLoad {
  /** Null for mail without a class. */
  readonly class: string | null
  /** Null for mail without a share. */
  readonly share: string | null
  readonly recipients: number
}

/** A live recipient, for tables of ages. */
export interface RecipientAge {
  readonly cursor: RecipientId
  readonly sender: string
  readonly address: string
  readonly arrivedAt: QueueTime
  readonly message: MessageId
}

/** Conditions on mail that has left the queue, all of which must hold for the same recipient. A null key is no condition. */
export interface HistoryFilter {
  /** Pattern of the envelope sender, as in QueueFilter. */
  readonly sender: string | null
  /** Pattern of the recipient address, as in QueueFilter. */
  readonly recipient: string | null
  readonly outcome: FinalState | null
  /** Name of the class. */
  readonly class: string | null
  /** Pattern of the status of the last attempt, as in QueueFilter. */
  readonly status: string | null
  /** Messages that left at this time or later. */
  readonly since: QueueTime | null
  /** Messages that left before this time. */
  readonly until: QueueTime | null
}

/** One page of the history, newest first. */
export interface HistoryPage {
  readonly messages: readonly MessageDetails[]
  /** Value of `before` for the next page; null when nothing is left. A page without messages may have a next page. */
  readonly next: number | null
}

/** One page of a search. */
export interface FoundPage {
  readonly messages: readonly MessageDetails[]
  /** Value of `before` for the next page; null when nothing is left. */
  readonly next: MessageId | null
}

/** Maximum number of messages without entries that a search examines. */
export const UNINDEXED = 1_000

/** Selects messages with ids above `after` and up to `through`, at most `limit` of them. */
export interface ListPage {
  readonly after: MessageId
  /** Highest id that the page may contain; no limit when absent. */
  readonly through?: MessageId | undefined
  readonly limit: number
  /** True for the highest ids, in descending order; the next page then has the last id less one as `through`. */
  readonly newestFirst?: boolean | undefined
  /** Maximum number of recipients per message; no limit when absent. */
  readonly recipients?: number | undefined
}

/** One slice of the messages that match a filter, for counts. */
export interface SurveyPage {
  readonly after: MessageId
  readonly through: MessageId
  /** Number of ids that the slice covers. */
  readonly size: number
  /** Queues whose messages are counted; null for those that the filter selects. */
  readonly queues: readonly QueueName[] | null
  /** True to count the recipients by destination. */
  readonly destinations: boolean
  /** True to count the messages by sender. */
  readonly senders?: boolean
  /** Times for which the earlier arrivals are counted; none when absent. */
  readonly bounds?: readonly QueueTime[]
}

export interface Survey {
  /** The last id of the slice; null after the last slice. */
  readonly last: MessageId | null
  readonly messages: number
  /** Sum of their sizes. */
  readonly bytes: number
  readonly oldestArrival: QueueTime | null
  /** Number of messages that arrived before each of the `bounds`. */
  readonly arrivedBefore: readonly number[]
  /** Messages by envelope sender; empty unless asked for. */
  readonly senders: readonly { readonly sender: string; readonly messages: number }[]
  /** Live recipients by destination; empty unless asked for. */
  readonly destinations: readonly { readonly destination: DestinationName; readonly recipients: number }[]
}

interface PlacedMessage extends Pick<Message, 'id' | 'createdAt'> {
  /** Its times before; only after a reschedule. */
  readonly former?: Former | undefined
}

export interface PlacedPage {
  readonly messages: readonly PlacedMessage[]
  readonly next: MessageId | null
}

/**
 * Each method reads a message with its recipients in one consistent state of the queue. Other entries of the same result, and the
 * next call, may show a later state. A listing without a filter reads the recipients of a shared queue after its messages: they may show
 * a later state than the columns of the message.
 */
export interface QueueReader extends OutboxReader {
  readonly records: RecordReader
  /** One page of messages, in the order of arrival unless `newestFirst` is set. */
  list(filter: QueueFilter, page: ListPage): Promise<readonly ListedMessage[]>
  /** The same page as `list`, with ids only. */
  find(filter: QueueFilter, page: ListPage): Promise<readonly FoundMessage[]>
  /**
   * Looks up messages in the queue or in the trash by queue id. The result has the order of the argument, with undefined for an
   * unknown id.
   */
  named(queueIds: readonly string[]): Promise<readonly (FoundMessage | undefined)[]>
  /** Messages in the queue or in the trash with an ENVID, which one of `submitters` has submitted (null for any), at most `limit`, by id. */
  withEnvid(envid: string, submitters: readonly string[] | null, limit: number): Promise<readonly FoundMessage[]>
  /**
   * Considers up to `size` messages with ids above `after`, in any queue, and returns the highest of their ids; null when there
   * are none.
   */
  sliceEnd(after: MessageId, size: number): Promise<MessageId | null>
  /**
   * Highest id of a message in any queue or in the trash; 0 for none. Ids of messages that arrive later are higher, except for those
   * that other nodes of a shared queue had reserved.
   */
  lastId(): Promise<MessageId>
  /** Counts the messages of one slice that `list` would return. */
  survey(filter: QueueFilter, page: SurveyPage): Promise<Survey>
  /** Number of waiting recipients whose lifetime ends before a time, counted up to `most`. */
  expiring(before: QueueTime, most: number): Promise<number>
  /** One message; undefined when neither the queue nor the history holds the id. */
  details(queueId: string): Promise<MessageDetails | undefined>
  /** The n-th chunk of a message's content; undefined after the last one. */
  readChunk(message: Pick<Message, 'contentId'>, index: number): Promise<Uint8Array | undefined>
  /** Names of destinations with waiting or leased mail, in their order. */
  destinationNames(page: { readonly after: DestinationName; readonly limit: number }): Promise<readonly DestinationName[]>
  /** Destinations with waiting or leased mail, ordered by name. */
  destinationLoads(page: { readonly after: DestinationName; readonly limit: number }): Promise<readonly DestinationLoad[]>
  /** The load of one destination; all zero when it has no mail. */
  destinationLoad(name: DestinationName): Promise<DestinationLoad>
  /** Of the recipients that wait for a destination, those of scheduled mail. */
  scheduledAt(name: DestinationName): Promise<number>
  /** Counts one slice of the live recipients that wait or are on hold, by destination and cause. Scheduled mail is left out. */
  causes(page: CausePage): Promise<CauseSlice>
  /** Messages that have left the queue, the last one first. `before` is null for the first page. */
  departed(filter: HistoryFilter, page: { readonly before: number | null; readonly limit: number }): Promise<HistoryPage>
  /**
   * Messages in the queue and in the history with all terms, the highest id first, with ids below `before` (null for the first page). By the
   * index, and for up to UNINDEXED messages that have no entries yet. Not mail that was queued with `queue_index_headers = no`.
   */
  search(terms: readonly SearchTerm[], page: { readonly before: MessageId | null; readonly limit: number }): Promise<FoundPage>
  /**
   * Messages with ids above `after` that the operation placed and that no later operation has placed elsewhere, in the order of ids; those
   * that have left the queue are omitted. `next` is the value of `after` for the next page; null after the last one.
   */
  placedBy(operation: AuditId, page: { readonly after: MessageId; readonly limit: number }): Promise<PlacedPage>
  destinationRecords(): Promise<readonly DestinationRecord[]>
  /** Record of the queue's clock, as saved by the last owner; null when there is none. */
  clockRecord(): Promise<ClockRecord | null>
  /**
   * Live recipients of messages in these queues, in order of arrival. `after` is the cursor of the previous page's last
   * recipient.
   */
  ages(page: {
    readonly after: RecipientId
    readonly limit: number
    readonly queues: readonly QueueName[]
  }): Promise<readonly RecipientAge[]>
  /**
   * Counts the recipients of a slice of the messages by class and share: of `size` messages above `after`. `last` is the value of `after` for
   * the next slice; null after the last one. Mail that is scheduled, and outside of the ordinary queues, does not count.
   */
  shareLoads(slice: {
    readonly after: MessageId
    readonly size: number
  }): Promise<{ readonly last: MessageId | null; readonly loads: readonly ShareLoad[] }>
  /** Counts messages and recipients by queue. Reads the whole queue; the queue's owner uses QueueStore.tally instead. */
  counts(): Promise<readonly QueueCount[]>
  /** Counts the trash. Reads the whole trash. */
  trashCount(): Promise<TrashCount>
  /** Traffic since the queue was created, and the minutes that begin at `since` or later, in order. */
  traffic(since: QueueTime): Promise<{ readonly total: Traffic; readonly minutes: readonly TrafficMinute[] }>
  /** Begin of the first minute with traffic, or of its hour; OLDER_MINUTES when it is older than all that is kept; null without traffic. */
  firstTraffic(): Promise<QueueTime | null>
  /** Resolves when all pending reads have ended. */
  close(): Promise<void>
}
