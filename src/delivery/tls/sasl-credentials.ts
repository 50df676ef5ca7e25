/**
 * Logins for next hops (smtp_sasl_password_maps, Postfix SASL_README), as lines `KEY USER:PASSWORD`. Keys are tried in this
 * order: the sender with and without its extension, and its @domain (with smtp_sender_dependent_authentication), the next hop as written, the
 * host name.
 * Empty lines and lines that begin with `#` are skipped. With smtp_sasl_oauth_token_command, an empty password stands for an access
 * token, which the command returns.
 */
import type { Config } from '../../config/options.ts'
import { formatNextHop, type NextHop } from '../../config/values/next-hop.ts'
import type { TokenSource } from '../../oauth/token-source.ts'
import { AddressMap } from '../../rewriting/address-map.ts'
import { addressRules, type AddressSettings } from '../../rewriting/lookup-rules.ts'

export interface Credentials {
  readonly user: string
  readonly password: string
  /** Source of the access token that takes the place of the password; absent for a password. */
  readonly tokens?: TokenSource | undefined
  /** True when OAUTHBEARER is preferred to XOAUTH2 for an access token. */
  readonly prefersBearer?: boolean | undefined
  /** Allowed mechanisms in upper case. An empty list allows XOAUTH2 and OAUTHBEARER for an access token, and all others for a password. */
  readonly mechanisms: readonly string[]
  /** True when passwords may be sent without TLS. */
  readonly plaintext: boolean
}

type SaslConfig = AddressSettings &
  Pick<Config, 'smtp_sender_dependent_authentication' | 'smtp_sasl_mechanism_filter' | 'smtp_sasl_security_options'>

function parseLine(line: string): readonly [key: string, login: string] | undefined {
  const match = /^(\S+)\s+(\S.*)$/.exec(line.trim())
  return match?.[1] === undefined || match[2] === undefined || line.startsWith('#') ? undefined : [match[1].toLowerCase(), match[2]]
}

/** Problems of the lines of a password file, each with its line number. The texts contain no password. */
export function malformedLogins(text: string): readonly string[] {
  return text.split(/\r?\n/).flatMap((line, i) => {
    if (line.trim() === '' || line.startsWith('#')) return []
    const login = parseLine(line)?.[1]
    return login?.includes(':') === true ? [] : [`line ${i + 1}: expected NEXTHOP-OR-SENDER USER:PASSWORD`]
  })
}

export class SaslCredentials {
  readonly #logins: ReadonlyMap<string, string>
  readonly #senders: AddressMap
  readonly #config: SaslConfig
  readonly #tokens: TokenSource | undefined

  /** `tokens` is absent without smtp_sasl_oauth_token_command. */
  constructor(text: string, config: SaslConfig, tokens?: TokenSource) {
    this.#tokens = tokens
    this.#logins = new Map(text.split(/\r?\n/).flatMap((line) => [parseLine(line)].filter((entry) => entry !== undefined)))
    this.#config = config
    const table = { name: 'smtp_sasl_password_maps', find: (key: string) => this.#logins.get(key) }
    this.#senders = new AddressMap(table, addressRules(config), false)
  }

  /** The login for a next hop; undefined when mail is sent without one. */
  find(hop: NextHop, sender: string): Credentials | undefined {
    if (this.#logins.size === 0) return undefined
    const login = this.#ofSender(sender) ?? this.#ofHop(hop)
    if (login === undefined) return undefined
    const colon = login.indexOf(':')
    const password = colon < 0 ? '' : login.slice(colon + 1)
    return {
      user: colon < 0 ? login : login.slice(0, colon),
      password,
      ...(password === '' && this.#tokens !== undefined ? { tokens: this.#tokens } : {}),
      mechanisms: this.#config.smtp_sasl_mechanism_filter.map((name) => name.toUpperCase()),
      plaintext: !this.#config.smtp_sasl_security_options.includes('noplaintext'),
    }
  }

  #ofSender(sender: string): string | undefined {
    if (!this.#config.smtp_sender_dependent_authentication || sender === '') return undefined
    return this.#senders.find(sender)?.value
  }

  #ofHop(hop: NextHop): string | undefined {
    const keys = [formatNextHop(hop, 0), formatNextHop(hop, hop.port), `[${hop.host}]`, hop.host]
    return keys.map((key) => this.#logins.get(key)).find((login) => login !== undefined)
  }
}

/** Mechanisms that send an access token, the preferred one first. */
const TOKEN_MECHANISMS = ['XOAUTH2', 'OAUTHBEARER']
const BEARER_FIRST = TOKEN_MECHANISMS.toReversed()

/** Mechanisms that send the password, or a token equivalent to it, in clear text. */
const PLAINTEXT: ReadonlySet<string> = new Set(['PLAIN', 'LOGIN', ...TOKEN_MECHANISMS])

/**
 * The mechanism that is both offered and allowed; undefined when there is none. For an access token it is XOAUTH2, which Microsoft and Google
 * document, or OAUTHBEARER when it is preferred or the only one; for a password it is the first that the server offers. A filter with a
 * mechanism for access tokens lets a password take the place of the token.
 */
export function chooseMechanism(
  offered: readonly string[],
  { mechanisms, plaintext, tokens, prefersBearer = false }: Credentials,
  secure: boolean,
): string | undefined {
  const bearing = prefersBearer ? BEARER_FIRST : TOKEN_MECHANISMS
  const usable = tokens === undefined ? offered : bearing.filter((name) => offered.includes(name))
  return usable.find((name) => {
    const wanted = mechanisms.length > 0 ? mechanisms.includes(name) : tokens !== undefined || !bearing.includes(name)
    return wanted && (secure || plaintext || !PLAINTEXT.has(name))
  })
}
