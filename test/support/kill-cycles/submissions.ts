/** Submissions by `deferd sendmail`, through the daemon or through the maildrop, whether or not a daemon runs. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { KillableRelay } from '../killable-relay.ts'

const DEFERD = join(import.meta.dirname, '../../../bin/deferd.js')

export class Submissions {
  readonly #relay: KillableRelay
  readonly #address: string
  readonly #running = new Set<Promise<void>>()
  /** Numbers for which `sendmail` ended with 0. */
  readonly acknowledged = new Set<number>()
  /**
   * Numbers submitted over SMTP while the daemon was killed: sendmail repeats a message in the maildrop when it has missed the
   * reply of the daemon, so that it may arrive twice (RFC 5321 §4.2.5).
   */
  readonly interrupted = new Set<number>()
  readonly #overSmtp = new Set<number>()

  /** `address`: smtpd_listen of the daemon. */
  constructor(relay: KillableRelay, address: string) {
    this.#relay = relay
    this.#address = address
  }

  get running(): number {
    return this.#running.size
  }

  /** Starts one submission. `daemon`: over SMTP while one runs; otherwise always into the maildrop. */
  submit(way: 'daemon' | 'maildrop', recipientsOf: (number: number) => readonly string[]): void {
    const number = this.#relay.load.takeNumber()
    const run = this.#run(number, way, recipientsOf(number)).finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  async #run(number: number, way: 'daemon' | 'maildrop', recipients: readonly string[]): Promise<void> {
    if (way === 'daemon') this.#overSmtp.add(number)
    const settings = [`queue_directory=${this.#relay.queueDirectory}`, `smtpd_listen=${way === 'daemon' ? this.#address : '127.0.0.1:0'}`]
    const overrides = settings.flatMap((one) => ['-o', one])
    const child = spawn(process.execPath, [DEFERD, 'sendmail', ...overrides, '-f', 'app@us.example', ...recipients], {
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    child.stdin.on('error', () => undefined)
    child.stdin.end(`X-Number: ${number}\nSubject: submitted\n\n${'y'.repeat(500)}\n`)
    const code = await new Promise<number | null>((resolve) => child.once('exit', resolve))
    this.#overSmtp.delete(number)
    if (code !== 0) return
    this.acknowledged.add(number)
    this.#relay.load.acknowledge(number, '')
  }

  /** The daemon is being killed. */
  daemonKilled(): void {
    for (const number of this.#overSmtp) this.interrupted.add(number)
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running)
  }
}
