/**
 * Facts about TLS of one delivery attempt: what was required, by which policy, and with which result. They belong to the session that
 * decided the outcome of a recipient, and are stored with its status. Pure.
 */
import { rulesOfStored } from './tls-levels.ts'

/** Source of the level: the configuration, TLSA records (RFC 7672), an MTA-STS policy (RFC 8461), or no requirement at all. */
export type TlsPolicySource = 'config' | 'dane' | 'sts' | 'none'

/**
 * Result of an attempt to use TLS:
 * - `undecided`: no connection, or one that failed before or in the TLS handshake;
 * - `clear`: used without TLS;
 * - `encrypted`, `trusted`, `verified`: used with TLS; the certificate is not verified, is of a trusted CA, fits the policy;
 * - `not-offered`, `refused`: not used, because the host did not start TLS, or because host or certificate do not fit the policy.
 */
export type TlsState = 'undecided' | 'clear' | 'encrypted' | 'trusted' | 'verified' | 'not-offered' | 'refused'

/** TLS of an attempt, as `queue show --json` has it in `history[].tls`. */
export interface TlsFacts {
  /** Level that applied: a value of smtp_tls_security_level. */
  readonly level: string
  readonly policy: TlsPolicySource
  readonly state: TlsState
  /** `TLSv1.2` or `TLSv1.3`; absent without a TLS connection. */
  readonly protocol?: string | undefined
  /** OpenSSL's name of the cipher; absent without a TLS connection. */
  readonly cipher?: string | undefined
  /** Reason why TLS was not used as wanted; absent when it was. */
  readonly reason?: string | undefined
}

/**
 * The value of `tls=` in the log, as Postfix writes it (postconf(5), smtp_log_tls_feature_status): the level, `:` and the weaker one
 * that was used, `!` before a level that the session violated, and `?` after one that was left undecided.
 */
export function tlsFeature({ level, state }: TlsFacts): string {
  switch (state) {
    case 'undecided':
      return `${level}?`
    case 'clear':
      return rulesOfStored(level)?.starttls === 'unused' ? level : `${level}:none`
    case 'not-offered':
      return `!${level}:none`
    case 'refused':
      return `!${level}`
    // A weaker level than that of the TLSA records, because none is usable, or because MX records are not authentic.
    case 'encrypted':
      return rulesOfStored(level)?.tlsa === 'used' ? `${level}:encrypt` : level
    case 'trusted':
      return rulesOfStored(level)?.tlsa === 'used' ? `${level}:halfdane` : level
    case 'verified':
      return level
  }
}

const PARTS = ['level', 'policy', 'state', 'protocol', 'cipher', 'reason'] as const

/** True for equal facts; both may be absent. */
export const sameTls = (a: TlsFacts | undefined, b: TlsFacts | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && PARTS.every((part) => a[part] === b[part]))
