/**
 * TLS level of a connection (Postfix TLS_README): `none`; `may` (opportunistic, certificate not verified); `encrypt` (mandatory);
 * `verify` and `secure` (mandatory, with a trusted certificate that names the host). MTA-STS and DANE would be further sources of
 * the level.
 */
import { checkServerIdentity, type ConnectionOptions, type PeerCertificate } from 'node:tls'
import type { Config } from '../../config/options.ts'
import { lookupKeys } from '../../mail/address.ts'
import { formatNextHop, type NextHop } from '../../config/values/next-hop.ts'
import { DEFAULT_MATCH, isMandatory, parseTlsPolicy, type TlsLevel, type TlsPolicy } from '../../config/tls-policy-map.ts'

/** TLS requirements of one session. */
export interface TlsTerms {
  readonly level: TlsLevel
  /** True when mail must not be sent without TLS. */
  readonly required: boolean
  /** True when TLS starts with the connection, without STARTTLS (smtp_tls_wrappermode). */
  readonly wrapper: boolean
  readonly options: ConnectionOptions
}

/** TLS settings of a destination, which apply where no policy matches. */
export interface TlsSettings {
  readonly level: TlsLevel
  readonly wrapper: boolean
}

/** PEM texts of the files named in the configuration. */
export interface TlsFiles {
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

export const NO_TLS: TlsTerms = { level: 'none', required: false, wrapper: false, options: {} }

export class TlsPolicies {
  readonly #policies: ReadonlyMap<string, TlsPolicy>
  readonly #files: TlsFiles

  /** Throws an error for the operator when a policy is malformed. */
  constructor(config: Pick<Config, 'smtp_tls_policy_maps'>, files: TlsFiles) {
    this.#policies = new Map(config.smtp_tls_policy_maps.map(parseTlsPolicy))
    this.#files = files
  }

  /** The level for a next hop; `level` when no policy matches. */
  levelFor(hop: NextHop, level: TlsLevel): TlsLevel {
    return this.#policyFor(hop, level).level
  }

  termsFor(hop: NextHop, hostname: string, settings: TlsSettings): TlsTerms {
    const { level, match } = this.#policyFor(hop, settings.level)
    const { wrapper } = settings
    if (level === 'none') return wrapper ? { ...NO_TLS, wrapper } : NO_TLS
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
    return { level, required: isMandatory(level), wrapper, options }
  }

  #policyFor(hop: NextHop, level: TlsLevel): TlsPolicy {
    for (const key of [formatNextHop(hop, 0), formatNextHop(hop, hop.port), `[${hop.host}]`, ...lookupKeys(hop.host)]) {
      const policy = this.#policies.get(key)
      if (policy !== undefined) return policy
    }
    return { level, match: DEFAULT_MATCH[level] }
  }
}

/** Returns an error when the certificate has none of the names. `.name` matches every subdomain of name. */
function identityError(names: readonly string[], certificate: PeerCertificate): Error | undefined {
  const own = (certificate.subjectaltname ?? '')
    .split(/,\s*/)
    .flatMap((name) => (name.startsWith('DNS:') ? name.slice(4).toLowerCase() : []))
  const fits = (name: string) =>
    name.startsWith('.') ? own.some((one) => one.endsWith(name)) : checkServerIdentity(name, certificate) === undefined
  return names.some(fits) ? undefined : new Error(`Server certificate does not name ${names.join(' or ')}`)
}
