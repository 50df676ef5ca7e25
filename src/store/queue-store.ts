/**
 * The QueueStore port: the durable state of the queue. Every method is one transaction, and its change is on disk when it
 * resolves. The port is asynchronous, so that a store in another thread or on another machine can implement it. The suite
 * test/conformance checks every implementation.
 *
 * A method rejects with StoreUnavailable when the store cannot commit (disk full, I/O error); the call then had no effect, except for
 * OutcomeUnknown. Any other rejection is a bug.
 */
import type { RecipientTimes } from './former-times.ts'
import type { Duration, QueueTime } from '../system/clock.ts'
import type { NewEvent, RecipientEvent } from '../events/kept-event.ts'
import type { ShareCounting } from './share-counts.ts'
import type { StoreUpkeep } from './store-upkeep.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { Records } from './records/records.ts'
import type { AuditLog, IdempotentRequest, OperationRound } from './audit-log.ts'
import type { Suspension } from './destination-status.ts'
import type { OutboxStore } from './outbox/outbox-store.ts'
import type { QueueTally } from './queue-tally.ts'
import type {
  ContentId,
  NoticeDue,
  Placement,
  DeliveryRequest,
  DestinationName,
  FinalState,
  LeaseTerms,
  Message,
  MessageId,
  OwnerId,
  Recipient,
  RecipientId,
} from '../mail/message.ts'

/** The store cannot commit now; `cause` holds the reason. Until it can commit again, mail is refused and no delivery starts. */
export class StoreUnavailable extends Error {
  override readonly name: string = 'StoreUnavailable'
  /** EX_TEMPFAIL (sysexits(3)). */
  readonly exitCode: number = 75
}

/** Throws any other error than StoreUnavailable: it is a bug. */
export function rethrowUnlessUnavailable(error: unknown): asserts error is StoreUnavailable {
  if (!(error instanceof StoreUnavailable)) throw error
}

/** An I/O error or damage kept the store from reading what was asked for. Other calls may succeed. */
export class ReadFailed extends StoreUnavailable {
  override readonly name = 'ReadFailed'
}

/** Another node has taken this one over: its leases have ended, and it cannot change the queue any more. */
export class Fenced extends StoreUnavailable {
  override readonly name = 'Fenced'
}

/**
 * The call was sent to the database, whose answer was lost, and which cannot be asked now. The call may have had effect. A client that
 * waits for it gets no reply: it then repeats its message, as after any lost connection.
 */
export class OutcomeUnknown extends StoreUnavailable {
  override readonly name = 'OutcomeUnknown'
}

/**
 * An I/O error left the state of the disk unknown (EX_IOERR). The process stops writing, and only a new process may open and
 * recover the queue.
 */
export class StoreFailed extends StoreUnavailable {
  override readonly name: string = 'StoreFailed'
  override readonly exitCode = 74
}

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
  /** Events of the message, kept with it. */
  readonly events?: readonly NewEvent[] | undefined
}

/** Limits of a claim of due mail for one destination. */
export interface Claim {
  readonly destination: DestinationName
  readonly now: QueueTime
  /** Maximum number of recipients to lease. */
  readonly limit: number
  /** Maximum number of recipients in one delivery request; 0 for no limit. */
  readonly recipientLimit: number
  /**
   * The earliest due time that the caller was told of: by earlier claims, and by those who made recipients due since. A store may leave
   * recipients alone that are due earlier, so that it need not read past what earlier claims have taken. Absent: all.
   */
  readonly from?: QueueTime | undefined
}

export interface Claimed {
  /**
   * Leased requests, earliest due first. No other claim returns them until they are settled or given back, or until the lease
   * ends.
   */
  readonly requests: readonly DeliveryRequest[]
  /** The earliest due time of the recipients that still wait for the destination; null when none wait. */
  readonly nextDueAt: QueueTime | null
}

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
}

/** Saved state of a destination, apart from its mail. */
export interface DestinationRecord {
  readonly name: DestinationName
  readonly deadUntil: QueueTime | null
  /** Wait before the next probe. Doubles while probes fail. */
  readonly probeInterval: Duration | null
  /** Null when the destination is not suspended. */
  readonly suspension: Suspension | null
  /** Status that caused the last throttling. */
  readonly siteStatus: DeliveryStatus | null
}

