/** Decides whether and how an operation can be undone. */
import type { AuditEntry } from '../store/records/audit-log.ts'
import type { Duration, QueueTime } from '../system/clock.ts'
import { queueTimeOf, type Moment } from '../mail/message-times.ts'
import { OPERATIONS, type BulkOperation, type OperationName } from './operation-request.ts'

/** The operation that takes another one back; null where there is none. */
const INVERSE: Readonly<Record<OperationName, OperationName | null>> = {
  flush: null,
  hold: 'release',
  release: 'hold',
  requeue: null,
  expire: null,
  delete: 'restore',
  restore: 'delete',
  reschedule: 'reschedule',
  reclass: 'reclass',
}

export interface Retention {
  /** Time for which deleted mail is kept. */
  readonly trash_lifetime: Duration
  /** Time for which the messages of an operation are known. */
  readonly history_retention: Duration
}

/** An operation cannot be undone (EX_DATAERR). */
export class NotUndoable extends Error {
  override readonly name = 'NotUndoable'
  readonly exitCode = 65
}

/** Time until which an operation that begins now can be undone; null when it cannot. */
export function undoUntil(
  { operation, purge, release }: Pick<BulkOperation, 'operation' | 'purge' | 'release'>,
  { trash_lifetime: trash, history_retention: history }: Retention,
  moment: Moment,
): QueueTime | null {
  const { now } = moment
  if (INVERSE[operation] === null || purge) return null
  if (release !== null) return Math.max(now, Math.min(queueTimeOf(release, moment), now + history))
  return now + (operation === 'delete' ? Math.min(trash, history) : history)
}

const nameOf = (action: string): OperationName | undefined => OPERATIONS.find((name) => name === action)

/** The operation that undoes a recorded one. Throws NotUndoable with the reason and the remedy. */
export function undoingOf({ id, action, state, changed, undoUntil: until }: AuditEntry, now: QueueTime): OperationName {
  const name = nameOf(action)
  const inverse = name === undefined ? null : INVERSE[name]
  if (inverse === null || until === null) throw new NotUndoable(`operation ${id} (${action}) cannot be undone`)
  if (state === 'running') throw new NotUndoable(`operation ${id} is not complete: cancel it, then undo it`)
  if (changed === 0) throw new NotUndoable(`operation ${id} has changed no message`)
  if (now >= until)
    throw new NotUndoable(
      `operation ${id} cannot be undone any more: ${name === 'delete' ? 'the trash does not have its messages (trash_lifetime)' : name === 'reschedule' ? 'its time has come' : 'its messages are not known (history_retention)'}`,
    )
  return inverse
}
