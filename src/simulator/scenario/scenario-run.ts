/**
 * Runs a scenario in virtual time. The queue (SQLite store, scheduler, MAILER-DAEMON) and the SMTP client are the real ones; the
 * remote servers fail as the scenario defines. The SMTP server is not used: messages enter the queue directly.
 */
import { loadTemplates } from '../../bounce/templates.ts'
import { Relay } from '../../relay/relay.ts'
import { Router } from '../../delivery/routing/router.ts'
import { openRoutingTables } from '../../delivery/routing/routing-tables.ts'
import { sleep, type Duration, type QueueTime } from '../../system/clock.ts'
import { seededRandom } from '../../system/random.ts'
import { releasedAt, type DestinationName } from '../../mail/message.ts'
import { acceptedTimes } from '../../mail/message-times.ts'
import { inChunks } from '../../store/chunks.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import { openInlineStore } from '../../store/sqlite/open-store.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import { Events } from '../../telemetry/events.ts'
import { RemoteNetwork } from '../../testkit/remote/remote-network.ts'
import { TimeDriver, type Busy } from '../../testkit/virtual/time-driver.ts'
import { MemoryNet } from '../../testkit/virtual/memory-net.ts'
import { VirtualClock } from '../../testkit/virtual/virtual-clock.ts'
import { outagesOf } from './outages.ts'
import type { Scenario, Stream } from './scenario-file.ts'
import { ScenarioRecord, type ScenarioResult } from './scenario-record.ts'
import { ScenarioShares } from './scenario-shares.ts'

interface RunOptions {
  readonly seed: number
  /** Called with the progress, from 0 to 1. */
  readonly onProgress?: (done: number) => void
}

