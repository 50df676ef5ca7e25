/**
 * Counts results of TLS sessions in memory, and keeps the counts of the day in the queue once a minute. A crash loses the counts of a minute at
 * most.
 */
import { createHash } from 'node:crypto'
import { errorMessage } from '../system/caught-error.ts'
import { DAY, MINUTE, type Clock, type Duration, type Instant, type Timer } from '../system/clock.ts'
import { isoInstant } from '../mail/mail-date.ts'
import type { CountedResult, Day, TlsReportStore } from '../store/tls/tls-report.ts'
import type { StageResult } from './stage-results.ts'

export interface ResultCountsDeps {
  readonly store: Pick<TlsReportStore, 'keepTlsResults'>
  readonly clock: Clock
  /** Unique for this process. */
  readonly source: string
  readonly note: (text: string, level: 'info' | 'warning') => void
}

const INTERVAL: Duration = MINUTE
/** Maximum number of different results of a day. Further ones are not counted. */
const MOST = 10_000

/** The UTC day of a time of the wall clock. */
export const dayOf = (wall: Instant): Day => isoInstant(wall).slice(0, 10)

/** Midnight at the beginning of the UTC day, on the wall clock. */
export const midnightOf = (wall: Instant): Instant => Math.floor(wall / DAY) * DAY

interface Count extends StageResult {
  readonly key: string
  sessions: number
  isKept: boolean
}

export class ResultCounts {
  readonly #deps: ResultCountsDeps
  #day: Day = ''
  #counts = new Map<string, Count>()
  #timer: Timer | undefined
  #isFull = false

  constructor(deps: ResultCountsDeps) {
    this.#deps = deps
  }

  add(result: StageResult): void {
    const { clock, note } = this.#deps
    const day = dayOf(clock.now() - clock.wallOffset())
    if (day !== this.#day) this.#begin(day)
    const { domain, policy, type, mx, receivingIp, sendingIp, reason } = result
    const key = createHash('sha256')
      .update(JSON.stringify([policy, type, mx, receivingIp, sendingIp, reason]))
      .digest('base64url')
    const known = this.#counts.get(`${domain} ${key}`)
    if (known !== undefined) {
      known.sessions++
      known.isKept = false
    } else if (this.#counts.size < MOST) this.#counts.set(`${domain} ${key}`, { ...result, key, sessions: 1, isKept: false })
    else if (!this.#isFull) {
      this.#isFull = true
      note(`TLSRPT: more than ${MOST} different results today; new ones are not counted`, 'warning')
    }
    this.#timer ??= clock.after(INTERVAL, () => {
      this.#timer = undefined
      void this.keep()
    })
  }

  /** Keeps the counts that have changed. A failure is reported, and the counts are kept with the next ones. */
  async keep(): Promise<void> {
    const { store, source, note } = this.#deps
    const changed = [...this.#counts.values()].filter(({ isKept }) => !isKept)
    if (changed.length === 0) return
    for (const count of changed) count.isKept = true
    try {
      await store.keepTlsResults(
        source,
        changed.map((count) => this.#countedOf(count)),
      )
    } catch (error) {
      for (const count of changed) count.isKept = false
      note(`TLSRPT: results cannot be stored: ${errorMessage(error)}`, 'warning')
    }
  }

  #countedOf(count: Count): CountedResult {
    const { isKept: _, ...counted } = count
    return { ...counted, day: this.#day }
  }

  async close(): Promise<void> {
    this.#timer?.cancel()
    this.#timer = undefined
    await this.keep()
  }

  /** Begins a day with counts of its own, after those of the day before are on their way to the store. */
  #begin(day: Day): void {
    if (this.#day !== '') void this.keep()
    this.#day = day
    this.#counts = new Map()
    this.#isFull = false
  }
}
