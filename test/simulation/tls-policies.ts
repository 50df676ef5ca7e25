/**
 * Random troubles of one domain with an enforced MTA-STS policy, or with TLSA records: certificates, STARTTLS, DNS, policy host and mail
 * exchangers fail and recover by seed, and overlap. Returns what must never happen.
 */
import { createHash } from 'node:crypto'
import { HOUR, type QueueTime } from '../../src/system/clock.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import { makeCertificate } from '../../src/testkit/remote/certificate-maker.ts'
import { TEST_AUTHORITY, TlsWorld } from '../support/tls-world.ts'
import { Dice } from './generator.ts'

export type TlsPolicyKind = 'sts' | 'dane'

const DOMAIN = 'far.example'
const MX = `mx.${DOMAIN}`
const EVIL = 'mx.evil.example'
/** The policy outlives the run, so that it is in force all the time. */
const MAX_AGE = 14 * 86_400
const HOURS = 72
/** Longest wait between attempts or probes. */
const RETRY = 2 * HOUR

/** Troubles by name; each part of the domain has at most one at a time. */
const TROUBLES: Readonly<Record<TlsPolicyKind, Readonly<Record<string, readonly string[]>>>> = {
  sts: {
    certificate: ['has run out', 'of another name', 'of no authority'],
    starttls: ['stripped'],
    record: ['servfail', 'suppressed', 'timeout'],
    host: ['down', 'broken', 'silent'],
    exchanger: ['evil'],
  },
  dane: { certificate: ['of another key'], starttls: ['stripped'], tlsa: ['servfail', 'timeout'], mx: ['servfail'] },
}

const NOW = makeCertificate({ seed: 'first', names: [MX] })

class TroubledDomain {
  readonly far: TlsWorld
  readonly #kind: TlsPolicyKind
  /** Time from which no mail may be sent to the domain as it is; null while mail may be sent. */
  forbidsSince: QueueTime | null = null
  readonly #troubles = new Map<string, { readonly name: string; readonly until: number }>()

  constructor(far: TlsWorld, kind: TlsPolicyKind) {
    this.far = far
    this.#kind = kind
    this.#applyAll()
  }

  trouble(part: string): string | undefined {
    return this.#troubles.get(part)?.name
  }

  /** True when nothing is wrong. */
  get isRight(): boolean {
    return this.#troubles.size === 0
  }

  get #forbidsMail(): boolean {
    return ['certificate', 'starttls', 'exchanger'].some((part) => this.#troubles.has(part))
  }

