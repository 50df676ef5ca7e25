/**
 * The MoveStore port: messages that move from one queue to another while both are in use. A message moves in four commits: the source
 * takes it out of its queue (`beginMove`), the target keeps it apart (`takeMoved`), the source forgets it (`finishMove`), the target
 * adds it to its queue (`admitMoved`). At every moment at most one queue can deliver the message, and at least one has it on disk.
 *
 * Every method is one transaction, as in QueueStore, and rejects like those. The suite test/conformance checks every implementation.
 */
import { nothing, type MethodRows } from './method-traits.ts'
import type { MovedSubscription } from './outbox/moved-subscription.ts'
import { isLive, RECIPIENTS_PER_MESSAGE, type Message, type MessageId, type Placement, type Recipient } from '../mail/message.ts'
import type { QueueTime } from '../system/clock.ts'
import type { AccessEntry } from './records/access-entry.ts'
import type { AccessToken } from './records/access-token.ts'
import type { KeptGrant } from '../oauth/shared-grant.ts'
import type { ProviderSuspension } from './records/provider-state.ts'
import type { NewSuppression } from './records/suppression-entry.ts'
import type { HistoryRecord } from './history-record.ts'
import type { AuditEntry, AuditId } from './records/audit-log.ts'
import type { DestinationRecord, QueueStore } from './queue-store.ts'
import type { DestinationDue } from './message-operation.ts'
import type { AttemptRecord } from './recorded-outcomes.ts'

/** Identity of a queue, given at its creation. Copies and backups of a queue have the same. */
export type QueueIdentity = string

/** The queue to which messages move. */
export interface MoveTarget {
  readonly identity: QueueIdentity
  /** Directory, or URL without its password, for operators. */
  readonly name: string
}

export interface MovedRecipient extends Recipient {
  /** Due time before an operator's flush. */
  readonly keptDueAt: QueueTime | null
}

/** A message outside of the queues, with everything that belongs to it except its content. No recipient is leased. */
export interface MovedMessage {
  readonly message: Message
  readonly placement: Placement
  readonly deletedAt: QueueTime | null
  readonly why: string | null
  readonly forcedExpire: boolean
  readonly warnings: number
  readonly warnAt: QueueTime | null
  /** All recipients, ordered by position. */
  readonly recipients: readonly MovedRecipient[]
  /** Attempts, oldest first. */
  readonly attempts: readonly AttemptRecord[]
}

/** State of a queue with regard to moves. */
export interface MoveState {
  readonly identity: QueueIdentity
  /** Name of the queue to which this one was moved as a whole; null for a queue in use. */
  readonly movedTo: string | null
  /** Number of messages taken out of the queue by a move that has not finished. */
  readonly leaving: number
  /** Number of messages from other queues that are not admitted yet. */
  readonly arriving: number
  /** Highest id of a message in the queue; 0 for an empty queue. */
  readonly last: MessageId
}

/** Selects messages with ids above `after` and up to `through`. */
export interface MoveSelection {
  readonly target: MoveTarget
  readonly after: MessageId
  readonly through: MessageId
  /** Maximum number of messages. Messages with many recipients count more, so that a round stays short. */
  readonly limit: number
  /** True to move messages with notices due, while no MAILER-DAEMON sends them. */
  readonly withNoticesDue: boolean
}

export interface MoveRound {
  readonly messages: readonly MovedMessage[]
  /** Messages whose rows are damaged. They stay. */
  readonly unreadable: readonly Origin[]
  /** Value of `after` for the next round; null when no message is left up to `through`. */
  readonly next: MessageId | null
}

/** Identifies a message in its source. Ids may be used twice after a restore of a backup, so the time of creation belongs to it. */
export type Origin = Pick<Message, 'id' | 'createdAt'>

/** A message with its content, on its way into the target. */
export interface Arrival {
  readonly origin: Origin
  /** The message as in the source, with times of the target's clock. */
  readonly moved: MovedMessage
  /** Content id under which the content was staged at the target; null when `content` is complete. */
  readonly staged: number | null
  /** The content, or the part after the staged chunks. Must not change after the call. */
  readonly content: readonly Uint8Array[]
}

/** A row of history with its number, which ascends. */
export interface NumberedHistory {
  readonly seq: number
  readonly message: MessageId
  readonly leftAt: QueueTime
  readonly record: HistoryRecord
}

