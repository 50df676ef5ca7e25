/**
 * The simulated remote network: DNS, connections, and mail servers that fail as a script defines. A world uses it through a
 * MemoryNet, a sink through TCP ports. Rules, their state and the bytes sent are the same in both.
 */
import type { Socket } from 'node:net'
import type { Endpoint, Lookup, MxRecord, SecureLookup, SecureRecords } from '../../system/net.ts'
import { sleep, type MachineClock, type Duration } from '../../system/clock.ts'
import type { Random } from '../../system/random.ts'
import type { DialOutcome, RemoteHosts } from '../virtual/memory-net.ts'
import type { SubmissionGuard } from '../oauth/submission-guard.ts'
import { addressRules, mistypedFault } from './address-rules.ts'
import { applies, type RuleFacts } from './rule-facts.ts'
import type { RemoteEvent, RemoteListener, ReceivedMail } from './remote-events.ts'
import { RuleState } from './rule-state.ts'
import { DnsZones } from './dns-zones.ts'
import { answerInWords, failedLookup } from './lookup-answers.ts'
import { NO_SCRIPT, type FaultStage, type Rule, type Script, type Zone } from './rule.ts'
import { PublishedPolicies, type PublishedPolicy } from './published-policies.ts'
import { servePolicy, type HostIdentity, type PolicyHost, type WebHost } from './policy-host.ts'
import type { AcceptedLogins } from './server-login.ts'
import { Session, type Host } from './server-session.ts'
import { mailIdentity, type HostCertificate } from './world-certificates.ts'

const HTTPS = 443

/** Time after which a resolver reports a timeout (resolv.conf(5): timeout 5, attempts 2). */
const RESOLVER_TIMEOUT: Duration = 10_000

interface RemoteNetworkDeps {
  readonly clock: MachineClock
  readonly random: Random
  readonly script?: Script | undefined
  /** True if addresses such as `550@…` request faults, where no rule of the script acts; default false. */
  readonly addresses?: boolean | undefined
  /** Logins that all hosts offer and accept; none when absent. */
  readonly logins?: AcceptedLogins | undefined
  /** Receives every event. */
  readonly onEvent?: RemoteListener | undefined
  /** Receives every message that is kept. */
  readonly keep?: ((mail: ReceivedMail) => void) | undefined
}

interface StatefulRule {
  /** Number of the rule, from 1 in the order in which rules were added. */
  readonly id: number
  readonly rule: Rule
  readonly state: RuleState
}

export interface ListedRule extends Pick<StatefulRule, 'id' | 'rule'> {
  readonly used: number
}

export class RemoteNetwork implements RemoteHosts, Host {
  readonly clock: MachineClock
  readonly #deps: RemoteNetworkDeps
  readonly #zones: DnsZones
  readonly #startedAt: Duration
  #rules: readonly StatefulRule[]
  /** Rules requested by addresses. They are created once per address. */
  readonly #addressRules = new Map<string, readonly StatefulRule[]>()
  /** Addresses that were reported as mistyped faults. */
  readonly #mistyped = new Set<string>()
  readonly #held = new Map<string, number>()
  readonly #identities = new Map<string, HostIdentity>()
  /** Certificates of all exchangers of a domain. */
  readonly #certificates = new Map<string, HostCertificate>()
  readonly #policies: PublishedPolicies
  /** Identities of exchangers, by certificate and host. */
  readonly #made = new Map<string, HostIdentity>()
  readonly #webHosts = new Map<string, WebHost>()
  readonly #guards = new Map<string, SubmissionGuard>()
  readonly #sockets = new Set<Socket>()
  #sessions = 0
  #mails = 0
  #lastRule = 0

  constructor(deps: RemoteNetworkDeps) {
    this.clock = deps.clock
    this.#deps = deps
    this.#startedAt = deps.clock.monotonic()
    const { rules, zones, certificates, policies } = deps.script ?? NO_SCRIPT
    this.#zones = new DnsZones(zones)
    this.#policies = new PublishedPolicies(policies, (domain) => this.#zones.exchangersOf(domain))
    for (const [host, kind] of certificates) this.setIdentity(host, mailIdentity(host, kind))
    this.#rules = rules.map((rule) => this.#withState(rule))
  }

