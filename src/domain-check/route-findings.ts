/** Findings about the way of mail to a domain: MX records, hosts with their handshakes, TLSA records, MTA-STS, TLS-RPT, limits. Pure. */
import { actionText } from '../config/values/tables/provider-table.ts'
import { tlsaText, usableRecords, type DaneDigest } from '../delivery/dane/tlsa.ts'
import { isExpired } from '../delivery/sts/sts-decision.ts'
import { namesExchanger } from '../delivery/sts/sts-record.ts'
import { relayName } from '../delivery/smtp/host-session.ts'
import { healthOf, rateText, stateText, suspensionText } from '../presentation/destination-state.ts'
import { relative, span } from '../presentation/text.ts'
import { healthJson } from '../resources/destination-json.ts'
import type { StsPolicy } from '../store/records/sts-policy.ts'
import { DAY, type QueueTime, type WallTime } from '../system/clock.ts'
import type { HostFacts } from './delivery-rehearsal.ts'
import type { DomainFacts, ExchangerFacts, ProviderFacts } from './domain-facts.ts'
import { note, ok, unknown, wrong, type Finding } from './finding.ts'
import { tlsText, wayOut } from './mail-now.ts'

export function routeFindings(facts: DomainFacts, digests: readonly DaneDigest[]): readonly Finding[] {
  const { delivery, exchangers, checkedAt, wall } = facts
  const way = wayOut(facts)
  return [
    ...(way === undefined ? [] : [note('route', `mail goes to ${way}`)]),
    ...(exchangers === null
      ? []
      : [
          mxFinding(
            exchangers,
            delivery.hops.some(({ hosts }) => hosts.length > 0),
          ),
        ]),
    ...delivery.hops.flatMap(({ hosts, search, hop }) => [
      ...(search.kind === 'failed' && !isOfMx(search.reason, exchangers)
        ? [search.status === '4.4.3' ? unknown('addresses', search.reason) : wrong('addresses', search.reason)]
        : []),
      ...hosts.flatMap((host) => [hostFinding(host, wall.of(checkedAt)), ...tlsaFindings(host, hop.port, digests)]),
    ]),
    ...(exchangers === null ? [] : [stsFinding(exchangers, facts), tlsrptFinding(exchangers)]),
    limitsFinding(facts),
    ...(facts.provider === null ? [] : [providerFinding(facts.provider, checkedAt)]),
  ]
}

/** True for a failed search that the finding about MX records covers. */
function isOfMx(reason: string, exchangers: ExchangerFacts | null): boolean {
  return exchangers !== null && (exchangers.mx.kind === 'failed' || isNullMx(exchangers) || reason.includes('type=MX'))
}

const isNullMx = ({ mx }: ExchangerFacts): boolean =>
  mx.kind === 'found' && mx.records.some(({ exchange }) => exchange === '' || exchange === '.')

function mxFinding(exchangers: ExchangerFacts, hasHosts: boolean): Finding {
  const { mx, domain } = exchangers
  switch (mx.kind) {
    case 'failed': {
      const why = mx.reason === 'SERVFAIL' ? 'SERVFAIL, the answer for wrong signatures too' : mx.reason
      return mx.soft ? unknown('MX', `the look-up failed for now: ${why}`) : wrong('MX', `the look-up failed: ${why}`)
    }
    case 'none':
      if (mx.nxdomain && !hasHosts) return wrong('MX', `${domain} does not exist`)
      return note('MX', `no records: the domain is its own mail exchanger${mx.secure ? '; authentic' : ''}`)
    case 'found': {
      if (isNullMx(exchangers)) return wrong('MX', 'null MX: the domain accepts no mail (RFC 7505)')
      const sorted = mx.records.toSorted((a, b) => a.preference - b.preference || a.exchange.localeCompare(b.exchange))
      const list = sorted.map(({ preference, exchange }) => `${preference} ${exchange}`).join(', ')
      return ok('MX', `${list}${mx.secure ? '; authentic' : ''}`)
    }
  }
}

/** A certificate whose remaining validity is shorter gets a warning. */
const WARNED_VALIDITY = 21 * DAY

function hostFinding({ host, inTurn, tls, failure, problem, certificate, tlsa }: HostFacts, now: WallTime): Finding {
  const name = `${relayName(host)}: `
  if (failure !== undefined) {
    if (tlsa?.kind === 'failed' && tls.policy === 'dane') return unknown('host', `${name}no mail, because ${failure.reason}`)
    // A machine without IPv6 cannot reach such hosts, which are not at fault.
    const isOfThisMachine = failure.stage === 'connect' && /Network is unreachable/.test(failure.reason)
    return (isOfThisMachine ? note : wrong)('host', `${name}${failure.status} ${failure.reason}`)
  }
  const left = certificate === undefined ? undefined : certificate.until - now
  const end =
    left === undefined ? '' : left < 0 ? `, which ended ${span(-left)} ago` : left < WARNED_VALIDITY ? `, which ends in ${span(left)}` : ''
  const turn = inTurn ? '' : '; used only when those before it fail'
  const text = `${name}ready ${tlsText(tls)}${end}${problem === undefined ? '' : `; a tested policy refuses it: ${problem}`}${turn}`
  return problem !== undefined ? wrong('host', text) : tls.protocol === undefined ? note('host', text) : ok('host', text)
}