/** Records that move once, when a queue moves as a whole. */
export interface MovedRecords {
  readonly history: readonly NumberedHistory[]
  readonly audit: readonly AuditEntry[]
  readonly destinations: readonly DestinationRecord[]
  readonly access: readonly AccessEntry[]
  readonly tokens: readonly AccessToken[]
  readonly grants: readonly KeptGrant[]
  /** Suspensions of providers by operators. */
  readonly suspensions: readonly ProviderSuspension[]
  /** Entries of the suppression list. */
  readonly suppressions: readonly NewSuppression[]
  readonly subscriptions: readonly MovedSubscription[]
}

export const NO_RECORDS: MovedRecords = {
  history: [],
  audit: [],
  destinations: [],
  access: [],
  tokens: [],
  grants: [],
  suspensions: [],
  suppressions: [],
  subscriptions: [],
}

/** The last rows that a target has from a source; 0 for none. */
export interface RecordsTaken {
  readonly history: number
  readonly audit: AuditId
}

export interface MoveStore {
  moveState(): Promise<MoveState>
  /**
   * Makes this owner of the queue the only one that moves messages out of it (`source` null), or from a source into it. The calls of an
   * earlier owner about these messages have ended when the promise resolves, and later ones reject with StoreUnavailable. Without
   * effect where the queue has one owner at a time.
   */
  claimMoves(source: QueueIdentity | null): Promise<void>

  // --- source
  /**
   * Takes messages out of the queue, in the order of ids. Messages with a recipient in delivery stay, and those with a notice due unless
   * `withNoticesDue`. Operations, claims and readers do not see a message that is out of the queue; its content is kept. A call whose
   * answer was lost may be repeated.
   */
  beginMove(selection: MoveSelection): Promise<MoveRound>
  /** Messages that are out of the queue, by `beginMove` of this or of an earlier owner, each with its target; ordered by id. */
  leaving(limit: number): Promise<readonly { readonly target: MoveTarget; readonly moved: MovedMessage }[]>
  /**
   * Forgets messages that are out of the queue and that the target has on disk: deletes the content and adds a row to the history, with
   * the queue id at the target. Adds their number to the audit record `auditedAs`. Ignores other messages.
   */
  finishMove(finished: readonly { readonly id: MessageId; readonly as: string }[], at: QueueTime, auditedAs: AuditId | null): Promise<void>
  /** Puts messages back into the queue, unchanged. Returns their destinations with waiting mail, each with its earliest due time. */
  undoMove(messages: readonly MessageId[]): Promise<readonly DestinationDue[]>
  /** Rows of history after a row, the oldest first. */
  historyAfter(seq: number, limit: number): Promise<readonly NumberedHistory[]>
  /**
   * Marks the queue as moved to `name`, so that no daemon starts with it and `enqueue` rejects with StoreUnavailable. Returns false, without a change, while the queue has messages or
   * messages are out of it.
   */
  markMoved(name: string): Promise<boolean>

  // --- target
  /** Keeps ids up to `through` that are not used here for the messages of a source: ids that are reserved later are higher. */
  keepIds(source: QueueIdentity, through: MessageId): Promise<void>
  /**
   * Stores messages of a source apart from the queue, where no claim, operation or reader sees them, and returns their queue ids here, in
   * order. A message keeps its id when the id is free here. A message that the source has sent before is not stored again. Saves the states
   * of destinations that have none here. A queue that was marked as moved is in use again. A queue with one owner at a time must not be
   * accepting mail: an id that `nextId` has returned counts as free until its message is queued.
   */
  takeMoved(source: QueueIdentity, arrivals: readonly Arrival[], destinations: readonly DestinationRecord[]): Promise<readonly string[]>
  /** Queue ids of messages that the source has sent, in order; null for a message that is not here. */
  originsOf(source: QueueIdentity, origins: readonly Origin[]): Promise<readonly (string | null)[]>
  /**
   * Adds up to `limit` messages of a source to the queue. The source must have forgotten all messages that it has sent. Returns the
   * destinations with waiting mail, each with its earliest due time. Their number is the limit while more are left.
   */
  admitMoved(source: QueueIdentity, limit: number, now: QueueTime): Promise<Admitted>
  /**
   * Adds rows of history and audit of a source, the states of destinations that have none here, access entries whose subject and key, and
   * tokens whose name and hash, are not in use here, suspensions of providers that have none here, entries of the suppression list whose key is not in use here, grants as `isContinuedBy` decides, and subscriptions as `takenSubscription` decides.
   */
  takeRecords(source: QueueIdentity, records: MovedRecords): Promise<void>
  recordsTaken(source: QueueIdentity): Promise<RecordsTaken>
}

