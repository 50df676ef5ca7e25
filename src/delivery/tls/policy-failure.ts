/** Failure of a host to meet the TLS policy of a domain, for the log and the metrics. Pure. */
import type { TlsFacts, TlsPolicySource } from '../../mail/tls-facts.ts'

export interface TlsPolicyFailure {
  readonly domain: string
  readonly policy: Extract<TlsPolicySource, 'sts' | 'dane'>
  /** True when no mail was sent to the host; false when the policy is only tested. */
  readonly enforced: boolean
  /** `mx.example[192.0.2.1]:25` */
  readonly relay: string
  readonly reason: string
}

/** Reason why a session does not meet a policy that requires a verified certificate; undefined when it does. */
export function unmetReason({ state, reason }: TlsFacts, problem?: string): string | undefined {
  switch (state) {
    case 'verified':
    // A session that was left undecided says nothing about TLS, unless its handshake failed.
    case 'undecided':
      return state === 'undecided' ? reason : undefined
    case 'clear':
    case 'not-offered':
      return reason ?? 'TLS was not offered'
    case 'encrypted':
    case 'trusted':
      return problem ?? 'the certificate was not verified'
    case 'refused':
      return reason ?? 'the certificate does not fit'
  }
}