  /** The rules, except those that addresses request, in the order in which they are tried; `used` is the number of occasions on which one acted. */
  get rules(): readonly ListedRule[] {
    return this.#rules.map(({ id, rule, state }) => ({ id, rule, used: state.used }))
  }

  /** Adds rules before all others: the first matching rule is applied. */
  addRules(...rules: readonly Rule[]): void {
    this.#rules = [...rules.map((rule) => this.#withState(rule)), ...this.#rules]
  }

  /** Removes rules together with their state. */
  removeRules(isRemoved: (rule: Rule, id: number) => boolean): void {
    this.#rules = this.#rules.filter(({ id, rule }) => !isRemoved(rule, id))
  }

  /** Sets the DNS records of a domain for all later lookups. */
  setZone(domain: string, zone: Zone): void {
    this.#zones.set(domain, zone)
  }

  /** Gives a host a certificate, with which it offers STARTTLS from now on. Null removes the certificate. */
  setIdentity(host: string, identity: HostIdentity | null): void {
    if (identity === null) this.#identities.delete(host)
    else this.#identities.set(host, identity)
  }

  /** Makes all exchangers of a domain offer STARTTLS with a certificate, from now on. */
  offerTls(domain: string, certificate: HostCertificate): void {
    this.#certificates.set(domain, certificate)
  }

  /** Signs a domain and its exchangers (DNSSEC), with TLSA records such as `3 1 1` for the exchangers. */
  sign(domain: string, records: readonly string[]): void {
    this.#zones.sign(domain, records)
  }

  /** Publishes the MTA-STS policy of a domain from now on. */
  publishPolicy(domain: string, policy: PublishedPolicy): void {
    this.#policies.set(domain, policy)
  }

  /** Makes a host answer HTTPS requests from now on. Null ends this. */
  setPolicyHost(host: string, policyHost: PolicyHost | null): void {
    if (policyHost === null) this.#webHosts.delete(host)
    else this.setWebHost(host, { serve: (socket) => servePolicy(policyHost, socket) })
  }

  /** Passes the HTTPS connections to a host on to `server` from now on. */
  setWebHost(host: string, server: WebHost): void {
    this.#webHosts.set(host, server)
  }

  /** Makes a host offer STARTTLS, and accept mail only after a login with an access token inside TLS. */
  protect(host: string, identity: HostIdentity, guard: SubmissionGuard): void {
    this.setIdentity(host, identity)
    this.#guards.set(host, guard)
  }

  get logins(): AcceptedLogins | undefined {
    return this.#deps.logins
  }

  guardOf(host: string): SubmissionGuard | undefined {
    return this.#guards.get(host)
  }

  identityOf(host: string): HostIdentity | undefined {
    const own = this.#identities.get(host)
    if (own !== undefined) return own
    const [certificate] = this.domainsOf(host).flatMap((domain) => this.#certificates.get(domain) ?? [])
    if (certificate === undefined) return undefined
    const made = this.#made.get(`${certificate} ${host}`) ?? mailIdentity(host, certificate)
    this.#made.set(`${certificate} ${host}`, made)
    return made
  }

  /** Sets the count of messages that `quota` rules compare to 0, as if the mailbox were emptied. */
  emptyMailbox(recipient: string): void {
    this.#held.delete(recipient)
  }

  async lookupMx(domain: string): Promise<Lookup<MxRecord>> {
    const facts = this.#factsAt('dns', { mx: '', domains: [domain] })
    return this.#lookup(facts, { type: 'MX', name: domain }, () => this.#zones.mx(domain), [{ preference: 0, exchange: '' }])
  }

  async lookupAddresses(host: string, family: 4 | 6): Promise<Lookup<string>> {
    const facts = this.#factsAt('dns', { mx: host, domains: [host] })
    return this.#lookup(facts, { type: family === 4 ? 'A' : 'AAAA', name: host }, () => this.#zones.addresses(host, family), [])
  }

  /** The zones have the TXT records. A rule acts when its domain matches the looked-up name, such as `_mta-sts.DOMAIN`. */
  async lookupTxt(name: string): Promise<Lookup<string>> {
    const facts = this.#factsAt('dns', { mx: '', domains: [name] })
    return this.#lookup(facts, { type: 'TXT', name }, () => this.#txt(name), [])
  }

  #txt(name: string): Lookup<string> {
    const published = this.#policies.txt(name)
    return published.length > 0 ? { kind: 'found', records: published } : this.#zones.txt(name)
  }

