/** Counts results of TLS sessions in memory, and keeps them in the queue once a minute. A crash loses the counts of a minute at most. */
import { createHash } from 'node:crypto'
import { errorMessage } from '../system/caught-error.ts'
import { DAY, MINUTE, type Clock, type Duration, type WallTime, type Timer } from '../system/clock.ts'
import { isoInstant } from '../mail/mail-date.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { CountedResult, Day } from '../store/records/tls-report.ts'
import type { StageResult } from './stage-results.ts'

export interface ResultCountsDeps {
  readonly store: Pick<QueueStore, 'records'>
  readonly clock: Clock
  /** Unique for this process. */
  readonly source: string
  readonly note: (text: string, level: 'info' | 'warning') => void
}

const INTERVAL: Duration = MINUTE
/** Maximum number of different results in memory: those of the day, and those of days before that are not stored yet. Further ones are not counted. */
const MOST_RESULTS = 10_000

/** The UTC day of a time of the wall clock. */
export const dayOf = (wall: WallTime): Day => isoInstant(wall).slice(0, 10)

/** Midnight at the beginning of the UTC day, on the wall clock. */
export const midnightOf = (wall: WallTime): WallTime => Math.floor(wall / DAY) * DAY

interface Count extends StageResult {
  readonly day: Day
  readonly key: string
  sessions: number
  /** True when the store has this number of sessions, or is writing it. */
  isKept: boolean
}

function countedOf(count: Count): CountedResult {
  const { isKept: _, ...counted } = count
  return counted
}

export class ResultCounts {
  readonly #deps: ResultCountsDeps
  #day: Day = ''
  readonly #counts = new Map<string, Count>()
  #timer: Timer | undefined
  #closed = false
  #isFull = false
  /** The last call of the store. Calls are made one after the other. */
  #keeping: Promise<void> = Promise.resolve()

  constructor(deps: ResultCountsDeps) {
    this.#deps = deps
  }

  add(result: StageResult): void {
    const { clock, note } = this.#deps
    const day = dayOf(clock.wall.now())
    if (day !== this.#day) this.#begin(day)
    const { domain, policy, type, mx, receivingIp, sendingIp, reason } = result
    const key = createHash('sha256')
      .update(JSON.stringify([policy, type, mx, receivingIp, sendingIp, reason]))
      .digest('base64url')
    const id = `${day} ${domain} ${key}`
    const known = this.#counts.get(id)
    if (known !== undefined) {
      known.sessions++
      known.isKept = false
    } else if (this.#counts.size < MOST_RESULTS) this.#counts.set(id, { ...result, day, key, sessions: 1, isKept: false })
    else if (!this.#isFull) {
      this.#isFull = true
      note(`TLSRPT: more than ${MOST_RESULTS} different results of sessions; new ones are not counted until the next day`, 'warning')
    }
    this.#arm()
  }

  #arm(): void {
    if (this.#closed) return
    this.#timer ??= this.#deps.clock.after(INTERVAL, () => {
      this.#timer = undefined
      void this.keep()
    })
  }

  /** Keeps the counts that have changed. A failure is reported, and the counts are kept a minute later. */
  keep(): Promise<void> {
    this.#keeping = this.#keeping.then(() => this.#keepChanged())
    return this.#keeping
  }

  async #keepChanged(): Promise<void> {
    const { store, source, note } = this.#deps
    const changed = [...this.#counts.values()].filter(({ isKept }) => !isKept)
    for (const count of changed) count.isKept = true
    try {
      if (changed.length > 0) await store.records.tlsResults.keep(source, changed.map(countedOf))
      for (const [id, { day, isKept }] of this.#counts) if (isKept && day !== this.#day) this.#counts.delete(id)
    } catch (error) {
      for (const count of changed) count.isKept = false
      note(`TLSRPT: results cannot be stored: ${errorMessage(error)}`, 'warning')
      this.#arm()
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    this.#timer = undefined
    await this.keep()
  }

  /** Begins a day. The counts of the day before stay until the store has them. */
  #begin(day: Day): void {
    if (this.#day !== '') void this.keep()
    this.#day = day
    this.#isFull = false
  }
}
