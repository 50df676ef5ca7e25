/** Formats a maildrop entry as a row of `queue list`. */
import { submissionSender } from '../../queue/intake/maildrop-listing.ts'
import type { Submission } from '../../queue/intake/maildrop-listing.ts'
import { formatRow, type RowFacts } from './list-row.ts'

/** Formats an entry without line end. */
export function submissionRow(submission: Submission, row: Omit<RowFacts, 'records'>): string {
  const { name, size, arrivedAt, recipients, reason } = submission
  const facts = { size, arrivedAt, recipients, sender: submissionSender(submission), reason: { whole: reason ?? '', short: reason ?? '' } }
  return formatRow({ ...facts, id: name, queue: 'maildrop', forcedExpire: false, attempts: 0, next: null }, row)
}
