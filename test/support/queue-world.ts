/**
 * A world of the test kit with a model in place of the remote servers: a function decides the result of each delivery. For tests
 * of scheduling, which need no SMTP.
 */
import { createHash } from 'node:crypto'
import { parseNotice, type ParsedNotice } from '../../src/bounce/dsn-parser.ts'
import type { Relay } from '../../src/relay/relay.ts'
import type { EnvelopeRecipient } from '../../src/mail/envelope.ts'
import type { MessageTimes } from '../../src/mail/message-times.ts'
import { queueIdOf, type DestinationName, type Recipient } from '../../src/mail/message.ts'
import type { OperationName, OperationSummary } from '../../src/queue/operation-request.ts'
import { inChunks } from '../../src/store/chunks.ts'
import type { QueueReader } from '../../src/store/queue-reader.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import type { Duration } from '../../src/system/clock.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import { BEGINNING, type VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { createObservedWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import type { WorldOptions } from '../../src/testkit/options/world-options.ts'
import { closeAtEnd, closedByTest } from './open-worlds.ts'
import { ModelledRemote, type Arrival, type ModelledAttempt, type Model } from './modelled-remote.ts'

export interface QueueWorldOptions extends Pick<WorldOptions, 'seed' | 'config' | 'store'> {
  readonly remote: Model
  /** Tells the provider that the mail exchangers of a destination show. */
  readonly providerOf?: (destination: DestinationName) => string | null
  /** An open queue in place of `store`; it remains open during a restart. */
  readonly queue?: { readonly store: QueueStore; readonly reader: QueueReader }
}

export class QueueWorld {
  /** Events since the start; `at` is in milliseconds since then by the wall clock. */
  readonly history: { readonly at: Duration; readonly event: QueueEvent }[] = []
  readonly #world: World
  readonly #remote: ModelledRemote

  private constructor(world: World, remote: ModelledRemote) {
    this.#world = world
    this.#remote = remote
    closeAtEnd(this)
    world.relayEvents.listen((event, at) => this.history.push({ at: at - BEGINNING, event }))
  }

  static async create({ remote: model, providerOf, queue, ...options }: QueueWorldOptions): Promise<QueueWorld> {
    const remote = new ModelledRemote(model, providerOf)
    const world = await createObservedWorld(options, {
      agent: (_agent, life) => remote.agentOf(life),
      ...(queue === undefined
        ? {}
        : { queue: { ...queue, survives: false, reopen: () => Promise.reject(new Error('a queue of the test')) } }),
    })
    return new QueueWorld(world, remote)
  }

  async close(): Promise<void> {
    closedByTest(this)
    await this.#world.close()
  }

  get clock(): VirtualClock {
    return this.#world.clock
  }

  get store(): QueueStore {
    return this.#world.store
  }

  get reader(): QueueReader {
    return this.#world.reader
  }

  get relay(): Relay {
    return this.#world.relay
  }

  /** Stops the relay and starts it again on the same queue. */
  restart(): Promise<void> {
    return this.#world.restart()
  }

  /** Kills the relay and starts it again on the queue as the kill left it, `downFor` ms later. */
  async crash(downFor: Duration = 0): Promise<void> {
    await this.#world.crash({ downFor: downFor / 1000 })
    await this.#world.advance(downFor / 1000)
  }

  /** Queues a message as smtpd does; returns its queue id. */
  async accept(
    to: readonly (string | EnvelopeRecipient)[],
    {
      sender = 'app@us.example',
      content = 'Subject: hi\r\n\r\nhi\r\n',
      class: name,
      times,
    }: { readonly sender?: string; readonly content?: string; readonly class?: string; readonly times?: MessageTimes } = {},
  ): Promise<string> {
    const { intake } = this.relay
    const { id, arrivedAt } = intake.begin()
    const bytes = Buffer.from(content)
    const message = {
      id,
      createdAt: arrivedAt,
      arrivedAt,
      sender,
      size: bytes.length,
      contentId: id,
      smtputf8: false,
      class: name,
      ...times,
    }
    const recipients = to.map((one) => (typeof one === 'string' ? { address: one } : one))
    await intake.take({ message, recipients, content: inChunks(bytes), client: null })
    return queueIdOf(message)
  }

  /** Advances the clock by milliseconds, and runs everything due up to and including the end. */
  advance(by: Duration): Promise<void> {
    return this.#world.advance(`${by}ms`)
  }

  /** Runs all work that is due now. */
  rest(): Promise<void> {
    return this.#world.advance(0)
  }

  /** Number of attempts so far, at one destination or in total. */
  attempts(destination?: DestinationName): readonly ModelledAttempt[] {
    const { attempts } = this.#remote
    return destination === undefined ? attempts : attempts.filter((attempt) => attempt.destination === destination)
  }

  /** Times of the attempts at a destination, in seconds since the start. */
  tried(destination?: DestinationName): readonly number[] {
    return this.attempts(destination).map(({ at }) => at / 1000)
  }

  /** Messages that the model accepted for an address. */
  arrivals(address?: string): readonly Arrival[] {
    const { arrivals } = this.#remote
    return address === undefined ? arrivals : arrivals.filter(({ to }) => to.includes(address))
  }

  /** Notices that the model accepted for an address, parsed. */
  notices(address = 'app@us.example'): readonly ParsedNotice[] {
    return this.arrivals(address).flatMap(({ content }) => parseNotice(Buffer.from(content, 'latin1')) ?? [])
  }

  operate(
    operation: OperationName,
    ids: readonly string[] | 'all',
    terms: { readonly notBefore?: string; readonly class?: string } = {},
  ): Promise<OperationSummary> {
    return this.#world.operate(operation, ids, terms)
  }

  /** A live recipient as stored in the queue; undefined when there is none. */
  async recipient(address: string): Promise<Recipient | undefined> {
    const [found] = await this.reader.list({ ...ANY_MESSAGE, recipient: address }, { after: 0, limit: 1 })
    const story = found === undefined ? undefined : await this.reader.details(queueIdOf(found.message))
    return story?.recipients.find((one) => one.address === address)
  }

  /** Due time of a live recipient, in seconds since the start of the world. */
  async dueAt(address: string): Promise<number | undefined> {
    const recipient = await this.recipient(address)
    return recipient === undefined ? undefined : (recipient.dueAt - BEGINNING) / 1000
  }

  happened<K extends QueueEvent['kind']>(kind: K): readonly (Extract<QueueEvent, { kind: K }> & { readonly at: Duration })[] {
    return this.history.flatMap(({ at, event }) => (event.kind === kind ? [{ ...(event as Extract<QueueEvent, { kind: K }>), at }] : []))
  }

  /** Identity of this run: equal for equal events and attempts. */
  hash(): string {
    const lines = this.history.map(({ at, event }) => JSON.stringify({ at, ...event, result: undefined }))
    return createHash('sha256').update(lines.join('\n')).update(JSON.stringify(this.#remote.attempts)).digest('hex')
  }
}