function tlsaFindings({ host, tls, tlsa }: HostFacts, port: number, digests: readonly DaneDigest[]): readonly Finding[] {
  if (tlsa === null) return []
  const name = `_${port}._tcp.${tlsa.kind === 'found' ? tlsa.base : host.name}`
  switch (tlsa.kind) {
    case 'none':
      return [note('TLSA', `${name}: no authentic records`)]
    case 'failed':
      return [unknown('TLSA', `${name}: the look-up failed for now`)]
    case 'found': {
      const text = `${name}: ${tlsa.records.map(tlsaText).join(', ')}`
      if (usableRecords(tlsa.records, digests).length === 0) return [wrong('TLSA', `${text}; none is usable`)]
      return [tls.policy === 'dane' ? ok('TLSA', text) : note('TLSA', `${text}; not used at the level ${tls.level}`)]
    }
  }
}

function stsFinding({ sts, mx }: ExchangerFacts, { checkedAt, delivery }: DomainFacts): Finding {
  const { announced, kept, published } = sts
  const alive = kept !== undefined && !isExpired(kept, checkedAt)
  const left = kept === undefined ? 0 : kept.expiresAt - checkedAt
  const state = left > 0 ? `applies for ${span(left)}` : `ended ${span(-left)} ago`
  const keptText = kept === undefined ? '' : `; the kept one (id ${kept.id}) ${state}`
  switch (announced.kind) {
    case 'failed':
      return unknown('MTA-STS', `the look-up of the record failed for now: ${announced.reason}${keptText}`)
    case 'none':
      return (alive ? wrong : note)('MTA-STS', `no policy is announced${keptText}`)
    case 'invalid':
      return wrong('MTA-STS', `the record cannot be used: ${announced.reason}${keptText}`)
    case 'id':
      break
  }
  if (published === undefined || 'reason' in published)
    return wrong('MTA-STS', `id ${announced.id} is announced, but its policy cannot be fetched: ${published?.reason ?? ''}${keptText}`)
  const isFollowed = published.mode === 'none' || delivery.hops.some((hop) => hop.sts !== null)
  const text = `${policyText(published)}${isFollowed ? '' : `; not followed (smtp_tls_mta_sts = ${delivery.settings.smtp_tls_mta_sts})`}`
  const unnamed =
    mx.kind === 'found' ? mx.records.map(({ exchange }) => exchange).filter((name) => !namesExchanger(published.mx, name)) : []
  if (published.mode === 'none') return note('MTA-STS', text)
  return unnamed.length > 0 ? wrong('MTA-STS', `${text}; does not name ${unnamed.join(', ')}`) : ok('MTA-STS', text)
}

const policyText = ({ mode, id, mx, fetchedAt, expiresAt }: StsPolicy): string =>
  `${mode}, id ${id}, for ${span(expiresAt - fetchedAt)}${mx.length === 0 ? '' : `: ${mx.join(', ')}`}`

function tlsrptFinding({ tlsrpt }: ExchangerFacts): Finding {
  switch (tlsrpt.kind) {
    case 'found':
      return ok('TLS-RPT', `reports to ${tlsrpt.rua.join(', ')}`)
    case 'none':
      return note('TLS-RPT', 'no record')
    case 'invalid':
      return wrong('TLS-RPT', `the record cannot be used: ${tlsrpt.why}`)
    case 'failed':
      return unknown('TLS-RPT', `the look-up failed for now: ${tlsrpt.why}`)
  }
}

function providerFinding({ name, concurrencyLimit, messageRateLimit, effects, suspension }: ProviderFacts, now: QueueTime): Finding {
  const limits = [
    `${concurrencyLimit === 0 ? 'any number of' : concurrencyLimit} deliveries at once to all its destinations`,
    ...(messageRateLimit > 0 ? [`at most ${messageRateLimit} a minute`] : []),
  ]
  const rules = effects.map(
    ({ rule, action, until, reply }) => `; rule ${rule}: ${actionText(action)}, ends ${relative(until, now)}: ${reply}`,
  )
  const stopped = suspension === null ? '' : `; ${suspensionText({ ...suspension, provider: undefined }, now)}`
  return (stopped === '' && effects.length === 0 ? ok : note)('provider', `${name}: ${limits.join(', ')}${stopped}${rules.join('')}`)
}

function limitsFinding({ delivery: { settings }, destination, checkedAt, wall }: DomainFacts): Finding {
  const { destination_concurrency_limit: most, destination_recipient_limit: recipients } = settings
  const { destination_message_rate_limit: rate, destination_rate_delay: delay } = settings
  const { live } = destination
  const window = live === undefined ? '' : `, now at most ${live.window}`
  const parts = [
    `${most === 0 ? 'any number of' : most} deliveries at once${window}`,
    `${recipients === 0 ? 'any number of' : recipients} recipients each`,
    ...(delay > 0 ? [`${span(delay)} between deliveries`] : []),
  ]
  const pace = rateText(live?.messageRate ?? (rate > 0 ? rate : null))
  const text = `${parts.join(', ')}${pace}; ${stateText(healthJson(destination, wall), wall.of(checkedAt))}`
  const { state } = healthOf(destination)
  return state === 'open' ? ok('limits', text) : note('limits', text)
}