/** State of a destination of which nothing is saved. */
export const freshRecord = (name: DestinationName): DestinationRecord => ({
  name,
  deadUntil: null,
  probeInterval: null,
  suspension: null,
  siteStatus: null,
})

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

/** Outcome of a recipient that its submitter has cancelled. */
export const cancelledStatus = (by: string): DeliveryStatus => ({ status: '2.0.0', reason: `cancelled by ${by}`, stage: 'cancel' })

/** Whether an operation applies to mail of a placement. Its recipients decide then whether it has an effect. */
export function appliesAt(operation: Operation, placement: Placement): boolean {
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
      return placement === 'queued' || placement === 'hold'
    case 'delete':
      return operation.purge || placement !== 'trash'
  }
}

/** False for an operation after which no destination has to be scheduled. */
export const makesMailDue = ({ kind }: Operation): boolean => kind !== 'hold' && kind !== 'delete' && kind !== 'cancel'

/**
 * Deletion time of a message that is to be purged but has a recipient in delivery. It is earlier than any other time, so that the
 * next pruning purges the message.
 */
export const PURGE_PENDING: QueueTime = 0

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

/** Scheduled messages of one origin; the members are those of Message. */
export interface ScheduledMail {
  readonly sender: string
  readonly saslUsername: string | null
  readonly client: string | null
  readonly messages: number
}

/**
 * On a queue that several nodes share, the methods that select work (claims, queries of the scheduler and of MAILER-DAEMON) see the
 * caller's shards: recipients by their destination, messages by the destination of their first recipient at the entry. A change
 * that makes work for another node is reported to that node in the same transaction (NodeTable.arrivals).
 */
export interface QueueStore {
  /** Actions and operations of operators. */
  readonly auditLog: AuditLog
  /** Events for subscriptions. */
  readonly outbox: OutboxStore
  /** Small records that are not mail. */
  readonly records: Records
  /** Counts of the live mail of each share. */
  readonly shares: ShareCounting
  /** Care of the queue's file or database. */
  readonly upkeep: StoreUpkeep
  /**
   * Returns a message id that is unique, also across restarts. Ids ascend in the order of the calls until the store is closed.
   * Throws StoreUnavailable when no reserved id is left.
   */
  nextId(): MessageId
  /** Reserves `count` message ids. Unused ids are not returned to the store. */
  nextIds(count: number): Promise<readonly MessageId[]>
  /** Owner and end time of the leases that this store grants, including the leases of messages that are queued with a lease. */
  leaseTerms(): LeaseTerms

  /**
   * Stores chunks of a long content before its message exists. `from` is the number of chunks stored so far. With `keeps`, the caller
   * may go on reading the chunks, and free them after the answer; otherwise it must not use them after the call, because their buffers
   * may be transferred to another thread. A content that belongs to no message is deleted at the next open.
   */
  stage(content: ContentId, from: number, chunks: readonly Uint8Array[], keeps?: boolean): Promise<void>
  /** Deletes a staged content whose message was abandoned. */
  unstage(content: ContentId): Promise<void>
  /**
   * Queues a message. Recipients, schedule and content are durable when the promise resolves; smtpd replies 250 only after that.
   * On a shared queue, callers ask for leases at own destinations only; a lease that is granted while its shard gets another owner
   * is valid.
   */
  enqueue(entry: NewMessage): Promise<void>
  /** Keys of maildrop files whose message was queued and whose removal may not be durable yet. */
  maildropFiles(): Promise<readonly string[]>
  /** Forgets the keys of maildrop files whose removal is durable. */
  forgetMaildropFiles(files: readonly string[]): Promise<void>
  /** Returns chunk number `index` of a content, counted from 0; undefined after the last chunk. The buffer belongs to the caller. */
  readChunk(content: ContentId, index: number): Promise<Uint8Array | undefined>

