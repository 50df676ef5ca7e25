/**
 * Who is named in a delay warning. A message is warned of once for each age, so the warning names all its recipients that
 * are late by then, not only those whose attempt brought it up; and an attempt that was under way when the warning was
 * made causes no second one. Pure.
 */
import type { Instant } from '../mail/clock.ts'
import type { DestinationName, Recipient } from '../queue/message.ts'
import type { IndebtedMessage } from '../queue/store.ts'
import { debtFor, nextWarning } from './notice.ts'
import type { NoticeSettings } from './notice-writer.ts'

export interface LateFacts {
  readonly now: Instant
  readonly settings: Pick<NoticeSettings, 'warningAges' | 'rules'>
  /** Mail there is not tried now: dead or suspended. */
  readonly closed: (destination: DestinationName) => boolean
}

/** Does somebody want to hear that this recipient's mail is late? */
export function wantsWarning({ message }: IndebtedMessage, { notify }: Recipient, { settings }: Pick<LateFacts, 'settings'>): boolean {
  const { doubleBounceSender, classes } = settings.rules
  return debtFor({ outcome: 'deferred', sender: message.sender, doubleBounceSender, classes, notify }) === 'delay'
}

/** Tried in vain, or not to be tried now. Held mail is not late. */
export const isLate = ({ state, attempts, destination }: Recipient, { closed }: Pick<LateFacts, 'closed'>): boolean =>
  (state === 'waiting' && (attempts > 0 || closed(destination))) || (state === 'leased' && attempts > 0)

/**
 * A message as it is to be told: when one owes a warning, all do that are late and of whom somebody wants to hear; none,
 * when this age has had its warning.
 */
export function owingAsTold(owing: IndebtedMessage, facts: LateFacts): IndebtedMessage {
  if (!owing.recipients.some(({ debt }) => debt === 'delay')) return owing
  const due = nextWarning(facts.settings.warningAges, owing.message.arrivedAt, owing.warnings)
  const isDue = due !== null && due <= facts.now
  const recipients = owing.recipients.map((one): Recipient => {
    if (one.debt === undefined) return isDue && isLate(one, facts) && wantsWarning(owing, one, facts) ? { ...one, debt: 'delay' } : one
    return one.debt === 'delay' && !isDue ? { ...one, debt: undefined } : one
  })
  return { ...owing, recipients }
}
