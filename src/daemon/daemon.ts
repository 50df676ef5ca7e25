/**
 * The daemon owns a queue and runs a relay on real ports, with the admin API, the maildrop, periodic maintenance and the HTTP
 * server. These parts are closed in reverse order of opening, also after a failed start.
 */
import { placeOf, sharedPlace } from '../config/values/queue-place.ts'
import { errorMessage } from '../system/caught-error.ts'
import { ToldAddresses } from '../mail/told-addresses.ts'
import { withFixed } from '../config/fixed-parameters.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config, OptionName } from '../config/options.ts'
import type { Endpoint, Net } from '../system/net.ts'
import { type Duration, seconds, sleep } from '../system/clock.ts'
import { SpareFiles } from '../store/folder/spare-files.ts'
import { reroute } from '../queue/reroute.ts'
import { createQueueFolder } from '../store/folder/queue-folder.ts'
import { Fenced, StoreUnavailable, type StoreFailed } from '../store/queue-store.ts'
import { QueueClock } from '../system/queue-clock.ts'
import { systemRandom } from '../system/system-random.ts'
import { systemClock } from '../system/system-clock.ts'
import { SystemNet } from '../system/system-net.ts'
import { eventLoopTurn } from '../system/event-loop.ts'
import type { Events } from '../telemetry/events.ts'
import { RecentLog } from '../telemetry/recent-log.ts'
import { addressKey } from '../queue/address-key.ts'
import { Account } from './account.ts'
import type { Admin } from './admin/admin.ts'
import { openFileQueue } from './file-queue.ts'
import { Monitoring } from './monitoring.ts'
import { LastingPorts } from './lasting-ports.ts'
import { queueAdmin } from './queue-admin.ts'
import { NOT_OPEN } from './queue-api.ts'
import type { OpenedQueue } from './node/opened-queue.ts'
import { nodeParameters, nodeSettings } from './node/shared-settings.ts'
import { Closers } from './closers.ts'
import { Opening } from './opening.ts'
import { prepare, prepareFiles, readySettings, type Preparation } from './preparation.ts'
import type { RelaySettings } from '../relay/rules.ts'
import type { OpenSharedQueue } from './shared-queue.ts'
import { SideWatch } from './upkeep/side-watch.ts'

interface DaemonDeps {
  /** Configuration, from `loadConfig` or `configFrom`. */
  readonly loaded: LoadedConfig
  /** Receives the events of the queue. */
  readonly events: Events
  /** Addresses in the log and in events, in the form of the configuration. */
  readonly addresses?: ToldAddresses | undefined
  /** The network; the real one when absent. */
  readonly net?: Net | undefined
  /** The clock of the queue; one on the clock of the system when absent. */
  readonly clock?: QueueClock | undefined
  /**
   * User to run as after a start by root; default the user of the process. `startDaemon` rejects with AccountUnusable for a user
   * that cannot be assumed.
   */
  readonly user?: string | undefined
  /**
   * Reads the configuration again and reloads the daemon, for `deferd reload`. Resolves when the configuration is in effect, rejects when it
   * has a problem. When absent, the files of the configuration in effect are read again.
   */
  readonly rereads?: ((daemon: Daemon) => Promise<void>) | undefined
}

interface DaemonParts extends DaemonDeps {
  readonly addresses: ToldAddresses
  readonly net: Net
  readonly clock: QueueClock
}

const STAYS_ROOT = 'running as root, with more rights than a relay needs: use deferd start --user NAME, or User= of systemd'

const REJOIN_PAUSE: Duration = seconds(1)

/** Running deliveries may last this long after stop(). */
const GRACE: Duration = seconds(8)

/**
 * Starts a relay in this process: opens the queue directory, listens on `smtpd_listen` and begins deliveries. Resolves when all
 * ports are open. Rejects with ConfigError, AccountUnusable, QueueInUse, QueueTooNew, QueueIncompatible, QueueFolderUnusable,
 * CannotListen or the system's error; nothing is then left open. Installs no signal handlers, because the process belongs to the
 * caller.
 */
export async function startDaemon({
  loaded,
  events,
  addresses = new ToldAddresses(loaded.config.log_addresses),
  net = new SystemNet({ dnsServers: loaded.config.dns_servers }),
  clock = new QueueClock(systemClock),
  user,
  rereads,
}: DaemonDeps): Promise<Daemon> {
  const daemon = new Daemon({ loaded, events, addresses, net, clock, rereads })
  try {
    await daemon.open(user === undefined ? null : Account.named(user))
    return daemon
  } catch (error) {
    // The log has the errors of the stop.
    await daemon.stop().catch(() => undefined)
    throw error
  }
}

