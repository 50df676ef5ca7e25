/**
 * One delivery attempt over the network. Tries the next hops and their hosts in turn until every recipient has a final outcome or
 * no host is left (RFC 5321 §5.1, Postfix smtp_connect.c).
 */
import type { DestinationPolicies } from '../../config/destination-policies.ts'
import type { Settings } from '../../config/destination-settings.ts'
import type { NextHop } from '../../config/values/next-hop.ts'
import type { SessionFacts, SessionRecorder } from '../../sessions/session-recorder.ts'
import type { SessionRecordings } from '../../sessions/session-recordings.ts'
import { providerOfHosts } from '../../config/values/tables/provider-table.ts'
import { queueIdOf, type DeliveryRequest } from '../../mail/message.ts'
import { SECOND, withTimeout, type Duration, type QueueTime } from '../../system/clock.ts'
import { classify, classifyFailure, withSession, withTls, type Classification, type Policy } from '../classify.ts'
import type { Delivery, DeliveryOptions } from '../delivery-agent.ts'
import type { Peer } from '../transcript.ts'
import { OutcomeTracker } from '../outcome-tracker.ts'
import { QUERIES_PER_HOP, type HostFinder, type HostSearch } from '../routing/host-finder.ts'
import type { Host } from '../routing/host-order.ts'
import { NO_TLS, type TlsTerms } from '../tls/tls-policy.ts'
import { BARRED, BEGUN, factsAfter, NO_SESSION, progressAfter, resultOf, type AttemptFacts, type Progress } from './attempt-state.ts'
import type { ConnectionCache } from './connection-cache.ts'
import { isSendable } from './envelope-commands.ts'
import type { HopPolicy } from './hop-policy.ts'
import { relayName } from './host-session.ts'
import { beginTransfer, type TransferDeps } from './mail-transfer.ts'
import { readyForMail, type Rehearsal } from './rehearsal.ts'
import { isRelay, lookupFailed, lookupTimedOut, policyUnreadable, unsendable, type RouteFailure } from './route-failures.ts'
import { SessionOpener, type HopContext, type RelayRoute, type SessionOpenerDeps } from './session-opener.ts'
import type { FailedSession, SmtpSession } from './smtp-session.ts'

export interface AttemptDeps extends SessionOpenerDeps, TransferDeps {
  readonly policies: DestinationPolicies
  readonly finder: HostFinder
  readonly cache: ConnectionCache
  /** Records sessions; absent where none are. */
  readonly sessions?: Pick<SessionRecordings, 'begin'> | undefined
  /** Ends each session before MAIL, and tries all hosts; absent for deliveries. */
  readonly rehearsal?: Rehearsal | undefined
}

/** In bytes per second. The transfer time of a message at this rate is added to smtp_attempt_time_limit (Postfix smtp_min_data_rate). */
const MIN_DATA_RATE = 500

export class Attempt {
  readonly #deps: AttemptDeps
  readonly #route: RelayRoute
  readonly #settings: Settings
  readonly #request: DeliveryRequest
  readonly #options: DeliveryOptions
  readonly #outcomes: OutcomeTracker
  readonly #opener: SessionOpener
  readonly #startedAt: QueueTime
  readonly #endBy: Duration
  /** Hosts with which this attempt had a session. */
  readonly #usedHosts = new Set<string>()
  /** True when a host was passed over, because no connection to its address was allowed. */
  #hasPassedOver = false
  #progress: Progress = BEGUN
  #facts: AttemptFacts = NO_SESSION

