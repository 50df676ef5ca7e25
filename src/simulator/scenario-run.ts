/**
 * Runs a scenario: the real queue — SQLite store, scheduler, MAILER-DAEMON — and the real SMTP client on virtual time,
 * before mail servers that fail as the scenario says. Only the SMTP server is left out: mail is handed to the queue.
 */
import { loadTemplates } from '../bounce/templates.ts'
import { Relay } from '../daemon/relay.ts'
import { Router } from '../delivery/route.ts'
import { sleep } from '../mail/clock.ts'
import { seededRandom } from '../mail/random.ts'
import type { DestinationName } from '../queue/message.ts'
import type { QueueReader } from '../queue/reader.ts'
import { openInlineStore } from '../queue/sqlite/inline-store.ts'
import type { QueueStore } from '../queue/store.ts'
import { Events } from '../telemetry/events.ts'
import { FarSide } from '../testkit/far-side/far-side.ts'
import { Driver, type Busy } from '../testkit/idle.ts'
import { MemoryNet } from '../testkit/memory-net.ts'
import { VirtualClock } from '../testkit/virtual-clock.ts'
import type { Scenario, Stream } from './scenario-file.ts'
import { ScenarioRecord, type ScenarioResult } from './scenario-record.ts'

export interface RunOptions {
  readonly seed: number
  /** Told now and then how much is done, as a share of 1. */
  readonly onProgress?: (done: number) => void
}

export async function runScenario(scenario: Scenario, options: RunOptions): Promise<ScenarioResult> {
  const { store, reader } = await openInlineStore({ memory: true })
  const run = new Run(scenario, options, { store, reader })
  try {
    return await run.watch()
  } finally {
    await run.end()
  }
}

class Run implements Busy {
  /** Messages on their way into the queue. */
  inFlight = 0
  activity = 0
  readonly #scenario: Scenario
  readonly #options: RunOptions
  readonly #clock = new VirtualClock()
  readonly #events = new Events(() => this.#clock.now())
  readonly #driver: Driver
  readonly #relay: Relay
  readonly #router: Router
  readonly #farSide: FarSide
  readonly #record: ScenarioRecord
  readonly #store: QueueStore
  readonly #reader: QueueReader
  /** Messages that have not come in yet. */
  #toCome: number
  #mayBeEmpty = false
  /** Rejects when a message could not be handed in. */
  readonly #failed = Promise.withResolvers<never>()

  constructor(scenario: Scenario, options: RunOptions, { store, reader }: { store: QueueStore; reader: QueueReader }) {
    const { config, written } = scenario.loaded
    const random = seededRandom(options.seed)
    const clock = this.#clock
    this.#scenario = scenario
    this.#options = options
    this.#store = store
    this.#reader = reader
    this.#farSide = new FarSide({ clock, random, script: scenario.script })
    const net = new MemoryNet(clock, this.#farSide)
    this.#driver = new Driver(clock, { net, mail: this })
    this.#router = new Router(config)
    const { templates } = loadTemplates({ config, written })
    this.#relay = new Relay({ config, templates, clock, net, store, random, events: this.#events })
    this.#record = new ScenarioRecord(clock.now(), (destination) => this.#windowOf(destination))
    this.#toCome = scenario.streams.reduce((sum, { messages }) => sum + messages, 0)
    this.#events.listen((event, at) => {
      this.#record.hear(event, at)
      if (event.kind === 'removed' || event.kind === 'quarantined') this.#mayBeEmpty = true
    })
  }

  async watch(): Promise<ScenarioResult> {
    await this.#relay.start()
    for (const stream of this.#scenario.streams) this.#pour(stream).catch((error: unknown) => this.#failed.reject(error))
    await Promise.race([this.#passTime(), this.#failed.promise])
    return { destinations: this.#record.destinations, notices: this.#record.notices, ended: this.#clock.monotonic() }
  }

  async end(): Promise<void> {
    let stopped = false
    const stopping = this.#relay.stop(0).finally(() => (stopped = true))
    await this.#driver.runWhile(() => !stopped)
    await stopping
    this.#farSide.close()
    await this.#store.close()
  }

  async #passTime(): Promise<void> {
    const { duration } = this.#scenario
    const { onProgress = () => undefined } = this.#options
    if (duration === null) {
      const total = this.#toCome
      const settled = await this.#driver.runWhile(() => {
        const recipients = this.#record.destinations.reduce((sum, { accepted }) => sum + accepted.length, 0)
        onProgress(((1 - this.#record.open / Math.max(1, recipients)) * (total - this.#toCome)) / total)
        return !this.#isOver()
      })
      if (!settled) throw new Error('the queue never becomes empty: what is in it waits for nothing')
      return
    }
    for (let part = 1; part <= SLICES; part++) {
      await this.#driver.runUntil(this.#clock.now() - this.#clock.monotonic() + Math.ceil((duration * part) / SLICES))
      onProgress(part / SLICES)
    }
  }

  #isOver(): boolean {
    // Counting takes long while there is much: notices are looked for only when nothing else is left.
    if (this.#toCome > 0 || this.#record.open > 0 || !this.#mayBeEmpty) return false
    this.#mayBeEmpty = false
    return this.#reader.counts(this.#clock.now()).every(({ queue, messages }) => messages === 0 || queue === 'corrupt')
  }

  /** Message by message, each at its time. */
  async #pour(stream: Stream): Promise<void> {
    const content = contentOf(stream)
    for (let n = 0; n < stream.messages; n++) {
      const wait = stream.starts + n * stream.gap - this.#clock.monotonic()
      if (wait > 0) await sleep(this.#clock, wait)
      this.inFlight++
      await this.#submit(stream, n, content)
      this.inFlight--
      this.#toCome--
    }
  }

  async #submit({ name, to, sender, recipients }: Stream, n: number, content: Buffer): Promise<void> {
    const { intake } = this.#relay
    const { id, arrivedAt } = intake.begin()
    const domain = to[n % to.length] ?? ''
    const addresses = Array.from({ length: recipients }, (_, i) => ({ address: `${name}-${n + 1}-${i + 1}@${domain}` }))
    const message = { id, createdAt: arrivedAt, arrivedAt, sender, size: content.length, body: id, smtputf8: false }
    this.#record.expect(id, this.#router.route(addresses[0]?.address ?? '').destination, recipients, arrivedAt)
    await intake.take({ message, recipients: addresses, content: [content], client: null })
    this.activity++
  }

  #windowOf(destination: DestinationName): number {
    const known = this.#relay.wakes.snapshot().find((one) => one.destination === destination)
    return known?.window ?? this.#scenario.loaded.config.initial_destination_concurrency
  }
}

/** How often the progress of a run of fixed length is told. */
const SLICES = 200

/** A message of that size, or of its headers alone when these are longer. */
function contentOf({ name, sender, size }: Stream): Buffer {
  const head = `From: ${sender}\r\nSubject: ${name}\r\n\r\n`
  const line = `${'.'.padStart(70, 'x')}\r\n`
  const missing = Math.max(0, size - head.length)
  const body = line.repeat(Math.ceil(missing / line.length)).slice(0, Math.max(0, missing - 2))
  return Buffer.from(missing === 0 ? head : `${head}${body}\r\n`)
}
