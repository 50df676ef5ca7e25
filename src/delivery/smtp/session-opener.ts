/**
 * Opens the sessions of one attempt. TLS follows the policies of next hop and host. Mail for which TLS is optional may get a second session
 * without TLS after a failed handshake. The end of each TLS stage is reported.
 */
import type { Settings } from '../../config/destination-settings.ts'
import { placeText } from '../../config/values/endpoints.ts'
import { formatNextHop, type NextHop } from '../../config/values/next-hop.ts'
import { isByDane } from '../../mail/tls-levels.ts'
import type { SessionRecorder } from '../../sessions/session-recorder.ts'
import { releasedAt, queueIdOf, type DeliveryRequest } from '../../mail/message.ts'
import type { Duration, QueueTime } from '../../system/clock.ts'
import type { Connecting, DeliveryOptions } from '../delivery-agent.ts'
import type { Host } from '../routing/host-order.ts'
import type { Route } from '../routing/router.ts'
import type { TlsPolicyFailure } from '../tls/policy-failure.ts'
import { NO_TLS, type AppliedSts, type TlsSettings, type TlsTerms } from '../tls/tls-policy.ts'
import { isTlsOptional, type TlsStage, type UnfetchedPolicy } from '../tls/tls-stage.ts'
import { failureReport, policyOfHop, termsOfHost, type HopPolicy, type HopPolicyDeps, type HostTerms } from './hop-policy.ts'
import { failedSession, openHostSession, relayName, type Opening, type OpeningDeps } from './host-session.ts'
import { stageOf, type StageFacts } from './session-stage.ts'
import type { FailedSession, SmtpSession } from './smtp-session.ts'

export interface SessionOpenerDeps extends OpeningDeps, HopPolicyDeps {
  /** True while this node may begin connections and mail transactions; see Membership.holds. */
  readonly holds: () => boolean
  /** Called when a host does not meet the TLS policy of a domain. */
  readonly policyFailed: (failure: TlsPolicyFailure) => void
  /** Called at the end of the TLS stage of each session with a mail exchanger; absent where no reports about TLS are made. */
  readonly tlsEnded?: ((stage: TlsStage) => void) | undefined
  readonly note: (text: string, level?: 'info' | 'warning') => void
}

export type RelayRoute = Extract<Route, { nexthops: unknown }>

/** The attempt for which sessions are opened. */
interface OpenerFacts {
  readonly route: RelayRoute
  readonly settings: Settings
  readonly request: DeliveryRequest
  readonly startedAt: QueueTime
  /** End of the attempt on the monotonic clock. */
  readonly endBy: Duration
  readonly signal: AbortSignal
  readonly connecting: DeliveryOptions['connecting']
  /** Called when a connection for the mail is open. */
  readonly connected: (relay: string) => void
}

/** A next hop with its MTA-STS policy, and the key of its kept connections and TLS sessions. */
export interface HopContext {
  readonly hop: NextHop
  readonly key: string
  readonly sts: AppliedSts | null
  readonly unfetched: UnfetchedPolicy | undefined
}

/** Port of SMTP (RFC 5321 §4.5.4.2). */
const SMTP_PORT = 25

/** The address of a server, with its port unless that is 25. Servers at other ports of an address answer or fail for themselves. */
const serverAddress = (host: Host): string => (host.port === SMTP_PORT ? host.address : placeText(host))

export class SessionOpener {
  readonly #deps: SessionOpenerDeps
  readonly #facts: OpenerFacts
  readonly #isLmtp: boolean
  readonly #tls: TlsSettings
  /** True for mail that is sent even where the policy of the domain forbids it. */
  readonly #isOptional: boolean

  constructor(deps: SessionOpenerDeps, facts: OpenerFacts) {
    const { route, settings, request } = facts
    this.#deps = deps
    this.#facts = facts
    this.#isLmtp = route.transport === 'lmtp'
    this.#tls = { level: settings.smtp_tls_security_level, wrapper: settings.smtp_tls_wrappermode && !this.#isLmtp }
    this.#isOptional = isTlsOptional(request.message)
  }

