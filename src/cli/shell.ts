/**
 * The process as a command sees it: streams, environment, time, and the queue behind it. Commands touch nothing else,
 * so that tests run them whole and in process.
 */
import type { Clock } from '../mail/clock.ts'
import type { Random } from '../mail/random.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/options.ts'
import type { QueueReader } from '../queue/reader.ts'
import type { Endpoint } from '../delivery/net.ts'
import type { LiveDestination } from '../queue/operations.ts'
import type { OperationsDesk } from './operations-desk.ts'

/** Where a command prints. A write resolves when the other side took it, so that long output needs no memory. */
export interface Output {
  write(data: string | Uint8Array): Promise<void>
  /** Columns of the terminal; null when this is none. */
  readonly columns: number | null
}

export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly uid: number
  /** Who is asking, for the audit. */
  readonly user: string
  /** The login name alone, for mail sent by this user. */
  readonly login: string
  readonly pid: number
  readonly clock: Clock
  readonly random: Random
  readonly stdin: AsyncIterable<Uint8Array>
  readonly stdout: Output
  readonly stderr: Output
  /** Asks whoever sits at the terminal; null when nobody does. What is `hidden` does not appear while it is typed. */
  ask(question: string, options?: { readonly hidden: boolean }): Promise<string | null>
  /** Opens the queue to look at it, beside a running daemon or without one. */
  openReader(config: Config): Promise<QueueReader>
  /** Opens the queue to change it: by way of the daemon when one runs, else as its owner. */
  openDesk(config: Config): Promise<OperationsDesk>
  /** Destinations in the memory of the daemon; none when we may not ask it, null when no daemon runs. */
  liveDestinations(config: Config): Promise<readonly LiveDestination[] | null>
  /** Builds the relay and opens its doors; `readAgain` is how SIGHUP reads the configuration. */
  startDaemon(loaded: LoadedConfig, readAgain: () => Promise<LoadedConfig>): Promise<RunningDaemon>
  /** Resolves with SIGTERM or SIGINT; `reload` is called for each SIGHUP. */
  untilStopped(reload: () => void): Promise<void>
  /** How this program is started, for examples that can be copied. */
  readonly program: string
}

/** Where a running daemon can be found. */
export interface Described {
  readonly listeners: readonly Endpoint[]
  readonly queueDirectory: string
  /** Address and port of /metrics and /healthz; null when off. */
  readonly http: string | null
}

export interface RunningDaemon {
  described(): Described
  /** Takes up a changed configuration; one that has problems is reported and the old one kept. */
  reload(): void
  stop(): Promise<void>
}

/** Nobody reads our output any more (`| head`): a reason to stop, not an error. */
export class BrokenPipe extends Error {
  override readonly name = 'BrokenPipe'
}

/** A failure that is told in one sentence and ends the command with a sysexits code. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

/** sysexits(3) */
export const EX = { usage: 64, data: 65, unavailable: 69, software: 70, osError: 71, temporary: 75, notPermitted: 77, config: 78 } as const
