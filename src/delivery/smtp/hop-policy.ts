/** TLS policies of one next hop during an attempt: TLSA records of its hosts, then the MTA-STS policy, then the configuration. */
import type { Settings } from '../../config/destination-settings.ts'
import type { NextHop } from '../../config/values/next-hop.ts'
import { isByDane, LEVEL_RULES, type DaneLevel } from '../../mail/tls-levels.ts'
import { asciiName, namesExchanger } from '../sts/sts-record.ts'
import type { StsPolicies, StsRules } from '../sts/sts-policies.ts'
import { unmetReason, type TlsPolicyFailure } from '../tls/policy-failure.ts'
import type { Net } from '../../system/net.ts'
import { decideDane, type DaneDecision } from '../dane/dane-decision.ts'
import { daneProblem, type DaneConfig } from '../dane/dane-problem.ts'
import { lookUpTlsa } from '../dane/dane-lookup.ts'
import type { AppliedSts, TlsPolicies, TlsSettings, TlsTerms } from '../tls/tls-policy.ts'
import type { DaneStage, UnfetchedPolicy } from '../tls/tls-stage.ts'
import type { SessionFailure } from '../transcript.ts'
import type { Host } from '../routing/host-order.ts'
import { relayName } from './host-session.ts'
import type { FailedSession, SmtpSession } from './smtp-session.ts'

export interface HopPolicyDeps {
  readonly tls: TlsPolicies
  /** Absent where no MTA-STS policies are followed. */
  readonly sts?: Pick<StsPolicies, 'rulesFor'> | undefined
}

interface HopPolicyFacts {
  readonly hop: NextHop
  readonly lmtp: boolean
  readonly mode: Settings['smtp_tls_mta_sts']
  readonly tls: TlsSettings
  /** True when the mail expires after this attempt. */
  readonly last: boolean
}

/** The policy that applies, null without one, or why it cannot be known. `unfetched` tells why an announced one is missing. */
export type HopPolicy =
  | { readonly sts: AppliedSts | null; readonly unfetched?: UnfetchedPolicy | undefined }
  | { readonly unreadable: string }

/** Returns a promise only when the MTA-STS policy of a domain is looked up. */
export function policyOfHop({ hop, lmtp, mode, tls, last }: HopPolicyFacts, deps: HopPolicyDeps): Promise<HopPolicy> | HopPolicy {
  const { sts } = deps
  if (sts === undefined || mode === 'no' || lmtp || !deps.tls.followsSts(hop, tls)) return NO_STS
  const domain = asciiName(hop.host)
  return domain === undefined ? NO_STS : sts.rulesFor(domain, last).then((rules) => policyOf(rules, mode))
}

const NO_STS: HopPolicy = { sts: null }

function policyOf(rules: StsRules, mode: Settings['smtp_tls_mta_sts']): HopPolicy {
  switch (rules.kind) {
    case 'none':
      return { sts: null, unfetched: rules.unfetched }
    case 'unreadable':
      return { unreadable: rules.why }
    case 'policy':
      return { sts: { policy: rules.policy, enforced: mode === 'enforce' && rules.policy.mode === 'enforce' } }
  }
}

/** The failure of a host that an enforced policy does not name; undefined when mail may be sent to the host. */
export function mismatch({ policy, enforced }: AppliedSts, { name }: Host): SessionFailure | undefined {
  if (!enforced || namesExchanger(policy.mx, name)) return undefined
  return { kind: 'sts-mismatch', domain: policy.domain, id: policy.id }
}

/** The report of a host that does not meet its TLS policy; undefined when it does. `sts` is null without an MTA-STS policy. */
export function failureReport(sts: AppliedSts | null, host: Host, session: SmtpSession | FailedSession): TlsPolicyFailure | undefined {
  const { tls } = session
  const relay = relayName(host)
  if (tls.policy === 'dane') {
    // A TLS connection has met the records, whatever has failed after its handshake.
    const reason = session.tlsConnection === undefined ? unmetReason(tls) : undefined
    return reason === undefined ? undefined : { domain: host.name, policy: 'dane', enforced: true, relay, reason }
  }
  if (sts === null) return undefined
  const { policy, enforced } = sts
  const misnamed = namesExchanger(policy.mx, host.name) ? undefined : `the policy (id ${policy.id}) does not name the host`
  const reason = misnamed ?? unmetReason(tls, session.tlsConnection?.problem)
  return reason === undefined ? undefined : { domain: policy.domain, policy: 'sts', enforced, relay, reason }
}

