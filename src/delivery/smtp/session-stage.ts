/** The end of the TLS stage of a session, as the reports about TLS need it. Pure. */
import type { NextHop } from '../../config/values/next-hop.ts'
import type { Host } from '../routing/host-order.ts'
import { asciiName, namesExchanger } from '../sts/sts-record.ts'
import type { AppliedSts } from '../tls/tls-policy.ts'
import type { DaneStage, TlsStage, UnfetchedPolicy } from '../tls/tls-stage.ts'
import type { FailedSession, SmtpSession } from './smtp-session.ts'

export interface StageFacts {
  readonly hop: NextHop
  readonly host: Host
  readonly session: SmtpSession | FailedSession
  readonly sts: AppliedSts | null
  readonly unfetched: UnfetchedPolicy | undefined
  readonly dane: DaneStage | undefined
  readonly localAddress: string | undefined
}

/** Undefined for a next hop whose mail exchangers are not looked up. */
export function stageOf({ hop, host, session, sts, unfetched, dane, localAddress }: StageFacts): TlsStage | undefined {
  const domain = hop.mx ? asciiName(hop.host) : undefined
  if (domain === undefined) return undefined
  return {
    domain,
    host,
    localAddress,
    tls: session.tls,
    failure: 'failure' in session ? session.failure : undefined,
    connection: session.tlsConnection,
    sts: sts?.policy ?? null,
    named: sts === null || namesExchanger(sts.policy.mx, host.name),
    dane: dane ?? null,
    unfetched: unfetched ?? null,
  }
}
