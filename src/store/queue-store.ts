/**
 * The QueueStore port: the durable state of the queue. Every method is one transaction, and its change is on disk when it
 * resolves. The port is asynchronous, so that a store in another thread or on another machine can implement it. The suite
 * test/conformance checks every implementation.
 *
 * A method rejects with StoreUnavailable when the store cannot commit (disk full, I/O error); the call then had no effect, except for
 * OutcomeUnknown. Any other rejection is a bug.
 */
import type { Band } from '../config/values/mail-classes.ts'
import type { Duration, QueueTime } from '../system/clock.ts'
import type { NewEvent } from '../events/kept-event.ts'
import {
  messageOf,
  type ContentId,
  type DeliveryRequest,
  type DestinationName,
  type LeaseTerms,
  type MessageId,
  type OwnerId,
  type RecipientId,
} from '../mail/message.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { DestinationDue, MessageOperation, Move, OperationResult } from './message-operation.ts'
import { leased, nothing, withContent, type MethodRows } from './method-traits.ts'
import type { NewMessage } from './new-message.ts'
import type { MessageWithNoticesDue, Report, Settlement, SettleResult } from './recorded-outcomes.ts'
import type { OutboxStore } from './outbox-store.ts'
import type { QueueTally } from './counts/queue-tally.ts'
import type { OperationRound } from './records/audit-log.ts'
import type { Records } from './records/records.ts'
import type { Suspension } from './records/suspension.ts'
import type { DepartedMail } from './returned-mail.ts'
import type { ShareCounting } from './share-counts.ts'
import type { StoreUpkeep } from './store-upkeep.ts'

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

/** Limits of a claim of due mail for one destination. */
export interface Claim {
  readonly destination: DestinationName
  readonly now: QueueTime
  /** The bands whose mail is claimed, each at most once. */
  readonly bands: readonly BandClaim[]
  /** Maximum number of recipients in one delivery request; 0 for no limit. */
  readonly recipientLimit: number
}

/** A claim of the mail of one band. */
export interface BandClaim {
  readonly band: Band
  /** Maximum number of recipients to lease. */
  readonly limit: number
  /**
   * The earliest due time that the caller was told of: by earlier claims, and by those who made recipients due since. A store may leave
   * recipients alone that are due earlier, so that it need not read past what earlier claims have taken. Absent: all.
   */
  readonly from?: QueueTime | undefined
  /** Claims only these recipients, where they wait for the destination and are due; not more than `limit`. Absent: any. */
  readonly recipients?: readonly RecipientId[] | undefined
}

/** Place of a waiting recipient in the order of due times. */
export interface WaitingPlace {
  readonly dueAt: QueueTime
  readonly id: RecipientId
}

/** A waiting recipient with the share of its message. */
export interface WaitingRecipient extends WaitingPlace {
  /** Null for a message without one. */
  readonly share: string | null
}

/** A slice of the recipients of a band that wait for a destination. */
export interface WaitingSlice {
  readonly destination: DestinationName
  readonly band: Band
  readonly after: WaitingPlace
  readonly limit: number
}

