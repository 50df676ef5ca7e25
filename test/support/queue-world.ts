/**
 * The real queue — store, scheduler, lifecycle, MAILER-DAEMON — on a virtual clock, with a far side that is a function:
 * for stories about scheduling that need no SMTP.
 */
import { createHash } from 'node:crypto'
import { loadTemplates } from '../../src/bounce/templates.ts'
import { parseNotice, type ParsedNotice } from '../../src/bounce/notice-parser.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/options.ts'
import type { AttemptResult, DeliveryAgent, DeliveryOptions, RecipientOutcome } from '../../src/delivery/delivery-agent.ts'
import type { Net } from '../../src/delivery/net.ts'
import { sleep, type Duration, type Instant } from '../../src/mail/clock.ts'
import type { EnvelopeRecipient } from '../../src/mail/envelope.ts'
import { seededRandom } from '../../src/mail/random.ts'
import { Relay } from '../../src/daemon/relay.ts'
import { openMemoryStore } from '../../src/queue/memory/memory-store.ts'
import { queueIdOf, type DeliveryRequest, type DestinationName, type MessageId, type Recipient } from '../../src/queue/message.ts'
import { Operations, type OperationName, type Tally } from '../../src/queue/operations.ts'
import type { QueueReader } from '../../src/queue/reader.ts'
import type { QueueStore } from '../../src/queue/store.ts'
import { Events, type QueueEvent } from '../../src/telemetry/events.ts'
import { Driver } from '../../src/testkit/idle.ts'
import { BEGINNING, VirtualClock } from '../../src/testkit/virtual-clock.ts'

/** What the far side does with one delivery; times in ms. */
export type Reception =
  | { readonly kind: 'accepts'; readonly takes?: Duration }
  /** Nobody opens the door. */
  | { readonly kind: 'refuses-connections'; readonly takes?: Duration }
  /** Says 421 at the door. */
  | { readonly kind: 'too-busy'; readonly takes?: Duration }
  /** Answers every recipient with this reply. */
  | { readonly kind: 'replies'; readonly reply: string; readonly takes?: Duration }

export interface Visit {
  readonly destination: DestinationName
  readonly request: DeliveryRequest
  /** Milliseconds since the world began. */
  readonly at: Duration
  /** Deliveries under way there, this one included. */
  readonly underWay: number
}

/** A message that arrived at the far side. */
export interface Arrival {
  readonly at: Duration
  readonly to: readonly string[]
  readonly content: string
}

export interface Attempt {
  readonly at: Duration
  readonly message: MessageId
  readonly destination: DestinationName
  readonly recipients: number
  readonly kind: Reception['kind']
}

class ModelledFarSide implements DeliveryAgent {
  readonly attempts: Attempt[] = []
  readonly arrivals: Arrival[] = []
  readonly #clock: VirtualClock
  readonly #receive: (visit: Visit) => Reception
  readonly #underWay = new Map<DestinationName, number>()
  readonly #contentOf: (request: DeliveryRequest) => Promise<string>

  constructor(clock: VirtualClock, receive: (visit: Visit) => Reception, contentOf: (request: DeliveryRequest) => Promise<string>) {
    this.#clock = clock
    this.#contentOf = contentOf
    this.#receive = receive
  }

