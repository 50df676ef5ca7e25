/**
 * TLS level of a connection (Postfix TLS_README): `none`; `may` (opportunistic, certificate not verified); `encrypt` (mandatory);
 * `dane` and `dane-only` (mandatory at a host with usable TLSA records, which `dane-only` requires); `verify` and `secure` (mandatory, with a
 * trusted certificate that names the host). An enforced MTA-STS policy raises `may` and `dane` to `secure` with the name of the mail
 * exchanger (RFC 8461 §4.2).
 */
import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { checkServerIdentity, type ConnectionOptions, type PeerCertificate, type TLSSocket } from 'node:tls'
import type { Config } from '../../config/options.ts'
import { lookupKeys } from '../../mail/address.ts'
import type { TlsFacts } from '../../mail/tls-facts.ts'
import type { StsPolicy } from '../../store/records/sts-policy.ts'
import type { DaneDecision } from '../dane/dane-decision.ts'
import { verifyByTlsa, type DaneVerification } from '../dane/dane-verification.ts'
import { tlsaText } from '../dane/tlsa.ts'
import { dnsNamesOf, namesNone } from './certificate-names.ts'
import { formatNextHop, type NextHop } from '../../config/values/next-hop.ts'
import { parseTlsPolicy, type TlsPolicy } from '../../config/tls-policy-map.ts'
import { LEVEL_RULES, type DaneLevel, type TlsLevel } from '../../mail/tls-levels.ts'

/** TLS requirements of one session. */
export interface TlsTerms {
  readonly level: TlsLevel
  /** True when mail must not be sent without TLS. */
  readonly required: boolean
  /** True when TLS starts with the connection, without STARTTLS (smtp_tls_wrappermode). */
  readonly wrapper: boolean
  readonly options: ConnectionOptions
  /** Level and its source, as they are stored and logged. */
  readonly stated: Pick<TlsFacts, 'level' | 'policy'>
  /**
   * Digest of everything that was verified of the host. Sessions are resumed, and connections kept, under equal terms only, because
   * the certificate of a resumed session is not verified again.
   */
  readonly digest: string
  /** Verifies the certificate after the handshake, by TLSA records; absent when OpenSSL has verified it. */
  readonly verifyPeer?: ((socket: TLSSocket) => DaneVerification) | undefined
  /** The same terms with an issuer as the only trust anchor, for the second handshake of DANE. */
  readonly anchored?: ((pem: string) => TlsTerms) | undefined
  /** Trust in a certificate that was accepted; absent when OpenSSL's verification tells. */
  readonly trust?: 'Untrusted' | 'Trusted' | 'Verified' | undefined
  /** True when the certificate is verified only to report what a policy would refuse. */
  readonly rehearsed?: boolean | undefined
}

/** MTA-STS policy of a next hop. Without `enforced`, sessions that it would refuse are reported and used. */
export interface AppliedSts {
  readonly policy: StsPolicy
  readonly enforced: boolean
}

/** A host to which TLSA records apply. */
interface DaneSubject {
  readonly level: DaneLevel
  readonly names: readonly string[]
  readonly wrapper: boolean
}

/** TLS settings of a destination, which apply where no policy matches. */
export interface TlsSettings {
  readonly level: TlsLevel
  readonly wrapper: boolean
}

/** Settings that hold beside each level, all of which are part of the digests. */
type AskedOfTls = Omit<TlsSettings, 'level'>

/** PEM texts of the files named in the configuration. */
export interface TlsFiles {
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** smtp_tls_mta_sts_CAfile, or smtp_tls_CAfile without it. */
  readonly policyHostCa?: string | undefined
}

export const NO_TLS: TlsTerms = {
  level: 'none',
  required: false,
  wrapper: false,
  options: {},
  stated: { level: 'none', policy: 'none' },
  digest: '',
}

export class TlsPolicies {
  readonly #policies: ReadonlyMap<string, TlsPolicy>
  readonly #files: TlsFiles
  /** Digest of smtp_tls_CAfile. */
  readonly #authorities: string
  /** Digests of the policies of the configuration, each computed once: every delivery attempt needs one. */
  readonly #digests = new Map<string, string>()

  /** Throws an error for the operator when a policy is malformed. */
  constructor(config: Pick<Config, 'smtp_tls_policy_maps'>, files: TlsFiles) {
    this.#policies = new Map(config.smtp_tls_policy_maps.map(parseTlsPolicy))
    this.#files = files
    this.#authorities = digest([files.ca ?? ''])
  }

  /** Digest of the policy for a next hop; that of `settings` when no policy matches. */
  digestFor(hop: NextHop, settings: TlsSettings, sts?: AppliedSts): string {
    const { level, ...asked } = settings
    return sts === undefined ? this.#digestOf(this.#policyFor(hop, level), asked) : this.#stsDigest(sts, asked)
  }

  /**
   * True when the MTA-STS policy of a next hop applies: its mail exchangers are looked up, and the level yields to it. An entry of
   * smtp_tls_policy_maps takes precedence, as the operator's way around the policy of a domain.
   */
  followsSts(hop: NextHop, { level, wrapper }: TlsSettings): boolean {
    return hop.mx && LEVEL_RULES[level].yieldsToSts && !wrapper && isIP(hop.host) === 0 && this.#entryFor(hop) === undefined
  }

