/**
 * A world of its own: the real relay, with the store in memory or in a file, on a virtual clock, and mail servers that
 * fail as told, all in this process. Nothing takes real time, and nothing is left to chance: the same seed and the same
 * test give the same history. Any number of worlds can live side by side.
 */
import type { Socket } from 'node:net'
import { loadTemplates } from '../bounce/templates.ts'
import { configFrom } from '../config/load.ts'
import type { Config } from '../config/options.ts'
import type { Endpoint, Listener } from '../delivery/net.ts'
import { normalizeAddress } from '../mail/address.ts'
import type { Duration, Instant } from '../mail/clock.ts'
import { seededRandom } from '../mail/random.ts'
import { Operations, type LiveDestination, type OperationName, type Tally } from '../queue/operations.ts'
import type { QueueReader } from '../queue/reader.ts'
import type { QueueStore } from '../queue/store.ts'
import { systemNet } from '../system/net.ts'
import { Events } from '../telemetry/events.ts'
import { Destination, ruleFrom } from './destination.ts'
import type { ReceivedMail } from './far-side/events.ts'
import { FarSide } from './far-side/far-side.ts'
import type { RuleText } from './far-side/rule-keys.ts'
import { readScript } from './far-side/script.ts'
import { History } from './history.ts'
import { Driver } from './idle.ts'
import { Ledger, type Attempt } from './ledger.ts'
import { Mailbox } from './mailbox.ts'
import { MemoryNet } from './memory-net.ts'
import { systemError } from './memory-socket.ts'
import { Recipient } from './recipient.ts'
import { RelayLives } from './relay-lives.ts'
import { toDuration, type Time } from './time.ts'
import { VirtualClock } from './virtual-clock.ts'
import { openQueue, type Between, type OpenedQueue, type WorldOptions } from './world-options.ts'

/** What nodemailer's createTransport takes. */
export interface WorldTransport {
  readonly host: string
  readonly port: number
  readonly ignoreTLS: true
  getSocket(options: unknown, callback: (error: Error | null, socket?: { connection: Socket }) => void): void
}

const HOSTNAME = 'deferd.example'
/** The relay takes mail here, inside the world. */
const DOOR: Endpoint = { address: '127.0.0.1', port: 2525 }
const CLIENT = '127.0.0.1'

/**
 * Starts a world. Rejects with a ConfigError that tells every mistake in its configuration or script. `between` is for
 * simulations of the relay itself.
 */
export async function createWorld(options: WorldOptions = {}, between: Between = {}): Promise<World> {
  const { config, written } = configFrom({ smtpd_listen: [`${DOOR.address}:${DOOR.port}`], ...options.config }, HOSTNAME)
  const { templates } = loadTemplates({ config, written })
  const script = options.script === undefined ? undefined : readScript(options.script, 'script')
  const queue = await openQueue(options.store ?? 'memory')
  const world = new World({ options, between, config, templates, script, queue })
  await world.start()
  return world
}

interface WorldParts {
  readonly queue: OpenedQueue
  readonly options: WorldOptions
  readonly between: Between
  readonly config: Config
  readonly templates: ReturnType<typeof loadTemplates>['templates']
  readonly script: ReturnType<typeof readScript> | undefined
}

export class World implements AsyncDisposable {
  readonly clock: VirtualClock
  readonly net: MemoryNet
  readonly farSide: FarSide
  /** What happens in the queue; listen to be told. */
  readonly events: Events
  readonly #parts: WorldParts
  readonly #driver: Driver
  readonly #history = new History()
  readonly #ledger = new Ledger()
  readonly #received = new Map<string, ReceivedMail[]>()
  readonly #ports: Listener[] = []
  readonly #lives: RelayLives
  #catchingUp = false
  /** Something left the queue, or was done to it, since it was last looked at. */
  #mayBeEmpty = true