  get troubles(): string {
    return [...this.#troubles].map(([part, { name }]) => `${part} ${name}`).join(', ')
  }

  turn(hour: number, dice: Dice, mayBegin: boolean): void {
    for (const [part, { until }] of this.#troubles) if (until <= hour || !mayBegin) this.#troubles.delete(part)
    for (const [part, names] of Object.entries(TROUBLES[this.#kind])) {
      const begins = dice.chance(0.05)
      const trouble = { name: dice.one(names), until: hour + dice.number(1, 8) }
      if (begins && mayBegin && !this.#troubles.has(part)) this.#troubles.set(part, trouble)
    }
    this.forbidsSince = this.#forbidsMail ? (this.forbidsSince ?? this.far.world.clock.now()) : null
    this.#applyAll()
  }

  #applyAll(): void {
    const { world } = this.far
    world.remote.removeRules(({ name }) => name === 'trouble')
    if (this.#kind === 'sts') this.#applySts()
    else this.#applyDane()
  }

  #applySts(): void {
    const { far } = this
    const certificate = this.trouble('certificate')
    if (this.trouble('starttls') !== undefined) far.unsecure(MX)
    else if (certificate === 'has run out') far.secure(MX, { until: Date.UTC(2021, 0, 1) })
    else if (certificate === 'of another name') far.secure(MX, { names: ['other.far.example'] })
    else if (certificate === 'of no authority') far.world.remote.setIdentity(MX, makeCertificate({ seed: 'self', names: [MX] }))
    else far.secure(MX)
    // The attacker has a certificate for the own host, which the policy does not name.
    far.secure(EVIL)
    far.world.destination(DOMAIN).hasExchangers(`10 ${this.trouble('exchanger') === 'evil' ? EVIL : MX}`)
    far.publish(DOMAIN, { id: 'one', maxAge: MAX_AGE })
    const host = this.trouble('host')
    if (host === 'down') far.unserve(DOMAIN)
    if (host === 'broken') far.serve(DOMAIN, () => ({ status: 500, body: 'no policy today' }))
    if (host === 'silent') far.serve(DOMAIN, () => null)
    const record = this.trouble('record')
    if (record === 'suppressed') far.record(DOMAIN)
    else if (record === 'servfail' || record === 'timeout') far.world.rule({ domain: `_mta-sts.${DOMAIN}`, dns: record }, 'trouble')
  }

  #applyDane(): void {
    const { world } = this.far
    world.remote.setZone(DOMAIN, { mx: [{ preference: 10, exchange: MX }], a: [], aaaa: [], secure: true })
    const data = createHash('sha256').update(NOW.spki).digest()
    world.remote.setZone(`_25._tcp.${MX}`, { mx: [], a: [], aaaa: [], tlsa: [{ usage: 3, selector: 1, matchingType: 1, data }] })
    // The certificate of another key is one that certificate authorities have signed.
    const other = makeCertificate({ seed: 'other', names: [MX], issuer: TEST_AUTHORITY })
    world.remote.setIdentity(MX, this.trouble('starttls') !== undefined ? null : this.trouble('certificate') === undefined ? NOW : other)
    const tlsa = this.trouble('tlsa')
    if (tlsa === 'servfail' || tlsa === 'timeout') world.rule({ domain: `_25._tcp.${MX}`, dns: tlsa }, 'trouble')
    if (this.trouble('mx') === 'servfail') world.rule({ domain: DOMAIN, dns: 'servfail' }, 'trouble')
  }
}

type Attempted = Extract<QueueEvent, { kind: 'attempted' }>

/** Runs a seed, and returns the violations. */
export async function runTlsPolicies(kind: TlsPolicyKind, seed: number): Promise<readonly string[]> {
  const times = { maximal_queue_lifetime: '10d', minimal_backoff_time: '10m', maximal_backoff_time: `${RETRY}ms` }
  const dane = { smtp_tls_security_level: 'dane', smtp_dns_support_level: 'dnssec', smtp_tls_mta_sts: 'no' }
  const config = { ...times, ...(kind === 'dane' ? dane : {}) }
  await using far = await TlsWorld.open(config, { seed })
  const dice = new Dice(seed * 2 + (kind === 'dane' ? 1 : 0))
  const domain = new TroubledDomain(far, kind)
  const violations: string[] = []
  const failedWhileRight = new Map<number, number>()
  far.world.relayEvents.listen((event) => {
    if (event.kind === 'attempted') note(event, domain, failedWhileRight, violations)
  })
  const recipients: string[] = []
  // The first delivery fetches the policy.
  for (let hour = 0; hour < HOURS; hour++) {
    if (hour > 0) domain.turn(hour, dice, hour < HOURS - 6)
    if (!domain.isRight) failedWhileRight.clear()
    if (hour % 2 === 0 && hour < HOURS - 6) {
      recipients.push(`user${hour}@${DOMAIN}`)
      await far.send(`user${hour}@${DOMAIN}`)
    }
    if (hour % 24 === 23 && dice.chance(0.5)) await far.world.restart()
    await far.world.advance('1h')
  }
  // All is right for six hours: three times the longest wait.
  for (const to of recipients) {
    const mails = far.world.mailbox(to).mails()
    if (mails.length !== 1) violations.push(`${to} has ${mails.length} copies six hours after the last trouble`)
    if (mails.some(({ tls }) => !tls)) violations.push(`${to} has a copy that was sent in clear`)
  }
  return violations
}

function note({ attempts, result }: Attempted, domain: TroubledDomain, failed: Map<number, number>, violations: string[]): void {
  for (const { recipient, outcome, relay, status } of attempts) {
    if (outcome === 'delivered') {
      if (relay?.startsWith(`${MX}[`) !== true) violations.push(`mail was sent to ${relay}`)
      // An attempt that began before the trouble may end after it.
      const { forbidsSince } = domain
      if (forbidsSince !== null && result.times.startedAt > forbidsSince) violations.push(`mail was sent although: ${domain.troubles}`)
      if (status.tls?.state !== 'verified') violations.push(`mail was sent with TLS ${status.tls?.state}`)
    } else if (outcome === 'bounced' || outcome === 'expired') violations.push(`mail was given up: ${status.reason}`)
    else if (domain.isRight) {
      const times = (failed.get(recipient) ?? 0) + 1
      failed.set(recipient, times)
      if (times > 1) violations.push(`a second retry failed although nothing is wrong: ${status.reason}`)
    }
  }
}
