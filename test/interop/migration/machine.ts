/**
 * A machine whose mail is relayed by smarthosts, first by a private Postfix with its tables, then by deferd with the configuration
 * and the mail that `deferd import postfix` has taken over. Both listen on the same port and use the same smarthosts.
 */
import { execFile, execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { greeted, startChild, type Child } from '../../../scripts/bench/child.ts'
import { runPostfix, writeInstance } from '../../../scripts/bench/postfix.ts'
import { mainCf, MASTER_CF, TABLES, type Ports } from './configuration.ts'
import { portBelowEphemeral } from '../../support/ports.ts'

const PROGRAM = join(import.meta.dirname, '../../../bin/deferd.js')

export interface Result {
  readonly code: number
  readonly out: string
  readonly err: string
}

const run = (program: string, args: readonly string[], input = '', env: NodeJS.ProcessEnv = {}): Promise<Result> =>
  new Promise((resolve) => {
    const child = execFile(
      program,
      args,
      { env: { PATH: process.env['PATH'], TZ: 'UTC', HOME: '/nonexistent', ...env }, encoding: 'latin1', maxBuffer: 1 << 28 },
      (_, out, err) => resolve({ code: child.exitCode ?? -1, out, err }),
    )
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(Buffer.from(input, 'latin1'))
  })

/** A relay that runs on the machine. */
export interface Relay {
  /** Path of a program that is sendmail of this relay. */
  readonly sendmail: string
  /** Releases all held mail. */
  release(): Promise<void>
  /** Tries all mail now. */
  flush(): Promise<void>
  /** Number of queued messages. */
  queued(): Promise<number>
  stop(): Promise<void>
}

export class Machine {
  readonly #folder: string
  /** Port of the relay. */
  readonly port: number
  #postfix: Child | null = null
  /** The stopped queue manager, which leaves mail in `incoming`. */
  #frozen: number | null = null

  private constructor(folder: string, port: number) {
    this.#folder = folder
    this.port = port
  }

  /** Writes the configuration of Postfix, and its tables. */
  static async make(hops: Ports): Promise<Machine> {
    // Not in the folder of the tests, which Postfix's own user may not enter.
    const folder = mkdtempSync('/tmp/deferd-migration-')
    chmodSync(folder, 0o755)
    const machine = new Machine(folder, await portBelowEphemeral())
    mkdirSync(join(folder, 'deferd'))
    const etc = join(folder, 'etc')
    await writeInstance(folder, { listen: machine.port, nextHop: hops.submission }, mainCf(etc, hops))
    appendFileSync(join(etc, 'master.cf'), MASTER_CF)
    for (const [name, text] of Object.entries(TABLES(etc, hops))) {
      writeFileSync(join(etc, name), text)
      if (name === 'aliases') execFileSync('postalias', ['-c', etc, `hash:${etc}/aliases`])
      else if (!/^(?:members|\w+\.regexp)$/.test(name)) execFileSync('postmap', ['-c', etc, `hash:${etc}/${name}`])
    }
    machine.#script('postfix-sendmail', `exec /usr/sbin/sendmail -C ${etc} "$@"`)
    machine.#script('deferd-sendmail', `exec ${process.execPath} ${PROGRAM} sendmail "$@"`)
    return machine
  }

  get configFile(): string {
    return join(this.#folder, 'deferd/deferd.toml')
  }

  /** Number of files in a queue of Postfix. */
  spooled(queue: string): number {
    const entries = readdirSync(join(this.#folder, 'spool', queue), { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).length
  }

  async startPostfix(): Promise<Relay> {
    const etc = join(this.#folder, 'etc')
    const instance = await runPostfix(this.#folder)
    this.#postfix = instance
    await greeted(instance, this.port, new AbortController().signal)
    return {
      sendmail: join(this.#folder, 'postfix-sendmail'),
      release: async () => void (await run('postsuper', ['-c', etc, '-H', 'ALL'])),
      flush: async () => void (await run('postqueue', ['-c', etc, '-f'])),
      queued: async () => (await run('postqueue', ['-c', etc, '-j'])).out.split('\n').length - 1,
      stop: async () => {
        if (this.#frozen !== null) process.kill(this.#frozen, 'SIGKILL')
        this.#frozen = null
        await instance.stop()
      },
    }
  }

  /** Stops the queue manager of Postfix, so that new mail stays in `incoming`. */
  freeze(): void {
    const master = readFileSync(join(this.#folder, 'spool/pid/master.pid'), 'latin1').trim()
    const [manager] = execFileSync('pgrep', ['-P', master, 'qmgr'], { encoding: 'latin1' }).trim().split('\n')
    this.#frozen = Number(manager)
    process.kill(this.#frozen, 'SIGSTOP')
  }

  async startDeferd(): Promise<Relay> {
    const relay = await startChild(
      'deferd',
      { program: process.execPath, args: [PROGRAM, 'start', '--config', this.configFile], cwd: this.#folder },
      join(this.#folder, 'deferd.log'),
    )
    await greeted(relay, this.port, new AbortController().signal)
    return {
      sendmail: join(this.#folder, 'deferd-sendmail'),
      release: async () => void (await this.deferd('queue', 'release', '--all')),
      flush: async () => void (await this.deferd('queue', 'flush', '--all')),
      queued: async () => (await this.deferd('queue', 'list', '--json')).out.split('\n').length - 1,
      stop: () => relay.stop(),
    }
  }

  importPostfix(...args: readonly string[]): Promise<Result> {
    const queue = `queue_directory=${join(this.#folder, 'queue')}`
    return this.deferd('import', 'postfix', '--config-dir', join(this.#folder, 'etc'), '-o', queue, ...args)
  }

  /** Runs a command of deferd with the configuration of the import. */
  deferd(...args: readonly string[]): Promise<Result> {
    return run(process.execPath, [PROGRAM, ...args], '', { DEFERD_CONFIG: this.configFile })
  }

  /** Runs a program of a user, which may call sendmail of either relay. */
  run(program: string, args: readonly string[], input: string): Promise<Result> {
    return run(program, args, input, { DEFERD_CONFIG: this.configFile, HOME: this.#folder })
  }

  async remove(): Promise<void> {
    await this.#postfix?.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #script(name: string, text: string): void {
    writeFileSync(join(this.#folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  }
}
