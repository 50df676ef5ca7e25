/**
 * Selects the recipients of a delay warning. A message gets one warning per configured age, and the warning lists all recipients
 * that are late at that time. An attempt that was in flight when the warning was composed causes no second warning. Pure.
 */
import type { QueueTime } from '../system/clock.ts'
import type { DestinationName, Recipient } from '../mail/message.ts'
import type { MessageWithNoticesDue } from '../store/recorded-outcomes.ts'
import { noticeDueFor } from './notice.ts'
import type { NoticeSettings } from './notice-writer.ts'
import { isOverdue, nextWarning } from './warning-times.ts'

export interface LateFacts {
  readonly now: QueueTime
  readonly settings: Pick<NoticeSettings, 'warningAges' | 'rules'>
  /** True for a dead or suspended destination. */
  readonly closed: (destination: DestinationName) => boolean
}

/** The facts for one message, with the closed destinations of other nodes. */
export const factsFor = <Facts extends LateFacts>({ elsewhere }: MessageWithNoticesDue, facts: Facts): Facts =>
  elsewhere === undefined ? facts : { ...facts, closed: (name) => elsewhere.closed.includes(name) || facts.closed(name) }

/** True when the sender or the postmaster requested delay notices for the recipient. */
export function wantsWarning(
  { message }: MessageWithNoticesDue,
  { notify }: Recipient,
  { settings }: Pick<LateFacts, 'settings'>,
): boolean {
  return noticeDueFor({ outcome: 'deferred', sender: message.sender, notify }, settings.rules) === 'delay'
}

/**
 * True after a failed attempt, and for a recipient at a dead or suspended destination; after the deliver-by time of a message, for each
 * recipient in the queue. Recipients of held mail are never late.
 */
export const isLate = (
  { state, attempts, destination }: Recipient,
  { message }: Pick<MessageWithNoticesDue, 'message'>,
  { now, closed }: Pick<LateFacts, 'now' | 'closed'>,
): boolean => {
  if (state !== 'waiting' && state !== 'leased') return false
  return attempts > 0 || (state === 'waiting' && closed(destination)) || isOverdue(message, now)
}

/**
 * Adds delay notices for all late recipients when a delay notice is due for one of them. When no warning is due at present, because
 * an earlier one was sent meanwhile, removes the delay notices instead.
 */
export function withLateRecipients(due: MessageWithNoticesDue, ownFacts: LateFacts): MessageWithNoticesDue {
  const facts = factsFor(due, ownFacts)
  if (!due.recipients.some(({ noticeDue }) => noticeDue === 'delay')) return due
  const warnAt = nextWarning(facts.settings.warningAges, due.message, due.warnings)
  const isDue = warnAt !== null && warnAt <= facts.now
  const recipients = due.recipients.map((one): Recipient => {
    if (one.noticeDue === undefined)
      return isDue && isLate(one, due, facts) && wantsWarning(due, one, facts) ? { ...one, noticeDue: 'delay' } : one
    return one.noticeDue === 'delay' && !isDue ? { ...one, noticeDue: undefined } : one
  })
  return { ...due, recipients }
}