  /** @internal Use createWorld. */
  constructor(parts: WorldParts) {
    const { options, script } = parts
    const seed = options.seed ?? 1
    this.#parts = parts
    this.clock = new VirtualClock({ zone: options.zone, due: () => this.#catchUp() })
    this.events = new Events(() => this.clock.now())
    this.farSide = new FarSide({
      clock: this.clock,
      random: seededRandom(seed),
      script,
      hear: (event) => this.#history.add({ at: this.#elapsed(), where: 'far side', event }),
      keep: (mail) => this.#receive(mail),
    })
    this.net = new MemoryNet(this.clock, this.farSide)
    this.#driver = new Driver(this.clock, { net: this.net })
    this.events.listen((event, at) => {
      this.#history.add({ at: this.#elapsed(), where: 'queue', event })
      this.#ledger.hear(event, at)
      if (event.kind === 'removed' || event.kind === 'operated' || event.kind === 'quarantined') this.#mayBeEmpty = true
    })
    const { clock, net, events } = this
    this.#lives = new RelayLives({ ...parts, seed, clock, net, events, did: (what) => this.#did(what) })
  }

  get store(): QueueStore {
    return this.#lives.queue.store
  }

  get reader(): QueueReader {
    return this.#lives.queue.reader
  }

  /** @internal Opens the doors. */
  async start(): Promise<void> {
    await this.#lives.start()
  }

  // --- the two verbs of time

  /** Lets so much time pass: everything due up to and including then happens, and what it sets in motion at that instant. */
  async advance(time: Time): Promise<void> {
    await this.#driver.runUntil(this.clock.now() + toDuration(time))
  }

  /** Lets time pass until the queue is empty; mail on hold does not count. */
  async settle(): Promise<void> {
    this.#mayBeEmpty = true
    const settled = await this.#driver.runWhile(() => !this.#isEmpty())
    if (!settled) throw new Error('the queue never becomes empty: what is in it waits for nothing')
  }

  /** What the wall clock of the world shows: milliseconds since 1970. */
  now(): Instant {
    return this.clock.now()
  }

  // --- what the world is like

  /** A domain of the far side, to be told how to fail. */
  destination(domain: string): Destination {
    return new Destination(domain, {
      obey: (rule) => this.farSide.obey(rule),
      forget: (isForgotten) => this.farSide.forget(isForgotten),
      tellOf: (name, zone) => this.farSide.tellOf(name, zone),
      elapsed: () => this.#elapsed(),
    })
  }

  /** Any rule of the script language; it holds before those that were said earlier. */
  rule(written: RuleText, name = 'rule'): void {
    this.farSide.obey(ruleFrom(name, written))
  }

  /** The wall clock is set forward, or back when negative; nothing else notices. */
  stepClock(by: Duration): void {
    this.#did(`set the clock by ${by} ms`, { by })
    this.clock.step(by)
  }

  // --- handing mail in

  /** For nodemailer: `createTransport(world.transport())`. */
  transport(): WorldTransport {
    return {
      host: HOSTNAME,
      port: DOOR.port,
      ignoreTLS: true,
      getSocket: (_options, callback) => {
        this.#dialIn().then(
          (connection) => callback(null, { connection }),
          (error: unknown) => callback(error instanceof Error ? error : new Error(String(error))),
        )
      },
    }
  }

  /** Opens a real port on loopback that leads into the world, for clients in other processes. */
  async openPort(port = 0): Promise<Endpoint> {
    const listener = await systemNet.listen({ address: '127.0.0.1', port }, (outside) => {
      this.#dialIn().then(
        (inside) => join(outside, inside),
        () => outside.destroy(),
      )
    })
    this.#ports.push(listener)
    return { address: listener.address, port: listener.port }
  }

  // --- what became of it

