/** Words about mail that expires: what becomes of it, and when, after an operator has made it expire. */
import { shownSender } from '../mail/envelope.ts'

/** The end of mail that was not delivered, by its shown sender: of mail from the null sender, nothing is returned. */
export const endWords = (sender: string): string => (sender === shownSender('') ? 'given up' : 'returned to the sender')

/** Name of the time of the next attempt, in place of which mail that was made to expire is returned. */
export const nextName = (isForced: boolean): string => (isForced ? 'due' : 'next attempt')

/** Time at which mail that was made to expire is returned. `flush` is the operation that makes mail due. */
export const returnTime = (flush: string): string =>
  `Messages are returned in place of their next attempts; ${flush} makes deferred mail due now. Mail on hold waits for its release, and mail for a suspended destination for its resumption or the end of its lifetime.`