  termsFor(hop: NextHop, hostname: string, settings: TlsSettings, sts?: AppliedSts): TlsTerms {
    const digested = this.digestFor(hop, settings, sts)
    if (sts !== undefined) return this.#stsTerms(hostname, sts, digested)
    const policy = this.#policyFor(hop, settings.level)
    const { level, match } = policy
    const { wrapper } = settings
    const { isVerified: trusted, isMandatory: required, starttls } = LEVEL_RULES[level]
    if (starttls === 'unused') return wrapper ? { ...NO_TLS, wrapper } : NO_TLS
    const names = match.map((name) =>
      name === 'hostname' ? hostname : name === 'nexthop' ? hop.host : name === 'dot-nexthop' ? `.${hop.host}` : name,
    )
    const options: ConnectionOptions = {
      rejectUnauthorized: trusted,
      ...(trusted ? { checkServerIdentity: (_: string, certificate: PeerCertificate) => identityError(names, certificate) } : {}),
      ...this.#fileOptions(),
    }
    const stated = { level, policy: required ? ('config' as const) : ('none' as const) }
    return { level, required, wrapper, options, stated, digest: digested }
  }

  /** The level of a next hop; that of `settings` when no policy matches. */
  levelFor(hop: NextHop, { level }: TlsSettings): TlsLevel {
    return this.#policyFor(hop, level).level
  }

  /** Terms for a host with TLSA records: TLS is required. `names` are those that a certificate below a trust anchor may have. */
  daneTerms(decision: Extract<DaneDecision, { kind: 'verify' | 'encrypt' }>, { level, names, wrapper }: DaneSubject): TlsTerms {
    const stated = { level, policy: 'dane' as const }
    const common = { level, required: true, wrapper, stated }
    const { cert, key } = this.#files
    const own = cert === undefined ? {} : { cert, key: key ?? cert }
    if (decision.kind === 'encrypt')
      return { ...common, options: { rejectUnauthorized: false, ...own }, digest: digest(['dane', 'encrypt']), trust: 'Untrusted' }
    const { base, records, half } = decision
    const trust = half ? 'Trusted' : 'Verified'
    const shared = { ...common, trust, digest: digest(['dane', trust, ...names, ...records.map(tlsaText).toSorted()]) } as const
    return {
      ...shared,
      options: { rejectUnauthorized: false, servername: base, ...own },
      verifyPeer: (socket) => verifyByTlsa(records, socket),
      anchored: (pem) => ({
        ...shared,
        options: {
          rejectUnauthorized: true,
          servername: base,
          ca: pem,
          allowPartialTrustChain: true,
          ...own,
          checkServerIdentity: (_, certificate) => namesNone(certificate, names),
        },
      }),
    }
  }

  #stsTerms(hostname: string, { enforced }: AppliedSts, digested: string): TlsTerms {
    const options: ConnectionOptions = {
      rejectUnauthorized: enforced,
      checkServerIdentity: (_, certificate) => namesNone(certificate, [hostname]),
      ...this.#fileOptions(),
    }
    const level = enforced ? 'secure' : 'may'
    const stated = { level, policy: enforced ? ('sts' as const) : ('none' as const) }
    return { level, required: enforced, wrapper: false, options, stated, digest: digested, rehearsed: !enforced }
  }

  #fileOptions(): ConnectionOptions {
    const { ca, cert, key } = this.#files
    return { ...(ca === undefined ? {} : { ca }), ...(cert === undefined ? {} : { cert, key: key ?? cert }) }
  }

  #stsDigest({ policy, enforced }: AppliedSts, asked: AskedOfTls): string {
    return digest(['sts', String(enforced), policy.domain, policy.id, ...policy.mx, asked, this.#authorities])
  }

  #digestOf({ level, match }: TlsPolicy, asked: AskedOfTls): string {
    const key = JSON.stringify([level, match, asked])
    let known = this.#digests.get(key)
    if (known === undefined) this.#digests.set(key, (known = digest([key, this.#authorities])))
    return known
  }

  #policyFor(hop: NextHop, level: TlsLevel): TlsPolicy {
    return this.#entryFor(hop) ?? { level, match: LEVEL_RULES[level].names }
  }

  /** The entry of smtp_tls_policy_maps that matches; undefined when none does. */
  #entryFor(hop: NextHop): TlsPolicy | undefined {
    if (this.#policies.size === 0) return undefined
    for (const key of [formatNextHop(hop, 0), formatNextHop(hop, hop.port), `[${hop.host}]`, ...lookupKeys(hop.host)]) {
      const policy = this.#policies.get(key)
      if (policy !== undefined) return policy
    }
    return undefined
  }
}

/** SHA-256 of a list of texts. */
const digest = (facts: readonly (string | object)[]): string => createHash('sha256').update(JSON.stringify(facts)).digest('base64')

/** Returns an error when the certificate has none of the names. `.name` matches every subdomain of name. */
function identityError(names: readonly string[], certificate: PeerCertificate): Error | undefined {
  const own = dnsNamesOf(certificate)
  const fits = (name: string) =>
    name.startsWith('.') ? own.some((one) => one.endsWith(name)) : checkServerIdentity(name, certificate) === undefined
  return names.some(fits) ? undefined : new Error(`the certificate does not name ${names.join(' or ')}`)
}
