/** TLS and logins at the SMTP port of a world. */
import type { RelayConfig } from '../../config/relay-config.ts'
import type { ServerSecrets } from '../../smtpd/server.ts'
import { shown } from '../../system/shown-value.ts'
import { relayIdentity } from '../remote/world-certificates.ts'
import type { WorldOptions } from './world-options.ts'

export const SERVER_TLS = ['none', 'starttls'] as const

/** Throws a TypeError for an unknown value, and for users of a port without TLS, which offers no AUTH. */
export function requireServer({ tls = 'none', users }: Pick<WorldOptions, 'tls' | 'users'>): void {
  if (!SERVER_TLS.includes(tls)) throw new TypeError(`tls expects ${SERVER_TLS.join(', ')}, got ${shown(tls)}`)
  if (users === undefined) return
  const isTable = typeof users === 'object' && users !== null && Object.values(users).every((password) => typeof password === 'string')
  if (!isTable) throw new TypeError(`users expects passwords by name such as { app: 'secret' }, got ${shown(users)}`)
  if (tls === 'none') throw new TypeError("users need tls: AUTH is offered over TLS only; add tls: 'starttls'")
}

/** The configuration of a world whose relay listens at `address`. */
export const listening = ({ tls = 'none', users, config = {} }: WorldOptions, address: string): RelayConfig => ({
  ...(tls === 'none' ? {} : { smtpd_tls_security_level: 'may' }),
  ...(users === undefined ? {} : { smtpd_sasl_auth_enable: true }),
  ...config,
  smtpd_listen: [address],
})

/** Users and certificate of the port; undefined for one without TLS. */
export function serverSecrets({ tls = 'none', users = {} }: Pick<WorldOptions, 'tls' | 'users'>, host: string): ServerSecrets | undefined {
  if (tls === 'none') return undefined
  const { cert, key } = relayIdentity(host)
  const passwords = new Map(Object.entries(users))
  return {
    users: { accepts: async (name, password) => passwords.get(name) === password },
    certificate: { cert: Buffer.from(cert), key: Buffer.from(key) },
  }
}
