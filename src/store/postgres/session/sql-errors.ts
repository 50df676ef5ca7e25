/** Meaning of the errors of statements (PostgreSQL, "Error Codes"). */
import { DatabaseError } from 'pg'
import { errorMessage } from '../../../system/caught-error.ts'
import { MOVED_AWAY } from '../../move-store.ts'
import { ReadFailed, StoreUnavailable } from '../../queue-store.ts'
import { DatabaseAway, DatabaseUnusable } from '../../membership/database-errors.ts'

/**
 * - `lost`: the session has ended, or its state is unknown;
 * - `unmet`: an assertion of a statement failed (division by zero);
 * - `again`: the transaction met one of another node, which continues, and can be repeated;
 * - `locked`: another session held a lock for `lock_timeout`;
 * - `away`: the database cannot be used now, until it recovers or an operator has repaired it;
 * - `aborted`: an earlier statement of the transaction failed;
 * - `call`: a bug, or a value that the database refuses.
 */
export type FailureKind = 'lost' | 'unmet' | 'again' | 'locked' | 'away' | 'aborted' | 'call'

const DIVISION_BY_ZERO = '22012'
const ABORTED = '25P02'
const LOCK_TIMEOUT = '55P03'
/** Serialization failure and deadlock. */
const AGAIN: ReadonlySet<string> = new Set(['40001', '40P01'])
/**
 * Classes: data exception and integrity constraint violation. Statements are fixed, so that every other error concerns the state of the
 * database: missing rights, tables or functions (42), no resources (53), a read-only transaction (25006), a trigger of another program (P0).
 */
const CALL = /^2[23]/
/** A sequence has no further number. */
const SEQUENCE_ENDED = '2200H'
/** Classes that only an operator ends: object not in a usable state, missing schema, missing right, table, column or function. */
const LASTING = /^(?:0A|3F|42|55000)|^2200H$/

/** An error without an SQLSTATE comes from the socket. `EPIPE` looks like one, so the class of the error decides. */
export function failureKind(error: unknown): FailureKind {
  if (error instanceof DatabaseUnusable) return 'away'
  if (!(error instanceof DatabaseError)) return isLoss(error) ? 'lost' : 'call'
  const code = error.code ?? ''
  if (error.severity === 'FATAL' || error.severity === 'PANIC') return 'lost'
  if (code === DIVISION_BY_ZERO) return 'unmet'
  if (code === ABORTED) return 'aborted'
  if (AGAIN.has(code)) return 'again'
  if (code === LOCK_TIMEOUT) return 'locked'
  return CALL.test(code) && code !== SEQUENCE_ENDED ? 'call' : 'away'
}

/** Whether a statement failed because the key of a request is kept (unique violation). */
export const isRepetition = (error: unknown): boolean =>
  error instanceof DatabaseError && error.code === '23505' && error.constraint === 'kept_request_pkey'

/** Messages of the client about a session that has ended. */
const LOSS = /Connection terminated|not queryable|Query read timeout/

const isLoss = (error: unknown): boolean => LOSS.test(errorMessage(error)) || (error instanceof Error && 'syscall' in error)

/** Name of the constraint of the table message that refuses every row, after the queue was moved as a whole. */
const QUEUE_MOVED = 'queue_moved'

/** The error for the callers of the store whose statement failed. */
export const rejected = (cause: unknown): Error => {
  if (cause instanceof DatabaseError && cause.constraint === QUEUE_MOVED) return new StoreUnavailable(MOVED_AWAY, { cause })
  return cause instanceof Error ? cause : new Error(String(cause))
}

export const LOCK_HELD =
  'the queue cannot be written: another session of the database holds a lock on its tables or rows (pg_locks lists them): end that session, or wait'

/** Classes: I/O error of the system, and damaged data or indexes. */
const UNREADABLE = /^(58|XX)/

/** The error for the callers of a read that failed. */
export const readFailed = (cause: unknown): StoreUnavailable =>
  cause instanceof DatabaseError && UNREADABLE.test(cause.code ?? '')
    ? new ReadFailed(`the queue cannot be read: ${errorMessage(cause)}`, { cause })
    : unusable('the queue cannot be read', cause)

/** The error for the callers of the store, when the database cannot commit. */
export const databaseAway = (cause: unknown): DatabaseAway | DatabaseUnusable => unusable('the queue cannot be written', cause)

/** The error for an opening of the queue, or for a command, of which a statement failed. Other errors are returned as they are. */
export function statementFailed(cause: unknown): unknown {
  const isOfServer = cause instanceof DatabaseError && failureKind(cause) !== 'call'
  return isOfServer || failureKind(cause) === 'lost' ? unusable('queue_database: the queue cannot be used', cause) : cause
}

/** The client names a session that has ended by its own state. */
const reasonOf = (cause: unknown): string =>
  errorMessage(cause).includes('not queryable') ? 'the connection to the server was lost' : errorMessage(cause)

function unusable(what: string, cause: unknown): DatabaseAway | DatabaseUnusable {
  const code = cause instanceof DatabaseError ? (cause.code ?? '') : ''
  if (code === LOCK_TIMEOUT) return new DatabaseAway(LOCK_HELD, { cause })
  const text = `${what}: ${reasonOf(cause)}`
  return LASTING.test(code) ? new DatabaseUnusable(`${text} (${code}): ${remedyFor(code)}`, { cause }) : new DatabaseAway(text, { cause })
}

const MISSING_RIGHT = '42501'

const remedyFor = (code: string): string =>
  code === MISSING_RIGHT
    ? 'give the user of the database all rights on the tables and sequences of the queue'
    : 'another program has changed the database: undo that, or restore a backup'
