/** A progress bar on a terminal, shown only when the work takes longer than a glance, and wiped away at the end. */
import type { Clock, Duration } from '../mail/clock.ts'

/** Where the bar is drawn; `columns` is null when that is no terminal. */
export interface ProgressOutput {
  write(data: string): Promise<void>
  readonly columns: number | null
}

const PATIENCE: Duration = 500
const WIDTH = 30

export class Progress {
  readonly #output: ProgressOutput
  readonly #clock: Clock
  readonly #startedAt: Duration
  readonly #writes: Promise<void>[] = []
  #shown = -1

  constructor(output: ProgressOutput, clock: Clock) {
    this.#output = output
    this.#clock = clock
    this.#startedAt = clock.monotonic()
  }

  /** `done` is a share of 1. */
  report(done: number, label: string): void {
    const percent = Math.min(100, Math.floor(done * 100))
    if (this.#output.columns === null || percent === this.#shown || this.#clock.monotonic() - this.#startedAt < PATIENCE) return
    this.#shown = percent
    const filled = Math.round((percent / 100) * WIDTH)
    const bar = `${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${String(percent).padStart(3)} % ${label}`
    this.#writes.push(this.#output.write(`\r\u001b[K${bar.slice(0, this.#output.columns - 1)}`))
  }

  async finish(): Promise<void> {
    if (this.#shown >= 0) this.#writes.push(this.#output.write('\r\u001b[K'))
    await Promise.all(this.#writes)
  }
}
