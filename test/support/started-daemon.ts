/** Runs `deferd start` as a process and observes it from its start. */
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PROGRAM = join(import.meta.dirname, '../../bin/deferd.js')

export interface Ended {
  /** Null when a signal ended the process. */
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export class StartedProcess {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  #out = ''
  #err = ''

  constructor([file = '', ...args]: readonly string[], options: Pick<SpawnOptions, 'uid' | 'gid' | 'cwd' | 'env'> = {}) {
    this.child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
    this.child.stdout?.on('data', (text) => (this.#out += String(text)))
    this.child.stderr?.on('data', (text) => (this.#err += String(text)))
    this.ended = new Promise((resolve) => void this.child.once('close', (code) => resolve({ code, out: this.#out, err: this.#err })))
  }

  get out(): string {
    return this.#out
  }

  get err(): string {
    return this.#err
  }

  /** Resolves when the output has the text; rejects when the process ends without it. */
  async prints(text: string): Promise<void> {
    let gone = false
    void this.ended.then(() => (gone = true))
    const found = () => this.#out.includes(text) || this.#err.includes(text)
    while (!found()) {
      if (gone) throw new Error(`the process ended without ${JSON.stringify(text)}: ${this.#out}${this.#err}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

/** A queue folder and the processes that use it. */
export class DaemonFolder {
  readonly path: string
  readonly #processes: StartedProcess[] = []

  constructor() {
    this.path = mkdtempSync(join(tmpdir(), 'deferd-start-'))
  }

  /**
   * Runs `deferd COMMAND…` with settings. `program` is another bin/deferd.js. With `isConfigured`, a configuration file has what the settings have
   * otherwise.
   */
  run(
    command: readonly string[],
    settings: Readonly<Record<string, string>> = {},
    {
      program = PROGRAM,
      isConfigured = false,
      ...options
    }: Pick<SpawnOptions, 'uid' | 'gid' | 'env'> & { readonly program?: string; readonly isConfigured?: boolean } = {},
  ) {
    const usual = { queue_directory: join(this.path, 'queue'), smtpd_listen: '127.0.0.1:0', relayhost: '[127.0.0.1]:9' }
    const given = isConfigured ? settings : { ...usual, ...settings }
    const overrides = Object.entries(given).flatMap(([name, value]) => ['-o', `${name}=${value}`])
    return this.#started(new StartedProcess([process.execPath, program, ...command, ...overrides], { cwd: this.path, ...options }))
  }

  /** Runs a file of the tests. */
  script(file: string, ...args: readonly string[]): StartedProcess {
    return this.#started(new StartedProcess([process.execPath, file, ...args]))
  }

  async close(): Promise<void> {
    for (const { child } of this.#processes) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await Promise.all(this.#processes.map(({ ended }) => ended))
    rmSync(this.path, { recursive: true, force: true })
  }

  #started(process: StartedProcess): StartedProcess {
    this.#processes.push(process)
    return process
  }
}
