/**
 * The daemon: a relay on the real ports, the one owner of its queue, with the control socket for commands, the maildrop,
 * the chores and the page of metrics. What was opened is closed in reverse, also when opening fails half-way.
 */
import { ConfigError, type LoadedConfig } from '../config/load.ts'
import type { Endpoint, Net } from '../delivery/net.ts'
import { seconds, type Duration } from '../mail/clock.ts'
import { Maildrop, prepareMaildrop } from '../queue/maildrop.ts'
import { Operations } from '../queue/operations.ts'
import { takeOwnership } from '../queue/owner-lock.ts'
import type { QueueReader } from '../queue/reader.ts'
import { reroute } from '../queue/rerouting.ts'
import { openQueueReader } from '../queue/sqlite/queue-reader.ts'
import { searchInThread } from '../queue/sqlite/threaded-search.ts'
import { openWorkerStore } from '../queue/sqlite/worker-store.ts'
import type { QueueStore } from '../queue/store.ts'
import { parseListen } from '../config/endpoints.ts'
import { systemClock } from '../system/clock.ts'
import { readDeliverySecrets } from '../system/delivery-secrets.ts'
import { SystemNet } from '../system/net.ts'
import { systemRandom } from '../system/random.ts'
import { turn } from '../system/turn.ts'
import type { Events, QueueEvent } from '../telemetry/events.ts'
import { openMetrics } from '../telemetry/metrics.ts'
import { ControlServer } from './control.ts'
import { HttpServer } from './http.ts'
import { Maintenance } from './maintenance.ts'
import { templatesOf } from './notice-texts.ts'
import { Relay, type RelaySettings } from './relay.ts'
import { RightOfWay } from './right-of-way.ts'

export interface DaemonParts {
  readonly loaded: LoadedConfig
  readonly events: Events
  readonly net?: Net | undefined
}

/** A port that we were told to listen on cannot be had (EX_UNAVAILABLE). */
export class CannotListen extends Error {
  override readonly name = 'CannotListen'
  readonly exitCode = 69
}

/** How long deliveries may still run when the daemon is told to stop. */
const GRACE: Duration = seconds(8)

/** Starts a daemon. Rejects with an error that says why not, with the exit code for it, and leaves nothing behind. */
export async function startDaemon({ loaded, events, net = new SystemNet() }: DaemonParts): Promise<Daemon> {
  const daemon = new Daemon(loaded, events, net)
  try {
    await daemon.open()
    return daemon
  } catch (error) {
    await daemon.stop()
    throw error
  }
}

export class Daemon {
  readonly queueDirectory: string
  /** Where mail is taken. */
  listeners: readonly Endpoint[] = []
  /** Where /metrics and /healthz are served; null when off. */
  http: string | null = null
  readonly #events: Events
  readonly #net: Net
  readonly #closing: (() => Promise<void> | void)[] = []
  #loaded: LoadedConfig
  #open: { readonly relay: Relay; readonly store: QueueStore; readonly reader: QueueReader } | null = null
  #stopped: Promise<void> | null = null

  constructor(loaded: LoadedConfig, events: Events, net: Net) {
    this.#loaded = loaded
    this.#events = events
    this.#net = net
    this.queueDirectory = loaded.config.queue_directory
  }

  /** Opens one part after the other, noting how each is closed. */
  async open(): Promise<void> {
    const events = this.#events
    const directory = this.queueDirectory
    const settings = settingsOf(this.#loaded, events)
    const ownership = takeOwnership(directory)
    this.#closing.push(() => ownership.release())
    const { store, opened } = await openWorkerStore({ directory }, { onQuarantined: (message) => events.emit(setAside(message)) })
    this.#closing.push(() => store.close())
    for (const message of opened.quarantined) events.emit(setAside(message))
    const relay = new Relay({ ...settings, clock: systemClock, random: systemRandom, net: this.#net, store, events })
    this.#closing.push(() => relay.stop(GRACE))
    this.listeners = await listening('for mail', () => relay.listen())
    await relay.start()
    const reader = openQueueReader(directory)
    this.#closing.push(() => reader.close())
    this.#open = { relay, store, reader }
    await this.#openControl(relay, store, reader)
    await this.#openHttp(relay, store, reader)
    await this.#openChores(relay, store)
  }

  async #openControl(relay: Relay, store: QueueStore, reader: QueueReader): Promise<void> {
    const config = () => this.#loaded.config
    const events = this.#events
    const rightOfWay = new RightOfWay(systemClock, events)
    const operations = new Operations({
      store,
      reader,
      clock: systemClock,
      config,
      events,
      wakes: relay.wakes,
      search: () => searchInThread(this.queueDirectory),
      giveWay: (messages) => rightOfWay.giveWay(messages),
    })
    const control = new ControlServer({ queueDirectory: this.queueDirectory, operations, clock: systemClock, pid: process.pid })
    await control.start()
    this.#closing.push(() => {
      rightOfWay.end()
      return control.stop()
    })
  }