export interface Admitted {
  /** Ids here of the messages that were added to the queue. */
  readonly messages: readonly MessageId[]
  readonly woken: readonly DestinationDue[]
}

/** A store that can be the source and the target of a move. */
export type MovableStore = QueueStore & MoveStore

/** Reason for which a queue that was marked as moved refuses new mail. */
export const MOVED_AWAY = 'the queue was moved to another place: new mail is refused'

/** Maximum number of recipients in one round, unless its only message has more. */
export const RECIPIENTS_PER_ROUND = 2_000

const MOVED_TO = 'moved to '

/** The history of a message that has moved: its live recipients are removed, with the place where they are now. */
export function movedRecord(
  { message, forcedExpire, warnings, recipients, attempts }: MovedMessage,
  { name, as, at }: { readonly name: string; readonly as: string; readonly at: QueueTime },
): HistoryRecord {
  const { prependedHeaders: _, ...gone } = message
  const last = { status: '2.0.0', reason: `${MOVED_TO}${name} as ${as}`, stage: 'queue' } as const
  const settled = recipients.map(({ keptDueAt: __, noticeDue: ___, ...one }) =>
    isLive(one) ? { ...one, state: 'removed' as const, settledAt: at, last, deliveryStarts: 0 } : one,
  )
  return { message: gone, forcedExpire, warnings, recipients: settled, history: attempts }
}

/** Whether a row of history is about a message that moved to the queue `name`, which has its further history. */
export const hasMovedTo = (name: string, { recipients }: HistoryRecord): boolean =>
  recipients.some(({ state, last }) => state === 'removed' && last?.reason.startsWith(`${MOVED_TO}${name} as `) === true)

/** The message with all ids of another message id. */
export function renumbered(moved: MovedMessage, message: Message): MovedMessage {
  const shift = (message.id - moved.message.id) * RECIPIENTS_PER_MESSAGE
  return {
    ...moved,
    message,
    recipients: moved.recipients.map((one) => ({ ...one, id: one.id + shift })),
    attempts: moved.attempts.map((one) => ({ ...one, recipient: one.recipient + shift })),
  }
}

/** The message without its class, which the queue that it enters does not have: it is mail of default_class there. */
export const withoutClass = (moved: MovedMessage): MovedMessage =>
  moved.message.class === undefined ? moved : { ...moved, message: { ...moved.message, class: undefined } }

/** Number of live recipients, which are counted as accepted by the queue that has the message. */
export const liveRecipients = ({ recipients }: MovedMessage): number => recipients.filter(isLive).length

export const MOVE_METHODS = {
  moveState: { room: 'neither', sending: 'direct', changes: nothing },
  claimMoves: { room: 'neither', sending: 'alone', changes: nothing },
  // A move away makes room, also on a full disk.
  beginMove: { room: 'reserve', sending: 'alone', changes: (_, { messages }) => messages.map(({ message }) => message.id) },
  leaving: { room: 'neither', sending: 'alone', changes: nothing },
  finishMove: { room: 'reserve', sending: 'alone', changes: nothing },
  undoMove: { room: 'reserve', sending: 'alone', changes: ([messages]) => messages },
  historyAfter: { room: 'neither', sending: 'alone', changes: nothing },
  markMoved: { room: 'reserve', sending: 'alone', changes: nothing },
  keepIds: { room: 'neither', sending: 'alone', changes: nothing },
  takeMoved: {
    room: 'needs',
    sending: 'alone',
    changes: nothing,
    chunks: {
      in: ([, arrivals]) => arrivals.flatMap(({ content }) => content),
      map: ([source, arrivals, destinations], change) => [
        source,
        arrivals.map((arrival) => ({ ...arrival, content: arrival.content.map((chunk) => change(chunk, true)) })),
        destinations,
      ],
    },
  },
  originsOf: { room: 'neither', sending: 'alone', changes: nothing },
  admitMoved: { room: 'reserve', sending: 'alone', changes: (_, { messages }) => messages },
  takeRecords: { room: 'needs', sending: 'alone', changes: nothing },
  recordsTaken: { room: 'neither', sending: 'direct', changes: nothing },
} as const satisfies MethodRows<MoveStore>
