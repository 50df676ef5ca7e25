/**
 * One delivery attempt over the network. Tries the next hops and their hosts in turn until every recipient has a final outcome or
 * no host is left (RFC 5321 §5.1, Postfix smtp_connect.c).
 */
import type { DestinationPolicies } from '../../config/destination-policies.ts'
import type { Settings } from '../../config/destination-settings.ts'
import { providerOfHosts } from '../../config/values/provider-table.ts'
import { SECOND, withTimeout, type Duration, type Instant } from '../../system/clock.ts'
import { queueIdOf, type DeliveryRequest } from '../../mail/message.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import { hard, classify, classifyFailure, withTls, type Policy, type Verdict } from '../classify.ts'
import type { ConnectionCache } from './connection-cache.ts'
import type { Delivery, DeliveryOptions } from '../delivery-agent.ts'
import { isSendable } from './envelope-commands.ts'
import type { Host } from '../routing/host-order.ts'
import type { MessageSigning } from '../../dkim/message-signing.ts'
import type { HeaderChecks } from './checked-header.ts'
import type { GenericMaps } from '../../rewriting/generic.ts'
import type { ReadChunk } from './message-content.ts'
import { outgoingMail } from './outgoing-mail.ts'
import { QUERIES_PER_HOP, type HostFinder, type HostSearch } from '../routing/host-finder.ts'
import { formatNextHop, type NextHop, type Origin } from '../../config/values/next-hop.ts'
import { OutcomeTracker } from '../outcome-tracker.ts'
import type { Route } from '../routing/router.ts'
import { readyForMail, type Rehearsal } from './rehearsal.ts'
import { failedSession, openHostSession, relayName, type OpeningDeps } from './host-session.ts'
import { stageOf } from './session-stage.ts'
import { SmtpSession, type FailedSession } from './smtp-session.ts'
import type { TlsPolicyFailure } from '../tls/policy-failure.ts'
import { isTlsOptional, type TlsStage, type UnfetchedPolicy } from '../tls/tls-stage.ts'
import { NO_TLS, type AppliedSts, type TlsSettings, type TlsTerms } from '../tls/tls-policy.ts'
import { failureReport, policyOfHop, termsOfHost, type HopPolicy, type HopPolicyDeps, type HostTerms } from './hop-policy.ts'
import type { Transcript } from '../transcript.ts'

/** Dependencies that all attempts share. */
export interface AttemptDeps extends OpeningDeps, HopPolicyDeps {
  readonly policies: DestinationPolicies
  readonly finder: HostFinder
  readonly cache: ConnectionCache
  /** Called when a host does not meet the TLS policy of a domain. */
  readonly policyFailed: (failure: TlsPolicyFailure) => void
  /** Called at the end of the TLS stage of each session with a mail exchanger; absent where no reports about TLS are made. */
  readonly tlsEnded?: ((stage: TlsStage) => void) | undefined
  /** smtp_generic_maps; null without. */
  readonly generic: GenericMaps | null
  /** Null without DKIM tables. */
  readonly signing: MessageSigning | null
  /** smtp_header_checks; null without. */
  readonly headerChecks: HeaderChecks | null
  readonly readChunk: ReadChunk
  /** True while this node may begin connections and mail transactions; see Membership.holds. */
  readonly holds: () => boolean
  readonly cachedContent?: ((message: DeliveryRequest['message']) => readonly Uint8Array[] | undefined) | undefined
  readonly note: (text: string, level?: 'info' | 'warning') => void
  /** Destinations that a host without 8BITMIME was reported for. */
  readonly withoutEightBit: Set<string>
  /** Ends each session before MAIL, and tries all hosts; absent for deliveries. */
  readonly rehearsal?: Rehearsal | undefined
}

/** Maximum number of destinations kept in `withoutEightBit`. */
const DESTINATIONS_REPORTED = 10_000

