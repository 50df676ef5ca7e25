/** TLS levels of next hops, from the weakest (Postfix TLS_README), and the rules of each. Pure. */
export const TLS_LEVELS = ['none', 'may', 'encrypt', 'dane', 'dane-only', 'verify', 'secure'] as const
export type TlsLevel = (typeof TLS_LEVELS)[number]

interface LevelRules {
  /** True when mail must not be sent without TLS; at the level dane, TLSA records decide. */
  readonly isMandatory: boolean
  /** Use of STARTTLS: `optional` goes on without TLS when the host refuses the command. */
  readonly starttls: 'unused' | 'optional' | 'used'
  /** True when the certificate must be trusted and have one of the names. */
  readonly isVerified: boolean
  /** True when an MTA-STS policy of the domain applies in its place. */
  readonly yieldsToSts: boolean
  /** The part of TLSA records (RFC 7672): `used` continues as `may` or `encrypt` without records that can be used. Null for none. */
  readonly tlsa: 'used' | 'required' | null
  /** The names that a certificate may have (smtp_tls_verify_cert_match, smtp_tls_secure_cert_match). */
  readonly names: readonly string[]
}

const UNVERIFIED = { isMandatory: true, starttls: 'used', isVerified: false, yieldsToSts: false, tlsa: null, names: [] } as const

const RULES = {
  none: { ...UNVERIFIED, isMandatory: false, starttls: 'unused' },
  may: { ...UNVERIFIED, isMandatory: false, starttls: 'optional', yieldsToSts: true },
  encrypt: UNVERIFIED,
  dane: { ...UNVERIFIED, isMandatory: false, yieldsToSts: true, tlsa: 'used' },
  'dane-only': { ...UNVERIFIED, tlsa: 'required' },
  verify: { ...UNVERIFIED, isVerified: true, names: ['hostname'] },
  secure: { ...UNVERIFIED, isVerified: true, names: ['nexthop', 'dot-nexthop'] },
} as const satisfies Record<TlsLevel, LevelRules>

export const LEVEL_RULES: Readonly<Record<TlsLevel, LevelRules>> = RULES

/** A level at which TLSA records decide. */
export type DaneLevel = { [Level in TlsLevel]: (typeof RULES)[Level]['tlsa'] extends null ? never : Level }[TlsLevel]

export const isByDane = (level: TlsLevel): level is DaneLevel => LEVEL_RULES[level].tlsa !== null

/** The rules of a level as it is stored; undefined for a level of a later version. */
export const rulesOfStored = (level: string): LevelRules | undefined =>
  TLS_LEVELS.some((one) => one === level) ? LEVEL_RULES[level as TlsLevel] : undefined
