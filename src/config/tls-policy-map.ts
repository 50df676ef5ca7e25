/** Parses the entries of smtp_tls_policy_maps (Postfix TLS_README): `NEXTHOP LEVEL [match=NAME:NAME]`. Pure. */
import type { Config } from './options.ts'

export type TlsLevel = Config['smtp_tls_security_level']

export interface TlsPolicy {
  readonly level: TlsLevel
  readonly match: readonly string[]
}

/** True when mail must not be sent without TLS. */
export const isMandatory = (level: TlsLevel): boolean => level !== 'none' && level !== 'may'

const LEVELS: readonly TlsLevel[] = ['none', 'may', 'encrypt', 'verify', 'secure']

/** The names that a certificate may have (smtp_tls_verify_cert_match, smtp_tls_secure_cert_match). */
export const DEFAULT_MATCH: Record<TlsLevel, readonly string[]> = {
  none: [],
  may: [],
  encrypt: [],
  verify: ['hostname'],
  secure: ['nexthop', 'dot-nexthop'],
}

/** Parses an entry. Throws an Error that quotes a malformed entry. */
export function parseTlsPolicy(text: string): readonly [key: string, policy: TlsPolicy] {
  const [key, name, ...attributes] = text.trim().split(/\s+/)
  const level = LEVELS.find((known) => known === name)
  const match = attributes.flatMap((attribute) => (attribute.startsWith('match=') ? attribute.slice('match='.length).split(':') : []))
  if (key === undefined || level === undefined || attributes.some((attribute) => !attribute.startsWith('match='))) {
    throw new Error(
      `smtp_tls_policy_maps: ${JSON.stringify(text)} is not "NEXTHOP LEVEL [match=NAME:NAME]"; levels are ${LEVELS.join(', ')}`,
    )
  }
  return [key.toLowerCase(), { level, match: match.length > 0 ? match : DEFAULT_MATCH[level] }]
}