/** Sources of next hops that are relays for mail in general. One that does not exist is an error of the configuration. */
const RELAYS: ReadonlySet<Origin> = new Set<Origin>(['relayhost', 'smtp_fallback_relay', 'sender_dependent_relayhost_maps'])

/** A next hop with its MTA-STS policy, and the key of its kept connections. */
interface HopContext {
  readonly hop: NextHop
  readonly key: string
  readonly sts: AppliedSts | null
  readonly unfetched: UnfetchedPolicy | undefined
  /** True when the terms of TLS depend on the host, so that its kept connections are looked for under them. */
  readonly perHost: boolean
}

export type RelayRoute = Extract<Route, { nexthops: unknown }>

/**
 * Rate in bytes per second. The transfer time of a message at this rate is added to smtp_attempt_time_limit (Postfix
 * smtp_min_data_rate).
 */
const MIN_DATA_RATE = 500

export class Attempt {
  readonly #deps: AttemptDeps
  readonly #route: RelayRoute
  readonly #settings: Settings
  readonly #request: DeliveryRequest
  readonly #options: DeliveryOptions
  readonly #outcomes: OutcomeTracker
  /** True for mail that is sent even where the policy of the domain forbids it. */
  readonly #isOptional: boolean
  readonly #startedAt: Instant
  readonly #endBy: Duration
  /** Number of sessions with hosts of the current next hop that completed the handshake (smtp_mx_session_limit). */
  #sessions = 0
  /** Hosts with which this attempt had a session. */
  readonly #usedHosts = new Set<string>()
  #relayIsListed = false
  /** True while the configuration names the current next hop. */
  #configured = false
  #over = false
  /** True when no connection or mail transaction may begin: the lease of this node has ended, or the delivery belongs to another provider. */
  #mayNotBegin = false
  #relay: string | null = null
  /** Address from which the current host was connected to; undefined without a connection. */
  #localAddress: string | undefined
  #connectionUse = 1
  #transmittingAt: Instant | undefined
  #possiblySent = false
  #unreadable: string | undefined

  constructor(deps: AttemptDeps, route: RelayRoute, request: DeliveryRequest, options: DeliveryOptions) {
    this.#deps = deps
    this.#route = route
    this.#settings = deps.policies.for(route.destination).settings
    this.#request = request
    this.#options = options
    this.#outcomes = new OutcomeTracker(request.recipients)
    this.#isOptional = isTlsOptional(request.message)
    this.#startedAt = deps.clock.now()
    const time = this.#settings.smtp_attempt_time_limit + (request.message.size / MIN_DATA_RATE) * SECOND
    this.#endBy = deps.clock.monotonic() + Math.ceil(time)
  }

