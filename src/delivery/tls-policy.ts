/**
 * How much TLS a connection must have (postfix TLS_README): none, may (encrypt when it can be had, without asking who is
 * there), encrypt (always), verify and secure (and the certificate must be trusted and name the host). MTA-STS and DANE
 * will be further sources of a policy for a next hop; they belong here.
 */
import { checkServerIdentity, type ConnectionOptions, type PeerCertificate } from 'node:tls'
import type { Config } from '../config/options.ts'
import { lookupKeys } from '../mail/address.ts'
import { formatNextHop, type NextHop } from './next-hop.ts'

export type TlsLevel = Config['smtp_tls_security_level']

/** What a session needs to know. */
export interface TlsTerms {
  readonly level: TlsLevel
  /** No mail without TLS. */
  readonly required: boolean
  readonly options: ConnectionOptions
}

/** PEM texts that the configuration names. */
export interface TlsFiles {
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

interface Policy {
  readonly level: TlsLevel
  readonly match: readonly string[]
}

export const NO_TLS: TlsTerms = { level: 'none', required: false, options: {} }

const LEVELS: readonly TlsLevel[] = ['none', 'may', 'encrypt', 'verify', 'secure']

/** The names a certificate may have (smtp_tls_verify_cert_match, smtp_tls_secure_cert_match). */
const DEFAULT_MATCH: Record<TlsLevel, readonly string[]> = {
  none: [],
  may: [],
  encrypt: [],
  verify: ['hostname'],
  secure: ['nexthop', 'dot-nexthop'],
}

function parsePolicy(text: string): readonly [key: string, policy: Policy] {
  const [key, word, ...attributes] = text.trim().split(/\s+/)
  const level = LEVELS.find((known) => known === word)
  const match = attributes.flatMap((attribute) => (attribute.startsWith('match=') ? attribute.slice('match='.length).split(':') : []))
  if (key === undefined || level === undefined || attributes.some((attribute) => !attribute.startsWith('match='))) {
    throw new Error(
      `smtp_tls_policy_maps: ${JSON.stringify(text)} is not "NEXTHOP LEVEL [match=NAME:NAME]"; levels are ${LEVELS.join(', ')}`,
    )
  }
  return [key.toLowerCase(), { level, match: match.length > 0 ? match : DEFAULT_MATCH[level] }]
}

export class TlsPolicies {
  readonly #policies: ReadonlyMap<string, Policy>
  readonly #files: TlsFiles

  /** Throws with a sentence for the operator when a policy makes no sense. */
  constructor(config: Pick<Config, 'smtp_tls_policy_maps'>, files: TlsFiles) {
    this.#policies = new Map(config.smtp_tls_policy_maps.map(parsePolicy))
    this.#files = files
  }

  /** What holds for a next hop; `level` when no policy speaks of it. */
  levelFor(hop: NextHop, level: TlsLevel): TlsLevel {
    return this.#policyFor(hop, level).level
  }

  termsFor(hop: NextHop, hostname: string, byDefault: TlsLevel): TlsTerms {
    const { level, match } = this.#policyFor(hop, byDefault)
    if (level === 'none') return NO_TLS
    const trusted = level === 'verify' || level === 'secure'
    const names = match.map((name) =>
      name === 'hostname' ? hostname : name === 'nexthop' ? hop.host : name === 'dot-nexthop' ? `.${hop.host}` : name,
    )
    const options: ConnectionOptions = {
      rejectUnauthorized: trusted,
      ...(trusted ? { checkServerIdentity: (_: string, certificate: PeerCertificate) => identityError(names, certificate) } : {}),
      ...(this.#files.ca === undefined ? {} : { ca: this.#files.ca }),
      ...(this.#files.cert === undefined ? {} : { cert: this.#files.cert, key: this.#files.key ?? this.#files.cert }),
    }
    return { level, required: level !== 'may', options }
  }

  #policyFor(hop: NextHop, level: TlsLevel): Policy {
    for (const key of [formatNextHop(hop, 0), formatNextHop(hop, hop.port), `[${hop.host}]`, ...lookupKeys(hop.host)]) {
      const policy = this.#policies.get(key)
      if (policy !== undefined) return policy
    }
    return { level, match: DEFAULT_MATCH[level] }
  }
}

/** Why none of the names is the certificate's; undefined when one is. `.name` stands for every name below it. */
function identityError(names: readonly string[], certificate: PeerCertificate): Error | undefined {
  const own = (certificate.subjectaltname ?? '')
    .split(/,\s*/)
    .flatMap((name) => (name.startsWith('DNS:') ? name.slice(4).toLowerCase() : []))
  const fits = (name: string) =>
    name.startsWith('.') ? own.some((one) => one.endsWith(name)) : checkServerIdentity(name, certificate) === undefined
  return names.some(fits) ? undefined : new Error(`Server certificate does not name ${names.join(' or ')}`)
}
