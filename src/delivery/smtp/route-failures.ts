/** Results for recipients of failures before a session with a host: addresses that cannot be sent, look-ups and policies without an answer. Pure. */
import type { NextHop, Origin } from '../../config/values/next-hop.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import { hard, type Policy, type Verdict } from '../classify.ts'
import type { HostSearch } from '../routing/host-finder.ts'

/** One result for all recipients that are still open. */
export interface RouteFailure {
  readonly verdict: Verdict
  /** Status for which the destination gets negative feedback. */
  readonly siteStatus?: DeliveryStatus | undefined
  /** True for a failure that tells nothing about the destination. */
  readonly withoutFeedback?: boolean | undefined
}

/** Sources of next hops that are relays for mail in general. One that does not exist is an error of the configuration. */
const RELAYS: ReadonlySet<Origin> = new Set<Origin>(['relayhost', 'smtp_fallback_relay', 'sender_dependent_relayhost_maps'])

/** True for a next hop that the configuration names as the relay of all mail, or of the mail of a sender. */
export const isRelay = ({ origin }: NextHop): boolean => RELAYS.has(origin)

/** A recipient whose domain is invalid, or whose address cannot be sent in RCPT. */
export function unsendable(reason: 'domain' | 'address', policy: Pick<Policy, 'softBounce'>): Verdict {
  const status: DeliveryStatus =
    reason === 'domain'
      ? { status: '5.1.2', reason: 'bad recipient domain', stage: 'route' }
      : { status: '5.1.3', reason: 'bad recipient address syntax', stage: 'route' }
  return { ...hard(status, policy), elsewhere: false }
}

export function lookupTimedOut({ host }: NextHop, isAborted: boolean): RouteFailure {
  const reason = isAborted ? `delivery was aborted while looking up ${host}` : `Name service error for name=${host}: no answer in time`
  const status: DeliveryStatus = { status: isAborted ? '4.3.2' : '4.4.3', reason, stage: 'dns' }
  return { verdict: elsewhere(status), siteStatus: isAborted ? undefined : status, withoutFeedback: isAborted }
}

export function lookupFailed(
  hop: NextHop,
  search: Extract<HostSearch, { kind: 'failed' }>,
  policy: Pick<Policy, 'softBounce'>,
): RouteFailure {
  // A configured host that does not exist is an error of the configuration, not of the mail (Postfix smtp_connect.c). Its
  // status is temporary.
  const isPermanent = search.status.startsWith('5')
  const status: DeliveryStatus = { status: isPermanent && isRelay(hop) ? '4.3.5' : search.status, reason: search.reason, stage: 'dns' }
  const verdict = isPermanent && !isRelay(hop) ? hard(status, policy) : elsewhere(status)
  return { verdict: { ...verdict, elsewhere: true }, siteStatus: verdict.outcome === 'deferred' ? status : undefined }
}

/** The kept MTA-STS policy of a domain cannot be read, so that it is not known how mail may be sent there. */
export const policyUnreadable = (reason: string): RouteFailure => ({
  verdict: elsewhere({ status: '4.3.0', reason, stage: 'route' }),
  withoutFeedback: true,
})

const elsewhere = (status: DeliveryStatus): Verdict => ({ outcome: 'deferred', status, elsewhere: true })