  /** The zones have the names of addresses. No rule acts on them. */
  async lookupNames(address: string): Promise<Lookup<string>> {
    return this.#zones.names(address)
  }

  async lookupSecure<T extends keyof SecureRecords>(name: string, type: T): Promise<SecureLookup<SecureRecords[T]>> {
    const facts = this.#factsAt('dns', { mx: type === 'MX' ? '' : name, domains: [name] })
    let secure: SecureLookup<SecureRecords[T]> | undefined
    const usual = (): Lookup<SecureRecords[T]> => (secure = this.#zones.secure(name, type))
    const answer = await this.#lookup(facts, { type, name }, usual, [])
    if (answer.kind === 'failed') return answer
    // A fault takes the place of the answer of the zones; it is not authentic.
    return secure ?? { kind: 'none', nxdomain: answer.kind === 'none' && answer.nxdomain, secure: false }
  }

  dial(to: Endpoint, from: Endpoint): DialOutcome {
    const mx = this.#zones.hostAt(to.address)
    if (to.port === HTTPS) return this.#dialWebHost(mx)
    const rule = this.#decideDoor(mx, from.address)
    const accept = (socket: Socket) => this.#open(socket, mx, from.address)
    if (rule?.fault.at !== 'connect') return { kind: 'open', accept }
    const { connect, delay: after } = rule.fault
    switch (connect) {
      case 'refused':
        return { kind: 'closed', code: 'ECONNREFUSED', after }
      case 'unreachable':
        return { kind: 'closed', code: 'EHOSTUNREACH', after }
      case 'timeout':
        return { kind: 'silent' }
      case 'slow':
        return { kind: 'open', accept, after }
      case 'reset':
      case 'closed':
        return { kind: 'open', accept: (socket) => hangUp(socket, connect), after }
    }
  }

  /**
   * Serves an open TCP connection as the host `mx`. Faults at the stage `connect` are approximated: for a refused or unreachable
   * host the connection is reset, and for a timeout no reply is sent.
   */
  async accept(socket: Socket, mx: string): Promise<void> {
    const client = socket.remoteAddress ?? ''
    const rule = this.#decideDoor(mx, client)
    if (rule?.fault.at !== 'connect') return this.#open(socket, mx, client)
    const { connect, delay } = rule.fault
    this.#track(socket)
    socket.on('error', () => socket.destroy())
    await sleep(this.clock, delay)
    if (connect === 'slow') return this.#open(socket, mx, client)
    if (connect === 'timeout') socket.resume()
    else hangUp(socket, connect)
    return undefined
  }

  /** Serves an open TCP connection to a web server. A connection that the server refuses is reset. */
  acceptWeb(socket: Socket, server: WebHost): void {
    if (server.isRefusing?.() === true) hangUp(socket, 'reset')
    else this.#serveWeb(socket, server)
  }

  domainsOf(mx: string): readonly string[] {
    return this.#zones.domainsOf(mx)
  }

  /** Milliseconds since the start, on the monotonic clock. */
  age(): Duration {
    return this.clock.monotonic() - this.#startedAt
  }

  nextMailNumber(): number {
    return ++this.#mails
  }

  keep(mail: ReceivedMail): void {
    for (const recipient of mail.recipients) this.#held.set(recipient, (this.#held.get(recipient) ?? 0) + 1)
    this.#deps.keep?.(mail)
  }

  report(event: RemoteEvent): void {
    this.#deps.onEvent?.(event, this.clock.now())
  }

  decide(facts: RuleFacts, early: boolean): Rule | undefined {
    for (const { rule, state } of this.#rulesFor(facts)) {
      if (rule.fault.at === facts.stage && rule.early === early && applies(rule.where, facts) && state.acts(facts)) return rule
    }
    return undefined
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #dialWebHost(host: string): DialOutcome {
    const server = this.#webHosts.get(host) ?? this.#policies.hostOf(host)
    if (server === undefined || server.isRefusing?.() === true) return { kind: 'closed', code: 'ECONNREFUSED' }
    return { kind: 'open', accept: (socket) => this.#serveWeb(socket, server) }
  }

  #serveWeb(socket: Socket, server: WebHost): void {
    this.#track(socket)
    server.serve(socket)
  }

  #withState(rule: Rule): StatefulRule {
    const held = (recipient: string) => this.#held.get(recipient) ?? 0
    return { id: ++this.#lastRule, rule, state: new RuleState(rule, { random: this.#deps.random, held }) }
  }

  *#rulesFor(facts: RuleFacts): Generator<StatefulRule> {
    yield* this.#rules
    if (this.#deps.addresses === true) for (const address of facts.recipients) yield* this.#requestedBy(address)
  }

  #requestedBy(address: string): readonly StatefulRule[] {
    const known = this.#addressRules.get(address)
    if (known !== undefined) return known
    const rules = addressRules(address).map((rule) => this.#withState(rule))
    if (rules.length > 0) this.#addressRules.set(address, rules)
    else this.#reportMistyped(address)
    return rules
  }

  #reportMistyped(address: string): void {
    const mistyped = this.#mistyped.has(address) ? null : mistypedFault(address)
    if (mistyped === null) return
    this.#mistyped.add(address)
    this.report({ event: 'mistyped', recipient: address, ...mistyped })
  }

