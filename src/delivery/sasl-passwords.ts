/**
 * Whom to log in as (postfix SASL_README): lines `KEY USER:PASSWORD`, found by sender address when that is wanted, then
 * by next hop as written, then by host name. Lines that begin with `#` and empty lines do not count.
 */
import type { Config } from '../config/options.ts'
import { formatNextHop, type NextHop } from './next-hop.ts'

export interface Credentials {
  readonly user: string
  readonly password: string
  /** The only mechanisms to use, in upper case; any but XOAUTH2 when empty. */
  readonly mechanisms: readonly string[]
  /** Passwords may go over a connection without TLS. */
  readonly plaintext: boolean
}

type SaslConfig = Pick<Config, 'smtp_sender_dependent_authentication' | 'smtp_sasl_mechanism_filter' | 'smtp_sasl_security_options'>

function parseLine(line: string): readonly [key: string, login: string] | undefined {
  const match = /^(\S+)\s+(\S.*)$/.exec(line.trim())
  return match?.[1] === undefined || match[2] === undefined || line.startsWith('#') ? undefined : [match[1].toLowerCase(), match[2]]
}

export class SaslPasswords {
  readonly #logins: ReadonlyMap<string, string>
  readonly #config: SaslConfig

  constructor(text: string, config: SaslConfig) {
    this.#logins = new Map(text.split(/\r?\n/).flatMap((line) => [parseLine(line)].filter((entry) => entry !== undefined)))
    this.#config = config
  }

  /** The login for a next hop; undefined when there is none, and mail goes without. */
  find(hop: NextHop, sender: string): Credentials | undefined {
    const bySender = this.#config.smtp_sender_dependent_authentication && sender !== '' ? [sender.toLowerCase()] : []
    const keys = [...bySender, formatNextHop(hop, 0), formatNextHop(hop, hop.port), `[${hop.host}]`, hop.host]
    for (const key of keys) {
      const login = this.#logins.get(key)
      if (login === undefined) continue
      const colon = login.indexOf(':')
      return {
        user: colon < 0 ? login : login.slice(0, colon),
        password: colon < 0 ? '' : login.slice(colon + 1),
        mechanisms: this.#config.smtp_sasl_mechanism_filter.map((name) => name.toUpperCase()),
        plaintext: !this.#config.smtp_sasl_security_options.includes('noplaintext'),
      }
    }
    return undefined
  }
}

/** Mechanisms that show the password, or something as good, to whoever listens. */
const REVEALING: ReadonlySet<string> = new Set(['PLAIN', 'LOGIN', 'XOAUTH2'])

/** The mechanism to use of those on offer; undefined when none will do. */
export function chooseMechanism(offered: readonly string[], { mechanisms, plaintext }: Credentials, secure: boolean): string | undefined {
  return offered.find((name) => {
    const wanted = mechanisms.length > 0 ? mechanisms.includes(name) : name !== 'XOAUTH2'
    return wanted && (secure || plaintext || !REVEALING.has(name))
  })
}
