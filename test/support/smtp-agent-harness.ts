/**
 * Harness of the SMTP agent: the real agent and session on a virtual clock and a network in memory, with scripted hosts. No test
 * waits in real time.
 */
import { configFrom } from '../../src/config/load.ts'
import type { Config } from '../../src/config/options.ts'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import type { AttemptResult, Delivery, DeliveryOptions, RecipientOutcome } from '../../src/delivery/delivery-agent.ts'
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'
import { ForwardingNet, type Lookup, type MxRecord, type Net } from '../../src/system/net.ts'
import { Router } from '../../src/delivery/routing/router.ts'
import { openRoutingTables } from '../../src/delivery/routing/routing-tables.ts'
import { SmtpAgent, type SmtpAgentDeps } from '../../src/delivery/smtp/smtp-agent.ts'
import type { TlsConnection } from '../../src/delivery/tls/tls-connection.ts'
import { AccessTokens, type OauthClients } from '../../src/oauth/access-tokens.ts'
import type { Duration } from '../../src/system/clock.ts'
import { QueueClock } from '../../src/system/queue-clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { recipientId, type DeliveryRequest, type LeasedRecipient, type Message } from '../../src/mail/message.ts'
import { SessionRecordings } from '../../src/sessions/session-recordings.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { MemoryNet, type DialOutcome } from '../../src/testkit/virtual/memory-net.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { ScriptedServer, type ServerScript, type ServerSession } from './scripted-server.ts'

export const CONTENT = 'From: app@us.example\r\nSubject: hi\r\n\r\nHello.\r\n'

type Tables = Partial<Pick<Config, 'transport_maps' | 'destination' | 'provider'>>

export interface WorldOptions {
  /** Parameters as after `-o`. */
  readonly config?: readonly string[]
  readonly tables?: Tables
  readonly seed?: number
  /** Addresses of this machine. */
  readonly own?: readonly string[]
  readonly agent?: Partial<SmtpAgentDeps> | undefined
  /** True to record all sessions, for the dialogues of session_transcripts. */
  readonly recorded?: boolean
  /** Clients of `[oauth.NAME]` tables, by name. */
  readonly oauth?: OauthClients | undefined
}

export function testConfig(overrides: readonly string[] = [], tables: Tables = {}): Config {
  return { ...configFrom({}, 'relay.us.example', { overrides }).config, ...tables }
}

export interface TestDelivery {
  readonly to: readonly (string | Partial<LeasedRecipient>)[]
  readonly from?: string
  readonly content?: string
  /** Chunks as read from the store, instead of `content`; undefined for a missing chunk. */
  readonly chunks?: readonly (Uint8Array | undefined)[]
  readonly message?: Partial<Message>
  readonly keep?: boolean
  readonly signal?: AbortSignal
}

/** An outcome and its status in one object, to be compared with `toMatchObject`. */
export type FlatOutcome = Omit<RecipientOutcome, 'status'> & DeliveryStatus

export interface Delivered extends AttemptResult {
  readonly took: Duration
  /** Outcome for an address, or for the first recipient. */
  readonly of: (address?: string) => FlatOutcome
}

/** The network of a machine that has these addresses. */
class MachineWithAddresses extends ForwardingNet {
  readonly #own: readonly string[]

  constructor(net: Net, own: readonly string[]) {
    super(net)
    this.#own = own
  }

  override ownAddresses(): readonly string[] {
    return this.#own
  }
}

export class SmtpAgentHarness {
  readonly clock = new VirtualClock()
  readonly agent: SmtpAgent
  readonly router: Router
  readonly policies: DestinationPolicies
  /** Lines for the log. */
  readonly notes: string[] = []
  /** TLS connections for the log. */
  readonly secured: (readonly [relay: string, connection: TlsConnection])[] = []
  /** Addresses that were dialled, in order. */
  readonly dialled: string[] = []
  /** DNS questions, in order. */
  readonly asked: string[] = []
  readonly net: MemoryNet
  readonly driver: TimeDriver
  readonly #mx = new Map<string, Lookup<MxRecord>>()
  readonly #addresses = new Map<string, Lookup<string>>()
  readonly #hosts = new Map<string, DialOutcome>()
  readonly #hostsFile = new Map<string, readonly string[]>()
  readonly #servers: ScriptedServer[] = []
  readonly #bodies = new Map<number, readonly (Uint8Array | undefined)[]>()
  #nextId = 1

  constructor({ config: overrides, tables, seed = 1, own = [], agent, recorded = false, oauth }: WorldOptions = {}) {
    const config = testConfig(overrides, tables)
    this.net = new MemoryNet(this.clock, {
      lookupMx: (domain) => this.#ask(`MX ${domain}`, this.#mx.get(domain)),
      lookupAddresses: (host, family) => this.#ask(`${family === 4 ? 'A' : 'AAAA'} ${host}`, this.#addresses.get(`${host} ${family}`)),
      hostsFile: (host) => {
        this.asked.push(`host ${host}`)
        return this.#hostsFile.get(host) ?? []
      },
      dial: ({ address, port }) => {
        this.dialled.push(port === 25 ? address : `${address}:${port}`)
        return this.#hosts.get(`${address}:${port}`) ?? { kind: 'closed', code: 'ECONNREFUSED' }
      },
    })
    this.driver = new TimeDriver(this.clock, { net: this.net })
    this.router = new Router(config, openRoutingTables(config).tables)
    this.policies = new DestinationPolicies(config)
    const accessTokens = AccessTokens.open({ net: this.net, clock: this.clock, random: seededRandom(seed) }, oauth)
    this.agent = new SmtpAgent({
      tokens: (name) => accessTokens.of(name),
      config,
      router: this.router,
      policies: this.policies,
      net: new MachineWithAddresses(this.net, own),
      clock: this.clock,
      random: seededRandom(seed),
      readChunk: async (body, index) => this.#bodies.get(body)?.[index],
      note: (text) => this.notes.push(text),
      secured: (relay, connection) => this.secured.push([relay, connection]),
      sessions: recorded ? new SessionRecordings({ clock: new QueueClock(this.clock), keepsDeliveries: () => true }) : undefined,
      ...agent,
    })
  }