/** Runs a scenario to its end. Rejects if the queue cannot become empty, or if a message cannot be queued. */
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
  inFlight = 0
  activity = 0
  readonly #scenario: Scenario
  readonly #options: RunOptions
  readonly #clock = new VirtualClock()
  readonly #events = new Events(() => this.#clock.now())
  readonly #driver: TimeDriver
  readonly #relay: Relay
  readonly #router: Router
  readonly #remote: RemoteNetwork
  readonly #record: ScenarioRecord
  readonly #shares: ScenarioShares
  readonly #store: QueueStore
  readonly #reader: QueueReader
  /** Messages that are not yet submitted. */
  #toCome: number
  #mayBeEmpty = false
  /** Rejects when a submission fails. */
  readonly #failed = Promise.withResolvers<never>()

  constructor(scenario: Scenario, options: RunOptions, { store, reader }: { store: QueueStore; reader: QueueReader }) {
    const { config, written } = scenario.loaded
    const random = seededRandom(options.seed)
    const clock = this.#clock
    this.#scenario = scenario
    this.#options = options
    this.#store = store
    this.#reader = reader
    this.#remote = new RemoteNetwork({ clock, random, script: scenario.script })
    const net = new MemoryNet(clock, this.#remote)
    this.#driver = new TimeDriver(clock, { net, mail: this })
    this.#router = new Router(config, openRoutingTables(config).tables)
    const { templates } = loadTemplates({ config, written })
    this.#relay = new Relay({ config, templates, clock, net, store, random, events: this.#events })
    this.#shares = new ScenarioShares(config)
    this.#record = new ScenarioRecord(clock.now(), (destination) => this.#windowOf(destination))
    this.#toCome = scenario.streams.reduce((sum, { messages }) => sum + messages, 0)
    this.#events.listen((event, at) => {
      this.#record.onEvent(event, at)
      if (event.kind === 'removed' || event.kind === 'quarantined') this.#mayBeEmpty = true
    })
  }

  async watch(): Promise<ScenarioResult> {
    await this.#relay.start()
    for (const stream of this.#scenario.streams) this.#submitAll(stream).catch((error: unknown) => this.#failed.reject(error))
    await Promise.race([this.#passTime(), this.#failed.promise])
    const ended = this.#clock.monotonic()
    const outages = outagesOf(this.#scenario.script.rules, ended)
    const { destinations, shares, notices } = this.#record
    return { destinations, shares, notices, outages, ended }
  }

  async end(): Promise<void> {
    let stopped = false
    const stopping = this.#relay.stop(0).finally(() => (stopped = true))
    await this.#driver.runWhile(() => !stopped)
    await stopping
    this.#remote.close()
    await this.#store.close()
  }

  async #passTime(): Promise<void> {
    const { duration } = this.#scenario
    const { onProgress = () => undefined } = this.#options
    if (duration === null) {
      const total = this.#toCome
      const settled = await this.#driver.runWhile(async () => {
        const recipients = this.#record.destinations.reduce((sum, { accepted }) => sum + accepted.length, 0)
        onProgress(((1 - this.#record.open / Math.max(1, recipients)) * (total - this.#toCome)) / total)
        return !(await this.#isOver())
      })
      if (!settled) throw new Error('the queue cannot become empty: no timer and no delivery is pending')
      return
    }
    for (let part = 1; part <= PROGRESS_REPORTS; part++) {
      await this.#driver.runUntil(this.#clock.now() - this.#clock.monotonic() + Math.ceil((duration * part) / PROGRESS_REPORTS))
      onProgress(part / PROGRESS_REPORTS)
    }
  }

  async #isOver(): Promise<boolean> {
    // Counting a large queue is slow, so the queue is counted only when nothing except notices can be left.
    if (this.#toCome > 0 || this.#record.open > 0 || !this.#mayBeEmpty) return false
    this.#mayBeEmpty = false
    return (await this.#reader.counts()).every(({ queue, messages }) => messages === 0 || queue === 'corrupt')
  }

  /** Submits the messages of a stream, each at its time. */
  async #submitAll(stream: Stream): Promise<void> {
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

  async #submit(stream: Stream, n: number, content: Buffer): Promise<void> {
    const { name, to, sender, recipients } = stream
    const { intake } = this.#relay
    const { id, arrivedAt } = intake.begin()
    const domain = to[n % to.length] ?? ''
    const addresses = Array.from({ length: recipients }, (_, i) => ({ address: `${name}-${n + 1}-${i + 1}@${domain}` }))
    const message = {
      id,
      createdAt: arrivedAt,
      arrivedAt,
      sender,
      size: content.length,
      contentId: id,
      smtputf8: false,
      ...this.#limitsOf(stream, arrivedAt),
      ...this.#shares.orderOf(stream),
    }
    const { destination } = this.#router.route(addresses[0]?.address ?? '', sender)
    const { wall } = this.#clock
    const expected = { destination, recipients, share: this.#shares.recorded(message) }
    this.#record.expect(id, expected, { arrived: wall.of(arrivedAt), released: wall.of(releasedAt(message)) })
    await intake.take({ message, recipients: addresses, content: inChunks(content), client: null })
    this.activity++
  }

  #limitsOf({ not_before: notBefore, expires, maximum_attempts: maxAttempts }: Stream, now: QueueTime) {
    const span = (given: Duration) => (given === 0 ? undefined : ({ kind: 'span', span: given } as const))
    const times = acceptedTimes({ release: span(notBefore), expires: span(expires) }, { now, wall: this.#clock.wall })
    return { ...times, maxAttempts: maxAttempts === 0 ? undefined : maxAttempts }
  }

  #windowOf(destination: DestinationName): number {
    const known = this.#relay.schedulerControl.snapshot().find((one) => one.destination === destination)
    return known?.window ?? this.#scenario.loaded.config.initial_destination_concurrency
  }
}

/** Number of reports during a run with a fixed duration. */
const PROGRESS_REPORTS = 200

/** Content of the stream's message size, but at least of the header's size. */
function contentOf({ name, sender, size }: Stream): Buffer {
  const head = `From: ${sender}\r\nSubject: ${name}\r\n\r\n`
  const line = `${'.'.padStart(70, 'x')}\r\n`
  const missing = Math.max(0, size - head.length)
  const body = line.repeat(Math.ceil(missing / line.length)).slice(0, Math.max(0, missing - 2))
  return Buffer.from(missing === 0 ? head : `${head}${body}\r\n`)
}
