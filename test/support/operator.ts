/**
 * Runs whole commands in process, as an operator at a shell would, on a real queue folder. The clock does not advance by itself.
 */
import { FileAccess } from '../../src/cli/queue-client/file-access.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDirectClient } from '../../src/cli/queue-client/direct-client.ts'
import {
  askForDestinations,
  askForLoginCode,
  askForShares,
  askToTrace,
  askWhetherRunning,
  askToReadFiles,
  askToReload,
  askForStatus,
  openDaemonClient,
} from '../../src/cli/queue-client/api-client.ts'
import type { QueueAccess } from '../../src/cli/queue-client/queue-access.ts'
import { run } from '../../src/cli/program.ts'
import { BrokenPipe } from '../../src/cli/shell/exit.ts'
import type { Output, RunningDaemon, Shell } from '../../src/cli/shell/shell.ts'
import type { LiveStatus } from '../../src/queue/queue-status.ts'
import { seededRandom } from '../../src/system/random.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

export const NOW = Date.UTC(2026, 10, 20, 10, 0, 0)

/** Sequences that set colours. */
const COLOURS = new RegExp(`${String.fromCharCode(0x1b)}\\[(?:\\d|3\\d)m`, 'g')

export const withoutColours = (text: string): string => text.replaceAll(COLOURS, '')

export interface Terminal {
  /** Columns of the terminal; null for a pipe. */
  readonly columns?: number | null
  /** Lines of the terminal; null, or absent, for a pipe. */
  readonly rows?: number | null
  readonly stdin?: string | Uint8Array
  /** Answer to questions. */
  readonly answer?: string
  /** Variables beside NO_COLOR, which is set; an empty one allows colours. */
  readonly env?: Readonly<Record<string, string>>
  readonly calledAs?: string
  readonly uid?: number
  readonly platform?: NodeJS.Platform
  /** Number of bytes after which the reader of the output closes the pipe. */
  readonly breaksAfter?: number
  readonly daemon?: RunningDaemon
  /** Starts a relay when there is no `daemon`; by default a start fails. */
  readonly start?: Shell['startDaemon']
  /** State of a relay in this process. */
  readonly status?: () => Promise<LiveStatus>
  readonly files?: Shell['files']
  /** The operator's clock, which does not advance, when absent. */
  readonly clock?: Shell['clock']
  /** Resolves when the operator interrupts the command; at once when absent. */
  readonly interrupted?: Promise<void>
  /** Access to a queue that is not in the operator's folder. */
  readonly access?: Partial<QueueAccess>
}

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
  readonly asked: readonly string[]
}

class Sink implements Output {
  readonly columns: number | null
  readonly rows: number | null
  readonly #breaksAfter: number
  #chunks: Buffer[] = []
  #size = 0

  constructor(
    columns: number | null,
    { rows = null, breaksAfter = Infinity }: { readonly rows?: number | null; readonly breaksAfter?: number } = {},
  ) {
    this.columns = columns
    this.rows = rows
    this.#breaksAfter = breaksAfter
  }

  write(data: string | Uint8Array): Promise<void> {
    if (this.#size > this.#breaksAfter) return Promise.reject(new BrokenPipe('nobody reads on'))
    this.#chunks.push(Buffer.from(data))
    this.#size += data.length
    return Promise.resolve()
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString()
  }
}

export class Operator {
  readonly directory = mkdtempSync(join(tmpdir(), 'deferd-operator-'))
  readonly clock = new VirtualClock({ startsAt: NOW })
  /** Continues from command to command, so that names of files differ. */
  readonly #random = seededRandom(1)
  /** Files read instead of ./deferd.toml and /etc/deferd/deferd.toml; they do not exist unless a test creates them. */
  readonly defaultFiles = { folder: join(this.directory, 'deferd.toml'), system: join(this.directory, 'etc/deferd.toml') }

  /** Changes the queue through the store, as its owner. */
  async own<T>(work: (store: QueueStore) => Promise<T>): Promise<T> {
    const { store, close } = await openStore(this.directory, { threads: false, create: true })
    try {
      return await work(store)
    } finally {
      await close()
    }
  }

  async run(argv: readonly string[], terminal: Terminal = {}): Promise<Ran> {
    const {
      columns = null,
      stdin = '',
      answer,
      env = {},
      calledAs = 'deferd',
      uid = 0,
      platform = process.platform,
      rows = null,
      breaksAfter,
      daemon,
      start = () => Promise.reject(new Error('no daemon here')),
      status,
      files = { open, rm },
      clock = this.clock,
      access = {},
      interrupted = Promise.resolve(),
    } = terminal
    const out = new Sink(columns, { rows, ...(breaksAfter === undefined ? {} : { breaksAfter }) })
    const err = new Sink(columns)
    const asked: string[] = []
    const shell: Shell = {
      env: { DEFERD_QUEUE_DIRECTORY: this.directory, DEFERD_MYHOSTNAME: 'relay.example', NO_COLOR: '1', ...env },
      uid,
      platform,
      defaultFiles: this.defaultFiles,
      user: 'operator',
      login: 'operator',
      fullName: () => '',
      pid: 42,
      program: 'deferd',
      clock,
      random: this.#random,
      stdin: (async function* () {
        yield Buffer.from(stdin)
      })(),
      stdout: out,
      stderr: err,
      files,
      ask: (question) => {
        asked.push(question)
        return Promise.resolve(answer ?? null)
      },
      api: null,
      openReader: (config) => new FileAccess(config, this.clock).openReader(),
      openQueueClient: async (config) => (await openDaemonClient(config.queue_directory)) ?? openDirectClient(config, this.clock),
      liveDestinations: (config) => askForDestinations(config.queue_directory),
      liveStatus: async (config) => status?.() ?? askForStatus(config.queue_directory),
      liveShares: (config, path) => askForShares(config.queue_directory, path),
      nodeShares: async () => [],
      newLoginCode: (config, user) => askForLoginCode(config.queue_directory, user),
      trace: (config, terms, show) => askToTrace(config.queue_directory, terms, show),
      isDaemonRunning: (config) => askWhetherRunning(config.queue_directory),
      readFilesAgain: (config) => askToReadFiles(config.queue_directory),
      reloadDaemon: (config) => askToReload(config.queue_directory),
      openNodes: async () => null,
      ...access,
      startDaemon: (...args) => (daemon === undefined ? start(...args) : Promise.resolve(daemon)),
      untilStopped: () => interrupted,
    }
    const code = await run(shell, argv, calledAs)
    return { code, out: out.text, err: err.text, asked }
  }

  /** Runs a command that must succeed, and returns its output. */
  async says(...argv: readonly string[]): Promise<string> {
    const { code, out, err } = await this.run(argv)
    if (code !== 0) throw new Error(`deferd ${argv.join(' ')} ended with ${code}: ${err}`)
    return out
  }

  leave(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }
}
