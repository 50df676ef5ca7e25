/** TLS levels of next hops, from the weakest (Postfix TLS_README). */
export const TLS_LEVELS = ['none', 'may', 'encrypt', 'dane', 'dane-only', 'verify', 'secure'] as const
export type TlsLevel = (typeof TLS_LEVELS)[number]

/** A level at which TLSA records decide. */
export type DaneLevel = Extract<TlsLevel, `dane${string}`>

interface LevelRules {
  /** True when mail must not be sent without TLS; at the level dane, TLSA records decide. */
  readonly isMandatory: boolean
  /** True when the certificate must be trusted and have one of the names. */
  readonly isVerified: boolean
  /** True when an MTA-STS policy of the domain applies in its place. */
  readonly yieldsToSts: boolean
  /** The names that a certificate may have (smtp_tls_verify_cert_match, smtp_tls_secure_cert_match). */
  readonly names: readonly string[]
}

const UNVERIFIED = { isMandatory: true, isVerified: false, yieldsToSts: false, names: [] } as const

export const LEVEL_RULES: Readonly<Record<TlsLevel, LevelRules>> = {
  none: { ...UNVERIFIED, isMandatory: false },
  may: { ...UNVERIFIED, isMandatory: false, yieldsToSts: true },
  encrypt: UNVERIFIED,
  dane: { ...UNVERIFIED, isMandatory: false, yieldsToSts: true },
  'dane-only': UNVERIFIED,
  verify: { ...UNVERIFIED, isVerified: true, names: ['hostname'] },
  secure: { ...UNVERIFIED, isVerified: true, names: ['nexthop', 'dot-nexthop'] },
}

export const isByDane = (level: TlsLevel): level is DaneLevel => level === 'dane' || level === 'dane-only'
