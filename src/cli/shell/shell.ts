/**
 * The Shell is the environment of a command: streams, environment variables, time, and the queue. Commands use nothing else, so
 * that tests can run them in the test process.
 */
import type { PageUser } from '../../admin/sessions.ts'
import type { TraceProgress, TraceSummary, TraceTerms } from '../../sessions/traces.ts'
import type { LoginCode } from '../../daemon/local-routes.ts'
import type { Clock, Duration, MachineClock } from '../../system/clock.ts'
import type { Random } from '../../system/random.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { Config } from '../../config/options.ts'
import type { DefaultFiles } from '../../config/values/sources.ts'
import type { SubmissionFiles } from '../../queue/intake/maildrop-writer.ts'
import type { LiveStatus } from '../../queue/queue-status.ts'
import type { NodeDirectory } from '../../store/membership/node-directory.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import type { SharesJson } from '../../resources/share-json.ts'
import type { Endpoint } from '../../system/net.ts'
import type { LiveDestination } from '../../queue/scheduler/destination.ts'
import type { LiveShare } from '../../queue/scheduler/turns/share-activity.ts'
import { clockOf } from '../../system/queue-clock.ts'
import type { QueueClient } from './queue-client.ts'

/** An output stream. `write` resolves when the stream has accepted the data, so that long output is not buffered in memory. */
export interface Output {
  write(data: string | Uint8Array): Promise<void>
  /** Width of the terminal; null for a pipe or file. */
  readonly columns: number | null
  /** Lines of the terminal; null for a pipe or file. */
  readonly rows: number | null
}

/** A queue that is open for reading, with its clock. */
export interface OpenedReader {
  readonly reader: QueueReader
  readonly clock: Clock
}

/** A relay that is asked through its API. Paths are below that of the API. */
export interface RelayApi {
  /** The value of a resource. */
  get<T>(path: string): Promise<T>
  /** The values of a resource that has one per line, at most `most`. */
  rows<T>(path: string, most?: number): AsyncGenerator<T>
  /** The bytes of a resource. */
  content(path: string): Promise<AsyncIterable<Uint8Array>>
  /** The answer to a change. `limit` is the time without data after which it is abandoned. */
  json(change: {
    readonly method: 'POST' | 'DELETE'
    readonly path: string
    readonly body?: object
    readonly limit?: Duration
  }): Promise<unknown>
}

/** Source of a command that reads: a queue that this machine opens, or a relay that is asked through its API. */
export type QueueSource = (OpenedReader & { readonly api: null }) | { readonly api: RelayApi; readonly clock: Clock }

/** Reads the queue of this machine, or asks the relay of `--host`. */
export const withSource = <T>(
  shell: Pick<Shell, 'api' | 'clock' | 'openReader'>,
  config: Config,
  read: (source: QueueSource) => Promise<T>,
): Promise<T> =>
  shell.api === null
    ? withReader(shell, config, (opened) => read({ ...opened, api: null }))
    : read({ api: shell.api, clock: clockOf(null, shell.clock) })

/** A resource: the answer of a query here, or that of the API at its path. */
export const resourceOf = <T>(source: QueueSource, path: string, query: (opened: OpenedReader) => Promise<T>): Promise<T> =>
  source.api === null ? query(source) : source.api.get<T>(path)

/** Reads the queue, and closes it. */
export async function withReader<T>(
  shell: Pick<Shell, 'openReader'>,
  config: Config,
  read: (opened: OpenedReader) => Promise<T>,
): Promise<T> {
  const opened = await shell.openReader(config)
  try {
    return await read(opened)
  } finally {
    await opened.reader.close()
  }
}

