/**
 * Progress of long work: a line on the terminal that is rewritten in place, at most ten times a second. It is shown when the work
 * takes longer than half a second, and erased at the end. Nothing is written to a pipe or file.
 */
import type { Clock, Duration } from '../../system/clock.ts'
import { grouped } from '../../presentation/text.ts'
import type { Output } from './shell.ts'

const SHOWN_AFTER: Duration = 500
const INTERVAL: Duration = 100
/** Carriage return, and erasure to the end of the line (ECMA-48 EL). */
const ERASE = '\r\u001b[K'
const BAR_WIDTH = 30

export class ProgressLine {
  readonly #output: Output
  readonly #clock: Pick<Clock, 'monotonic'>
  #nextAt: Duration
  #shown = ''
  #written: Promise<void> = Promise.resolve()

  constructor(output: Output, clock: Pick<Clock, 'monotonic'>) {
    this.#output = output
    this.#clock = clock
    this.#nextAt = clock.monotonic() + SHOWN_AFTER
  }

  /** Replaces the line. Longer text is cut at the width of the terminal. */
  show(text: string): void {
    const { columns } = this.#output
    if (columns === null || text === this.#shown) return
    const now = this.#clock.monotonic()
    if (now < this.#nextAt) return
    this.#nextAt = now + INTERVAL
    this.#shown = text
    this.#write(`${ERASE}${text.slice(0, columns - 1)}`)
  }

  /** Erases the line. */
  async finish(): Promise<void> {
    if (this.#shown !== '') this.#write(ERASE)
    this.#shown = ''
    await this.#written
  }

  #write(data: string): void {
    // A closed terminal loses the line, not the work.
    this.#written = this.#output.write(data).catch(() => undefined)
  }
}

/** A bar with a percentage. `done` is between 0 and 1. */
export function barText(done: number, label: string): string {
  const percent = Math.min(100, Math.floor(done * 100))
  const filled = Math.round((percent / 100) * BAR_WIDTH)
  return `${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} ${String(percent).padStart(3)} % ${label}`
}

/** A count such as `deleting: 12,400 of 40,000 (31 %)`; without a total, `counting: 12,400`. */
export function countText(doing: string, done: number, total: number | null): string {
  if (total === null) return `${doing}: ${grouped(done)}`
  // Messages that arrive during the work are not in the total.
  const most = Math.max(total, done)
  return `${doing}: ${grouped(done)} of ${grouped(most)} (${Math.floor((100 * done) / Math.max(1, most))} %)`
}
