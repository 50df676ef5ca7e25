/**
 * One attempt over the network: next hop after next hop, host after host, until every recipient is settled or nobody is
 * left to ask (RFC 5321 §5.1, postfix smtp_connect).
 */
import type { Socket } from 'node:net'
import type { Config } from '../config/options.ts'
import { SECOND, type Clock, type Duration, type Instant } from '../mail/clock.ts'
import { queueIdOf, type DeliveryRequest } from '../queue/message.ts'
import { hard, judge, judgeTrouble, type Policy, type Verdict } from './classify.ts'
import type { ConnectionCache } from './connection-cache.ts'
import type { AttemptResult, DeliveryOptions } from './delivery-agent.ts'
import { isSendable } from './envelope-commands.ts'
import type { Host } from './host-list.ts'
import { inTime } from './in-time.ts'
import { MessageSource, type ReadBody } from './message-source.ts'
import { QUERIES_PER_ATTEMPT, type HostFinder, type HostSearch } from './mx.ts'
import type { Net } from './net.ts'
import { formatNextHop, type NextHop } from './next-hop.ts'
import { OutcomeBoard } from './outcome-board.ts'
import type { Route } from './route.ts'
import { SmtpSession } from './smtp-session.ts'
import { systemErrorText } from './system-error.ts'
import type { SaslPasswords } from './sasl-passwords.ts'
import { NO_TLS, type TlsPolicies, type TlsTerms } from './tls-policy.ts'
import type { TlsTickets } from './tls-tickets.ts'
import type { Peer, Transcript, Trouble } from './transcript.ts'

/** What attempts share. */
export interface AttemptParts {
  readonly config: Config
  readonly net: Net
  readonly clock: Clock
  readonly finder: HostFinder
  readonly cache: ConnectionCache
  /** Connections on which QUIT was said and that are not closed yet. */
  readonly leaving: Set<Socket>
  readonly tls: TlsPolicies
  readonly tickets: TlsTickets
  readonly passwords: SaslPasswords
  readonly readBody: ReadBody
  readonly warmBody?: ((message: DeliveryRequest['message']) => readonly Uint8Array[] | undefined) | undefined
  readonly note: (text: string) => void
}

export type RelayRoute = Extract<Route, { nexthops: unknown }>

/** Bytes per second that content may take longer by than the limit of an attempt (postfix smtp_min_data_rate). */
const MIN_DATA_RATE = 500

export class Attempt {
  readonly #parts: AttemptParts
  readonly #route: RelayRoute
  readonly #request: DeliveryRequest
  readonly #options: DeliveryOptions
  readonly #board: OutcomeBoard
  readonly #startedAt: Instant
  readonly #endBy: Duration
  readonly #budget = { left: QUERIES_PER_ATTEMPT }
  /** Sessions that got past the handshake. */
  #sessions = 0
  /** The hosts those were with. */
  readonly #asked = new Set<string>()
  #weAreListed = false
  #over = false
  #relay: string | null = null
  #connectionUse = 1
  #transmittingAt: Instant | undefined
  #possiblySent = false
  #unreadable: string | undefined

  constructor(parts: AttemptParts, route: RelayRoute, request: DeliveryRequest, options: DeliveryOptions) {
    this.#parts = parts
    this.#route = route
    this.#request = request
    this.#options = options
    this.#board = new OutcomeBoard(request.recipients)
    this.#startedAt = parts.clock.now()
    const time = route.settings.values.smtp_attempt_time_limit + (request.message.size / MIN_DATA_RATE) * SECOND
    this.#endBy = parts.clock.monotonic() + Math.ceil(time)
  }

