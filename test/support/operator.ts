/**
 * An operator at a shell: runs whole commands in process against a real queue folder, on a clock that stands still.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openOwnDesk } from '../../src/cli/own-desk.ts'
import { askForDestinations, openDaemonDesk } from '../../src/cli/operations-desk.ts'
import { run } from '../../src/cli/program.ts'
import { BrokenPipe, type Output, type RunningDaemon, type Shell } from '../../src/cli/shell.ts'
import { seededRandom } from '../../src/mail/random.ts'
import { takeOwnership } from '../../src/queue/owner-lock.ts'
import { openInlineStore } from '../../src/queue/sqlite/inline-store.ts'
import { openQueueReader } from '../../src/queue/sqlite/queue-reader.ts'
import type { QueueStore } from '../../src/queue/store.ts'
import { VirtualClock } from '../../src/testkit/virtual-clock.ts'

export const NOW = Date.UTC(2026, 10, 20, 10, 0, 0)

export interface Terminal {
  /** Columns of the terminal; null for a pipe. */
  readonly columns?: number | null
  readonly stdin?: string | Uint8Array
  /** What is answered to questions. */
  readonly answer?: string
  readonly env?: Readonly<Record<string, string>>
  readonly calledAs?: string
  /** After so many bytes nobody reads on. */
  readonly breaksAfter?: number
  readonly daemon?: RunningDaemon
}

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
  readonly asked: readonly string[]
}

class Sink implements Output {
  readonly columns: number | null
  readonly #breaksAfter: number
  #chunks: Buffer[] = []
  #size = 0

  constructor(columns: number | null, breaksAfter = Infinity) {
    this.columns = columns
    this.#breaksAfter = breaksAfter
  }

  write(data: string | Uint8Array): Promise<void> {
    if (this.#size > this.#breaksAfter) return Promise.reject(new BrokenPipe('nobody reads on'))
    this.#chunks.push(Buffer.from(data))
    this.#size += data.length
    return Promise.resolve()
  }

  /** Byte for byte, one letter each where it is no UTF-8. */
  get text(): string {
    return Buffer.concat(this.#chunks).toString()
  }
}

export class Operator {
  readonly directory = mkdtempSync(join(tmpdir(), 'deferd-operator-'))
  readonly clock = new VirtualClock({ startsAt: NOW })

  /** Puts something into the queue, as its owner. */
  async own<T>(work: (store: QueueStore) => Promise<T>): Promise<T> {
    const ownership = takeOwnership(this.directory)
    const { store } = await openInlineStore({ directory: this.directory })
    try {
      return await work(store)
    } finally {
      await store.close()
      ownership.release()
    }
  }

  async run(argv: readonly string[], terminal: Terminal = {}): Promise<Ran> {
    const { columns = null, stdin = '', answer, env = {}, calledAs = 'deferd', breaksAfter, daemon } = terminal
    const out = new Sink(columns, breaksAfter)
    const err = new Sink(columns)
    const asked: string[] = []
    const shell: Shell = {
      env: { DEFERD_QUEUE_DIRECTORY: this.directory, DEFERD_MYHOSTNAME: 'relay.example', ...env },
      uid: 0,
      user: 'operator',
      login: 'operator',
      pid: 42,
      program: 'deferd',
      clock: this.clock,
      random: seededRandom(1),
      stdin: (async function* () {
        yield Buffer.from(stdin)
      })(),
      stdout: out,
      stderr: err,
      ask: (question) => {
        asked.push(question)
        return Promise.resolve(answer ?? null)
      },
      openReader: async (config) => openQueueReader(config.queue_directory),
      openDesk: async (config) => (await openDaemonDesk(config.queue_directory)) ?? openOwnDesk(config, this.clock),
      liveDestinations: (config) => askForDestinations(config.queue_directory),
      startDaemon: () => (daemon === undefined ? Promise.reject(new Error('no daemon here')) : Promise.resolve(daemon)),
      untilStopped: () => Promise.resolve(),
    }
    const code = await run(shell, argv, calledAs)
    return { code, out: out.text, err: err.text, asked }
  }

  /** The output of a command that must succeed. */
  async says(...argv: readonly string[]): Promise<string> {
    const { code, out, err } = await this.run(argv)
    if (code !== 0) throw new Error(`deferd ${argv.join(' ')} ended with ${code}: ${err}`)
    return out
  }

  leave(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }
}
