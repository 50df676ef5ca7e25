/** Decides what a failure of a recipient changes in its entry, and how long a listing by failures lasts. Pure. */
import { domainOf } from '../mail/address.ts'
import { failureClass } from '../mail/failure-class.ts'
import type { DestinationName } from '../mail/message.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { NewSuppression, Suppression, SuppressionKey } from '../store/records/suppression-entry.ts'
import { isListed } from '../store/records/suppression-entry.ts'
import { DAY, type Duration, type QueueTime } from '../system/clock.ts'

/** A reply that refused a recipient, or the delivery to one. */
export interface RecipientFailure extends SuppressionKey {
  readonly at: QueueTime
  readonly destination: DestinationName
  readonly reply: string
}

export interface FailureTerms {
  /** Failures that list an address. */
  readonly limit: number
  /** Least time between two of them. */
  readonly interval: Duration
  /** Time within which they count. */
  readonly window: Duration
}

/** `counted`: the entry changes; `listed`: the failure lists the address; `none`: it changes nothing. */
export type Verdict = { readonly kind: 'none' } | { readonly kind: 'counted' | 'listed'; readonly entry: NewSuppression }

const FIRST_TERM: Duration = 30 * DAY
const LONGEST_TERM: Duration = 365 * DAY

/** Length of the n-th listing by failures, from 1 on. */
export const termOf = (listing: number): Duration => Math.min(FIRST_TERM * 2 ** (listing - 1), LONGEST_TERM)

/** True for a reply at RCPT that says that the address itself accepts no mail. */
export const isAboutRecipient = (status: DeliveryStatus): boolean =>
  status.stage === 'rcpt' && status.reply !== undefined && failureClass(status).class === 'recipient'

/** The key under which failures of mail count; null for notices and mail to a postmaster, which are never refused. */
export function keyOf(sender: string, address: string): SuppressionKey | null {
  const scope = domainOf(sender)
  return scope === '' || /^postmaster(?:@|$)/i.test(address) ? null : { scope, address }
}

const fresh = ({ scope, address, at }: RecipientFailure): NewSuppression => ({
  scope,
  address,
  reason: null,
  reply: null,
  destination: null,
  since: null,
  until: null,
  hits: 0,
  firstHitAt: at,
  lastHitAt: null,
  addedBy: 'deferd',
  listings: 0,
  strikes: [],
})

/** The effect of a failure. `known` is the entry with its key. */
export function afterFailure(
  known: Suppression | undefined,
  failure: RecipientFailure,
  { limit, interval, window }: FailureTerms,
): Verdict {
  const { at, destination, reply } = failure
  const counted = { ...(known ?? fresh(failure)), hits: (known?.hits ?? 0) + 1, lastHitAt: at }
  const entry = { ...counted, destination, reply }
  // Mail that was accepted before the listing is still tried. The refusal goes on to quote the text of an operator.
  if (known !== undefined && isListed(known, at))
    return { kind: 'counted', entry: { ...(isRefuted(known) ? entry : counted), firstHitAt: known.firstHitAt ?? at } }
  const counting = entry.strikes.filter((strike) => strike > at - window)
  const last = counting.at(-1)
  if (last !== undefined && at - last < interval) return { kind: 'none' }
  const strikes = [...counting, at]
  if (strikes.length < limit)
    return { kind: 'counted', entry: { ...entry, strikes, until: entry.reason === null ? at + window : entry.until } }
  const listings = entry.listings + 1
  return { kind: 'listed', entry: { ...entry, reason: 'bounce', strikes: [], listings, since: at, until: at + termOf(listings) } }
}

/** True for an entry that a delivery to the address refutes: one by failures, not one that an operator or the recipient asked for. */
export const isRefuted = ({ reason }: Pick<Suppression, 'reason'>): boolean => reason === null || reason === 'bounce'