  async run(): Promise<AttemptResult> {
    this.#refuseUnsendable()
    for (const hop of this.#route.nexthops) if (!this.#ended) await this.#tryHop(hop)
    if (!this.#weAreListed) for (const hop of this.#route.fallback) if (!this.#ended) await this.#tryHop(hop)
    const endedAt = this.#parts.clock.now()
    return {
      ...this.#board.close(),
      relay: this.#relay,
      connectionUse: this.#connectionUse,
      times: { startedAt: this.#startedAt, transmittingAt: this.#transmittingAt ?? endedAt, endedAt },
      ...(this.#possiblySent ? { possiblySent: true } : {}),
      ...(this.#unreadable === undefined ? {} : { unreadable: this.#unreadable }),
    }
  }

  get #ended(): boolean {
    return this.#over || this.#board.settled || this.#options.signal.aborted || this.#parts.clock.monotonic() >= this.#endBy
  }

  /** Addresses that cannot be said in RCPT, or lead nowhere. */
  #refuseUnsendable(): void {
    const nowhere = this.#route.nexthops.length === 0
    const [status, reason] = nowhere ? ['5.1.2', 'bad recipient domain'] : ['5.1.3', 'bad recipient address syntax']
    const verdict = { ...hard({ status, reason, stage: 'route' }, this.#policy(true)), elsewhere: false }
    const bad = this.#board.open.filter(({ address }) => nowhere || !isSendable(address))
    if (bad.length > 0) this.#board.record({ verdicts: new Map(bad.map(({ id }) => [id, verdict])), completed: false })
  }

  async #tryHop(hop: NextHop): Promise<void> {
    const key = this.#cacheKey(hop)
    const { values } = this.#route.settings
    for (let session = this.#parts.cache.take(key, values); session !== undefined; session = this.#parts.cache.take(key, values)) {
      // A kept connection that turns out to be dead says nothing about the host.
      if (await this.#converse(session, key, this.#policy(true))) break
    }
    if (this.#ended || this.#sessionsUsedUp) return
    const { clock, finder } = this.#parts
    const asked = finder.find(hop, values.smtp_mx_address_limit, this.#budget)
    const search = await inTime(asked, clock, this.#endBy - clock.monotonic(), this.#options.signal)
    if (search === undefined) return this.#searchedTooLong(hop)
    if (search.kind === 'failed') return this.#notFound(hop, search)
    this.#weAreListed ||= search.weAreListed && hop.origin === 'recipient'
    for (const host of search.hosts) {
      if (this.#ended || this.#sessionsUsedUp) return
      // It has had its say over a kept connection.
      if (!this.#asked.has(relayName(host))) await this.#tryHost(host, hop, key)
    }
  }

  get #sessionsUsedUp(): boolean {
    const limit = this.#route.settings.values.smtp_mx_session_limit
    return limit > 0 && this.#sessions >= limit
  }

  #searchedTooLong({ host }: NextHop): void {
    const aborted = this.#options.signal.aborted
    const reason = aborted ? `delivery was given up while looking for ${host}` : `Name service error for name=${host}: no answer in time`
    const verdict: Verdict = { status: aborted ? '4.3.2' : '4.4.3', reason, stage: 'dns', outcome: 'deferred', elsewhere: true }
    this.#board.recordAll(verdict, aborted ? undefined : verdict, aborted)
  }

  #notFound(hop: NextHop, { status, reason, final }: Extract<HostSearch, { kind: 'failed' }>): void {
    this.#announce()
    const ours = hop.origin === 'relayhost' || hop.origin === 'smtp_fallback_relay'
    // Our own configuration names a host that is not there: that is no fault of the mail (postfix smtp_connect).
    const said = { status: ours && status.startsWith('5') ? '4.3.5' : status, reason, stage: 'dns' } as const
    const deferred: Verdict = { ...said, outcome: 'deferred', elsewhere: true }
    const verdict = said.status.startsWith('5') ? { ...hard(said, this.#policy(true)), elsewhere: true } : deferred
    this.#board.recordAll(verdict, verdict.outcome === 'deferred' ? said : undefined)
    this.#over = final && !ours
  }

  async #tryHost(host: Host, hop: NextHop, key: string): Promise<void> {
    this.#announce()
    const tls = this.#parts.tls.termsFor(hop, host.name, this.#route.settings.values.smtp_tls_security_level)
    let session = await this.#connect(host, hop, tls)
    if (!(session instanceof SmtpSession) && session.kind === 'tls' && this.#mayGoInClear(hop, tls)) {
      this.#parts.note(`${queueIdOf(this.#request.message)}: Cannot start TLS with ${relayName(host)}: ${session.why}; trying in clear`)
      session = await this.#connect(host, hop, NO_TLS)
    }
    if (session instanceof SmtpSession) {
      await this.#converse(session, key, this.#policy(host.best, tls))
      return
    }
    const silent = session.kind === 'aborted' || (session.kind === 'tls' && !tls.required)
    this.#board.record(judgeTrouble(session, this.#board.open, host, this.#policy(host.best, tls)), silent)
  }

  /** TLS that is welcome but does not work is done without, once the mail has waited a while (postfix TLS_README). */
  #mayGoInClear(hop: NextHop, tls: TlsTerms): boolean {
    const { message } = this.#request
    const age = this.#startedAt - message.arrivedAt
    const waited = age >= this.#route.settings.values.minimal_backoff_time
    return !tls.required && waited && this.#parts.passwords.find(hop, message.sender) === undefined
  }

  async #connect(host: Host, hop: NextHop, tls: TlsTerms): Promise<SmtpSession | Trouble> {
    const { clock, config, passwords, tickets } = this.#parts
    const socket = await this.#dial(host)
    if ('kind' in socket) return socket
    this.#relay = relayName(host)
    const ticketKey = `${this.#cacheKey(hop)} ${this.#relay}`
    const terms = {
      peer: host,
      clock,
      settings: this.#route.settings.values,
      helo: config.smtp_helo_name,
      lmtp: this.#route.transport === 'lmtp',
      tls,
      ticket: { offered: tickets.offer(ticketKey), keep: (ticket: Buffer) => tickets.keep(ticketKey, ticket) },
      credentials: passwords.find(hop, this.#request.message.sender),
      detectLoop: hop.port === config.smtp_tcp_port && this.#route.transport === 'smtp',
      endBy: this.#endBy,
      leaving: this.#parts.leaving,
    }
    const session = await SmtpSession.open(socket, terms, this.#options.signal)
    if (!(session instanceof SmtpSession) && session.kind === 'tls') tickets.forget(ticketKey)
    return session
  }

  async #dial({ address, port }: Host): Promise<Socket | Trouble> {
    const { clock, net } = this.#parts
    const { smtp_connect_timeout, smtp_bind_address, smtp_bind_address6 } = this.#route.settings.values
    const localAddress = (address.includes(':') ? smtp_bind_address6 : smtp_bind_address) || undefined
    const timeout = Math.max(1, Math.min(smtp_connect_timeout, this.#endBy - clock.monotonic()))
    try {
      const socket = await net.dial({ address, port, localAddress, timeout })
      if (!this.#options.signal.aborted) return socket
      socket.destroy()
      return { kind: 'aborted', stage: 'connect' }
    } catch (error) {
      return { kind: 'unreachable', why: systemErrorText(error) }
    }
  }

  /** Hands the mail over; false when the connection was a kept one and dead. */
  async #converse(session: SmtpSession, key: string, policy: Policy): Promise<boolean> {
    const { message } = this.#request
    const source = new MessageSource(message, this.#parts.readBody, this.#parts.warmBody?.(message))
    const { smtp_line_length_limit: lineLimit } = this.#route.settings.values
    const mail = { message, recipients: this.#board.open, source, lmtp: this.#route.transport === 'lmtp', lineLimit }
    const transcript = await session.transact(mail, this.#endBy, this.#options.signal)
    if (transcript.stale && !this.#options.signal.aborted) return false
    this.#remember(session, transcript)
    const silent = transcript.unreadable !== undefined || transcript.trouble?.kind === 'aborted'
    this.#board.record(judge(transcript, session.peer, policy), silent)
    this.#release(session, key)
    return true
  }

  #remember(session: SmtpSession, transcript: Transcript): void {
    this.#sessions++
    this.#relay = relayName(session.peer)
    this.#asked.add(this.#relay)
    this.#connectionUse = session.uses
    this.#transmittingAt = transcript.mailAt ?? this.#transmittingAt
    this.#possiblySent ||= transcript.possiblySent
    if (transcript.unreadable?.lasting === true) this.#unreadable = transcript.unreadable.why
    if (transcript.unreadable !== undefined) this.#over = true
  }

  #release(session: SmtpSession, key: string): void {
    const { values } = this.#route.settings
    const keep = session.usable && this.#options.keepConnection && values.smtp_connection_cache_on_demand
    if (keep) this.#parts.cache.put(key, session, values)
    else session.quit()
  }

  /** Why the last host did not settle it, now that another is asked. */
  #announce(): void {
    for (const reason of this.#board.takeReasons()) this.#parts.note(`${queueIdOf(this.#request.message)}: ${reason}`)
  }

  #policy(best: boolean, tls: TlsTerms = NO_TLS): Policy {
    const { smtp_skip_5xx_greeting, smtp_sasl_auth_soft_bounce } = this.#route.settings.values
    return {
      softBounce: this.#parts.config.soft_bounce,
      skip5xxGreeting: smtp_skip_5xx_greeting,
      softAuth: smtp_sasl_auth_soft_bounce,
      tlsOptional: !tls.required,
      domain: this.#route.domain,
      best,
    }
  }

  /** Connections are alike when they lead to the same place, as secure, by the same way and under the same name. */
  #cacheKey(hop: NextHop): string {
    const { smtp_bind_address, smtp_bind_address6, smtp_tls_security_level } = this.#route.settings.values
    const level = this.#parts.tls.levelFor(hop, smtp_tls_security_level)
    const user = this.#parts.passwords.find(hop, this.#request.message.sender)?.user ?? ''
    return [this.#route.transport, formatNextHop(hop, 0), hop.origin, level, user, smtp_bind_address, smtp_bind_address6].join(' ')
  }
}

/** `mx.example[192.0.2.1]:25` */
function relayName({ name, address, port }: Peer): string {
  return port === 0 ? `${name}[${address}]` : `${name}[${address}]:${port}`
}