  constructor(deps: AttemptDeps, route: RelayRoute, request: DeliveryRequest, options: DeliveryOptions) {
    const { settings } = deps.policies.for(route.destination)
    const startedAt = deps.clock.now()
    const time = settings.smtp_attempt_time_limit + (request.message.size / MIN_DATA_RATE) * SECOND
    const endBy = deps.clock.monotonic() + Math.ceil(time)
    const connected = (relay: string) => (this.#facts = { ...this.#facts, relay })
    this.#deps = deps
    this.#route = route
    this.#settings = settings
    this.#request = request
    this.#options = options
    this.#outcomes = new OutcomeTracker(request.recipients)
    this.#startedAt = startedAt
    this.#endBy = endBy
    const { signal, connecting } = options
    this.#opener = new SessionOpener(deps, { route, settings, request, startedAt, endBy, signal, connecting, connected })
  }

  async run(): Promise<Delivery> {
    this.#bounceUnsendable()
    for (const hop of this.#route.nexthops) if (!this.#ended) await this.#tryHop(hop)
    if (!this.#facts.isRelayListed) for (const hop of this.#route.fallback) if (!this.#ended) await this.#tryHop(hop)
    if (this.#outcomes.isUntried && this.#progress.kind === 'barred') return 'not-begun'
    if (this.#outcomes.isUntried && this.#hasPassedOver) return 'passed-over'
    const times = { startedAt: this.#startedAt, endedAt: this.#deps.clock.now() }
    return resultOf(this.#outcomes.close(), { progress: this.#progress, facts: this.#facts, ...times })
  }

  get #ended(): boolean {
    if (this.#progress.kind !== 'trying' || this.#outcomes.settled || this.#options.signal.aborted) return true
    return this.#deps.clock.monotonic() >= this.#endBy
  }

  /** Bounces recipients whose address cannot be sent in RCPT or whose domain is invalid. */
  #bounceUnsendable(): void {
    const nowhere = this.#route.nexthops.length === 0
    const bad = this.#outcomes.open.filter(({ address }) => nowhere || !isSendable(address))
    if (bad.length === 0) return
    const verdict = unsendable(nowhere ? 'domain' : 'address', { softBounce: this.#deps.config.soft_bounce })
    this.#outcomes.record({ verdicts: new Map(bad.map(({ id }) => [id, verdict])), completed: false })
  }

  async #tryHop(hop: NextHop): Promise<void> {
    this.#progress = BEGUN
    const policy = await this.#policyOf(hop)
    if (policy === undefined) return
    const context = { hop, key: this.#opener.keyOf(hop, policy.sts), sts: policy.sts, unfetched: policy.unfetched }
    const isByDane = this.#opener.isByDane(hop)
    if (!isByDane) await this.#useKept(context)
    if (this.#isDone) return
    const search = await this.#inTime(this.#deps.finder.find(hop, this.#settings.smtp_mx_address_limit, { left: QUERIES_PER_HOP }))
    if (search === undefined) return this.#lookupTimedOut(hop)
    this.#deps.rehearsal?.searched(hop, search, policy.sts)
    if (search.kind === 'failed') return this.#lookupFailed(hop, search)
    if (!this.#isAdmitted(hop, search.hosts)) return
    if (search.relayIsListed && hop.origin === 'recipient') this.#facts = { ...this.#facts, isRelayListed: true }
    for (const host of search.hosts) {
      if (this.#isDone) await this.#lookAt(host, context)
      // A cached connection may already have used this host.
      else if (!this.#usedHosts.has(relayName(host))) await this.#tryHost(host, context, isByDane)
    }
  }

  /** Waits for a look-up until the end of the attempt. Undefined when there is no answer until then. */
  #inTime<T>(lookup: Promise<T>): Promise<T | undefined> {
    const { clock } = this.#deps
    return withTimeout(lookup, clock, this.#endBy - clock.monotonic(), this.#options.signal)
  }

  /** Opens a session with a host to which a delivery does not come, in a rehearsal only. */
  async #lookAt(host: Host, context: HopContext): Promise<void> {
    const { rehearsal } = this.#deps
    if (rehearsal === undefined || this.#options.signal.aborted) return
    const session = await this.#opener.look(host, context)
    if (session === undefined) return
    rehearsal.tried(host, session, false)
    if (!('failure' in session)) session.quit()
  }

  /** The TLS policy of a next hop. Undefined, with the outcome recorded, when it is not known. */
  async #policyOf(hop: NextHop): Promise<Extract<HopPolicy, { readonly sts: unknown }> | undefined> {
    const policy = this.#opener.policyOf(hop)
    const found = policy instanceof Promise ? await this.#inTime(policy) : policy
    if (found === undefined) this.#lookupTimedOut(hop)
    else if ('sts' in found) return found
    else this.#failed(policyUnreadable(found.unreadable))
    return undefined
  }

  /** Asks whether the delivery may begin, by the provider of the best mail exchanger of the first next hop. */
  #isAdmitted(hop: NextHop, hosts: readonly Host[]): boolean {
    const { admits } = this.#options
    const { provider } = this.#deps.config
    if (admits === undefined || provider.size === 0 || !hop.mx || hop !== this.#route.nexthops[0]) return true
    const isBarred = !admits(providerOfHosts(provider, hosts))
    if (isBarred) this.#progress = BARRED
    return !isBarred
  }

  /** True when no further host of the current next hop is tried. */
  get #isDone(): boolean {
    const limit = this.#settings.smtp_mx_session_limit
    return this.#ended || (limit > 0 && this.#progress.kind === 'trying' && this.#progress.sessions >= limit)
  }

  #lookupTimedOut(hop: NextHop): void {
    this.#failed(lookupTimedOut(hop, this.#options.signal.aborted))
  }

  #lookupFailed(hop: NextHop, search: Extract<HostSearch, { kind: 'failed' }>): void {
    this.#logReasons()
    this.#failed(lookupFailed(hop, search, { softBounce: this.#deps.config.soft_bounce }))
    if (search.final && !isRelay(hop)) this.#progress = { kind: 'ended', by: 'lookup' }
  }

  #failed({ verdict, siteStatus, withoutFeedback }: RouteFailure): void {
    this.#outcomes.recordAll(verdict, siteStatus, withoutFeedback)
  }

  /** Transfers the mail to a host. With `byDane`, kept connections to it are those under its terms. */
  async #tryHost(host: Host, context: HopContext, byDane: boolean): Promise<void> {
    this.#logReasons()
    const found = await this.#inTime(this.#opener.termsOf(host, context))
    if (found === undefined) return this.#lookupTimedOut(context.hop)
    let { key } = context
    if (byDane && !('failure' in found)) {
      key = `${context.key} ${relayName(host)} ${found.terms.digest}`
      if (await this.#useKept({ ...context, key })) return
    }
    const recorder = this.#recorderFor(host)
    const session = await this.#opener.open(host, { ...context, key }, found, recorder)
    if (session === undefined || session === 'passed-over' || 'failure' in session) recorder?.end()
    if (session === undefined) return void (this.#progress = BARRED)
    if (session === 'passed-over') return void (this.#hasPassedOver = true)
    const policy = this.#policy(context.hop, host.best, found.terms)
    if ('failure' in session) return this.#refused(host, session, policy, recorder)
    const { rehearsal } = this.#deps
    if (rehearsal === undefined) return void (await this.#transact(session, key, policy))
    rehearsal.tried(host, session, true)
    this.#outcomes.recordAll(readyForMail(session), undefined)
    session.quit()
  }

  #recorderFor(host: Peer, openedAt?: Duration): SessionRecorder | null {
    const ends = { protocol: this.#route.transport, peer: relayName(host), direction: 'to' } as const
    return this.#deps.sessions?.begin(ends, this.#mailFacts, openedAt) ?? null
  }

  /** The record of a reused connection goes on for the same destination only: clients may see some destinations, and not others. */
  #recordAgain(session: SmtpSession): void {
    const { recorder, peer, openedAt, localAddress } = session
    if (recorder?.facts.destination === this.#request.destination) return recorder.learn(this.#mailFacts)
    recorder?.event('the connection is used for another destination')
    recorder?.end()
    session.recorder = this.#recorderFor(peer, openedAt)
    session.recorder?.reused(localAddress)
  }

  get #mailFacts(): SessionFacts {
    const { destination, message, recipients } = this.#request
    return { destination, sender: message.sender, recipients: recipients.map(({ address }) => address) }
  }

  #refused(host: Host, session: FailedSession, policy: Policy, recorder: SessionRecorder | null): void {
    this.#deps.rehearsal?.tried(host, session, true)
    const { failure, oauth } = session
    this.#facts = { ...this.#facts, oauth }
    const withoutFeedback = failure.kind === 'aborted' || (failure.kind === 'tls' && policy.tlsOptional)
    const result = classifyFailure(failure, this.#outcomes.open, host, policy)
    this.#outcomes.record(this.#withSession(withTls(result, session.tls), recorder), withoutFeedback)
  }

  #withSession(result: Classification, recorder: SessionRecorder | null): Classification {
    return recorder === null ? result : withSession(result, recorder, this.#deps.config.session_transcripts)
  }

  /** Uses kept connections until one is usable. Returns false when there is none. */
  async #useKept({ hop, key }: HopContext): Promise<boolean> {
    const values = this.#settings
    for (let session = this.#deps.cache.take(key, values); session !== undefined; session = this.#deps.cache.take(key, values)) {
      this.#recordAgain(session)
      // A cached connection that proves closed is not a failure of the host.
      if (await this.#transact(session, key, this.#policy(hop, true))) return true
    }
    return false
  }

  /** Runs a mail transaction. Returns false when the connection was a cached one that proved closed. */
  async #transact(session: SmtpSession, key: string, policy: Policy): Promise<boolean> {
    const terms = { recipients: this.#outcomes.open, settings: this.#settings, lmtp: this.#route.transport === 'lmtp' }
    const { mail, ended } = beginTransfer(this.#request, terms, this.#deps)
    const transcript = await session.transact(mail, this.#endBy, this.#options.signal)
    ended(session, transcript)
    if (transcript.stale && !this.#options.signal.aborted) return false
    if (transcript.leaseEnded === true) {
      this.#progress = BARRED
      session.quit()
      return true
    }
    this.#usedHosts.add(relayName(session.peer))
    this.#facts = factsAfter(this.#facts, session, transcript)
    this.#progress = progressAfter(this.#progress, transcript)
    const withoutFeedback = transcript.unreadable !== undefined || transcript.failure?.kind === 'aborted'
    const result = withTls(classify(transcript, session.peer, policy), session.tls)
    this.#outcomes.record(this.#withSession(result, session.recorder), withoutFeedback)
    this.#keepOrQuit(session, key)
    return true
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

  #policy({ origin }: NextHop, best: boolean, tls: Pick<TlsTerms, 'required'> = NO_TLS): Policy {
    const { smtp_skip_5xx_greeting, smtp_sasl_auth_soft_bounce } = this.#settings
    return {
      softBounce: this.#deps.config.soft_bounce,
      skip5xxGreeting: smtp_skip_5xx_greeting,
      softAuth: smtp_sasl_auth_soft_bounce,
      configured: origin !== 'recipient',
      tlsOptional: !tls.required,
      domain: this.#route.domain,
      best,
    }
  }
}
