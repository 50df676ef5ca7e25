/**
 * Messages between the caller's thread and the thread with the database. Errors are sent as plain objects, because structured
 * cloning loses their class.
 */
import type { Quarantined } from '../writing/quarantine.ts'
import type { LeaseTerms } from '../../../mail/message.ts'
import { ContentUnreadable } from '../../errors.ts'
import type { Answers, Call, Method, Outcome } from '../../methods.ts'
import { RequestRepeated } from '../../records/audit-log.ts'
import { StoreFailed, StoreUnavailable } from '../../queue-store.ts'
import { errorOf, failureOf, type ThreadFailure } from '../../../system/worker-rpc.ts'
import type { ShareChanges } from '../../share-counts.ts'
import type { Repair } from '../../repair-report.ts'
import type { RecoveryReport } from '../core/recovery.ts'

/** The calls of one turn of the event loop, in order, or a request to stop after all earlier calls are answered. */
export type ToWorker = { readonly kind: 'calls'; readonly calls: readonly Call[] } | { readonly kind: 'close' }

export type FromWorker =
  | { readonly kind: 'opened'; readonly terms: LeaseTerms; readonly recovery: RecoveryReport }
  | { readonly kind: 'refused'; readonly failure: ThreadFailure }
  /** Outcomes of the oldest calls without one, in order. Their changes are written; those of the first `durable` calls of all are durable. */
  | { readonly kind: 'answers'; readonly answers: readonly WireOutcome[]; readonly shares: ShareChanges | null; readonly durable: number }
  /** The first `durable` calls of all are durable now. */
  | { readonly kind: 'durable'; readonly durable: number }
  /** The store has failed: no further call becomes durable. */
  | { readonly kind: 'failed'; readonly failure: ThreadFailure }
  | { readonly kind: 'repaired'; readonly repair: Repair }
  | { readonly kind: 'quarantined'; readonly messages: readonly Quarantined[] }

export type WireOutcome = { readonly value: Answers[Method] } | { readonly failure: ThreadFailure }

export const onWire = (outcome: Outcome): WireOutcome => (outcome.ok ? { value: outcome.value } : { failure: failureOf(outcome.error) })

/** Creates an error of the original class. */
export function storeErrorOf(failure: ThreadFailure): Error {
  const { name, message, cause } = failure
  const options = cause === undefined ? {} : { cause: new Error(cause) }
  if (name === 'StoreFailed') return new StoreFailed(message, options)
  if (name === 'StoreUnavailable') return new StoreUnavailable(message, options)
  if (name === 'RequestRepeated') return new RequestRepeated(message)
  if (name === 'ContentUnreadable') return new ContentUnreadable(message, options)
  return errorOf(failure)
}
