/** Troubles that events have reported: the store that cannot commit, and the warnings and errors of the last hour. */
import { HOUR, type Duration, type QueueTime } from '../system/clock.ts'
import type { Listen } from './events.ts'

/** Time for which a warning counts. */
const KEPT: Duration = HOUR
/** Maximum number of warnings kept. */
const MOST = 1_000

interface Warning {
  readonly at: QueueTime
  readonly text: string
}

export class RecentTroubles {
  #warnings: Warning[] = []
  #storeUnavailable: { readonly why: string; readonly since: QueueTime } | null = null

  readonly #now: () => QueueTime

  constructor(now: () => QueueTime) {
    this.#now = now
  }

  readonly listen: Listen = (event) => {
    const at = this.#now()
    if (event.kind === 'store-unavailable') this.#storeUnavailable ??= { why: event.why, since: at }
    else if (event.kind === 'store-recovered') this.#storeUnavailable = null
    else if (event.kind === 'note' && event.level !== 'info') this.#add({ at, text: event.text })
  }

  #add(warning: Warning): void {
    this.#warnings.push(warning)
    if (this.#warnings.length > MOST) this.#warnings = this.#warnings.slice(-MOST / 2)
  }

  /** Why the store cannot commit, and since when; null while it can. */
  get storeUnavailable(): { readonly why: string; readonly since: QueueTime } | null {
    return this.#storeUnavailable
  }

  /** Number of warnings and errors of the last hour, the last of them, and the time of the first; null when there were none. */
  warnings(now: QueueTime): { readonly count: number; readonly last: string; readonly since: QueueTime } | null {
    const recent = this.#warnings.filter(({ at }) => at > now - KEPT)
    const [first, last] = [recent[0], recent.at(-1)]
    return first === undefined || last === undefined ? null : { count: recent.length, last: last.text, since: first.at }
  }
}
