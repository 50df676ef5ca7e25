/**
 * Logins for next hops (smtp_sasl_password_maps, Postfix SASL_README), as lines `KEY USER:PASSWORD`. Keys are tried in this
 * order: the sender with and without its extension, and its @domain (with smtp_sender_dependent_authentication), the next hop as written, the
 * host name.
 * Empty lines and lines that begin with `#` are skipped. `USER:oauth=NAME` logs in with an access token of the table `[oauth.NAME]`, and an empty
 * password with one of the table that smtp_sasl_oauth names.
 */
import type { Settings } from '../../config/destination-settings.ts'
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
  /** Name of the `[oauth.NAME]` table of the token; absent for a password. */
  readonly oauth?: string | undefined
  /** True when OAUTHBEARER is preferred to XOAUTH2 for an access token. */
  readonly prefersBearer?: boolean | undefined
  /** Allowed mechanisms in upper case. An empty list allows XOAUTH2 and OAUTHBEARER for an access token, and all others for a password. */
  readonly mechanisms: readonly string[]
  /** True when passwords may be sent without TLS. */
  readonly plaintext: boolean
}

type SaslConfig = AddressSettings &
  Pick<Config, 'oauth' | 'smtp_sender_dependent_authentication' | 'smtp_sasl_mechanism_filter' | 'smtp_sasl_security_options'>

function parseLine(line: string): readonly [key: string, login: string] | undefined {
  const match = /^(\S+)\s+(\S.*)$/.exec(line.trim())
  return match?.[1] === undefined || match[2] === undefined || line.startsWith('#') ? undefined : [match[1].toLowerCase(), match[2]]
}

/** Parts of a login. `oauth` is the table that it names; undefined when it names none. */
function parseLogin(login: string): { readonly user: string; readonly password: string; readonly oauth: string | undefined } {
  const colon = login.indexOf(':')
  const [user, password] = colon < 0 ? [login, ''] : [login.slice(0, colon), login.slice(colon + 1)]
  return { user, password, oauth: /^oauth=([\w-]+)$/.exec(password)?.[1] }
}

/** A line of a password file, without its password. */
export interface LoginLine {
  /** Next hop, or sender. */
  readonly key: string
  readonly user: string
  /** Table that the line names; null for a password that is not empty, undefined for an empty one. */
  readonly oauth: string | null | undefined
}

export const loginLines = (text: string): readonly LoginLine[] =>
  text.split(/\r?\n/).flatMap((line) => {
    const [key, login] = parseLine(line) ?? []
    if (key === undefined || login === undefined) return []
    const { user, password, oauth } = parseLogin(login)
    return [{ key, user, oauth: oauth ?? (password === '' ? undefined : null) }]
  })

/** Problems of the lines of a password file, each with its line number. The texts contain no password. */
export function malformedLogins(text: string, tables: Config['oauth']): readonly string[] {
  return text.split(/\r?\n/).flatMap((line, i) => {
    if (line.trim() === '' || line.startsWith('#')) return []
    const login = parseLine(line)?.[1]
    if (login?.includes(':') !== true) return [`line ${i + 1}: expected NEXTHOP-OR-SENDER USER:PASSWORD`]
    const { oauth } = parseLogin(login)
    const isKnown = oauth === undefined || tables.has(oauth)
    return isKnown ? [] : [`line ${i + 1}: oauth=${oauth}: there is no table [oauth.${oauth}]; write the table, or the name of another one`]
  })
}

/** The access tokens of an `[oauth.NAME]` table. */
export type TokensOf = (name: string) => TokenSource

/** Tokens where no session logs in. */
export const NO_TOKENS: TokensOf = (name) => ({
  get: () => Promise.reject(new Error(`the access tokens of [oauth.${name}] were not opened`)),
  replacement: () => Promise.resolve(null),
})

export class SaslCredentials {
  readonly #logins: ReadonlyMap<string, string>
  readonly #senders: AddressMap
  readonly #config: SaslConfig
  readonly #tokens: TokensOf

  /** `tokens` returns the tokens of a table. */
  constructor(text: string, config: SaslConfig, tokens: TokensOf = NO_TOKENS) {
    this.#tokens = tokens
    this.#logins = new Map(text.split(/\r?\n/).flatMap((line) => [parseLine(line)].filter((entry) => entry !== undefined)))
    this.#config = config
    const table = { name: 'smtp_sasl_password_maps', find: (key: string) => this.#logins.get(key) }
    this.#senders = new AddressMap(table, addressRules(config), false)
  }

  /** The login for a next hop; undefined when mail is sent without one. `smtp_sasl_oauth` is that of the destination. */
  find(hop: NextHop, sender: string, { smtp_sasl_oauth }: Pick<Settings, 'smtp_sasl_oauth'>): Credentials | undefined {
    if (this.#logins.size === 0) return undefined
    const login = this.#ofSender(sender) ?? this.#ofHop(hop)
    if (login === undefined) return undefined
    const { user, password, oauth = password === '' ? smtp_sasl_oauth : '' } = parseLogin(login)
    return oauth === '' ? { user, password, ...this.#terms } : this.withToken(user, oauth)
  }

  /** The login of a user with an access token of a table, whatever the file has. */
  withToken(user: string, oauth: string): Credentials {
    const prefersBearer = this.#config.oauth.get(oauth)?.provider === 'other'
    return { user, password: '', tokens: this.#tokens(oauth), oauth, prefersBearer, ...this.#terms }
  }

  get #terms(): Pick<Credentials, 'mechanisms' | 'plaintext'> {
    return {
      mechanisms: this.#config.smtp_sasl_mechanism_filter.map((name) => name.toUpperCase()),
      plaintext: !this.#config.smtp_sasl_security_options.includes('noplaintext'),
    }
  }

  #ofSender(sender: string): string | undefined {
    if (!this.#config.smtp_sender_dependent_authentication || sender === '') return undefined
    return this.#senders.find(sender)?.value
  }

  #ofHop(hop: NextHop): string | undefined {
    return keysOf(hop)
      .map((key) => this.#logins.get(key))
      .find((login) => login !== undefined)
  }
}

/** Keys of a next hop, in the order in which they are tried. */
export const keysOf = (hop: NextHop): readonly string[] => [formatNextHop(hop, 0), formatNextHop(hop, hop.port), `[${hop.host}]`, hop.host]

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
