/** Submissions by `deferd sendmail`, whether or not a daemon runs. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { KillableRelay } from '../killable-relay.ts'

const DEFERD = join(import.meta.dirname, '../../../bin/deferd.js')

export class Submissions {
  readonly #relay: KillableRelay
  readonly #running = new Set<Promise<void>>()
  /** Numbers for which `sendmail` ended with 0. */
  readonly acknowledged = new Set<number>()

  constructor(relay: KillableRelay) {
    this.#relay = relay
  }

  get running(): number {
    return this.#running.size
  }

  /** Starts one submission. */
  submit(recipientsOf: (number: number) => readonly string[]): void {
    const number = this.#relay.load.takeNumber()
    const run = this.#run(number, recipientsOf(number)).finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  async #run(number: number, recipients: readonly string[]): Promise<void> {
    const queue = ['-o', `queue_directory=${this.#relay.queueDirectory}`]
    const child = spawn(process.execPath, [DEFERD, 'sendmail', ...queue, '-f', 'app@us.example', ...recipients], {
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    child.stdin.on('error', () => undefined)
    child.stdin.end(`X-Number: ${number}\nSubject: submitted\n\n${'y'.repeat(500)}\n`)
    const code = await new Promise<number | null>((resolve) => child.once('exit', resolve))
    if (code !== 0) return
    this.acknowledged.add(number)
    this.#relay.load.acknowledge(number, '')
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running)
  }
}
