/** End of the TLS stage of a session with a host, for reports to domains (RFC 8460). */
import type { TlsFacts } from '../../mail/tls-facts.ts'
import type { Message } from '../../mail/message.ts'
import type { StsPolicy } from '../../store/records/sts-policy.ts'
import type { TlsaRecord } from '../../system/net.ts'
import type { SessionFailure } from '../transcript.ts'
import type { TlsConnection } from './tls-connection.ts'

/** Failure to get a policy that a domain announces (RFC 8460 §4.3.2.2). */
export interface UnfetchedPolicy {
  readonly type: 'sts-policy-fetch-error' | 'sts-policy-invalid' | 'sts-webpki-invalid'
  readonly reason: string
}

/** TLSA records of a host, or why they forbid mail. */
export type DaneStage =
  | { readonly base: string; readonly records: readonly TlsaRecord[]; readonly usable: boolean }
  | { readonly base: string; readonly refused: 'lookup' | 'required' | 'unusable' }

export interface TlsStage {
  /** Domain whose mail exchangers were looked up. */
  readonly domain: string
  readonly host: { readonly name: string; readonly address: string }
  /** Address from which the connection was made; undefined without one. */
  readonly localAddress: string | undefined
  readonly tls: TlsFacts
  readonly failure: SessionFailure | undefined
  readonly connection: TlsConnection | undefined
  /** MTA-STS policy of the domain, also where it is only tested; null without one. */
  readonly sts: StsPolicy | null
  /** True when the policy names the host. */
  readonly named: boolean
  /** Null where DANE does not apply. */
  readonly dane: DaneStage | null
  readonly unfetched: UnfetchedPolicy | null
}

/**
 * True for a message that is delivered even without TLS: a report about TLS (RFC 8460 §3). Reads the prepended fields only: the
 * TLS-Required field (RFC 8689 §5) of a client or of a notice is content, and has no effect on the delivery.
 */
export const isTlsOptional = ({ prependedHeaders = '' }: Pick<Message, 'prependedHeaders'>): boolean =>
  prependedHeaders.includes(TLS_OPTIONAL)

/** The prepended field of a message that is delivered even without TLS. */
export const TLS_OPTIONAL = 'TLS-Required: No\r\n'
