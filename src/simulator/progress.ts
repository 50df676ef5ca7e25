/** Progress bar on a terminal. It is shown when the work takes longer than half a second, and erased at the end. */
import type { Clock, Duration } from '../system/clock.ts'

/** Output of the bar. `columns` is null when the output is not a terminal; no bar is then drawn. */
export interface ProgressOutput {
  write(data: string): Promise<void>
  readonly columns: number | null
}

const SHOWN_AFTER: Duration = 500
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

  /** Draws the bar. `done` is between 0 and 1. */
  report(done: number, label: string): void {
    const percent = Math.min(100, Math.floor(done * 100))
    if (this.#output.columns === null || percent === this.#shown || this.#clock.monotonic() - this.#startedAt < SHOWN_AFTER) return
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
