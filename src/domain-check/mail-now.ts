/**
 * The outcome of mail for the domain now, with the reason: the outcome of the rehearsed delivery, which waits while the destination is
 * closed. Pure.
 */
import { formatNextHop } from '../config/values/next-hop.ts'
import { healthOf, siteReason, stateText, suspensionText } from '../presentation/destination-state.ts'
import { healthJson } from '../resources/destination-json.ts'
import { span } from '../presentation/text.ts'
import type { TlsFacts } from '../mail/tls-facts.ts'
import { isClosed } from '../store/destination-status.ts'
import type { DomainFacts } from './domain-facts.ts'
import type { Verdict } from './finding.ts'

export interface MailNow {
  readonly outcome: 'sent' | 'deferred' | 'returned' | 'discarded'
  /** True when the destination is dead or suspended, so that mail waits before it gets this outcome. */
  readonly waits: boolean
  readonly verdict: Verdict
  /** `mail to example.com now: sent to …` */
  readonly text: string
}

const OUTCOMES = { delivered: 'sent', deferred: 'deferred', bounced: 'returned' } as const

export function mailNow(facts: DomainFacts): MailNow {
  const { domain, delivery, destination, provider, checkedAt, wall } = facts
  const { state } = healthOf(destination)
  const isSuspendedWith = state !== 'suspended' && provider !== null && provider.suspension !== null
  const waits = isClosed({ state }) || isSuspendedWith
  const outcome = delivery.route.transport === 'discard' ? 'discarded' : OUTCOMES[delivery.outcome]
  const { siteStatus } = healthOf(destination)
  const why = state === 'dead' && siteStatus !== null ? ` (${siteReason(siteStatus)})` : ''
  const closed = isSuspendedWith
    ? suspensionText(provider.suspension, checkedAt)
    : `${stateText(healthJson(destination, wall), wall.of(checkedAt))}${why}`
  const wait = waits ? `waits, because the destination is ${closed}; then ` : ''
  const verdict = outcomeVerdict(facts)
  return {
    outcome,
    waits,
    verdict: waits && verdict === 'ok' ? 'wrong' : verdict,
    text: `mail to ${domain} now: ${wait}${outcomeText(facts)}`,
  }
}

function outcomeVerdict({ delivery }: DomainFacts): Verdict {
  const { outcome, status, route } = delivery
  if (route.transport === 'discard') return 'note'
  if (outcome === 'delivered') return 'ok'
  if (status.stage === 'dns' && status.status === '4.4.3') return 'unknown'
  const hosts = delivery.hops.flatMap((hop) => hop.hosts)
  const isLookUp = hosts.some(({ failure, tlsa }) => tlsa?.kind === 'failed' && failure?.reason === status.reason)
  return isLookUp ? 'unknown' : 'wrong'
}

function outcomeText({ delivery }: DomainFacts): string {
  const { outcome, status, route, relay, settings } = delivery
  const { status: code, reason, tls } = status
  if (route.transport === 'discard') return `discarded: ${reason}`
  switch (outcome) {
    case 'bounced':
      return `returned to its sender (${code}): ${reason}`
    case 'deferred': {
      const mayBeClear =
        (status.stage === 'starttls' || status.stage === 'handshake') && tls?.state === 'undecided' && tls.policy === 'none'
      const later = mayBeClear ? `; sent without TLS once it is older than ${span(settings.minimal_backoff_time)}` : ''
      return `deferred (${code}): ${reason}${later}`
    }
    case 'delivered':
      return `sent to ${relay ?? ''}${tls === undefined ? '' : ` ${tlsText(tls)}`}${withoutDane(delivery.hops.at(-1)?.sts ?? null, tls)}`
  }
}

/** `with TLSv1.3, certificate verified (level secure, policy sts)` or `without TLS (level may)`. */
export function tlsText({ level, policy, state, protocol }: TlsFacts): string {
  const source = policy === 'none' ? `level ${level}` : `level ${level}, policy ${policy}`
  if (protocol === undefined) return `without TLS (${source})`
  const certificate = state === 'verified' ? 'verified' : state === 'trusted' ? 'trusted' : 'not verified'
  return `with ${protocol}, certificate ${certificate} (${source})`
}

/** Text about the policy that would apply without TLSA records; empty for a connection without DANE. */
function withoutDane(sts: DomainFacts['delivery']['hops'][number]['sts'], tls: TlsFacts | undefined): string {
  if (tls?.policy !== 'dane') return ''
  return sts?.enforced === true ? '; without TLSA records its MTA-STS policy would apply' : ''
}

/** `relay.example:587 (relayhost)` for mail to other hosts than the domain's exchangers; undefined for other mail. */
export function wayOut({ delivery: { hops, route } }: Pick<DomainFacts, 'delivery'>): string | undefined {
  if (!('nexthops' in route)) return undefined
  const hop = hops[0]?.hop ?? route.nexthops[0]
  return hop === undefined || hop.origin === 'recipient' ? undefined : `${formatNextHop(hop, 0)} (${hop.origin})`
}
