/** `deferd check --connect`: token requests and logins at the next hops of the configuration, without mail. */
import { clockOf } from '../../system/queue-clock.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { parseNextHops } from '../../config/transport-map.ts'
import { formatNextHop } from '../../config/values/next-hop.ts'
import type { RelaySettings } from '../../relay/rules.ts'
import { tryNextHop } from '../../delivery/smtp/next-hop-trial.ts'
import { oauthFindings } from '../oauth/oauth-findings.ts'
import { error, ok, warning, type Finding } from '../shell/check-finding.ts'
import type { Shell } from '../shell/shell.ts'

const RELAYHOST = 'relayhost'

/** True for a finding about another host than this one. */
export const isOfConnection = ({ what }: Finding): boolean => what === RELAYHOST || what.startsWith('oauth.')

export async function* connectFindings(shell: Shell, { config }: LoadedConfig, settings: RelaySettings): AsyncGenerator<Finding> {
  const { SystemNet } = await import('../../system/system-net.ts')
  const secrets = settings.secrets ?? {}
  const deps = { shell, config, secrets, net: new SystemNet({ dnsServers: config.dns_servers }), clock: clockOf(null, shell.clock) }
  if (config.relayhost.length === 0) yield warning(RELAYHOST, 'no relayhost is configured, so that there is nothing to connect to')
  // A hop whose login has an access token is tried with the token that was shown.
  const tried = yield* oauthFindings(deps)
  for (const hop of parseNextHops(config.relayhost, 'relayhost', config.smtp_tcp_port, true)) {
    if (tried.has(formatNextHop(hop, 0))) continue
    for (const { ok: works, text } of await tryNextHop(hop, deps)) yield works ? ok(RELAYHOST, text) : error(RELAYHOST, text)
  }
}