export interface Claimed {
  /**
   * Leased requests, by band as asked and earliest due first. No other claim returns them until they are settled or given back, or until the
   * lease ends.
   */
  readonly requests: readonly DeliveryRequest[]
  /** The earliest due time of the recipients that still wait for the destination, of each band that has some and was claimed without a list. */
  readonly next: readonly { readonly band: Band; readonly dueAt: QueueTime }[]
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
  /** Events for subscriptions. */
  readonly outbox: OutboxStore
  /** Mail that has left the queue. */
  readonly departed: DepartedMail
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
  /** Recipients that wait for a destination behind a place, whether or not they are due; earliest due first. */
  waitingAt(slice: WaitingSlice): Promise<readonly WaitingRecipient[]>
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
  /**
   * Records outcomes and due notices, and ends the leases. Idempotent. `written` is called when the change survives the end of the process, and
   * every later call sees it, while a loss of power may still undo it. It is not called when the change is durable at the same time, as in a
   * store that has one acknowledgement for both, nor when the call fails before.
   */
  settle(settlement: Settlement, written?: () => void): Promise<SettleResult>
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

/** Members that use no database, and the ports, which have rows of their own. */
type WithoutRow = 'nextId' | 'leaseTerms' | 'close' | 'records' | 'outbox' | 'departed' | 'shares' | 'upkeep'

export const STORE_METHODS = {
  nextIds: { room: 'neither', sending: 'batched', changes: nothing },
  stage: {
    room: 'needs',
    sending: ([content]) => [`c${content}`],
    changes: nothing,
    chunks: {
      in: ([, , chunks]) => chunks,
      map: ([content, from, chunks, keeps], change) => [content, from, chunks.map((chunk) => change(chunk, keeps !== true))],
    },
  },
  unstage: { room: 'reserve', sending: ([content]) => [`c${content}`], changes: nothing },
  enqueue: {
    room: 'needs',
    sending: ([{ message }]) => [`m${message.id}`, `c${message.contentId}`],
    changes: ([{ message }]) => [message.id],
    chunks: { in: ([{ content }]) => content, map: ([entry], change) => [withContent(entry, change)] },
  },
  maildropFiles: { room: 'neither', sending: 'direct', changes: nothing },
  forgetMaildropFiles: { room: 'neither', sending: 'batched', changes: nothing },
  // Content is read for mail whose acceptance is durable.
  readChunk: { room: 'neither', sending: 'direct', changes: nothing, isIndependent: true },
  claimDue: { room: 'lease', sending: ([{ destination }]) => [`d${destination}`], changes: (_, { requests }) => leased(requests) },
  waitingAt: { room: 'neither', sending: 'direct', changes: nothing },
  claimSuspect: {
    room: 'lease',
    sending: () => ['claimSuspect'],
    changes: (_, request) => (request === undefined ? [] : leased([request])),
  },
  claimExpired: { room: 'lease', sending: () => ['claimExpired'], changes: (_, requests) => leased(requests) },
  giveBack: {
    room: 'reserve',
    sending: ([recipients]) => recipients.map((id) => `m${messageOf(id)}`),
    changes: ([recipients]) => recipients.map(messageOf),
  },
  settle: { room: 'reserve', sending: ([{ message }]) => [`m${message}`], changes: ([{ message }]) => [message] },
  quarantine: { room: 'reserve', sending: 'alone', changes: ([message]) => [message] },
  messagesWithNoticesDue: { room: 'neither', sending: 'direct', changes: nothing },
  noticesDueOf: { room: 'neither', sending: 'direct', changes: nothing },
  claimWarnings: { room: 'neither', sending: 'direct', changes: nothing },
  postponeWarning: { room: 'reserve', sending: ([message]) => [`m${message}`], changes: nothing },
  markDelayNoticeDue: { room: 'neither', sending: ([message]) => [`m${message}`], changes: nothing },
  report: {
    room: 'reserve',
    sending: 'alone',
    changes: ([{ message, notices }]) => [message, ...notices.map((notice) => notice.message.id)],
    chunks: {
      in: ([{ notices }]) => notices.flatMap(({ content }) => content),
      map: ([report], change) => [{ ...report, notices: report.notices.map((notice) => withContent(notice, change)) }],
    },
  },
  endSchedules: { room: 'reserve', sending: 'alone', changes: (_, { ended }) => ended },
  scheduledMail: { room: 'neither', sending: 'direct', changes: nothing },
  destinationsDue: { room: 'neither', sending: 'direct', changes: nothing },
  nextDeadlines: { room: 'neither', sending: 'direct', changes: nothing },
  destinations: { room: 'neither', sending: 'direct', changes: nothing },
  saveDestination: { room: 'neither', sending: ([{ name }]) => [`n${name}`], changes: nothing },
  joinProvider: { room: 'neither', sending: 'direct', changes: nothing },
  operate: {
    room: 'reserve',
    sending: 'alone',
    changes: ([operations]) =>
      operations.flatMap(({ message, operation }) => (operation.kind === 'requeue' ? [message, operation.newId] : [message])),
  },
  move: { room: 'neither', sending: 'alone', changes: ([moves]) => moves.map(({ recipient }) => messageOf(recipient)) },
  tally: { room: 'neither', sending: 'direct', changes: nothing },
} as const satisfies MethodRows<Omit<QueueStore, WithoutRow>>