interface HostTermsFacts {
  readonly hop: NextHop
  readonly host: Host
  readonly lmtp: boolean
  readonly tls: TlsSettings
  readonly sts: AppliedSts | null
  /** True for mail that is sent even where the policy of the domain forbids it. */
  readonly optional?: boolean | undefined
}

/** Terms for a host, or the failure of a host that gets no mail. */
export type HostTerms = { readonly dane?: DaneStage | undefined } & (
  | { readonly terms: TlsTerms }
  | { readonly failure: SessionFailure; readonly terms: Pick<TlsTerms, 'stated' | 'required'> }
)

export async function termsOfHost(facts: HostTermsFacts, deps: HopPolicyDeps & DaneDeps): Promise<HostTerms> {
  const { hop, host, tls, sts } = facts
  const level = deps.tls.levelFor(hop, tls)
  if (!isByDane(level)) return byStsOrConfig(facts, deps, tls)
  if (facts.optional === true) return { terms: deps.tls.termsFor(hop, host.name, { ...tls, level: 'may' }) }
  const decision = await daneDecision(facts, level, deps)
  switch (decision.kind) {
    case 'refused':
      return {
        failure: { kind: 'dane', why: decision.reason },
        terms: { stated: { level, policy: 'dane' }, required: true },
        dane: { base: host.name, refused: decision.fault },
      }
    case 'inapplicable':
      return byStsOrConfig(facts, deps, { ...tls, level: 'may' })
    case 'encrypt':
      // TLSA records that cannot be used leave the MTA-STS policy in effect.
      if (sts?.enforced === true) return byStsOrConfig(facts, deps, tls)
      return {
        terms: deps.tls.daneTerms(decision, { level, names: [], wrapper: tls.wrapper }),
        dane: daneStage(decision, decision.usable),
      }
    case 'verify': {
      const names = [...new Set([decision.base, host.name, asciiName(hop.host) ?? hop.host])]
      return { terms: deps.tls.daneTerms(decision, { level, names, wrapper: tls.wrapper }), dane: daneStage(decision, true) }
    }
  }
}

const daneStage = ({ base, records }: Extract<DaneDecision, { kind: 'verify' | 'encrypt' }>, usable: boolean): DaneStage => ({
  base,
  records,
  usable,
})

interface DaneDeps {
  readonly config: DaneConfig
  readonly net: Pick<Net, 'lookupSecure'>
}

async function daneDecision({ host, lmtp }: HostTermsFacts, level: DaneLevel, { config, net }: DaneDeps): Promise<DaneDecision> {
  const problem = lmtp ? 'DANE is for SMTP only' : daneProblem(config)
  if (problem !== undefined)
    return LEVEL_RULES[level].tlsa === 'required'
      ? { kind: 'refused', reason: `${level} is configured, but ${problem}`, fault: 'required' }
      : { kind: 'inapplicable' }
  return decideDane({
    level,
    host: host.name,
    port: host.port,
    dns: host.dns ?? { mxSecure: true },
    insecureMx: config.smtp_tls_dane_insecure_mx_policy,
    digests: config.tls_dane_digests,
    tlsa: await lookUpTlsa(host, net),
  })
}

function byStsOrConfig({ hop, host, sts }: HostTermsFacts, { tls: policies }: HopPolicyDeps, tls: TlsSettings): HostTerms {
  const terms = policies.termsFor(hop, host.name, tls, sts ?? undefined)
  const failure = sts === null ? undefined : mismatch(sts, host)
  return failure === undefined ? { terms } : { failure, terms }
}
