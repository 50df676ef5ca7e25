/**
 * A world for the SMTP agent: the real agent and session on a virtual clock and a network in memory, with scripted
 * hosts behind names. Nothing waits in real time.
 */
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/options.ts'
import type { AttemptResult, DeliveryOptions, RecipientOutcome } from '../../src/delivery/delivery-agent.ts'
import type { Lookup, MxRecord, Net } from '../../src/delivery/net.ts'
import { Router } from '../../src/delivery/route.ts'
import { SmtpAgent, type SmtpAgentParts } from '../../src/delivery/smtp-agent.ts'
import type { Duration } from '../../src/mail/clock.ts'
import { seededRandom } from '../../src/mail/random.ts'
import type { DeliveryRequest, LeasedRecipient, Message } from '../../src/queue/message.ts'
import { Driver } from '../../src/testkit/idle.ts'
import { MemoryNet, type Door } from '../../src/testkit/memory-net.ts'
import { VirtualClock } from '../../src/testkit/virtual-clock.ts'
import { FarServer, type FarScript, type FarSession } from './far-server.ts'

export const CONTENT = 'From: app@us.example\r\nSubject: hi\r\n\r\nHello.\r\n'

type Tables = Partial<Pick<Config, 'transport_maps' | 'destination'>>

export interface WorldOptions {
  /** As after `-o`. */
  readonly config?: readonly string[]
  readonly tables?: Tables
  readonly seed?: number
  /** Addresses of this machine. */
  readonly own?: readonly string[]
  readonly agent?: Partial<SmtpAgentParts> | undefined
}

export function testConfig(overrides: readonly string[] = [], tables: Tables = {}): Config {
  const sources = { env: {}, overrides: ['myhostname=relay.us.example', ...overrides], uid: 0, calledAs: 'test' }
  return { ...loadConfig(sources).config, ...tables }
}

export interface Told {
  readonly to: readonly (string | Partial<LeasedRecipient>)[]
  readonly from?: string
  readonly content?: string
  /** The content as the store gives it, instead of `content`; undefined for a part that is missing. */
  readonly chunks?: readonly (Uint8Array | undefined)[]
  readonly message?: Partial<Message>
  readonly keep?: boolean
  readonly signal?: AbortSignal
}

export interface Delivered extends AttemptResult {
  readonly took: Duration
  /** By address, or of the first recipient. */
  readonly of: (address?: string) => RecipientOutcome
}

export class DeliveryWorld {
  readonly clock = new VirtualClock()
  readonly agent: SmtpAgent
  readonly router: Router
  /** Lines for the log. */
  readonly notes: string[] = []
  /** Addresses that were dialled, in order. */
  readonly dialled: string[] = []
  /** DNS questions, in order. */
  readonly asked: string[] = []
  readonly net: MemoryNet
  readonly driver: Driver
  readonly #mx = new Map<string, Lookup<MxRecord>>()
  readonly #addresses = new Map<string, Lookup<string>>()
  readonly #doors = new Map<string, Door>()
  readonly #servers: FarServer[] = []
  readonly #bodies = new Map<number, readonly (Uint8Array | undefined)[]>()
  #nextId = 1

  constructor({ config: overrides, tables, seed = 1, own = [], agent }: WorldOptions = {}) {
    const config = testConfig(overrides, tables)
    this.net = new MemoryNet(this.clock, {
      lookupMx: (domain) => this.#ask(`MX ${domain}`, this.#mx.get(domain)),
      lookupAddresses: (host, family) => this.#ask(`${family === 4 ? 'A' : 'AAAA'} ${host}`, this.#addresses.get(`${host} ${family}`)),
      door: ({ address, port }) => {
        this.dialled.push(port === 25 ? address : `${address}:${port}`)
        return this.#doors.get(`${address}:${port}`) ?? { kind: 'closed', code: 'ECONNREFUSED' }
      },
    })
    this.driver = new Driver(this.clock, { net: this.net })
    this.router = new Router(config)
    const { net } = this
    const seen: Net = {
      dial: (options) => net.dial(options),
      lookupMx: (domain) => net.lookupMx(domain),
      lookupAddresses: (host, family) => net.lookupAddresses(host, family),
      listen: (at, accept) => net.listen(at, accept),
      ownAddresses: () => own,
    }
    this.agent = new SmtpAgent({
      config,
      router: this.router,
      net: seen,
      clock: this.clock,
      random: seededRandom(seed),
      readBody: async (body, index) => this.#bodies.get(body)?.[index],
      note: (text) => this.notes.push(text),
      ...agent,
    })
  }

  get sessions(): FarSession[] {
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

  /** A host that answers by a script. */
  host(name: string, address: string, script: FarScript = {}, port = 25): FarServer {
    const server = new FarServer(name, script)
    this.#servers.push(server)
    this.addresses(name, address)
    this.#doors.set(`${address}:${port}`, { kind: 'open', accept: server.accept })
    return server
  }

  door(address: string, door: Door, port = 25): this {
    this.#doors.set(`${address}:${port}`, door)
    return this
  }

  request({ to, from = 'app@us.example', content = CONTENT, chunks, message = {} }: Told): DeliveryRequest {
    const id = this.#nextId++
    const parts = chunks ?? [Buffer.from(content)]
    this.#bodies.set(id, parts)
    const size = parts.reduce((sum, part) => sum + (part?.length ?? 0), 0)
    const now = this.clock.now()
    const whole: Message = { id, createdAt: now, arrivedAt: now, sender: from, size, body: id, smtputf8: false, ...message }
    const recipients = to.map((recipient, i): LeasedRecipient => {
      const given = typeof recipient === 'string' ? { address: recipient } : recipient
      const progress = { dueAt: now, expiresAt: now + 86_400_000, steps: 0, attempts: 0, last: null, warnings: 0, flushed: false }
      return { id: id * 131_072 + i, address: '', ...progress, ...given }
    })
    const destination = this.router.route(recipients[0]?.address ?? '').destination
    return { message: whole, destination, recipients, fresh: true, forcedExpire: false }
  }

  /** Delivers, letting virtual time run as far as it must. */
  deliver(told: Told): Promise<Delivered> {
    const options = { keepConnection: told.keep ?? false, signal: told.signal ?? new AbortController().signal }
    return this.deliverRequest(this.request(told), options)
  }

  async deliverRequest(request: DeliveryRequest, options: DeliveryOptions): Promise<Delivered> {
    const before = this.clock.monotonic()
    let took: Duration | undefined
    const attempt = this.agent.deliver(request, options).finally(() => (took = this.clock.monotonic() - before))
    const ended = await this.driver.runWhile(() => took === undefined)
    if (!ended || took === undefined) throw new Error('the attempt never ended, and nobody waits for any moment')
    const result = await attempt
    return { ...result, took, of: outcomesOf(request, result) }
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
    return outcome
  }
}
