/** Formats maildrop entries as JSON. The members are those of queued messages; those that do not apply to an entry are null. */
import type { Submission } from '../queue/intake/maildrop-listing.ts'
import type { WallView } from '../system/wall-view.ts'
import { shownSender } from './message-json.ts'

/** Sender shown in listings; `?` when the envelope is unreadable. */
export const submissionSender = ({ sender }: Submission): string => (sender === null ? '?' : shownSender(sender))

/** Builds the object of `queue list --json` and `postqueue -j`. */
export const submissionJson = (submission: Submission, wall: WallView) => ({
  queue_name: 'maildrop',
  queue_id: submission.name,
  arrival_time: Math.floor(wall.seconds(submission.arrivedAt)),
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
  // The reason concerns the file, which may have no readable recipients, so it is a member of the entry.
  delay_reason: submission.reason ?? undefined,
})
