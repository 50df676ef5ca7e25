/**
 * What the thread that wants something and the thread that holds the database say to each other. Errors travel as
 * plain parts: structured cloning would take their class from them.
 */
import { ContentUnreadable } from '../queue-errors.ts'
import { StoreUnavailable } from '../store.ts'
import type { Call, Outcome } from './calls.ts'
import type { Quarantined } from './corrupt.ts'

/** Calls of one turn, in order, or the wish to stop once everything before it is answered. */
export type ToWorker = { readonly kind: 'calls'; readonly calls: readonly Call[] } | { readonly kind: 'close' }

export type FromWorker =
  | { readonly kind: 'opened'; readonly lastId: number; readonly quarantined: readonly Quarantined[]; readonly swept: number }
  | { readonly kind: 'refused'; readonly failure: Failure }
  /** To the oldest calls that have no answer yet, in their order. */
  | { readonly kind: 'answers'; readonly answers: readonly WireOutcome[] }
  | { readonly kind: 'quarantined'; readonly messages: readonly Quarantined[] }

export type WireOutcome = { readonly value: unknown } | { readonly failure: Failure }

export interface Failure {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  /** Of the errors in queue-errors. */
  readonly exitCode: number | undefined
  readonly cause: string | undefined
}

export const failureOf = (error: Error): Failure => ({
  name: error.name,
  message: error.message,
  stack: error.stack,
  exitCode: 'exitCode' in error && typeof error.exitCode === 'number' ? error.exitCode : undefined,
  cause: error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : undefined,
})

export const onWire = (outcome: Outcome): WireOutcome => (outcome.ok ? { value: outcome.value } : { failure: failureOf(outcome.error) })

/** The error again, of the class that callers look for. */
export function errorOf({ name, message, stack, exitCode, cause }: Failure): Error {
  const options = cause === undefined ? {} : { cause: new Error(cause) }
  if (name === 'StoreUnavailable') return new StoreUnavailable(message, options)
  if (name === 'ContentUnreadable') return new ContentUnreadable(message, options)
  const error = new Error(message, options)
  if (stack !== undefined) error.stack = stack
  return Object.assign(error, { name, ...(exitCode === undefined ? {} : { exitCode }) })
}
