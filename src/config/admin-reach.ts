/** The reach of admin_listen: whether other machines can connect, and what that requires. */
import { isIP } from 'node:net'
import { listenAt } from './values/endpoints.ts'
import { Networks } from './values/networks.ts'
import type { Config } from './options.ts'

type AdminConfig = Pick<Config, 'admin_listen' | 'http_listen' | 'admin_hosts' | 'admin_proxies' | 'admin_tls_cert_file' | 'inet_protocols'>

const LOOPBACK = new Networks(['127.0.0.0/8', '[::1]/128'], 'loopback')

/** True when other machines can connect to admin_listen. */
function isBeyondLoopback({ admin_listen, inet_protocols }: AdminConfig): boolean {
  const { address } = listenAt(admin_listen, 'admin_listen', inet_protocols)
  return address !== 'localhost' && !LOOPBACK.has(address)
}

/** True when admin_listen is open to other machines without TLS, so that only the proxies and this machine may connect. */
export const needsProxy = (config: AdminConfig): boolean =>
  config.admin_listen !== '' && config.admin_tls_cert_file === '' && isBeyondLoopback(config)

/**
 * Throws an Error that names the missing parameter when admin_listen is open to other machines without a host name or without protection.
 */
export function assertReach(config: AdminConfig): void {
  const { admin_listen: at, http_listen: other, admin_hosts: hosts, admin_proxies: proxies, admin_tls_cert_file: certificate } = config
  if (at === '') return
  if (at === other) throw new Error(`admin_listen: http_listen has the same port, ${at}: name another one`)
  if (!isBeyondLoopback(config)) return
  const reach = `admin_listen: other machines can connect to ${at}`
  const loopback = 'or listen on 127.0.0.1 and use deferd page with ssh -L'
  if (certificate === '' && proxies.length === 0)
    throw new Error(
      `${reach}, and tokens would cross the network in clear: set admin_tls_cert_file, or admin_proxies to the addresses of a proxy with TLS, ${loopback}`,
    )
  if (hosts.length === 0) throw new Error(`${reach}: set admin_hosts to the names under which they do, ${loopback}`)
}

/** Throws an Error when a text is neither a host name nor an address. */
export function assertAdminHosts(hosts: readonly string[]): void {
  const wrong = hosts.find(
    (host) => isIP(host) === 0 && !/^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/i.test(host),
  )
  if (wrong === undefined) return
  throw new Error(
    `admin_hosts: ${JSON.stringify(wrong)} is not a host; write a name or an address without a port, such as "relay.example.com"`,
  )
}