  get sessions(): ServerSession[] {
    return this.#servers.flatMap(({ sessions }) => sessions)
  }

  mx(domain: string, ...exchangers: readonly (readonly [preference: number, exchange: string])[]): this {
    return this.mxAnswer(domain, { kind: 'found', records: exchangers.map(([preference, exchange]) => ({ preference, exchange })) })
  }

  mxAnswer(domain: string, answer: Lookup<MxRecord>): this {
    this.#mx.set(domain, answer)
    return this
  }

  addresses(host: string, ...addresses: readonly string[]): this {
    for (const family of [4, 6] as const) {
      const records = addresses.filter((address) => address.includes(':') === (family === 6))
      if (records.length > 0) this.#addresses.set(`${host} ${family}`, { kind: 'found', records })
    }
    return this
  }

  addressAnswer(host: string, answer: Lookup<string>): this {
    this.#addresses.set(`${host} 4`, answer)
    this.#addresses.set(`${host} 6`, answer)
    return this
  }

  /** Adds a host to the hosts file of the relay's machine. */
  inHostsFile(host: string, ...addresses: readonly string[]): this {
    this.#hostsFile.set(host, addresses)
    return this
  }

  /** Adds a host that replies by a script. */
  host(name: string, address: string, script: ServerScript = {}, port = 25): ScriptedServer {
    const server = new ScriptedServer(name, script)
    this.#servers.push(server)
    this.addresses(name, address)
    this.#hosts.set(`${address}:${port}`, { kind: 'open', accept: server.accept })
    return server
  }

  dialOutcome(address: string, outcome: DialOutcome, port = 25): this {
    this.#hosts.set(`${address}:${port}`, outcome)
    return this
  }

  request({ to, from = 'app@us.example', content = CONTENT, chunks, message = {} }: TestDelivery): DeliveryRequest {
    const id = this.#nextId++
    const parts = chunks ?? [Buffer.from(content)]
    this.#bodies.set(id, parts)
    const size = parts.reduce((sum, part) => sum + (part?.length ?? 0), 0)
    const now = this.clock.now()
    const whole: Message = { id, createdAt: now, arrivedAt: now, sender: from, size, contentId: id, smtputf8: false, ...message }
    const recipients = to.map((recipient, i): LeasedRecipient => {
      const given = typeof recipient === 'string' ? { address: recipient } : recipient
      const progress = { dueAt: now, expiresAt: now + 86_400_000, steps: 0, attempts: 0, last: null, warnings: 0, flushed: false }
      return { id: recipientId(id, i), address: '', ...progress, ...given }
    })
    const destination = this.router.route(recipients[0]?.address ?? '', from).destination
    return { lease: { owner: 1, until: Infinity }, message: whole, destination, recipients, fresh: true, forcedExpire: false }
  }

  /** Delivers, and advances virtual time until the delivery has ended. */
  deliver(delivery: TestDelivery): Promise<Delivered> {
    const options = { keepConnection: delivery.keep ?? false, signal: delivery.signal ?? new AbortController().signal }
    return this.deliverRequest(this.request(delivery), options)
  }

  async deliverRequest(request: DeliveryRequest, options: DeliveryOptions): Promise<Delivered> {
    const before = this.clock.monotonic()
    const result = await this.attempt(request, options)
    if (typeof result === 'string') throw new Error('the attempt has not begun')
    return { ...result, took: this.clock.monotonic() - before, of: outcomesOf(request, result) }
  }

  /** Begins a delivery at once, and advances virtual time until it has ended. */
  async attempt(request: DeliveryRequest, options: DeliveryOptions): Promise<Delivery> {
    let isOver = false
    const attempt = this.agent.deliver(request, options).finally(() => (isOver = true))
    if (!(await this.driver.runWhile(() => !isOver))) throw new Error('the attempt never ended, and no timer is pending')
    return attempt
  }

  #ask<T>(question: string, answer: Lookup<T> | undefined): Lookup<T> {
    this.asked.push(question)
    return answer ?? { kind: 'none', nxdomain: true }
  }
}

function outcomesOf(request: DeliveryRequest, result: AttemptResult): Delivered['of'] {
  return (address) => {
    const recipient = address === undefined ? request.recipients[0] : request.recipients.find((one) => one.address === address)
    const outcome = recipient && result.outcomes.get(recipient.id)
    if (outcome === undefined) throw new Error(`no outcome for ${address ?? 'the recipient'}`)
    return { ...outcome, ...outcome.status }
  }
}
