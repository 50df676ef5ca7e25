/** The report of a check of a domain: findings, what happens to mail now, and all facts as JSON. Pure. */
import type { WallView } from '../system/wall-view.ts'
import type { Config } from '../config/options.ts'
import { actionText } from '../config/values/tables/provider-table.ts'
import { formatNextHop } from '../config/values/next-hop.ts'
import { tlsaText } from '../delivery/dane/tlsa.ts'
import { relayName } from '../delivery/smtp/host-session.ts'
import { healthOf } from '../presentation/destination-state.ts'
import { epochSeconds } from '../presentation/text.ts'
import type { DomainReportJson } from '../resources/domains/domain-check-json.ts'
import { tlsJson } from '../resources/message-story-json.ts'
import type { StsPolicy } from '../store/records/sts-policy.ts'
import type { Lookup, SecureLookup } from '../system/net.ts'
import type { HostFacts } from './delivery-rehearsal.ts'
import type { DomainFacts, ExchangerFacts } from './domain-facts.ts'
import { worst, type Finding, type Verdict } from './finding.ts'
import { mailNow, type MailNow } from './mail-now.ts'
import { routeFindings } from './route-findings.ts'
import { senderFindings } from './sender-findings.ts'
import type { SenderFacts } from './sender-facts.ts'
import type { OurFacts } from './source-facts.ts'

export interface DomainReport {
  readonly verdict: Exclude<Verdict, 'note'>
  readonly findings: readonly Finding[]
  readonly mail: MailNow
}

export function domainReport(facts: DomainFacts, { tls_dane_digests: digests }: Pick<Config, 'tls_dane_digests'>): DomainReport {
  const findings = [...routeFindings(facts, digests), ...senderFindings(facts)]
  const mail = mailNow(facts)
  return { verdict: worst([...findings, mail]), findings, mail }
}

export function domainJson(facts: DomainFacts, { verdict, findings, mail }: DomainReport): DomainReportJson {
  const { domain, checkedAt, wall, delivery, exchangers, us, sender } = facts
  const { status, relay, hops, route } = delivery
  return {
    domain,
    time: wall.seconds(checkedAt),
    verdict,
    mail: {
      outcome: mail.outcome,
      waits: mail.waits,
      verdict: mail.verdict,
      status: status.status,
      reason: status.reason,
      relay,
      tls: status.tls === undefined ? null : tlsJson(status.tls),
      text: mail.text,
    },
    destination: route.destination,
    next_hops: hops.map(({ hop, search, hosts }) => ({
      next_hop: formatNextHop(hop, 0),
      origin: hop.origin,
      failure: search.kind === 'failed' ? { status: search.status, reason: search.reason } : null,
      hosts: hosts.map(hostJson),
    })),
    ...(exchangers === null ? NO_EXCHANGERS : exchangersJson(exchangers, wall)),
    limits: limitsJson(facts),
    ...usJson(us),
    sender: senderJson(sender),
    findings,
  }
}

const NO_EXCHANGERS = { mx: null, mta_sts: null, tls_rpt: null }

function hostJson({ host, inTurn, tls, failure, problem, certificate, tlsa }: HostFacts) {
  return {
    host: relayName(host),
    preference: host.preference,
    in_turn: inTurn,
    tls: tlsJson(tls),
    failure: failure === undefined ? null : { status: failure.status, reason: failure.reason },
    tested_policy_problem: problem ?? null,
    certificate: certificate === undefined ? null : { names: certificate.names, end_time: epochSeconds(certificate.until) },
    tlsa: tlsa === null ? null : { state: tlsa.kind, records: tlsa.kind === 'found' ? tlsa.records.map(tlsaText) : [] },
  }
}

/** State of a look-up: `found`, `none`, or `failed` with its reason. */
const stateOf = (answer: Lookup<unknown> | SecureLookup<unknown>) => ({
  state: answer.kind,
  failure: answer.kind === 'failed' ? answer.reason : null,
})

function exchangersJson({ domain, mx, sts, tlsrpt }: ExchangerFacts, wall: WallView) {
  const { announced, kept, published } = sts
  return {
    mx: { domain, ...stateOf(mx), authentic: mx.kind !== 'failed' && mx.secure, records: mx.kind === 'found' ? mx.records : [] },
    mta_sts: {
      record: announced.kind === 'id' ? announced.id : null,
      record_failure: 'reason' in announced ? announced.reason : null,
      published: published === undefined || 'reason' in published ? null : policyJson(published, wall),
      failure: published !== undefined && 'reason' in published ? published.reason : null,
      kept: kept === undefined ? null : policyJson(kept, wall),
    },
    tls_rpt: { state: tlsrpt.kind, rua: tlsrpt.kind === 'found' ? tlsrpt.rua : [], failure: 'why' in tlsrpt ? tlsrpt.why : null },
  }
}

const policyJson = ({ id, mode, mx, expiresAt }: StsPolicy, wall: WallView) => ({ id, mode, mx, expire_time: wall.seconds(expiresAt) })

function limitsJson({ delivery: { settings }, destination, provider, wall }: DomainFacts) {
  const { live } = destination
  return {
    state: healthOf(destination).state,
    concurrency_limit: settings.destination_concurrency_limit,
    window: live?.window ?? null,
    recipient_limit: settings.destination_recipient_limit,
    rate_delay: epochSeconds(settings.destination_rate_delay),
    message_rate_limit: settings.destination_message_rate_limit,
    message_rate: live?.messageRate ?? null,
    provider:
      provider === null
        ? null
        : {
            name: provider.name,
            concurrency_limit: provider.concurrencyLimit,
            message_rate_limit: provider.messageRateLimit,
            rules: provider.effects.map(({ rule, action, until, reply }) => ({
              rule,
              action: actionText(action),
              until: wall.seconds(until),
              reply,
            })),
          },
  }
}

function usJson({ helo, heloAddresses, sources, hidden }: OurFacts) {
  return {
    helo: { name: helo, ...stateOf(heloAddresses), addresses: heloAddresses.kind === 'found' ? heloAddresses.records : [] },
    sources: sources.map(({ address, names, confirmed }) => ({
      address,
      ...stateOf(names),
      names: names.kind === 'found' ? names.records : [],
      confirmed,
    })),
    private_sources: hidden,
  }
}

function senderJson({ domain, spf, dkim, dmarc }: SenderFacts) {
  const policy = dmarc.kind === 'found' ? dmarc.policy : undefined
  return {
    domain,
    spf: spf.map(({ address, result, why, lookups }) => ({ address, result, reason: why, lookups })),
    dkim: dkim.map(({ domain: own, selector, signs, verdict, text }) => ({ domain: own, selector, signs, verdict, text })),
    dmarc: {
      state: dmarc.kind,
      domain: policy?.domain ?? null,
      policy: policy?.policy ?? null,
      failure: 'why' in dmarc ? dmarc.why : null,
    },
  }
}
