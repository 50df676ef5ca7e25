/**
 * Formats maildrop entries for listings, as JSON and as a row of `queue list`. The JSON has the members of queued messages; those
 * that do not apply to an entry are null.
 */
import type { Instant } from '../../system/clock.ts'
import type { Submission } from '../../queue/intake/maildrop-listing.ts'
import { formatRow, type RowFacts } from './list-row.ts'
import { shownSender } from './message-json.ts'

/** Sender shown in listings; `?` when the envelope is unreadable. */
export const submissionSender = ({ sender }: Submission): string => (sender === null ? '?' : shownSender(sender))

/** Builds the object of `queue list --json` and `postqueue -j`. */
export const submissionJson = (submission: Submission): object => ({
  queue_name: 'maildrop',
  queue_id: submission.name,
  arrival_time: Math.floor(submission.arrivedAt / 1000),
  message_size: submission.size,
  forced_expire: false,
  sender: submissionSender(submission),
  recipients: submission.recipients.map((address) => ({
    address,
    destination: null,
    state: 'waiting',
    attempts: 0,
    next_attempt_time: null,
    last_status: null,
  })),
  expire_time: null,
  attempts: 0,
  next_attempt_time: null,
  // The reason is one of the file, which may have no readable recipients, so it is a member of the entry.
  delay_reason: submission.reason ?? undefined,
})

/** Formats an entry without line end. */
export function submissionRow(submission: Submission, { now, form }: { readonly now: Instant; readonly form: RowFacts['form'] }): string {
  const { name, size, arrivedAt, recipients, reason } = submission
  const facts = { size, arrivedAt, recipients, sender: submissionSender(submission), reason: { whole: reason ?? '', short: reason ?? '' } }
  return formatRow({ ...facts, id: name, queue: 'maildrop', forcedExpire: false, attempts: 0, next: null }, now, form)
}
