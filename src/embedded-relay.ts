/** A relay inside another program: its configuration in code, and callbacks for its events and log records. */
import { configFrom } from './config/load.ts'
import type { RelayConfig } from './config/relay-config.ts'
import type { Level } from './events/event-kind.ts'
import type { PublishedEvent } from './events/wire-events.ts'
import { ToldAddresses } from './mail/told-addresses.ts'
import { typedEvents } from './outbox/event-data.ts'
import { isoTime } from './presentation/text.ts'
import type { StoreFailed } from './store/queue-store.ts'
import type { WallTime } from './system/clock.ts'
import type { Endpoint } from './system/net.ts'
import { QueueClock } from './system/queue-clock.ts'
import { systemClock } from './system/system-clock.ts'
import { Events } from './telemetry/events.ts'
import { logRecords } from './telemetry/log-records.ts'
import { startDaemon } from './daemon/daemon.ts'

/** Arguments of `startRelay`. An error that a callback throws does not reach the relay: it is an uncaught exception of the process. */
export interface RelayOptions {
  /** Parameters and tables of docs/configuration.md. Nothing is read from a configuration file or the environment. */
  readonly config: RelayConfig
  /**
   * Called with each event of this relay after its commit, in their order, also of types to which nothing has subscribed (docs/events.md). Called
   * synchronously: it should return quickly.
   */
  readonly onEvent?: ((event: PublishedEvent) => void) | undefined
  /** Called with each record of the log (docs/monitoring.md), which the relay writes nowhere else. Called synchronously. */
  readonly onLog?: ((record: JsonLogRecord) => void) | undefined
}

/** A record as `log_format = "json"` writes it. */
export interface JsonLogRecord {
  /** ISO 8601, UTC. */
  readonly time: string
  readonly level: Level
  /** Kind of the record, such as `attempted`; docs/monitoring.md lists the kinds with their members. */
  readonly event: string
  readonly [member: string]: unknown
}

/** A relay inside this process. */
export interface EmbeddedRelay {
  /** Addresses and ports of the SMTP server, open until `stop`. */
  readonly listeners: readonly Endpoint[]
  /**
   * Resolves when an I/O error has left the state of the disk unknown: the relay refuses mail until the process is started again, which
   * recovers the queue.
   */
  readonly failed: Promise<StoreFailed>
  /**
   * Applies a changed configuration, with its listeners and certificates, and routes queued mail anew. `queue_directory` changes only at the next
   * start. Rejects, without effect, with ConfigError or CannotListen.
   */
  reload(config: RelayConfig): Promise<void>
  /** Refuses new mail, waits up to 8 s for running deliveries, and closes everything. Further calls return the same promise. */
  stop(): Promise<void>
}

/**
 * Starts a relay in this process: opens `queue_directory`, listens on `smtpd_listen` and begins deliveries. Resolves when all ports are open.
 * Rejects with ConfigError, QueueInUse, QueueTooNew, QueueIncompatible, QueueFolderUnusable, CannotListen or the error of the system; nothing
 * is open then. Installs no signal handlers.
 */
export async function startRelay({ config, onEvent, onLog }: RelayOptions): Promise<EmbeddedRelay> {
  const loaded = configFrom(config)
  const events = new Events(() => systemClock.now())
  const clock = new QueueClock(systemClock)
  const addresses = new ToldAddresses(loaded.config.log_addresses)
  if (onEvent !== undefined)
    events.listen((happened, at) => {
      for (const event of typedEvents(happened, clock.wall)) call(onEvent, addresses.value({ ...event, timestamp: isoTime(at) }))
    })
  if (onLog !== undefined)
    events.listen((happened, at) => {
      for (const { level, members } of logRecords(happened, addresses)) call(onLog, recordOf(at, level, members))
    })
  const daemon = await startDaemon({ loaded, events, addresses, clock })
  return {
    get listeners() {
      return daemon.listeners
    },
    failed: daemon.failed,
    reload: async (changed) => daemon.reload(configFrom(changed)),
    stop: () => daemon.stop(),
  }
}

const recordOf = (at: WallTime, level: Level, members: object): JsonLogRecord => ({ time: isoTime(at), level, ...members }) as JsonLogRecord

/** Calls a callback. Its error must not end a transaction of the relay half-way. */
function call<T>(callback: (value: T) => void, value: T): void {
  try {
    callback(value)
  } catch (error) {
    process.nextTick(() => {
      throw error
    })
  }
}
