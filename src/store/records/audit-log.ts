/**
 * The audit log: one row per action of an operator. An operation on many messages is a row that is `running` until it has ended; each of its
 * rounds is one commit that changes messages and counts them, so that the counts are exact after a crash too.
 */
import { matchesPattern } from '../../patterns/filter-pattern.ts'
import type { QueueTime } from '../../system/clock.ts'

/** Id of a record of the audit log; ids ascend. It is also the id of the operation. */
export type AuditId = number

/** The author of an action. */
export interface Actor {
  readonly who: string
  /** Id of the HTTP request that ordered the action; absent without one. */
  readonly requestId?: string | null | undefined
}

/** An operator's action that changed the queue, recorded when it is done. */
export interface AuditRecord extends Actor {
  readonly at: QueueTime
  readonly action: string
  readonly arguments: string
  /** The operator's reason; absent without one. */
  readonly reason?: string | null
  /** Number of changed messages or destinations. */
  readonly changed: number
  /** Reason for the failure of the action; absent for one that was done. */
  readonly error?: string | null
}

export const OPERATION_STATES = ['running', 'done', 'failed', 'cancelled'] as const

/**
 * State of an operation. `failed`: an error ended it, or the process that ran it ended. What it has changed until then stays changed and
 * is counted, in every state.
 */
type OperationState = (typeof OPERATION_STATES)[number]

/** A request that must have its effect only once, however often it is sent. */
export interface IdempotentRequest {
  /** The key that the client chose, with the name of the client, so that two clients share no key. */
  readonly key: string
  /** SHA-256 of the request, in hexadecimal digits. */
  readonly digest: string
}

/** A request whose effect is committed. Kept until `prune` is called with a later time. */
export interface KeptRequest extends IdempotentRequest {
  readonly at: QueueTime
  /** Answer to the request; of an operation its id, in decimal digits. */
  readonly answer: string
}

/** A request with the same key was carried out before. The call had no effect. */
export class RequestRepeated extends Error {
  override readonly name = 'RequestRepeated'
}

/** An operation that begins. */
export interface NewOperation extends Omit<AuditRecord, 'changed' | 'reason'> {
  /** The operator's reason. */
  readonly reason: string | null
  /** Number of messages that the operation is expected to select, for a display of its progress. */
  readonly expected: number | null
  /** Time until which the operation can be undone; null when it cannot. */
  readonly undoUntil: QueueTime | null
  /** The operation that this one undoes. */
  readonly undoes: AuditId | null
  readonly request: IdempotentRequest | null
}

/** One round of an operation, which is one commit. */
export interface OperationRound {
  readonly operation: AuditId
  readonly at: QueueTime
  /** Number of messages selected so far, with those of this round. */
  readonly matched: number
}

/** End of an operation. */
export interface OperationEnd {
  readonly state: Exclude<OperationState, 'running'>
  readonly at: QueueTime
  /** Number of selected messages; absent when the caller does not run the operation, and leaves the number unchanged. */
  readonly matched?: number | undefined
  /** Number of selected messages that are in transfer at the end; 0 when absent. */
  readonly inTransfer?: number | undefined
  /** Number of ids found neither in the queue nor in the trash. */
  readonly unknown?: number | undefined
  /** Why it failed, or who cancelled it. */
  readonly error: string | null
}

/** A record of the audit log, as it is read. */
export interface AuditEntry extends AuditRecord {
  readonly id: AuditId
  readonly requestId: string | null
  /** Name of the node (`node_name`) at which the action took place; null for a queue with one owner. */
  readonly node: string | null
  readonly state: OperationState
  /** Number of messages selected so far. */
  readonly matched: number
  /** Number of selected messages that were in transfer when it was done; 0 before. */
  readonly inTransfer: number
  readonly unknown: number
  readonly expected: number | null
  readonly reason: string | null
  /** Time of the last round, or of the end. */
  readonly lastAt: QueueTime
  readonly error: string | null
  /** Time until which the operation can be undone; null when it cannot. */
  readonly undoUntil: QueueTime | null
  readonly undoes: AuditId | null
  /** The last operation that undoes this one; null when there is none. */
  readonly undoneBy: AuditId | null
}

/** A record as another queue takes it over, where its id is another one and where it is not carried out any more. */
export const takenEntry = (entry: AuditEntry) => {
  const { at, lastAt, who, requestId, action, arguments: words, changed, matched, unknown, state, reason, error } = entry
  return {
    at,
    lastAt,
    who,
    requestId,
    action,
    arguments: words,
    changed,
    matched,
    unknown,
    state: state === 'running' ? ('failed' as const) : state,
    reason,
    error,
  }
}

/** Conditions on records of the audit log, all of which must hold. A null key is no condition. */
export interface AuditFilter {
  /** Pattern; `*` matches any text, here and in `action`. */
  readonly who: string | null
  readonly action: string | null
  readonly requestId: string | null
  readonly state: OperationState | null
  /** Records of this time or later. */
  readonly since: QueueTime | null
  /** Records before this time. */
  readonly until: QueueTime | null
}

export const ANY_ENTRY: AuditFilter = { who: null, action: null, requestId: null, state: null, since: null, until: null }

/** Whether a record meets a filter. */
export const matchesEntry = ({ who, action, requestId, state, since, until }: AuditFilter, entry: AuditEntry): boolean =>
  (who === null || matchesPattern(who, entry.who)) &&
  (action === null || matchesPattern(action, entry.action)) &&
  (requestId === null || entry.requestId === requestId) &&
  (state === null || entry.state === state) &&
  (since === null || entry.at >= since) &&
  (until === null || entry.at < until)

/** Maximum number of operations that `operationsOn` returns. */
export const OPERATIONS_PER_MESSAGE = 100

/** Actions that place messages. The last of them on a message is the one that an undo may take back, and the last reschedule and reclass of it. */
export const PLACING_ACTIONS: readonly string[] = ['hold', 'release', 'delete', 'restore', 'reschedule', 'reclass']

/** Actions that are undone apart from the others on a message. */
export const APART: readonly string[] = ['reschedule', 'reclass']