export class Daemon {
  /** Path of the queue directory, as configured. */
  readonly queueDirectory: string
  readonly #events: Events
  readonly #log: RecentLog
  readonly #addresses: ToldAddresses
  readonly #ports: LastingPorts
  readonly #clock: QueueClock
  readonly #closers: Closers
  #loaded: LoadedConfig
  readonly #monitoring: Monitoring
  readonly #sideWatch: SideWatch
  /** Opens a shared queue. Undefined before its first opening. */
  #openShared: OpenSharedQueue | undefined
  readonly #admin: Admin
  #opening: Opening
  /** Opens the queue again with the settings in effect. */
  #reopen: (opening: Opening) => Promise<void> = () => Promise.reject(new Error('the daemon was not started'))
  /** Openings whose node was taken over by another node. */
  readonly #takenOver = new WeakSet<Opening>()
  #rejoining: Promise<void> | null = null
  #isNewQueue = false
  /** True from the start of deliveries on. */
  #isOpen = false
  #stopped: Promise<void> | null = null
  readonly #failed = Promise.withResolvers<StoreFailed>()

  /** @internal Use startDaemon. */
  constructor({ loaded, events, addresses, net, clock, rereads = (daemon) => daemon.reload(this.#loaded) }: DaemonParts) {
    this.#clock = clock
    this.#loaded = loaded
    this.#events = events
    this.#addresses = addresses
    this.#log = new RecentLog(clock.wall.now(), addresses)
    events.listen(this.#log.listen)
    this.#closers = new Closers(events)
    this.#ports = new LastingPorts(net)
    this.queueDirectory = loaded.config.queue_directory
    this.#admin = queueAdmin({
      loaded: () => this.#loaded,
      addresses,
      clock: this.#clock,
      events,
      parts: () => this.#opening.partsIfOpen,
      readFiles: () => this.reload(this.#loaded),
      rereads: () => rereads(this),
    })
    this.#opening = this.#newOpening()
    this.#sideWatch = new SideWatch({ clock: this.#clock, events, sides: () => this.#opening.sides })
    this.#monitoring = new Monitoring({
      silence: this.#sideWatch,
      clock: this.#clock,
      events,
      parts: () => this.#opening.partsIfOpen,
      shared: sharedPlace(loaded.config) !== null,
    })
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
    return this.#opening.parts.relay.listeners
  }

  /** `address:port` of http_listen; null when disabled. */
  get http(): string | null {
    return this.#monitoring.bound
  }

  /** URL of the page; null while admin_listen is off. */
  get page(): string | null {
    return this.#admin.url
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
    this.#closers.add(() => spare.restore())
    // The answers to operations follow their ends.
    this.#closers.add(() => this.#admin.close())
    this.#closers.add((grace) => this.#opening.stop(grace))
    this.#reopen = (next) => next.open(settings)
    this.#sideWatch.start()
    const opening = await this.#firstOpening()
    this.#isNewQueue = (await opening.parts.reader.traffic(this.#clock.now())).total.accepted === 0
    account?.regain()
    await opening.listen()
    this.#closers.add(() => this.#monitoring.close())
    await this.#monitoring.apply(this.#loaded.config)
    this.#closers.add(() => this.#admin.refuse())
    await this.#admin.apply(this.#loaded.config)
    account?.assume()
    if (process.getuid?.() === 0) events.emit({ kind: 'note', level: 'warning', text: STAYS_ROOT })
    await this.#startOf(opening)
    await this.#admin.openSocket()
    this.#opening.partsIfOpen?.started()
    this.#isOpen = true
    spare.prepare()
  }

  /** Opens the queue; once more for each takeover of this node by another one during the opening. */
  async #firstOpening(): Promise<Opening> {
    for (;;) {
      const opening = this.#opening
      try {
        await this.#reopen(opening)
        return opening
      } catch (error) {
        if (!this.#isTakeover(opening, error)) throw error
        await opening.stop(0)
        this.#opening = this.#newOpening()
      }
    }
  }

  /**
   * Starts the first opening of the queue. When another node takes over this node during the start, waits until this node has joined again.
   */
  async #startOf(opening: Opening): Promise<void> {
    try {
      await opening.start()
    } catch (error) {
      if (!this.#isTakeover(opening, error)) throw error
    }
    this.#isOpen = true
    if (this.#takenOver.has(opening)) await this.#fenced(opening)
  }

  /** True when `error` of an opening was caused by a takeover of its node. */
  #isTakeover(opening: Opening, error: unknown): boolean {
    if (error instanceof Fenced) this.#takenOver.add(opening)
    return this.#takenOver.has(opening)
  }

  /** Joins the queue again after a takeover. While the first opening is not complete, only notes the takeover: #startOf joins later. */
  #fenced(opening: Opening): Promise<void> | null {
    this.#takenOver.add(opening)
    if (this.#isOpen) this.#rejoining ??= this.#rejoin()
    return this.#rejoining
  }

  #newOpening(): Opening {
    const opening: Opening = new Opening({
      queueDirectory: this.queueDirectory,
      clock: this.#clock,
      net: this.#ports,
      events: this.#events,
      log: this.#log,
      addresses: this.#addresses,
      config: () => this.#loaded.config,
      settings: () => nodeSettings(this.#loaded),
      openQueue: () => this.#openQueue(() => void this.#fenced(opening)),
    })
    return opening
  }