  async deliver(request: DeliveryRequest, _options: DeliveryOptions): Promise<AttemptResult> {
    const { destination, message, recipients } = request
    const underWay = (this.#underWay.get(destination) ?? 0) + 1
    this.#underWay.set(destination, underWay)
    const startedAt = this.#clock.now()
    const at = startedAt - BEGINNING
    const reception = this.#receive({ destination, request, at, underWay })
    this.attempts.push({ at, message: message.id, destination, recipients: recipients.length, kind: reception.kind })
    if (reception.takes !== undefined && reception.takes > 0) await sleep(this.#clock, reception.takes)
    this.#underWay.set(destination, (this.#underWay.get(destination) ?? 1) - 1)
    const result = resultOf(request, reception, startedAt, this.#clock.now())
    if (outcomeOf(reception).outcome === 'delivered') {
      this.arrivals.push({
        at: this.#clock.now() - BEGINNING,
        to: recipients.map(({ address }) => address),
        content: await this.#contentOf(request),
      })
    }
    return result
  }

  async close(): Promise<void> {}
}

function resultOf(request: DeliveryRequest, reception: Reception, startedAt: Instant, endedAt: Instant): AttemptResult {
  const outcome = outcomeOf(reception)
  return {
    outcomes: new Map(request.recipients.map(({ id }) => [id, outcome])),
    feedback: reception.kind === 'refuses-connections' || reception.kind === 'too-busy' ? 'negative' : 'positive',
    ...(reception.kind === 'too-busy' ? { congestion: 'early' as const } : {}),
    ...(outcome.outcome === 'deferred' && reception.kind !== 'replies' ? { hopStatus: outcome } : {}),
    relay: reception.kind === 'refuses-connections' ? null : `${request.destination}[192.0.2.1]:25`,
    connectionUse: 1,
    times: { startedAt, transmittingAt: startedAt, endedAt },
  }
}

function outcomeOf(reception: Reception): RecipientOutcome {
  switch (reception.kind) {
    case 'accepts':
      return { outcome: 'delivered', status: '2.0.0', reason: '250 2.0.0 Ok', reply: '250 2.0.0 Ok', stage: 'end-of-data' }
    case 'refuses-connections':
      return { outcome: 'deferred', status: '4.4.1', reason: 'connect to far[192.0.2.1]:25: Connection refused', stage: 'connect' }
    case 'too-busy':
      return {
        outcome: 'deferred',
        status: '4.7.0',
        reason: 'host far[192.0.2.1] refused to talk to me: 421 4.7.0 busy',
        stage: 'greeting',
      }
    case 'replies': {
      const status = /^\d{3} ([245]\.\d+\.\d+)/.exec(reception.reply)?.[1] ?? `${reception.reply.charAt(0)}.0.0`
      const kind = reception.reply.startsWith('2') ? 'delivered' : reception.reply.startsWith('4') ? 'deferred' : 'bounced'
      return { outcome: kind, status, reason: `host far said: ${reception.reply}`, reply: reception.reply, remoteMta: 'far', stage: 'rcpt' }
    }
  }
}

/** No network: these stories have none. */
const NO_NET: Net = {
  dial: () => Promise.reject(new Error('there is no network here')),
  lookupMx: () => Promise.reject(new Error('there is no network here')),
  lookupAddresses: () => Promise.reject(new Error('there is no network here')),
  listen: () => Promise.reject(new Error('there is no network here')),
  ownAddresses: () => [],
}

export interface QueueWorldOptions {
  readonly seed?: number
  /** `name=value` as on the command line. */
  readonly config?: readonly string[]
  readonly far: (visit: Visit) => Reception
  /** Builds the store; in memory when absent. */
  readonly store?: () => Promise<{ readonly store: QueueStore; readonly reader: QueueReader }>
}

export class QueueWorld {
  readonly clock = new VirtualClock()
  readonly events = new Events(() => this.clock.now())
  readonly history: { readonly at: Duration; readonly event: QueueEvent }[] = []
  relay: Relay
  reader: QueueReader
  store: QueueStore
  readonly #far: ModelledFarSide
  readonly #driver: Driver
  readonly #options: QueueWorldOptions

  private constructor(options: QueueWorldOptions, opened: { readonly store: QueueStore; readonly reader: QueueReader }) {
    this.#options = options
    this.store = opened.store
    this.reader = opened.reader
    this.#far = new ModelledFarSide(this.clock, options.far, (request) => this.#contentOf(request))
    this.#driver = new Driver(this.clock, {})
    this.events.listen((event, at) => this.history.push({ at: at - BEGINNING, event }))
    this.relay = this.#assemble()
  }

  static async create(options: QueueWorldOptions): Promise<QueueWorld> {
    const opened = options.store === undefined ? openMemoryStore() : await options.store()
    const world = new QueueWorld(options, opened)
    await world.relay.start()
    return world
  }

  #config(): Config {
    return loadConfig({ env: {}, overrides: this.#options.config ?? [], uid: 1000, calledAs: 'deferd' }).config
  }

  #assemble(): Relay {
    const { config, written } = loadConfig({ env: {}, overrides: this.#options.config ?? [], uid: 1000, calledAs: 'deferd' })
    const { templates } = loadTemplates({ config, written })
    const random = seededRandom(this.#options.seed ?? 1)
    return new Relay({
      config,
      templates,
      random,
      clock: this.clock,
      net: NO_NET,
      store: this.store,
      events: this.events,
      agent: this.#far,
    })
  }

  /** The process dies and is started again on the same store. */
  async restart(opened?: { readonly store: QueueStore; readonly reader: QueueReader }): Promise<void> {
    if (opened !== undefined) {
      this.store = opened.store
      this.reader = opened.reader
    }
    this.relay = this.#assemble()
    await this.relay.start()
  }

  /** A message comes in; returns its queue id. */
  async accept(
    to: readonly (string | EnvelopeRecipient)[],
    { sender = 'app@us.example', content = 'Subject: hi\r\n\r\nhi\r\n' } = {},
  ): Promise<string> {
    const { intake } = this.relay
    const { id, arrivedAt } = intake.begin()
    const bytes = Buffer.from(content)
    const message = { id, createdAt: arrivedAt, arrivedAt, sender, size: bytes.length, body: id, smtputf8: false }
    const recipients = to.map((one) => (typeof one === 'string' ? { address: one } : one))
    await intake.take({ message, recipients, content: [bytes], client: null })
    return queueIdOf(message)
  }

  /** Time passes: everything due up to and including then happens. */
  advance(by: Duration): Promise<void> {
    return this.#driver.runUntil(this.clock.now() + by)
  }

  rest(): Promise<void> {
    return this.#driver.rest()
  }

  /** Attempts so far, at one destination or anywhere. */
  attempts(destination?: DestinationName): readonly Attempt[] {
    return destination === undefined ? this.#far.attempts : this.#far.attempts.filter((attempt) => attempt.destination === destination)
  }

  /** When a destination was tried, in seconds since the world began. */
  tried(destination?: DestinationName): readonly number[] {
    return this.attempts(destination).map(({ at }) => at / 1000)
  }

  /** What arrived at the far side for an address. */
  arrivals(address: string): readonly Arrival[] {
    return this.#far.arrivals.filter((arrival) => arrival.to.includes(address))
  }

  /** The notices that reached an address, parsed. */
  notices(address = 'app@us.example'): readonly ParsedNotice[] {
    return this.arrivals(address).flatMap(({ content }) => parseNotice(Buffer.from(content, 'latin1')) ?? [])
  }

  /** An operator's order, carried out as the daemon does it. */
  async order(operation: OperationName, ids: readonly string[] | 'all'): Promise<Tally> {
    const { clock, store, reader, events } = this
    const operations = new Operations({ store, reader, clock, events, config: () => this.#config(), wakes: this.relay.wakes })
    const selection = ids === 'all' ? { kind: 'filter' as const, filter: {} } : { kind: 'ids' as const, ids }
    const tally = await operations.perform({ operation, selection, who: 'operator', words: operation })
    await this.rest()
    return tally
  }

  /** A live recipient as the queue holds it; undefined when there is none. */
  recipient(address: string): Recipient | undefined {
    const [found] = this.reader.list({ recipient: address }, { after: 0, limit: 1, now: this.clock.now() })
    const story = found === undefined ? undefined : this.reader.story(queueIdOf(found.message), this.clock.now())
    return story?.recipients.find((one) => one.address === address)
  }

  /** When a live recipient is due, in seconds since the world began. */
  dueAt(address: string): number | undefined {
    const recipient = this.recipient(address)
    return recipient === undefined ? undefined : (recipient.dueAt - BEGINNING) / 1000
  }

  async #contentOf({ message }: DeliveryRequest): Promise<string> {
    const parts: Uint8Array[] = []
    for (
      let part = await this.store.readBody(message.body, 0);
      part !== undefined;
      part = await this.store.readBody(message.body, parts.length)
    )
      parts.push(part)
    return Buffer.concat(parts).toString('latin1')
  }

  happened<K extends QueueEvent['kind']>(kind: K): readonly (Extract<QueueEvent, { kind: K }> & { readonly at: Duration })[] {
    return this.history.flatMap(({ at, event }) => (event.kind === kind ? [{ ...(event as Extract<QueueEvent, { kind: K }>), at }] : []))
  }

  /** The identity of this run. */
  hash(): string {
    const lines = this.history.map(({ at, event }) => JSON.stringify({ at, ...event, result: undefined }))
    return createHash('sha256').update(lines.join('\n')).update(JSON.stringify(this.#far.attempts)).digest('hex')
  }
}
