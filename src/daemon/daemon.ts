/**
 * The daemon owns a queue and runs a relay on real ports, with the control socket, the maildrop, periodic maintenance and the
 * HTTP server. These parts are closed in reverse order of opening, also after a failed start.
 */
import { lstat, mkdir, open, opendir, rename, unlink } from 'node:fs/promises'
import { errorMessage } from '../system/caught-error.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/options.ts'
import type { Endpoint, Net } from '../system/net.ts'
import { type Clock, type Duration, MINUTE, seconds, sleep, type Timer } from '../system/clock.ts'
import { Operations } from '../queue/operations.ts'
import { ANY_MESSAGE, type QueueReader } from '../store/queue-reader.ts'
import { SpareFiles } from '../store/spare-files.ts'
import { reroute } from '../queue/reroute.ts'
import { QueueInUse } from '../store/errors.ts'
import { createQueueFolder } from '../store/queue-folder.ts'
import { repairLines, type Repair } from '../store/sqlite/file/repair.ts'
import { openStore, type OwnedStore } from '../store/sqlite/open-store.ts'
import type { QueueStore, StoreFailed } from '../store/queue-store.ts'
import { completeTally } from '../store/queue-tally.ts'
import { QueueClock } from '../system/queue-clock.ts'
import { systemClock } from '../system/system-clock.ts'
import { SystemNet } from '../system/system-net.ts'
import { systemRandom } from '../system/system-random.ts'
import { eventLoopTurn } from '../system/event-loop.ts'
import type { Events, QueueEvent } from '../telemetry/events.ts'
import { openMetrics } from '../telemetry/metrics.ts'
import { ControlServer } from './control-server.ts'
import { HttpPort } from './http-port.ts'
import { HttpServer } from './http-server.ts'
import { Account } from './account.ts'
import { ClockWatch } from './clock-watch.ts'
import { IndexCheck } from './index-check.ts'
import { Maintenance } from './maintenance.ts'
import { prepare, prepareFiles, readySettings, type Preparation } from './preparation.ts'
import { Relay, type RelaySettings } from './relay.ts'
import { BulkThrottle } from './bulk-throttle.ts'

/** Arguments of `startDaemon`. */
export interface DaemonDeps {
  /** Configuration, from `loadConfig` or `configFrom`. */
  readonly loaded: LoadedConfig
  /** Receives the events of the queue. */
  readonly events: Events
  /** The network; the real one when absent. */
  readonly net?: Net | undefined
  /**
   * User to run as after a start by root; default the user of the process. `startDaemon` rejects with AccountUnusable for a user
   * that cannot be assumed.
   */
  readonly user?: string | undefined
}

const STAYS_ROOT = 'running as root, with more rights than a relay needs: use deferd start --user NAME, or User= of systemd'

/** Time for which a start waits for a command that owns the queue. */
const LOCK_PATIENCE: Duration = seconds(5)
/** Pause between two tries to own the queue. */
const LOCK_PAUSE: Duration = 100

/** Time limit for running deliveries after stop(). */
const GRACE: Duration = seconds(8)

/**
 * Starts a relay in this process: opens the queue directory, listens on `smtpd_listen` and begins deliveries. Resolves when all
 * ports are open. Rejects with ConfigError, AccountUnusable, QueueInUse, QueueTooNew, QueueIncompatible, QueueFolderUnusable,
 * CannotListen or the system's error; nothing is then left open. Installs no signal handlers, because the process belongs to the
 * caller.
 */
export async function startDaemon({ loaded, events, net = new SystemNet(), user }: DaemonDeps): Promise<Daemon> {
  const daemon = new Daemon(loaded, events, net)
  try {
    await daemon.open(user === undefined ? null : new Account(user))
    return daemon
  } catch (error) {
    await daemon.stop()
    throw error
  }
}

/** A running relay. */
export class Daemon {
  /** Path of the queue directory, as configured. */
  readonly queueDirectory: string
  readonly #events: Events
  readonly #net: Net
  readonly #clock = new QueueClock(systemClock)
  readonly #closing: (() => Promise<void> | void)[] = []
  #loaded: LoadedConfig
  #operations: Operations | null = null
  #relay: Relay | null = null
  #http: HttpPort | null = null
  #isNewQueue = false
  #open: { readonly relay: Relay; readonly store: QueueStore; readonly reader: QueueReader } | null = null
  #stopped: Promise<void> | null = null
  readonly #failed = Promise.withResolvers<StoreFailed>()

  /** @internal Use startDaemon. */
  constructor(loaded: LoadedConfig, events: Events, net: Net) {
    this.#loaded = loaded
    this.#events = events
    this.#net = net
    this.queueDirectory = loaded.config.queue_directory
  }

  /**
   * Resolves when the store has failed permanently. Mail is then refused, and nothing can be recorded. The process should end
   * with the error's exit code, so that its supervisor starts a new one.
   */
  get failed(): Promise<StoreFailed> {
    return this.#failed.promise
  }

  /** Addresses of the SMTP server. */
  get listeners(): readonly Endpoint[] {
    return this.#relay?.listeners ?? []
  }

