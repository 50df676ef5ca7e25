/** Troubles that events have reported: the store that cannot commit, and the warnings and errors of the last hour. */
import { HOUR, type Duration, type QueueTime } from '../system/clock.ts'
import type { Listen } from './events.ts'

const WARNINGS_KEPT_FOR: Duration = HOUR
const MOST_WARNINGS = 1_000

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
    if (this.#warnings.length > MOST_WARNINGS) this.#warnings = this.#warnings.slice(-MOST_WARNINGS / 2)
  }

  /** Reason and begin of a failure of the store to commit; null while the store can commit. */
  get storeUnavailable(): { readonly why: string; readonly since: QueueTime } | null {
    return this.#storeUnavailable
  }

  /** Number of warnings and errors of the last hour, the text of the last one, and the time of the first one; null without any. */
  warnings(now: QueueTime): { readonly count: number; readonly last: string; readonly since: QueueTime } | null {
    const recent = this.#warnings.filter(({ at }) => at > now - WARNINGS_KEPT_FOR)
    const [first, last] = [recent[0], recent.at(-1)]
    return first === undefined || last === undefined ? null : { count: recent.length, last: last.text, since: first.at }
  }
}
