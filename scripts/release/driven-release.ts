/** A daemon of a release with a sink beside it, driven by SMTP and by its commands. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import { portBelowEphemeral } from '../../test/support/ports.ts'

/** Parameters of a queue in PostgreSQL; none for one in a folder. */
export type Engine = Readonly<Record<string, string>>

/** Longest wait for a state, in ms. */
const LIMIT = 300_000

/** The next hop that an operator has suspended. */
const SUSPENDED = '[127.0.0.2]:25'

/** Mail by its recipients. The sink refuses, defers or delays a recipient as its address says. */
const MAIL: readonly { readonly to: readonly string[]; readonly size: number }[] = [
  { to: ['ok@done.example'], size: 100 },
  { to: ['550@bounce.example'], size: 100 },
  { to: ['451@later.example'], size: 0 },
  { to: ['451@later.example', 'ok@done.example', '550@bounce.example'], size: 70_000 },
  { to: ['451@large.example'], size: 3_000_000 },
  { to: ['451@held.example'], size: 100 },
  { to: ['451@trash.example'], size: 100 },
  { to: ['451@expired.example'], size: 100 },
  { to: ['451@scheduled.example'], size: 100 },
  { to: ['ok@suspended.example'], size: 100 },
]

export class DrivenRelease {
  readonly #program: string
  readonly #folder: string
  readonly #port: number
  readonly #children: ChildProcess[]

  private constructor(program: string, folder: string, port: number, sink: ChildProcess) {
    this.#program = program
    this.#folder = folder
    this.#port = port
    this.#children = [sink]
  }

  /** Writes the configuration, and starts the sink. */
  static async open(program: string, folder: string, engine: Engine = {}): Promise<DrivenRelease> {
    mkdirSync(folder, { recursive: true })
    const [port, sinkPort] = [await portBelowEphemeral(), await portBelowEphemeral()]
    const parameters = {
      myhostname: 'relay.example',
      queue_directory: join(folder, 'queue'),
      smtpd_listen: `127.0.0.1:${port}`,
      maximal_queue_lifetime: '3650d',
      delay_warning_time: '0',
      ...engine,
    }
    const lines = Object.entries(parameters).map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`)
    writeFileSync(
      join(folder, 'deferd.toml'),
      `${lines.join('')}\n[transport_maps]\n"suspended.example" = "smtp:${SUSPENDED}"\n"*" = "smtp:[127.0.0.1]:${sinkPort}"\n`,
    )
    const sink = spawn(process.execPath, [program, 'sink', '--listen', `127.0.0.1:${sinkPort}`, '--json'], { stdio: 'ignore' })
    return new DrivenRelease(program, folder, port, sink)
  }

  /** Standard output of a command of the release. */
  run(...args: readonly string[]): string {
    return execFileSync(process.execPath, [this.#program, args[0] ?? '', ...args.slice(1), '--config', join(this.#folder, 'deferd.toml')], {
      cwd: this.#folder,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  }

  /** Fills the queue with mail in all states, and kills the daemon while it delivers. */
  async fill(): Promise<void> {
    const daemon = spawn(process.execPath, [this.#program, 'start', '--config', join(this.#folder, 'deferd.toml')], {
      cwd: this.#folder,
      stdio: 'ignore',
    })
    this.#children.push(daemon)
    await this.#until('the daemon runs', () => this.#succeeds('check', '--running'))
    this.run('destination', 'suspend', SUSPENDED, '--for', '3650d', '--reason', 'moves')
    this.run('token', 'add', 'ci', '--role', 'operator')
    this.run('access', 'add', 'sender', 'spam.example', 'REJECT', 'no')
    this.run('suppression', 'add', 'gone@done.example', '--text', 'left')
    this.run('webhook', 'add', 'unreachable', 'http://127.0.0.1:9/events', '--allow-private')
    for (const one of MAIL) await this.#send(one.to, one.size)
    await this.#until('mail is deferred', () => this.#count('--queue', 'deferred') >= 7)
    for (const [operation, recipient] of [
      ['hold', '451@held.example'],
      ['delete', '451@trash.example'],
      ['expire', '451@expired.example'],
    ] as const)
      this.run('queue', operation, '--recipient', recipient)
    this.run('queue', 'reschedule', '--recipient', '451@scheduled.example', '--in', '30d')
    for (const recipient of ['451@later.example', '451@expired.example']) this.run('queue', 'flush', '--recipient', recipient)
    await this.#until('the expired mail has left', () => this.#count('--recipient', '451@expired.example') === 0)
    await this.#send(['slow+600s@slow.example'], 100)
    await this.#until('a delivery waits', () => this.#count('--queue', 'active', '--recipient', 'slow+600s@slow.example') === 1)
    daemon.kill('SIGKILL')
    await once(daemon, 'exit')
  }

  #count(...conditions: readonly string[]): number {
    return this.run('queue', 'list', '--json', ...conditions)
      .split('\n')
      .filter((line) => line !== '').length
  }

  #succeeds(...args: readonly string[]): boolean {
    try {
      this.run(...args)
      return true
    } catch {
      return false
    }
  }

  async #send(to: readonly string[], size: number): Promise<void> {
    const transport = createTransport({ host: '127.0.0.1', port: this.#port, ignoreTLS: true })
    const raw = `Subject: of ${size} bytes\r\nFrom: app@us.example\r\n\r\n${'0123456789 abcdefghijklmnopqrstuvwxyz\r\n'.repeat(Math.ceil(size / 39))}`
    await transport.sendMail({ envelope: { from: 'app@us.example', to: [...to] }, raw })
    transport.close()
  }

  async #until(what: string, holds: () => boolean): Promise<void> {
    const end = performance.now() + LIMIT
    while (!holds()) {
      if (performance.now() > end) throw new Error(`not after ${LIMIT / 1000} s: ${what}`)
      await sleep(500)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  }
}