  /** `address:port` of /metrics and /healthz; null when disabled. */
  get http(): string | null {
    return this.#http?.bound ?? null
  }

  /** True when the queue had never held mail when it was opened. */
  get isNewQueue(): boolean {
    return this.#isNewQueue
  }

  /** Opens the parts in order. The caller stops the daemon when this rejects. @internal */
  async open(account: Account | null): Promise<void> {
    const events = this.#events
    const directory = this.queueDirectory
    const settings = this.#settingsOf(prepare(this.#loaded, account))
    createQueueFolder(directory, account)
    account?.act()
    const spare = new SpareFiles(directory)
    spare.release()
    this.#closing.push(() => spare.restore())
    const { store, reader, recovery, close } = await this.#openStore()
    this.#closing.push(close)
    this.#isNewQueue = (await reader.traffic(this.#clock.now())).total.accepted === 0
    if (recovery.created) events.emit({ kind: 'note', level: 'info', text: `new queue created in ${directory}` })
    if (recovery.repair !== null) noteRepair(events, recovery.repair)
    for (const message of recovery.quarantined) events.emit(quarantineNote(message))
    await this.#resumeClock(store, reader)
    const relay = new Relay({ ...settings, clock: this.#clock, random: systemRandom, net: this.#net, store, events })
    this.#closing.push(() => relay.stop(GRACE))
    account?.regain()
    await relay.listen((domain, who) => this.#flushDomain(domain, who))
    this.#relay = relay
    await this.#openHttp(relay, store)
    account?.assume()
    if (process.getuid?.() === 0) events.emit({ kind: 'note', level: 'warning', text: STAYS_ROOT })
    await relay.start()
    this.#open = { relay, store, reader }
    await this.#openControl(relay, store, reader)
    await this.#openMaintenance(relay, store)
    spare.prepare()
  }

  /** Logs the warnings. Throws ConfigError with all problems. */
  #settingsOf(preparation: Preparation): RelaySettings {
    for (const { text } of preparation.warnings) this.#events.emit({ kind: 'note', level: 'warning', text })
    return readySettings(preparation)
  }

  /** Opens the queue. While a command owns it, tries again for LOCK_PATIENCE, then rejects with QueueInUse. */
  async #openStore(): Promise<OwnedStore> {
    const events = this.#events
    const deadline = this.#clock.monotonic() + LOCK_PATIENCE
    for (;;) {
      try {
        return await openStore(this.queueDirectory, {
          threads: true,
          create: true,
          onQuarantined: (message) => events.emit(quarantineNote(message)),
          onRepaired: (repair) => noteRepair(this.#events, repair),
          onFailed: (failure) => this.#fail(failure),
        })
      } catch (error) {
        if (!(error instanceof QueueInUse) || this.#clock.monotonic() >= deadline) throw error
        await sleep(this.#clock, LOCK_PAUSE)
      }
    }
  }

  #fail(failure: StoreFailed): void {
    const text = `${failure.message}; check the disk. This process refuses mail and has to be started again`
    this.#events.emit({ kind: 'note', level: 'fatal', text })
    this.#failed.resolve(failure)
  }

  async #resumeClock(store: QueueStore, reader: QueueReader): Promise<void> {
    const step = this.#clock.resume(await reader.clockRecord(), this.#loaded.config.maximal_backoff_time)
    const watch = new ClockWatch({ clock: this.#clock, store, events: this.#events })
    watch.start(step)
    this.#closing.push(() => watch.stop())
  }

  async #openControl(relay: Relay, store: QueueStore, reader: QueueReader): Promise<void> {
    const events = this.#events
    const throttle = new BulkThrottle(this.#clock, events)
    const operations = new Operations({
      store,
      reader,
      clock: this.#clock,
      policies: () => relay.policies,
      events,
      scheduler: relay.schedulerControl,
      throttle: (messages) => throttle.wait(messages),
    })
    this.#operations = operations
    const control = new ControlServer({
      queueDirectory: this.queueDirectory,
      operations,
      status: () => relay.status(),
      clock: this.#clock,
    })
    await control.start()
    this.#closing.push(() => {
      throttle.end()
      return control.stop()
    })
  }

  /** Flushes the mail of a domain, as `postqueue -s` does. Returns false while the daemon starts. */
  #flushDomain(domain: string, who: string): boolean {
    if (this.#operations === null) return false
    const filter = { ...ANY_MESSAGE, recipient: `*@${domain}` }
    const selection = { kind: 'filter', filter, limit: null } as const
    const request = { operation: 'flush', selection, queues: null, purge: false, dryRun: false, who, commandLine: domain } as const
    this.#operations.perform(request).catch((error: unknown) => {
      this.#events.emit({ kind: 'note', level: 'error', text: `cannot flush ${domain} for ${who}: ${errorMessage(error)}` })
    })
    return true
  }

