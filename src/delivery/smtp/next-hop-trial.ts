/**
 * Tries a configured next hop without mail: finds its hosts, connects, starts TLS and logs in as a delivery would, then sends QUIT.
 * For `deferd check --connect` and `deferd oauth test`.
 */
import { DestinationPolicies } from '../../config/destination-policies.ts'
import { formatNextHop, type NextHop } from '../../config/values/next-hop.ts'
import type { Config } from '../../config/options.ts'
import { seconds, type Clock, type Duration } from '../../system/clock.ts'
import type { Net } from '../../system/net.ts'
import { verdictOfFailure } from '../classify.ts'
import { HostFinder, QUERIES_PER_HOP } from '../routing/host-finder.ts'
import type { Host } from '../routing/host-order.ts'
import { SaslCredentials, type Credentials, type TokensOf } from '../tls/sasl-credentials.ts'
import { TlsPolicies } from '../tls/tls-policy.ts'
import { hintOf, reasonWith } from '../../mail/login-refusal.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import { systemErrorText } from './error-text.ts'
import type { SessionFailure } from '../transcript.ts'
import { termsOfHost } from './hop-policy.ts'
import { failedSession } from './host-session.ts'
import type { DeliverySecrets } from './smtp-agent.ts'
import { SmtpSession, type FailedSession } from './smtp-session.ts'

const SESSION_LIMIT: Duration = seconds(30)

interface TrialDeps {
  readonly config: Config
  readonly secrets: DeliverySecrets
  readonly net: Net
  readonly clock: Clock
  /** Access tokens; required when the configuration has `[oauth.NAME]` tables. */
  readonly tokens?: TokensOf | undefined
  /** Login in place of that of the configuration. */
  readonly credentials?: Credentials | undefined
}

/** Result with one host, or with the next hop as a whole when no host was found. */
export interface Trial {
  readonly ok: boolean
  readonly text: string
  /** User who is logged in; null for none. */
  readonly user: string | null
  /** Status of the failure; null without one. */
  readonly status: DeliveryStatus | null
}

/** Tries each host of the next hop. */
export async function tryNextHop(hop: NextHop, deps: TrialDeps): Promise<readonly Trial[]> {
  const { config, net } = deps
  // The order of equal preferences does not matter, because all hosts are tried.
  const search = await new HostFinder({ net, config, draw: () => 0 }).find(hop, config.smtp_mx_address_limit, { left: QUERIES_PER_HOP })
  if (search.kind === 'failed') return [{ ok: false, text: search.reason, user: null, status: null }]
  const trials: Trial[] = []
  for (const host of search.hosts) trials.push(await tryHost(host, hop, deps))
  return trials
}

async function tryHost(host: Host, hop: NextHop, deps: TrialDeps): Promise<Trial> {
  const { config, secrets } = deps
  const settings = new DestinationPolicies(config).for(`smtp:${formatNextHop(hop, 0)}`).settings
  const tlsSettings = { level: settings.smtp_tls_security_level, wrapper: settings.smtp_tls_wrappermode }
  const policies = { tls: new TlsPolicies(config, secrets.tls ?? {}), config, net: deps.net }
  const found = await termsOfHost({ hop, host, lmtp: false, tls: tlsSettings, sts: null }, policies)
  const refusal = (failure: SessionFailure): Trial => {
    const policy = { softBounce: false, skip5xxGreeting: true, softAuth: true, configured: true, tlsOptional: !found.terms.required }
    const { status } = verdictOfFailure(failure, host, { ...policy, domain: hop.host, best: true })
    const hint = hintOf(status)
    return { ok: false, text: hint === null ? status.reason : reasonWith(status.reason, hint), user: null, status }
  }
  if ('failure' in found) return refusal(found.failure)
  const tls = found.terms
  const credentials = deps.credentials ?? new SaslCredentials(secrets.passwords ?? '', config, deps.tokens).find(hop, '', settings)
  const first = await connect(host, { ...deps, settings, tls, credentials })
  const anchored = 'failure' in first && first.failure.kind === 'anchor' ? tls.anchored?.(first.failure.pem) : undefined
  const session = anchored === undefined ? first : await connect(host, { ...deps, settings, tls: anchored, credentials })
  if ('failure' in session) return refusal(session.failure)
  session.quit()
  const user = credentials !== undefined && session.authenticated ? credentials.user : null
  const login = credentials === undefined ? 'no login' : user === null ? 'AUTH is not offered' : `logged in as ${user}`
  return {
    ok: true,
    text: `${host.name}[${host.address}]:${host.port}: ${session.secure ? 'TLS' : 'no TLS'}, ${login}`,
    user,
    status: null,
  }
}

type ConnectDeps = TrialDeps & Pick<Parameters<typeof SmtpSession.open>[1], 'settings' | 'tls' | 'credentials'>

async function connect(host: Host, { config, net, clock, settings, tls, credentials }: ConnectDeps): Promise<SmtpSession | FailedSession> {
  const { smtp_bind_address: bind, smtp_bind_address6: bind6, smtp_connect_timeout: timeout } = settings
  if (tls.wrapper && !tls.required) return failedSession({ kind: 'tls-level', level: tls.level }, tls)
  const localAddress = (host.address.includes(':') ? bind6 : bind) || undefined
  try {
    const openedAt = clock.monotonic()
    const socket = await net.dial({ address: host.address, port: host.port, localAddress, timeout: Math.min(timeout, SESSION_LIMIT) })
    const session = { peer: host, clock, openedAt, settings, helo: config.smtp_helo_name, lmtp: false, tls, credentials, detectLoop: false }
    const end = { endBy: clock.monotonic() + SESSION_LIMIT, quitting: new Set<typeof socket>() }
    return await SmtpSession.open(socket, { ...session, ...end }, new AbortController().signal)
  } catch (error) {
    return failedSession({ kind: 'unreachable', why: systemErrorText(error) }, tls)
  }
}