  async #openHttp(relay: Relay, store: QueueStore, reader: QueueReader): Promise<void> {
    const { http_listen: address } = this.#loaded.config
    if (address === '') return
    const clock = systemClock
    const metrics = openMetrics({
      clock,
      counts: (now) => reader.counts(now),
      destinations: () => relay.wakes.snapshot(),
      commit: () => store.ping(),
    })
    this.#events.listen(metrics.listen)
    const checks = [
      { name: 'store', run: () => store.ping() },
      { name: 'scheduler', run: () => relay.scheduler.alive() },
    ]
    const server = new HttpServer({ metrics, checks, clock })
    const bound = await listening('for HTTP', () => server.listen(parseListen(address, 'http_listen')))
    this.http = bound.address.includes(':') ? `[${bound.address}]:${bound.port}` : `${bound.address}:${bound.port}`
    this.#closing.push(() => server.close())
  }

  async #openChores(relay: Relay, store: QueueStore): Promise<void> {
    await prepareMaildrop(this.queueDirectory)
    const acceptor = { accept: (...submission: Parameters<Relay['acceptor']['accept']>) => relay.acceptor.accept(...submission) }
    const maildrop = new Maildrop({ queueDirectory: this.queueDirectory, acceptor, events: this.#events })
    await maildrop.takeIn()
    const config = () => this.#loaded.config
    const { scheduler } = relay
    const maintenance = new Maintenance({ config, clock: systemClock, store, scheduler, maildrop, events: this.#events })
    this.#closing.push(() => maintenance.stop())
  }

  /**
   * Takes up a changed configuration; queued mail is routed anew. Throws, and changes nothing, when it cannot be used.
   * Listeners, certificates, the folder of the queue, the page of metrics and the log keep what they started with.
   */
  async reload(loaded: LoadedConfig): Promise<void> {
    if (this.#open === null) return
    const { relay, store, reader } = this.#open
    await relay.reload(settingsOf(loaded, this.#events))
    this.#loaded = loaded
    const moved = await reroute({
      store,
      reader,
      routeOf: (address, message) => relay.routeOf(address, message),
      woken: (due, options) => relay.scheduler.woken(due, options),
      now: () => systemClock.now(),
      pause: turn,
    })
    this.#events.emit({
      kind: 'note',
      level: 'info',
      text: `reload: configuration read again, ${moved} ${moved === 1 ? 'recipient' : 'recipients'} routed anew`,
    })
  }

  /** Takes no more mail, lets deliveries end, closes everything. Resolves within ten seconds; may be called twice. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#close())
  }

  async #close(): Promise<void> {
    for (let last = this.#closing.pop(); last !== undefined; last = this.#closing.pop()) await last()
  }
}

/** Reads what the configuration names. Throws ConfigError with all that is wrong. */
function settingsOf(loaded: LoadedConfig, events: Events): RelaySettings {
  const { templates, warnings } = templatesOf(loaded)
  for (const text of warnings) events.emit({ kind: 'note', level: 'warning', text })
  return { config: loaded.config, templates, secrets: secretsOf(loaded) }
}

function secretsOf({ config }: LoadedConfig): RelaySettings['secrets'] {
  try {
    return readDeliverySecrets(config)
  } catch (cause) {
    throw new ConfigError([{ where: 'files', text: (cause as Error).message }])
  }
}

const setAside = ({ queueId, why }: { readonly queueId: string; readonly why: string }): QueueEvent => ({
  kind: 'note',
  level: 'error',
  text: `${queueId}: moved to corrupt: ${why}`,
})

async function listening<T>(what: string, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen()
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause
    throw new CannotListen(`cannot listen ${what}: ${cause.message}`, { cause })
  }
}
