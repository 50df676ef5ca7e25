/** Opens a session with one host: the connection, TLS by the terms of the attempt, and the login. */
import type { Socket } from 'node:net'
import type { Settings } from '../../config/destination-settings.ts'
import type { Config } from '../../config/options.ts'
import type { NextHop } from '../../config/values/next-hop.ts'
import type { SessionRecorder } from '../../sessions/session-recorder.ts'
import type { Clock, Duration } from '../../system/clock.ts'
import type { Net } from '../../system/net.ts'
import type { Host } from '../routing/host-order.ts'
import type { SaslCredentials } from '../tls/sasl-credentials.ts'
import type { TlsConnection } from '../tls/tls-connection.ts'
import { tlsFacts } from '../tls/tls-outcome.ts'
import type { TlsTerms } from '../tls/tls-policy.ts'
import type { DaneAnchors } from '../dane/dane-anchors.ts'
import type { TlsSessionCache } from '../tls/tls-session-cache.ts'
import type { Peer, SessionFailure } from '../transcript.ts'
import { systemErrorText } from './error-text.ts'
import { SmtpSession, type FailedSession } from './smtp-session.ts'

export interface OpeningDeps {
  readonly config: Config
  readonly net: Net
  readonly clock: Clock
  readonly passwords: SaslCredentials
  readonly tickets: TlsSessionCache
  readonly anchors: DaneAnchors
  /** Connections that are open after QUIT was sent. */
  readonly quitting: Set<Socket>
  /** Called for each TLS connection when smtp_tls_loglevel is 1. */
  readonly secured: (relay: string, connection: TlsConnection) => void
  /** True to describe the certificate of each host. */
  readonly inspects?: boolean | undefined
}

export interface Opening {
  readonly hop: NextHop
  readonly settings: Settings
  readonly tls: TlsTerms
  readonly lmtp: boolean
  readonly sender: string
  /** Key of TLS sessions; it includes login and local address. */
  readonly ticketKey: string
  /** End of the attempt on the monotonic clock. */
  readonly endBy: Duration
  readonly signal: AbortSignal
  readonly recorder: SessionRecorder | null
  /** Called when the host has sent its greeting. */
  readonly greeted: (() => void) | undefined
  /** Called when the connection is open, with its local address. */
  readonly connected: (localAddress: string | undefined) => void
}

/** Name of a host for the log: `mx.example[192.0.2.1]:25`. */
export function relayName({ name, address, port }: Peer): string {
  return port === 0 ? `${name}[${address}]` : `${name}[${address}]:${port}`
}

/** Failures after which a TLS session is not resumed. */
const BY_TLS: ReadonlySet<SessionFailure['kind']> = new Set<SessionFailure['kind']>(['tls', 'certificate', 'anchor'])

/** A session that was not opened. */
export const failedSession = (failure: SessionFailure, terms: Pick<TlsTerms, 'stated' | 'required'>): FailedSession => ({
  failure,
  tls: tlsFacts({ terms, failure }),
})

/**
 * Returns a session that is ready for mail, or the failure. A certificate below a trust anchor of TLSA records is verified in a second
 * handshake, with the anchor that the first one found; later sessions begin with it.
 */
export async function openHostSession(host: Host, deps: OpeningDeps, opening: Opening): Promise<SmtpSession | FailedSession> {
  const { tls } = opening
  if (tls.anchored === undefined) return openOnce(host, deps, opening)
  const known = deps.anchors.find(tls.digest)
  if (known !== undefined) {
    const session = await openOnce(host, deps, { ...opening, tls: tls.anchored(known) })
    if (!('failure' in session) || session.failure.kind !== 'certificate') return session
    // The host may have got another issuer that the records match.
    deps.anchors.forget(tls.digest)
  }
  const session = await openOnce(host, deps, opening)
  if (!('failure' in session) || session.failure.kind !== 'anchor') return session
  const { pem } = session.failure
  const anchored = await openOnce(host, deps, { ...opening, tls: tls.anchored(pem) })
  if (!('failure' in anchored)) deps.anchors.keep(tls.digest, pem)
  return anchored
}

async function openOnce(host: Host, deps: OpeningDeps, opening: Opening): Promise<SmtpSession | FailedSession> {
  const { clock, config, passwords, secured, tickets, quitting, inspects } = deps
  const { hop, settings, tls, lmtp, sender, ticketKey, endBy, signal } = opening
  if (tls.wrapper && !tls.required) return failedSession({ kind: 'tls-level', level: tls.level }, tls)
  const openedAt = clock.monotonic()
  const socket = await dial(host, deps, opening)
  if ('kind' in socket) return failedSession(socket, tls)
  opening.recorder?.connected(socket.localAddress)
  opening.connected(socket.localAddress)
  const relay = relayName(host)
  const key = `${ticketKey} ${relay} ${tls.digest}`
  const options = {
    peer: host,
    clock,
    openedAt,
    settings,
    helo: config.smtp_helo_name,
    lmtp,
    tls,
    greeted: opening.greeted,
    secured: config.smtp_tls_loglevel > 0 ? (connection: TlsConnection) => secured(relay, connection) : undefined,
    // The certificate of a resumed session cannot be verified again, not even for a report.
    ticket: tls.rehearsed === true ? undefined : { offered: tickets.offer(key), keep: (ticket: Buffer) => tickets.keep(key, ticket) },
    credentials: passwords.find(hop, sender, settings),
    detectLoop: hop.port === config.smtp_tcp_port && !lmtp,
    endBy,
    quitting,
    recorder: opening.recorder,
    inspects,
  }
  const session = await SmtpSession.open(socket, options, signal)
  if ('failure' in session && BY_TLS.has(session.failure.kind)) tickets.forget(key)
  return session
}

async function dial({ address, port }: Host, { clock, net }: OpeningDeps, opening: Opening): Promise<Socket | SessionFailure> {
  const { smtp_connect_timeout, smtp_bind_address, smtp_bind_address6 } = opening.settings
  const localAddress = (address.includes(':') ? smtp_bind_address6 : smtp_bind_address) || undefined
  const timeout = Math.max(1, Math.min(smtp_connect_timeout, opening.endBy - clock.monotonic()))
  try {
    const socket = await net.dial({ address, port, localAddress, timeout })
    if (!opening.signal.aborted) return socket
    socket.destroy()
    return { kind: 'aborted', stage: 'connect' }
  } catch (error) {
    const why = systemErrorText(error)
    opening.recorder?.event(`cannot connect: ${why}`)
    return { kind: 'unreachable', why }
  }
}
