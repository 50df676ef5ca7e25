/** One run of the command of `deferd retry`, with the standard streams of deferd. */
import { spawn, type ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import { SECOND, type Duration, type Timers } from '../../system/clock.ts'

/** Time between SIGTERM and SIGKILL. */
const KILL_AFTER: Duration = 5 * SECOND

export interface ChildCommand {
  readonly file: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

/** End of a run: its exit code, 128 + n after signal n; `not-found` when the command cannot be started. */
export type ChildEnd = { readonly kind: 'ended'; readonly code: number } | { readonly kind: 'not-found'; readonly why: string }

export class ChildRun {
  readonly ended: Promise<ChildEnd>
  readonly #child: ChildProcess
  readonly #clock: Timers

  constructor({ file, args, env }: ChildCommand, clock: Timers) {
    this.#clock = clock
    this.#child = spawn(file, args, { stdio: 'inherit', env: { ...env } })
    this.ended = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve({ kind: 'not-found', why: error.message }))
      this.#child.once('exit', (code, signal) =>
        resolve({ kind: 'ended', code: code ?? 128 + (signal === null ? 0 : constants.signals[signal]) }),
      )
    })
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Sends SIGTERM, and SIGKILL to a process that has not ended after 5 s. */
  async terminate(): Promise<void> {
    this.kill('SIGTERM')
    const timer = this.#clock.after(KILL_AFTER, () => this.kill('SIGKILL'))
    await this.ended
    timer.cancel()
  }
}