  #factsAt(
    stage: FaultStage,
    { mx, domains, client = '' }: { readonly mx: string; readonly domains: readonly string[]; readonly client?: string },
  ) {
    return { stage, age: this.age(), connection: 0, client, mx, domains, recipients: [], accepted: 0 } satisfies RuleFacts
  }

  #decideDoor(mx: string, client: string): Rule | undefined {
    const rule = this.decide(this.#factsAt('connect', { mx, domains: this.domainsOf(mx), client }), false)
    if (rule?.fault.at === 'connect' && rule.fault.connect !== 'slow') {
      this.report({ event: 'refused', mx, client, how: rule.fault.connect, rule: rule.name })
    }
    return rule
  }

  #open(socket: Socket, mx: string, client: string): void {
    const number = ++this.#sessions
    this.#track(socket)
    socket.setNoDelay(true)
    const facts = { ...this.#factsAt('greeting', { mx, domains: this.domainsOf(mx), client }), connection: number }
    for (const { rule, state } of this.#rules) {
      const { domain, mx: host, client: caller } = rule.where
      if (applies({ domain, mx: host, client: caller }, facts)) state.opened(facts)
    }
    socket.once('close', () => {
      for (const { state } of this.#rules) state.closed(number)
    })
    this.report({ event: 'connected', session: number, mx, client })
    void new Session(this, { socket, number, mx, client }).run()
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  async #lookup<T>(
    facts: RuleFacts,
    { type, name }: { readonly type: string; readonly name: string },
    usual: () => Lookup<T>,
    nullRecords: readonly T[],
  ): Promise<Lookup<T>> {
    const rule = this.decide(facts, false)
    const fault = rule?.fault.at === 'dns' ? rule.fault : undefined
    const delay = (fault?.delay ?? 0) + (fault?.dns === 'timeout' ? RESOLVER_TIMEOUT : 0)
    if (delay > 0) await sleep(this.clock, delay)
    const answer = fault === undefined || fault.dns === 'slow' ? usual() : failedLookup(fault.dns, nullRecords)
    this.report({ event: 'lookup', name, type, answer: answerInWords(answer), rule: rule?.name })
    return answer
  }
}

function hangUp(socket: Socket, how: 'refused' | 'unreachable' | 'reset' | 'closed'): void {
  socket.on('error', () => socket.destroy())
  socket.resume()
  if (how === 'closed') socket.end()
  else socket.resetAndDestroy()
}