export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly uid: number
  readonly platform: NodeJS.Platform
  /** Configuration files that are read when the command line names none. */
  readonly defaultFiles: DefaultFiles
  /** User name for the audit log. */
  readonly user: string
  /** Login name, used as the sender of the user's mail. */
  readonly login: string
  /** Full name of the user, from the password file; empty when it has none. */
  readonly fullName: () => string
  readonly pid: number
  readonly clock: MachineClock
  readonly random: Random
  readonly stdin: AsyncIterable<Uint8Array>
  readonly stdout: Output
  readonly stderr: Output
  /** The file system functions that submissions use. */
  readonly files: SubmissionFiles
  /** Asks a question at the terminal; null without a terminal. `hidden` disables the echo. */
  ask(question: string, options?: { readonly hidden: boolean }): Promise<string | null>
  /** The relay of `--host`; null for the queue of this machine. */
  readonly api: RelayApi | null
  /** Opens the queue for reading, with or without a running daemon. */
  openReader(config: Config): Promise<OpenedReader>
  /**
   * Opens the queue for changes: through the daemon when one runs, else as the owner of the queue. `skipsDaemon` for a queue in
   * PostgreSQL that is not the one of the daemon in queue_directory.
   */
  openQueueClient(config: Config, options?: { readonly skipsDaemon: boolean }): Promise<QueueClient>
  /**
   * Destination states in the memory of the running daemon, or of all nodes that answer. Empty when the user may not use the socket
   * or the daemon does not answer; null when no daemon runs.
   */
  liveDestinations(config: Config): Promise<readonly LiveDestination[] | null>
  /** The nodes that share the queue; null for a queue in a folder, which one daemon owns. */
  openNodes(config: Config): Promise<NodeDirectory | null>
  /** State of the running daemon, or of all nodes that answer; null when no daemon runs. */
  liveStatus(config: Config): Promise<LiveStatus | null>
  /** The shares of the queue as the running daemon knows them, by the path of their route with its query; null when no daemon runs. */
  liveShares(config: Config, path: string): Promise<SharesJson | null>
  /** The shares with deliveries at the nodes that answer; none for a queue in a folder. */
  nodeShares(config: Config): Promise<readonly LiveShare[]>
  /** A code that logs in to the page of the running daemon; null when no daemon runs. */
  newLoginCode(config: Config, user: PageUser): Promise<LoginCode | null>
  /** Shows the lines of sessions of the running daemon, until the trace ends; null when no daemon runs. */
  trace(config: Config, terms: TraceTerms & { readonly who: string }, show: (progress: TraceProgress) => void): Promise<TraceSummary | null>
  /** True when a daemon answers, whose ports are open then. Rejects with CommandError: 75 when it is silent, 77 when another user runs it. */
  isDaemonRunning(config: Config): Promise<boolean>
  /** Has the running daemon read its configuration's files again. False when no daemon runs. Rejects when the daemon cannot use a file. */
  readFilesAgain(config: Config): Promise<boolean>
  /** Has the running daemon read its configuration again. False when no daemon runs. Rejects when the configuration has a problem. */
  reloadDaemon(config: Config): Promise<boolean>
  /** Starts the relay. `readAgain` loads the configuration again at SIGHUP. */
  startDaemon(loaded: LoadedConfig, readAgain: () => Promise<LoadedConfig>, user?: string): Promise<RunningDaemon>
  /** Resolves at SIGTERM or SIGINT. Calls `reload` at each SIGHUP. */
  untilStopped(reload: () => void): Promise<void>
  /** The command that runs this program, for examples in the output. */
  readonly program: string
}

/** Addresses and queue directory of a running daemon. */
export interface Described {
  readonly listeners: readonly Endpoint[]
  readonly queueDirectory: string
  /** Address and port of http_listen; null when disabled. */
  readonly http: string | null
  /** URL of the page; null while admin_listen is off. */
  readonly page: string | null
  /** True when the queue had never held mail at the start. */
  readonly isNewQueue: boolean
}

export interface RunningDaemon {
  described(): Described
  /** Queue id of the first message that is accepted after the start. */
  readonly firstAccepted: Promise<string>
  /** Reloads the configuration. Problems are reported, and the previous configuration then stays in effect. */
  reload(): void
  stop(): Promise<void>
}