  /** The MTA-STS policy of a next hop. Returns a promise only when it is looked up. */
  policyOf(hop: NextHop): Promise<HopPolicy> | HopPolicy {
    const { request, settings, startedAt } = this.#facts
    const mode = this.#isOptional ? 'no' : settings.smtp_tls_mta_sts
    const last = request.recipients.some(({ expiresAt }) => expiresAt <= startedAt)
    return policyOfHop({ hop, lmtp: this.#isLmtp, mode, tls: this.#tls, last }, this.#deps)
  }

  /** True when TLSA records decide about TLS: they are looked up before each use of a connection. */
  isByDane(hop: NextHop): boolean {
    return isByDane(this.#deps.tls.levelFor(hop, this.#tls))
  }

  /** Connections with equal transport, next hop, terms of TLS, login and local address have the same key, and are interchangeable. */
  keyOf(hop: NextHop, sts: AppliedSts | null): string {
    const { route, settings, request } = this.#facts
    const digest = this.#deps.tls.digestFor(hop, this.#tls, sts ?? undefined)
    const { user = '', oauth = '' } = this.#deps.passwords.find(hop, request.message.sender, settings) ?? {}
    const { smtp_bind_address, smtp_bind_address6 } = settings
    return [route.transport, formatNextHop(hop, 0), hop.origin, digest, user, oauth, smtp_bind_address, smtp_bind_address6].join(' ')
  }

  termsOf(host: Host, { hop, sts }: HopContext): Promise<HostTerms> {
    return termsOfHost({ hop, host, lmtp: this.#isLmtp, tls: this.#tls, sts, optional: this.#isOptional }, this.#deps)
  }

  /**
   * Opens a session for mail, if the terms and the scheduler allow one, and reports the end of its TLS stage. Undefined when the lease of this
   * node has ended.
   */
  async open(
    host: Host,
    context: HopContext,
    found: HostTerms,
    recorder: SessionRecorder | null,
  ): Promise<SmtpSession | FailedSession | 'passed-over' | undefined> {
    const connecting = 'failure' in found ? undefined : this.#facts.connecting?.(serverAddress(host))
    if (connecting === null) return 'passed-over'
    try {
      return await this.#openAllowed(host, context, { found, connecting, recorder })
    } finally {
      connecting?.ended()
    }
  }

  async #openAllowed(
    host: Host,
    context: HopContext,
    {
      found,
      connecting,
      recorder,
    }: { readonly found: HostTerms; readonly connecting: Connecting | undefined; readonly recorder: SessionRecorder | null },
  ): Promise<SmtpSession | FailedSession | undefined> {
    const greeted = connecting === undefined ? undefined : () => connecting.greeted()
    let localAddress: string | undefined
    const connected = (address: string | undefined) => {
      localAddress = address
      this.#facts.connected(relayName(host))
    }
    const session = await this.#openOnce(host, context, found, { greeted, connected, recorder })
    if (session === undefined) return undefined
    this.#report(host, context, { session, dane: found.dane, localAddress })
    if ('failure' in found || !('failure' in session) || session.failure.kind !== 'tls') return session
    if (!this.#mayTryInClear(context.hop, found.terms)) return session
    recorder?.event('trying without TLS')
    const id = queueIdOf(this.#facts.request.message)
    this.#deps.note(`${id}: Cannot start TLS with ${relayName(host)}: ${session.failure.why}; trying in clear`)
    return this.#openOnce(host, context, { terms: { ...NO_TLS, stated: found.terms.stated } }, { greeted, connected, recorder })
  }

  /** Opens a session that gets no mail, to show how it would begin. Nothing is reported. Undefined when the lease of this node has ended. */
  async look(host: Host, context: HopContext): Promise<SmtpSession | FailedSession | undefined> {
    return this.#openOnce(host, context, await this.termsOf(host, context), {
      greeted: undefined,
      connected: () => undefined,
      recorder: null,
    })
  }

  async #openOnce(
    host: Host,
    { hop, key }: HopContext,
    found: HostTerms,
    calls: Pick<Opening, 'greeted' | 'connected' | 'recorder'>,
  ): Promise<SmtpSession | FailedSession | undefined> {
    if ('failure' in found) return failedSession(found.failure, found.terms)
    // A process that was stopped during the look-ups may resume here, after it was taken over.
    if (!this.#deps.holds()) return undefined
    const { settings, request, endBy, signal } = this.#facts
    const mail = { settings, lmtp: this.#isLmtp, sender: request.message.sender, endBy, signal }
    return openHostSession(host, this.#deps, { ...mail, hop, tls: found.terms, ticketKey: key, ...calls })
  }

  /** Reports the end of a TLS stage. That of mail which is itself a report is not counted. */
  #report(host: Host, { hop, sts, unfetched }: HopContext, ended: Pick<StageFacts, 'session' | 'dane' | 'localAddress'>): void {
    const { tlsEnded, policyFailed } = this.#deps
    const unmet = failureReport(sts, host, ended.session)
    if (unmet !== undefined) policyFailed(unmet)
    if (tlsEnded === undefined || this.#isOptional || this.#isLmtp) return
    const stage = stageOf({ hop, host, sts, unfetched, ...ended })
    if (stage !== undefined) tlsEnded(stage)
  }

  /**
   * True when mail may be sent without TLS after a failed handshake: the level is `may`, no login is configured, and the mail is
   * older than minimal_backoff_time (Postfix TLS_README).
   */
  #mayTryInClear(hop: NextHop, tls: TlsTerms): boolean {
    const { request, settings, startedAt } = this.#facts
    const { sender } = request.message
    const hasWaited = startedAt - releasedAt(request.message) >= settings.minimal_backoff_time
    return !tls.required && (hasWaited || this.#isOptional) && this.#deps.passwords.find(hop, sender, settings) === undefined
  }
}
