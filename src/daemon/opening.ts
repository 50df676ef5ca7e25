/**
 * One opening of the queue by the daemon: the store, the relay, and the parts that work for them. They are opened in three steps, since
 * the user of the process changes in between, and closed in reverse order.
 */
import { lstat, mkdir, open, opendir, rename, unlink } from 'node:fs/promises'
import type { Config } from '../config/options.ts'
import { Operations } from '../queue/operations.ts'
import { ANY_MESSAGE, type QueueReader } from '../store/queue-reader.ts'
import type { Membership } from '../store/membership/membership.ts'
import type { QueueStore } from '../store/queue-store.ts'
import { errorMessage } from '../system/caught-error.ts'
import type { Duration } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import type { QueueClock } from '../system/queue-clock.ts'
import { systemRandom } from '../system/system-random.ts'
import type { Events } from '../telemetry/events.ts'
import { BulkThrottle } from './bulk-throttle.ts'
import { ClockWatch } from './clock-watch.ts'
import { ControlServer } from './control-server.ts'
import { IndexCheck } from './index-check.ts'
import { Maintenance } from './maintenance.ts'
import { Relay, type RelaySettings } from './relay.ts'

/** A queue that the daemon has opened. */
export interface OpenedQueue {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly membership: Membership
  /** Closes reader and store, and gives up the ownership. */
  readonly close: () => Promise<void>
}

export interface OpeningDeps {
  readonly queueDirectory: string
  readonly clock: QueueClock
  readonly net: Net
  readonly events: Events
  /** The configuration in effect. */
  readonly config: () => Config
  readonly openQueue: () => Promise<OpenedQueue>
}

/** Parts that exist while the queue is open. */
export interface OpenParts extends OpenedQueue {
  readonly relay: Relay
}

export class Opening {
  readonly #deps: OpeningDeps
  readonly #closing: ((grace: Duration) => Promise<void> | void)[] = []
  #parts: OpenParts | null = null
  #operations: Operations | null = null

  constructor(deps: OpeningDeps) {
    this.#deps = deps
  }

  /** The open parts. Throws before `open`. */
  get parts(): OpenParts {
    if (this.#parts === null) throw new Error('the queue is not open')
    return this.#parts
  }

  /** Opens the queue and makes the relay. Rejects as `openQueue` does. */
  async open(settings: RelaySettings): Promise<void> {
    const { clock, net, events, config, openQueue } = this.#deps
    const queue = await openQueue()
    this.#closing.push(queue.close)
    const { store, reader, membership } = queue
    const watch = new ClockWatch({ clock, store, events })
    watch.start(clock.resume(await reader.clockRecord(), config().maximal_backoff_time))
    this.#closing.push(() => watch.stop())
    const relay = new Relay({ ...settings, clock, random: systemRandom, net, store, membership, events })
    this.#closing.push((grace) => relay.stop(grace))
    this.#parts = { ...queue, relay }
  }

  /** Opens the SMTP ports. Rejects with CannotListen. */
  async listen(): Promise<void> {
    await this.parts.relay.listen((domain, who) => this.#flushDomain(domain, who))
  }

  /** Starts deliveries, and opens the control socket and the maildrop. */
  async start(): Promise<void> {
    await this.parts.relay.start()
    await this.#openControl(this.parts)
    await this.#openMaintenance(this.parts)
  }

  /**
   * Refuses new mail, waits up to `grace` for running deliveries and closes all parts. Errors are logged, because the other parts
   * must still be closed: accepted mail is in the store, however the process ends.
   */
  async stop(grace: Duration): Promise<void> {
    for (let last = this.#closing.pop(); last !== undefined; last = this.#closing.pop()) {
      try {
        await last(grace)
      } catch (error) {
        this.#deps.events.emit({ kind: 'note', level: 'error', text: `while stopping: ${errorMessage(error)}` })
      }
    }
  }

  async #openControl({ relay, store, reader }: OpenParts): Promise<void> {
    const { clock, events, queueDirectory } = this.#deps
    const throttle = new BulkThrottle(clock, events)
    const operations = new Operations({
      store,
      reader,
      clock,
      policies: () => relay.policies,
      events,
      scheduler: relay.schedulerControl,
      throttle: (messages) => throttle.wait(messages),
    })
    this.#operations = operations
    const control = new ControlServer({ queueDirectory, operations, status: () => relay.status(), clock })
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
      this.#deps.events.emit({ kind: 'note', level: 'error', text: `cannot flush ${domain} for ${who}: ${errorMessage(error)}` })
    })
    return true
  }

  async #openMaintenance({ relay, store }: OpenParts): Promise<void> {
    const { clock, events, config, queueDirectory } = this.#deps
    const maildrop = relay.maildrop(queueDirectory, { lstat, mkdir, open, opendir, rename, unlink })
    await maildrop.prepare()
    maildrop.start()
    this.#closing.push(() => maildrop.stop())
    const maintenance = new Maintenance({ config, clock, store, scheduler: relay.scheduler, events })
    this.#closing.push(() => maintenance.stop())
    const indexCheck = new IndexCheck({ clock, store })
    this.#closing.push(() => indexCheck.stop())
  }
}