  async #openQueue(fenced: () => void): Promise<OpenedQueue> {
    const { queueDirectory: directory } = this
    const [clock, events, loaded] = [this.#clock, this.#events, this.#loaded]
    switch (placeOf(loaded.config)) {
      case 'folder':
        return openFileQueue({ directory, clock, events, failed: (failure) => this.#fail(failure) })
      case 'database': {
        // Loaded on demand: most daemons have their queue in a folder, and need no client of PostgreSQL.
        const { sharedQueueOpener } = await import('./shared-queue.ts')
        this.#openShared ??= sharedQueueOpener(clock)
        return this.#openShared({ directory, clock, events, loaded, fenced, transacted: (took) => this.#monitoring.transacted(took) })
      }
    }
  }

  /**
   * Joins the queue as a new node after a takeover. Abandons the deliveries of the former node, whose leases have ended. The SMTP ports
   * stay open, and connections wait until the node has joined.
   */
  async #rejoin(): Promise<void> {
    this.#isOpen = false
    this.#ports.keep()
    await this.#opening.stop(0)
    for (let reason = ''; this.#stopped === null && !this.#isOpen;) {
      this.#opening = this.#newOpening()
      try {
        await this.#reopen(this.#opening)
        await this.#opening.listen()
        await this.#opening.start()
        if (this.#takenOver.has(this.#opening)) throw new Error('another node took this one over again')
        this.#isOpen = true
      } catch (error) {
        if (errorMessage(error) !== reason)
          this.#events.emit({ kind: 'note', level: 'error', text: `cannot join the queue: ${errorMessage(error)}` })
        reason = errorMessage(error)
        await this.#opening.stop(0)
        await sleep(this.#clock, REJOIN_PAUSE)
      }
    }
    await this.#ports.release()
    this.#rejoining = null
  }

  #settingsOf(preparation: Preparation): RelaySettings {
    for (const { text } of preparation.warnings) this.#events.emit({ kind: 'note', level: 'warning', text })
    return readySettings(preparation)
  }

  #fail(failure: StoreFailed): void {
    const text = `${failure.message}; check the disk. This process refuses mail and has to be started again`
    this.#events.emit({ kind: 'note', level: 'fatal', text })
    this.#failed.resolve(failure)
  }

  /**
   * Applies a changed configuration, with its listeners and certificates, and routes queued mail again. Rejects, without effect,
   * when a file that the configuration names cannot be used, a port cannot be opened, or the queue is not open. Fixed parameters change only
   * at a restart (withFixed). `inEffect` is called before the mail is routed, which takes long for much mail.
   */
  async reload(changed: LoadedConfig, inEffect: () => void = () => undefined): Promise<void> {
    if (!this.#isOpen) throw new StoreUnavailable(`${NOT_OPEN}; repeat the reload`)
    const { relay, store, reader, membership, node, outbox, services, series } = this.#opening.parts
    const { loaded, kept } = withFixed(changed, this.#loaded)
    const key = await addressKey(loaded.config, { store, clock: this.#clock, random: systemRandom })
    const settings = this.#settingsOf(prepareFiles(loaded))
    try {
      await this.#monitoring.apply(loaded.config)
      await this.#admin.apply(loaded.config)
      await relay.reload(settings)
    } catch (error) {
      await this.#monitoring.apply(this.#loaded.config)
      await this.#admin.apply(this.#loaded.config)
      throw error
    }
    this.#noteRestarts(kept, loaded.config)
    series.reloaded(this.#loaded, loaded)
    this.#loaded = loaded
    this.#addresses.change(loaded.config.log_addresses, key)
    this.#reopen = (next) => next.open(settings)
    node?.describe(nodeParameters(loaded))
    await outbox.configure()
    services?.schedules.plan()
    inEffect()
    const moved = await reroute({
      store,
      reader,
      routeOf: (address, message) => relay.routeOf(address, message),
      woken: (due, options) => relay.scheduler.workAdded(due, options),
      routes: (destination) => membership.owns(destination),
      pause: eventLoopTurn,
    })
    this.#events.emit({
      kind: 'note',
      level: 'info',
      text: `reload: new configuration in effect; destination changed for ${moved} ${moved === 1 ? 'recipient' : 'recipients'}`,
    })
  }

  /** Logs which changes of a reload need a restart. */
  #noteRestarts(kept: readonly OptionName[], { inet_protocols }: Config): void {
    const { config, written } = this.#loaded
    const former = config.inet_protocols
    const texts = [
      ...kept.map((name) => `${name} stays ${written.get(name) || 'unset'}`),
      ...(inet_protocols.join() === former.join() ? [] : [`open listeners keep inet_protocols = ${former.join(', ')}`]),
    ]
    for (const text of texts) this.#events.emit({ kind: 'note', level: 'warning', text: `reload: ${text}: restart deferd to change it` })
  }

  /**
   * Refuses new mail, waits for running deliveries and closes all parts, within 10 s. Rejects with StoreSilent when this required ending a
   * thread or a session that did not answer. Further calls return the same promise.
   */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#sideWatch.during(this.#close()))
  }

  async #close(): Promise<void> {
    await this.#rejoining
    await this.#closers.close(GRACE)
  }
}
