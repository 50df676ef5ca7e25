/**
 * How much TLS a connection must have (postfix TLS_README): none, may (encrypt when it can be had, without asking who is
 * there), encrypt (always), verify and secure (and the certificate must be trusted and name the host).
 */
import type { ConnectionOptions } from 'node:tls'

export type TlsLevel = 'none' | 'may' | 'encrypt' | 'verify' | 'secure'

/** What a session needs to know of it. */
export interface TlsTerms {
  readonly level: TlsLevel
  /** No mail without TLS. */
  readonly required: boolean
  readonly options: ConnectionOptions
}

export const NO_TLS: TlsTerms = { level: 'none', required: false, options: {} }