  async run(): Promise<Delivery> {
    this.#bounceUnsendable()
    for (const hop of this.#route.nexthops) if (!this.#ended) await this.#tryHop(hop)
    if (!this.#relayIsListed) for (const hop of this.#route.fallback) if (!this.#ended) await this.#tryHop(hop)
    if (this.#mayNotBegin && this.#outcomes.isUntried) return 'not-begun'
    const endedAt = this.#deps.clock.now()
    return {
      ...this.#outcomes.close(),
      relay: this.#relay,
      connectionUse: this.#connectionUse,
      times: { startedAt: this.#startedAt, transmittingAt: this.#transmittingAt ?? endedAt, endedAt },
      ...(this.#possiblySent ? { possiblySent: true } : {}),
      ...(this.#unreadable === undefined ? {} : { unreadable: this.#unreadable }),
    }
  }

  get #ended(): boolean {
    if (this.#over || this.#mayNotBegin || this.#outcomes.settled || this.#options.signal.aborted) return true
    return this.#deps.clock.monotonic() >= this.#endBy
  }

  /** Bounces recipients whose address cannot be sent in RCPT or whose domain is invalid. */
  #bounceUnsendable(): void {
    const nowhere = this.#route.nexthops.length === 0
    const [status, reason] = nowhere ? ['5.1.2', 'bad recipient domain'] : ['5.1.3', 'bad recipient address syntax']
    const verdict = { ...hard({ status, reason, stage: 'route' }, this.#policy(true)), elsewhere: false }
    const bad = this.#outcomes.open.filter(({ address }) => nowhere || !isSendable(address))
    if (bad.length > 0) this.#outcomes.record({ verdicts: new Map(bad.map(({ id }) => [id, verdict])), completed: false })
  }

  async #tryHop(hop: NextHop): Promise<void> {
    this.#sessions = 0
    this.#configured = hop.origin !== 'recipient'
    const policy = await this.#policyOf(hop)
    if (policy === undefined) return
    const key = this.#cacheKey(hop, policy.sts)
    const perHost = this.#isByDane(hop)
    if (!perHost) await this.#useKept(key)
    if (this.#ended || this.#sessionsUsedUp) return
    const { clock, finder } = this.#deps
    const lookup = finder.find(hop, this.#settings.smtp_mx_address_limit, { left: QUERIES_PER_HOP })
    const search = await withTimeout(lookup, clock, this.#endBy - clock.monotonic(), this.#options.signal)
    if (search === undefined) return this.#lookupTimedOut(hop)
    this.#deps.rehearsal?.searched(hop, search, policy.sts)
    if (search.kind === 'failed') return this.#lookupFailed(hop, search)
    if (!this.#isAdmitted(hop, search.hosts)) return
    this.#relayIsListed ||= search.relayIsListed && hop.origin === 'recipient'
    const context = { hop, key, sts: policy.sts, unfetched: policy.unfetched, perHost }
    for (const host of search.hosts) {
      if (this.#ended || this.#sessionsUsedUp) await this.#lookAt(host, context)
      // A cached connection may already have used this host.
      else if (!this.#usedHosts.has(relayName(host))) await this.#tryHost(host, context)
    }
  }

  #termsOf(host: Host, { hop, sts }: HopContext): Promise<HostTerms> {
    const facts = { hop, host, lmtp: this.#route.transport === 'lmtp', tls: this.#tlsSettings, sts, optional: this.#isOptional }
    return termsOfHost(facts, this.#deps)
  }

  /** Opens a session with a host to which a delivery does not come, in a rehearsal only. */
  async #lookAt(host: Host, context: HopContext): Promise<void> {
    const { rehearsal } = this.#deps
    if (rehearsal === undefined || this.#options.signal.aborted) return
    const found = await this.#termsOf(host, context)
    const relay = this.#relay
    const session = 'failure' in found ? failedSession(found.failure, found.terms) : await this.#open(host, context, found.terms)
    this.#relay = relay
    if (session === undefined) return
    rehearsal.tried(host, session, false)
    if (!('failure' in session)) session.quit()
  }

  /** The TLS policy of a next hop. Undefined, with the outcome recorded, when it is not known. */
  async #policyOf(hop: NextHop): Promise<Extract<HopPolicy, { readonly sts: unknown }> | undefined> {
    const { clock } = this.#deps
    const { recipients } = this.#request
    const facts = {
      hop,
      lmtp: this.#route.transport === 'lmtp',
      mode: this.#isOptional ? 'no' : this.#settings.smtp_tls_mta_sts,
      tls: this.#tlsSettings,
      last: recipients.some(({ expiresAt }) => expiresAt <= this.#startedAt),
    }
    const policy = policyOfHop(facts, this.#deps)
    const found =
      policy instanceof Promise ? await withTimeout(policy, clock, this.#endBy - clock.monotonic(), this.#options.signal) : policy
    if (found === undefined) this.#lookupTimedOut(hop)
    else if ('sts' in found) return found
    else {
      const status: DeliveryStatus = { status: '4.3.0', reason: found.unreadable, stage: 'route' }
      this.#outcomes.recordAll({ outcome: 'deferred', status, elsewhere: true }, undefined, true)
    }
    return undefined
  }

  /** Asks whether the delivery may begin, by the provider of the best mail exchanger of the first next hop. */
  #isAdmitted(hop: NextHop, hosts: readonly Host[]): boolean {
    const { admits } = this.#options
    const { provider } = this.#deps.config
    if (admits === undefined || provider.size === 0 || !hop.mx || hop !== this.#route.nexthops[0]) return true
    this.#mayNotBegin ||= !admits(providerOfHosts(provider, hosts))
    return !this.#mayNotBegin
  }

  get #sessionsUsedUp(): boolean {
    const limit = this.#settings.smtp_mx_session_limit
    return limit > 0 && this.#sessions >= limit
  }

  #lookupTimedOut({ host }: NextHop): void {
    const aborted = this.#options.signal.aborted
    const reason = aborted ? `delivery was aborted while looking up ${host}` : `Name service error for name=${host}: no answer in time`
    const status: DeliveryStatus = { status: aborted ? '4.3.2' : '4.4.3', reason, stage: 'dns' }
    this.#outcomes.recordAll({ outcome: 'deferred', status, elsewhere: true }, aborted ? undefined : status, aborted)
  }

  #lookupFailed(hop: NextHop, { status, reason, final }: Extract<HostSearch, { kind: 'failed' }>): void {
    this.#logReasons()
    const isConfigured = RELAYS.has(hop.origin)
    // A configured host that does not exist is an error of the configuration, not of the mail (Postfix smtp_connect.c). Its
    // status is temporary.
    const found: DeliveryStatus = { status: isConfigured && status.startsWith('5') ? '4.3.5' : status, reason, stage: 'dns' }
    const verdict: Verdict = found.status.startsWith('5')
      ? hard(found, this.#policy(true))
      : { outcome: 'deferred', status: found, elsewhere: true }
    this.#outcomes.recordAll({ ...verdict, elsewhere: true }, verdict.outcome === 'deferred' ? found : undefined)
    this.#over = final && !isConfigured
  }

  async #tryHost(host: Host, context: HopContext): Promise<void> {
    this.#logReasons()
    this.#localAddress = undefined
    const { hop } = context
    const { clock } = this.#deps
    const found = await withTimeout(this.#termsOf(host, context), clock, this.#endBy - clock.monotonic(), this.#options.signal)
    if (found === undefined) return this.#lookupTimedOut(hop)
    const { terms: tls } = found
    if ('failure' in found) {
      const refused = failedSession(found.failure, found.terms)
      this.#noteStage(host, context, found, refused)
      return this.#refused(host, refused, tls)
    }
    const key = context.perHost ? `${context.key} ${relayName(host)} ${found.terms.digest}` : context.key
    if (context.perHost && (await this.#useKept(key))) return
    const session = await this.#openOrRetry(host, { ...context, key }, found)
    if (session === undefined) return
    if ('failure' in session) return this.#refused(host, session, tls)
    const { rehearsal } = this.#deps
    if (rehearsal === undefined) return void (await this.#transact(session, key, this.#policy(host.best, tls)))
    rehearsal.tried(host, session, true)
    this.#outcomes.recordAll(readyForMail(session), undefined)
    session.quit()
  }

  /** Reports the end of a TLS stage. That of mail which is itself a report is not counted. */
  #noteStage(host: Host, { hop, sts, unfetched }: HopContext, { dane }: HostTerms, session: SmtpSession | FailedSession): void {
    const { tlsEnded, policyFailed } = this.#deps
    const unmet = failureReport(sts, host, session)
    if (unmet !== undefined) policyFailed(unmet)
    if (tlsEnded === undefined || this.#isOptional || this.#route.transport === 'lmtp') return
    const stage = stageOf({ hop, host, session, sts, unfetched, dane, localAddress: this.#localAddress })
    if (stage !== undefined) tlsEnded(stage)
  }

  #refused(host: Host, session: FailedSession, tls: Pick<TlsTerms, 'required'>): void {
    this.#deps.rehearsal?.tried(host, session, true)
    const { failure } = session
    const withoutFeedback = failure.kind === 'aborted' || (failure.kind === 'tls' && !tls.required)
    const result = classifyFailure(failure, this.#outcomes.open, host, this.#policy(host.best, tls))
    this.#outcomes.record(withTls(result, session.tls), withoutFeedback)
  }

  /** Uses kept connections until one is usable. Returns false when there is none. */
  async #useKept(key: string): Promise<boolean> {
    const values = this.#settings
    for (let session = this.#deps.cache.take(key, values); session !== undefined; session = this.#deps.cache.take(key, values)) {
      // A cached connection that proves closed is not a failure of the host.
      if (await this.#transact(session, key, this.#policy(true))) return true
    }
    return false
  }

  /** Opens a session, and where mail may go without TLS, another one after a failed handshake. */
  async #openOrRetry(
    host: Host,
    context: HopContext,
    found: Extract<HostTerms, { readonly terms: TlsTerms }>,
  ): Promise<SmtpSession | FailedSession | undefined> {
    const { terms: tls } = found
    const session = await this.#open(host, context, tls)
    if (session === undefined) return undefined
    this.#noteStage(host, context, found, session)
    if ('failure' in session && session.failure.kind === 'tls' && this.#mayTryInClear(context.hop, tls)) {
      const { why } = session.failure
      this.#deps.note(`${queueIdOf(this.#request.message)}: Cannot start TLS with ${relayName(host)}: ${why}; trying in clear`)
      return this.#open(host, context, { ...NO_TLS, stated: tls.stated })
    }
    return session
  }

  /**
   * True when mail may be sent without TLS after a failed handshake: the level is `may`, no login is configured, and the mail is
   * older than minimal_backoff_time (Postfix TLS_README).
   */
  #mayTryInClear(hop: NextHop, tls: TlsTerms): boolean {
    const { message } = this.#request
    const age = this.#startedAt - message.arrivedAt
    const waited = age >= this.#settings.minimal_backoff_time
    return !tls.required && (waited || this.#isOptional) && this.#deps.passwords.find(hop, message.sender) === undefined
  }

  /** Returns undefined when the lease of this node has ended. */
  async #open(host: Host, { hop, key }: HopContext, tls: TlsTerms): Promise<SmtpSession | FailedSession | undefined> {
    // A process that was stopped during the look-ups may resume here, after it was taken over.
    if (!this.#deps.holds()) {
      this.#mayNotBegin = true
      return undefined
    }
    return openHostSession(host, this.#deps, {
      hop,
      tls,
      settings: this.#settings,
      lmtp: this.#route.transport === 'lmtp',
      sender: this.#request.message.sender,
      ticketKey: key,
      endBy: this.#endBy,
      signal: this.#options.signal,
      connected: (localAddress) => {
        this.#relay = relayName(host)
        this.#localAddress = localAddress
      },
    })
  }

  /** True when TLSA records decide about TLS: they are looked up before each use of a connection. */
  #isByDane(hop: NextHop): boolean {
    const level = this.#deps.tls.levelFor(hop, this.#tlsSettings)
    return level === 'dane' || level === 'dane-only'
  }

  get #tlsSettings(): TlsSettings {
    const { smtp_tls_security_level: level, smtp_tls_wrappermode } = this.#settings
    return { level, wrapper: smtp_tls_wrappermode && this.#route.transport === 'smtp' }
  }

  /** Runs a mail transaction. Returns false when the connection was a cached one that proved closed. */
  async #transact(session: SmtpSession, key: string, policy: Policy): Promise<boolean> {
    const { message } = this.#request
    const { smtp_line_length_limit: lineLimit, dkim_sign: signed } = this.#settings
    const lmtp = this.#route.transport === 'lmtp'
    const { readChunk, holds, cachedContent, signing, generic, headerChecks } = this.#deps
    const edits = lmtp ? { generic: null, headerChecks: null } : { generic, headerChecks }
    const terms = { ...edits, signing, signed, lineLimit, readChunk, cached: cachedContent?.(message) }
    const mail = { ...outgoingMail({ message, recipients: this.#outcomes.open }, terms), lmtp, lineLimit, holds }
    const transcript = await session.transact(mail, this.#endBy, this.#options.signal)
    if (transcript.stale && !this.#options.signal.aborted) return false
    if (transcript.leaseEnded === true) {
      this.#mayNotBegin = true
      session.quit()
      return true
    }
    this.#recordSession(session, transcript)
    if (message.bodyType === '8bitmime' && !transcript.eightBit && transcript.mailAt !== undefined) this.#warnOfEightBit()
    const withoutFeedback = transcript.unreadable !== undefined || transcript.failure?.kind === 'aborted'
    this.#outcomes.record(withTls(classify(transcript, session.peer, policy), session.tls), withoutFeedback)
    this.#keepOrQuit(session, key)
    return true
  }

  #recordSession(session: SmtpSession, transcript: Transcript): void {
    this.#sessions++
    this.#relay = relayName(session.peer)
    this.#usedHosts.add(this.#relay)
    this.#connectionUse = session.uses
    this.#transmittingAt = transcript.mailAt ?? this.#transmittingAt
    this.#possiblySent ||= transcript.possiblySent
    if (transcript.unreadable?.lasting === true) this.#unreadable = transcript.unreadable.why
    if (transcript.unreadable !== undefined) this.#over = true
  }

  /**
   * Logs a warning once per destination. The content is sent unchanged, as by Postfix with disable_mime_output_conversion = yes.
   */
  #warnOfEightBit(): void {
    const { withoutEightBit, note } = this.#deps
    const { destination, message } = this.#request
    if (withoutEightBit.has(destination)) return
    if (withoutEightBit.size >= DESTINATIONS_REPORTED) withoutEightBit.clear()
    withoutEightBit.add(destination)
    const text = `${queueIdOf(message)}: 8-bit content sent to ${this.#relay}, which does not offer 8BITMIME; reported once for ${destination}`
    note(text, 'warning')
  }

  #keepOrQuit(session: SmtpSession, key: string): void {
    const values = this.#settings
    const keep = session.usable && this.#options.keepConnection && values.smtp_connection_cache_on_demand
    if (keep) this.#deps.cache.put(key, session, values)
    else session.quit()
  }

  /** Logs the reasons of the last host before another host is tried. */
  #logReasons(): void {
    for (const reason of this.#outcomes.takeReasons()) this.#deps.note(`${queueIdOf(this.#request.message)}: ${reason}`)
  }

  #policy(best: boolean, tls: Pick<TlsTerms, 'required'> = NO_TLS): Policy {
    const { smtp_skip_5xx_greeting, smtp_sasl_auth_soft_bounce } = this.#settings
    return {
      softBounce: this.#deps.config.soft_bounce,
      skip5xxGreeting: smtp_skip_5xx_greeting,
      softAuth: smtp_sasl_auth_soft_bounce,
      configured: this.#configured,
      tlsOptional: !tls.required,
      domain: this.#route.domain,
      best,
    }
  }

  /** Cache key. Connections with equal transport, next hop, terms of TLS, login and local address are interchangeable. */
  #cacheKey(hop: NextHop, sts: AppliedSts | null): string {
    const { smtp_bind_address, smtp_bind_address6 } = this.#settings
    const digest = this.#deps.tls.digestFor(hop, this.#tlsSettings, sts ?? undefined)
    const user = this.#deps.passwords.find(hop, this.#request.message.sender)?.user ?? ''
    return [this.#route.transport, formatNextHop(hop, 0), hop.origin, digest, user, smtp_bind_address, smtp_bind_address6].join(' ')
  }
}