  recipient(address: string): Recipient {
    const name = normalizeAddress(address)
    return new Recipient(name, this.#ledger.of(name), this.mailbox(name))
  }

  /** Every try for an address, oldest first. */
  attempts(address: string): readonly Attempt[] {
    return this.recipient(address).attempts
  }

  /** What became of an address, one line for each event. */
  story(address: string): readonly string[] {
    return this.recipient(address).story
  }

  /** What the far side holds for an address. */
  mailbox(address: string): Mailbox {
    const name = normalizeAddress(address)
    return new Mailbox(name, this.#received.get(name) ?? [])
  }

  history(): History {
    return this.#history
  }

  // --- operators

  /** An operator's order for messages by queue id, or for all. */
  async operate(operation: OperationName, ids: readonly string[] | 'all' = 'all'): Promise<Tally> {
    this.#did(operation)
    const { config } = this.#parts
    const { reader } = this
    const { store, clock, events } = this.#lives.life
    const operations = new Operations({ store, reader, clock, events, config: () => config, wakes: this.#lives.relay.wakes })
    const selection = ids === 'all' ? { kind: 'filter' as const, filter: {} } : { kind: 'ids' as const, ids }
    return this.#driven(operations.perform({ operation, selection, who: 'operator', words: operation }))
  }

  /** Suspends a destination, or lets it go on. */
  async suspend(destination: string): Promise<void> {
    await this.#driven(this.#lives.relay.wakes.suspend(destination, 'operator'))
  }

  async resume(destination: string): Promise<void> {
    await this.#driven(this.#lives.relay.wakes.resume(destination, 'operator'))
  }

  /** Stops the relay in order and starts it again on the same queue. */
  async restart(): Promise<void> {
    await this.#driven(this.#lives.relay.stop(0))
    await this.#lives.renew()
    await this.#driven(this.start())
  }

  /**
   * Kills the relay as kill -9 would: what it has not committed is lost, its connections are reset. After `downFor` it is
   * started again on the queue it left behind.
   */
  async crash({ downFor = 0 }: { readonly downFor?: Time } = {}): Promise<void> {
    this.kill(downFor)
    await this.#driver.catchUp()
  }

  /** @internal The same, from within anything that happens; nothing of the relay goes on after the call. */
  kill(downFor: Time = 0): void {
    this.#lives.kill(toDuration(downFor))
  }

  /** The destinations that the relay has in mind just now. */
  destinations(): readonly LiveDestination[] {
    return this.#lives.relay.wakes.snapshot()
  }

  /** Is there a relay to talk to? */
  get isUp(): boolean {
    return this.#lives.life.alive
  }

  /** The end of the world. */
  async close(): Promise<void> {
    await Promise.all(this.#ports.splice(0).map((port) => port.close()))
    if (this.#lives.life.alive) await this.#driven(this.#lives.relay.stop(0))
    this.farSide.close()
    await this.store.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #dialIn(): Promise<Socket> {
    if (!this.#lives.life.alive) throw systemError('ECONNREFUSED', 'connect', DOOR)
    return this.net.dialFrom(CLIENT, DOOR)
  }

  /** Lets time pass until the relay has done something; nothing more of it is to be expected once it is killed. */
  async #driven<T>(work: Promise<T>): Promise<T> {
    const life = this.#lives.life
    let done = false
    const end = () => {
      done = true
    }
    work.then(end, end)
    await this.#driver.runWhile(() => !done && life.alive)
    if (!done) throw new Error('the relay was killed meanwhile')
    const result = await work
    await this.#driver.catchUp()
    return result
  }

  /** Something is due without any time passing: it runs by itself, so that a test need not ask for it. */
  #catchUp(): void {
    if (this.#catchingUp) return
    this.#catchingUp = true
    void this.#driver.catchUp().finally(() => (this.#catchingUp = false))
  }

  #isEmpty(): boolean {
    if (!this.#mayBeEmpty || !this.#lives.life.alive) return false
    this.#mayBeEmpty = false
    return this.reader.counts(this.clock.now()).every(({ queue, messages }) => messages === 0 || queue === 'hold' || queue === 'corrupt')
  }

  #receive(mail: ReceivedMail): void {
    for (const recipient of mail.recipients) {
      const mails = this.#received.get(recipient)
      if (mails === undefined) this.#received.set(recipient, [mail])
      else mails.push(mail)
    }
  }

  #did(did: string, details: Readonly<Record<string, unknown>> = {}): void {
    this.#mayBeEmpty = true
    this.#history.add({ at: this.#elapsed(), where: 'test', event: { did, ...details } })
  }

  #elapsed(): Duration {
    return this.clock.monotonic()
  }
}

/** Bytes go from one to the other and back until either ends. */
function join(one: Socket, other: Socket): void {
  one.pipe(other).pipe(one)
  one.on('error', () => other.destroy())
  other.on('error', () => one.destroy())
}
