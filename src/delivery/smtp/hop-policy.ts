/** MTA-STS policy of one next hop during an attempt: which one applies, and whether a host meets it. */
import type { Settings } from '../../config/destination-settings.ts'
import type { NextHop } from '../../config/values/next-hop.ts'
import { asciiName, namesExchanger } from '../sts/sts-record.ts'
import type { StsPolicies } from '../sts/sts-policies.ts'
import { unmetReason, type TlsPolicyFailure } from '../tls/policy-failure.ts'
import type { AppliedSts, TlsPolicies, TlsSettings } from '../tls/tls-policy.ts'
import type { SessionFailure } from '../transcript.ts'
import type { Host } from '../routing/host-order.ts'
import { relayName } from './host-session.ts'
import type { FailedSession, SmtpSession } from './smtp-session.ts'

export interface HopPolicyDeps {
  readonly tls: TlsPolicies
  /** Absent where no MTA-STS policies are followed. */
  readonly sts?: Pick<StsPolicies, 'rulesFor'> | undefined
}

export interface HopPolicyFacts {
  readonly hop: NextHop
  readonly lmtp: boolean
  readonly mode: Settings['smtp_tls_mta_sts']
  readonly tls: TlsSettings
  /** True when the mail expires after this attempt. */
  readonly last: boolean
}

/** The policy that applies, null without one, or why it cannot be known. */
export type HopPolicy = { readonly sts: AppliedSts | null } | { readonly unreadable: string }

export async function policyOfHop({ hop, lmtp, mode, tls, last }: HopPolicyFacts, deps: HopPolicyDeps): Promise<HopPolicy> {
  const domain = asciiName(hop.host)
  const follows = deps.sts !== undefined && mode !== 'no' && !lmtp && domain !== undefined && deps.tls.followsSts(hop, tls)
  if (!follows) return { sts: null }
  const rules = await deps.sts.rulesFor(domain, last)
  switch (rules.kind) {
    case 'none':
      return { sts: null }
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

/** The report of a host that does not meet the policy; undefined when it does. */
export function failureReport(sts: AppliedSts, host: Host, session: SmtpSession | FailedSession): TlsPolicyFailure | undefined {
  const { policy, enforced } = sts
  const problem = 'failure' in session ? undefined : session.tlsConnection?.problem
  const misnamed = namesExchanger(policy.mx, host.name) ? undefined : `the policy (id ${policy.id}) does not name the host`
  const reason = misnamed ?? unmetReason(session.tls, problem)
  return reason === undefined ? undefined : { domain: policy.domain, policy: 'sts', enforced, relay: relayName(host), reason }
}