  async #openHttp(relay: Relay, store: QueueStore): Promise<void> {
    let server: (() => HttpServer) | undefined
    const port = new HttpPort(() => (server ??= this.#httpServers(relay, store))())
    this.#http = port
    this.#closing.push(() => port.close())
    await port.apply(this.#loaded.config)
  }

  /** Counts the metrics from the first use of HTTP on. The returned function makes a server that shows them. */
  #httpServers(relay: Relay, store: QueueStore): () => HttpServer {
    const clock = this.#clock
    const metrics = openMetrics({
      clock,
      tally: (largest) => store.tally(largest),
      destinations: () => relay.schedulerControl.snapshot(),
    })
    this.#events.listen(metrics.listen)
    // Not measured by a scrape, because a commit costs a sync of the disk, and anyone who reaches the port may scrape.
    const check = async (): Promise<void> => {
      const startedAt = clock.monotonic()
      await store.ping()
      metrics.committed(clock.monotonic() - startedAt)
    }
    this.#closing.push(everyMinute(clock, check))
    const checks = [
      { name: 'store', run: check },
      { name: 'space', run: () => relay.intake.assertSpace() },
      { name: 'scheduler', run: () => relay.scheduler.alive() },
    ]
    // Counts the queue in the background, so that the first scrape waits less. The count ends when the store is closed.
    completeTally(() => store.tally(0)).catch(() => undefined)
    return () => new HttpServer({ metrics, checks, clock })
  }

  async #openMaintenance(relay: Relay, store: QueueStore): Promise<void> {
    const maildrop = relay.maildrop(this.queueDirectory, { lstat, mkdir, open, opendir, rename, unlink })
    await maildrop.prepare()
    maildrop.start()
    this.#closing.push(() => maildrop.stop())
    const config = () => this.#loaded.config
    const { scheduler } = relay
    const maintenance = new Maintenance({ config, clock: this.#clock, store, scheduler, events: this.#events })
    this.#closing.push(() => maintenance.stop())
    const indexCheck = new IndexCheck({ clock: this.#clock, store })
    this.#closing.push(() => indexCheck.stop())
  }

  /**
   * Applies a changed configuration, with its listeners and certificates, and routes queued mail again. Rejects, without effect,
   * when a file that the configuration names cannot be used, or a port cannot be opened. queue_directory changes only at a restart.
   */
  async reload(loaded: LoadedConfig): Promise<void> {
    if (this.#open === null) return
    const { relay, store, reader } = this.#open
    const settings = this.#settingsOf(prepareFiles(loaded))
    await this.#http?.apply(loaded.config)
    try {
      await relay.reload(settings)
    } catch (error) {
      await this.#http?.apply(this.#loaded.config)
      throw error
    }
    this.#noteRestarts(loaded.config)
    this.#loaded = loaded
    const moved = await reroute({
      store,
      reader,
      routeOf: (address, message) => relay.routeOf(address, message),
      woken: (due, options) => relay.scheduler.workAdded(due, options),
      pause: eventLoopTurn,
    })
    this.#events.emit({
      kind: 'note',
      level: 'info',
      text: `reload: new configuration in effect; destination changed for ${moved} ${moved === 1 ? 'recipient' : 'recipients'}`,
    })
  }

  /** Logs which changes of a reload need a restart. */
  #noteRestarts({ queue_directory, inet_protocols }: Config): void {
    const former = this.#loaded.config.inet_protocols
    const texts = [
      ...(queue_directory === this.queueDirectory ? [] : [`queue_directory stays ${this.queueDirectory}`]),
      ...(inet_protocols.join() === former.join() ? [] : [`open listeners keep inet_protocols = ${former.join(', ')}`]),
    ]
    for (const text of texts) this.#events.emit({ kind: 'note', level: 'warning', text: `reload: ${text}: restart deferd to change it` })
  }

  /**
   * Refuses new mail, waits for running deliveries and closes all parts. Resolves within 10 s. Further calls return the same
   * promise.
   */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#close())
  }

  async #close(): Promise<void> {
    for (let last = this.#closing.pop(); last !== undefined; last = this.#closing.pop()) {
      try {
        await last()
      } catch (error) {
        // The other parts must still be closed. Accepted mail is in the store, however the process ends.
        this.#events.emit({ kind: 'note', level: 'error', text: `while stopping: ${errorMessage(error)}` })
      }
    }
  }
}

function noteRepair(events: Events, repair: Repair): void {
  for (const text of repairLines(repair)) events.emit({ kind: 'note', level: 'error', text })
  for (const message of repair.corrupt) events.emit(quarantineNote(message))
}

const quarantineNote = ({ queueId, why }: { readonly queueId: string; readonly why: string }): QueueEvent => ({
  kind: 'note',
  level: 'error',
  text: `${queueId}: moved to the corrupt queue: ${why}`,
})

/**
 * Runs a check once a minute until the returned function is called. A failure is ignored here, because the parts that need the
 * store report it.
 */
function everyMinute(clock: Clock, check: () => Promise<void>): () => void {
  const again = (): Timer =>
    clock.after(MINUTE, () => {
      check().catch(() => undefined)
      timer = again()
    })
  let timer = again()
  return () => timer.cancel()
}