  /** Leases due recipients of a destination, earliest due first. */
  claimDue(claim: Claim): Promise<Claimed>
  /**
   * Leases one due recipient that was in delivery during two crashes (`deliveryStarts` is 2), and which claimDue therefore does not
   * return. Such recipients are tried one at a time, so that a third crash identifies the message. The next open moves the message
   * of a recipient with three starts to `corrupt`.
   */
  claimSuspect(now: QueueTime): Promise<DeliveryRequest | undefined>
  /**
   * Leases waiting recipients whose lifetime has ended, for every destination except those in `except`; earliest expiry first.
   */
  claimExpired(now: QueueTime, limit: number, except?: readonly DestinationName[]): Promise<readonly DeliveryRequest[]>
  /**
   * Ends leases without an attempt. Due time, schedule step and attempt count do not change. Leases of another owner are not
   * changed.
   */
  giveBack(recipients: readonly RecipientId[], owner: OwnerId): Promise<void>
  /** Records outcomes and due notices, and ends the leases. Idempotent. */
  settle(settlement: Settlement): Promise<SettleResult>
  /** Moves an unreadable message to `corrupt`. No DSN is sent. */
  quarantine(message: MessageId, why: string): Promise<void>

  /** Messages with notices due and ids above `after`, ordered by id. */
  messagesWithNoticesDue(after: MessageId, limit: number): Promise<readonly MessageWithNoticesDue[]>
  /**
   * One message with the recipients for which a notice is due; undefined when there are none. When a delay warning is due, the
   * other live recipients are included, because the warning may have to list them.
   */
  noticesDueOf(message: MessageId): Promise<MessageWithNoticesDue | undefined>
  /** Messages whose delay warning time has passed, with their live recipients. The caller sends or postpones the warnings. */
  claimWarnings(now: QueueTime, limit: number): Promise<readonly MessageWithNoticesDue[]>
  /** Sets the time of a message's next delay warning; null for no warning. */
  postponeWarning(message: MessageId, warnAt: QueueTime | null): Promise<void>
  /** Marks a delay warning as due for those of `recipients` that are live and have no notice due. */
  markDelayNoticeDue(message: MessageId, recipients: readonly RecipientId[]): Promise<void>
  /**
   * Queues notices. `entered` is false, and nothing was changed, when a notice is no longer due or a recipient is no longer
   * delayed. `removed` is true when the message has left the queue.
   */
  report(report: Report): Promise<{ readonly removed: boolean; readonly entered: boolean }>

  /**
   * Ends the state `scheduled` of the messages whose time has come, a slice of them. `next` is the earliest time of those that are left, null
   * for none. On a shared queue, each node may do this for all mail.
   */
  endSchedules(now: QueueTime): Promise<{ readonly ended: readonly MessageId[]; readonly next: QueueTime | null }>
  /** Numbers of the messages in the queue and on hold that are scheduled for a time after `now`, by their origin. Reads each of them. */
  scheduledMail(now: QueueTime): Promise<readonly ScheduledMail[]>
  /** Every destination with waiting mail, and its earliest due time. Costs one loose index scan. */
  destinationsDue(): Promise<readonly DestinationDue[]>
  /** The earliest expiry of a waiting recipient, and the earliest delay warning. */
  nextDeadlines(): Promise<{ readonly expiresAt: QueueTime | null; readonly warnAt: QueueTime | null }>
  destinations(): Promise<readonly DestinationRecord[]>
  /** Saves the state of a destination, with the events of its change. Deletes the record when the state equals the default. */
  saveDestination(record: DestinationRecord, events?: readonly NewEvent[]): Promise<void>
  /** Sets the provider of a destination; null for none. A large backlog of a shared queue follows later, and is not claimed until then. */
  joinProvider(destination: DestinationName, provider: string | null): Promise<void>

  /**
   * Applies operations to messages in one commit and returns one result per operation, in order. A recipient in delivery is not
   * changed; when its outcome is recorded and it remains live, it is parked if its message is held or deleted.
   *
   * With `round`, the changed messages are counted and recorded for the operation in the same commit. Resolves with null, without a change,
   * when the operation has ended.
   */
  operate(operations: readonly MessageOperation[], round?: OperationRound): Promise<readonly OperationResult[] | null>
  /**
   * Changes destination and expiry of waiting and parked recipients. A due time after the new expiry is set to the expiry.
   * Recipients in delivery are not changed. Returns the new destinations that have waiting mail, each with its earliest due time.
   */
  move(moves: readonly Move[]): Promise<readonly DestinationDue[]>

  /**
   * Counts of the queue, with at most `largest` destinations: those with the most waiting recipients. The store counts changed
   * messages a slice at a time, so that mail does not wait. Null means that more slices remain: the caller must call again.
   */
  tally(largest: number): Promise<QueueTally | null>
  close(): Promise<void>
}
