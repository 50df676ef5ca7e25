/**
 * Outcomes of the last attempts at each destination, and its last windows, from the events. Causes are computed from the outcomes on
 * demand.
 */
import { causeOf } from '../mail/failure-cause.ts'
import type { DestinationName } from '../mail/message.ts'
import type { AttemptRecord } from '../store/recorded-outcomes.ts'
import type { Listen } from './events.ts'

type Outcome = Pick<AttemptRecord, 'at' | 'outcome' | 'status'>

/** Per destination; an attempt has one outcome for each recipient. */
export const OUTCOMES_KEPT = 50
/** Per destination. */
export const WINDOWS_KEPT = 120
/** The destinations attempted last are kept. */
export const DESTINATIONS_KEPT = 256

interface Kept {
  readonly outcomes: Outcome[]
  readonly windows: number[]
}

export interface RecentAttempts {
  /** Outcomes, oldest first. */
  readonly outcomes: readonly AttemptRecord['outcome'][]
  /** Causes of the outcomes other than `delivered`, the most frequent first. */
  readonly causes: readonly { readonly cause: string; readonly attempts: number }[]
  /** The window after each of its last changes, oldest first. */
  readonly windows: readonly number[]
}

export class LastOutcomes {
  readonly #byDestination = new Map<DestinationName, Kept>()
  /** Destination of the last attempt. */
  #latest: DestinationName | undefined

  readonly listen: Listen = (event) => {
    if (event.kind === 'attempted') {
      const { outcomes } = this.#kept(event.request.destination)
      for (const { at, outcome, status } of event.attempts) outcomes.push({ at, outcome, status })
      dropOldest(outcomes, OUTCOMES_KEPT)
    } else if (event.kind === 'window') {
      const { windows } = this.#kept(event.destination)
      windows.push(event.window)
      dropOldest(windows, WINDOWS_KEPT)
    }
  }

  of(destination: DestinationName): RecentAttempts {
    const kept = this.#byDestination.get(destination)
    const outcomes = kept?.outcomes.slice(-OUTCOMES_KEPT) ?? []
    const failures = outcomes.filter(({ outcome }) => outcome !== 'delivered')
    const causes = [...Map.groupBy(failures, ({ status }) => causeOf(status))].map(([cause, those]) => ({ cause, attempts: those.length }))
    return {
      outcomes: outcomes.map(({ outcome }) => outcome),
      causes: causes.toSorted((a, b) => b.attempts - a.attempts),
      windows: kept?.windows.slice(-WINDOWS_KEPT) ?? [],
    }
  }

  /** Drops the records of the destinations that are `wanted`. */
  forget(wanted: (destination: DestinationName) => boolean): void {
    for (const destination of this.#byDestination.keys()) if (wanted(destination)) this.#byDestination.delete(destination)
    this.#latest = undefined
  }

  /** Returns the record of a destination, and makes it the last one to be dropped. */
  #kept(destination: DestinationName): Kept {
    const kept = this.#byDestination.get(destination) ?? { outcomes: [], windows: [] }
    if (destination === this.#latest) return kept
    this.#latest = destination
    this.#byDestination.delete(destination)
    this.#byDestination.set(destination, kept)
    const [oldest] = this.#byDestination.size > DESTINATIONS_KEPT ? this.#byDestination.keys() : []
    if (oldest !== undefined) this.#byDestination.delete(oldest)
    return kept
  }
}

/** Waits until there are twice as many values as are kept, and then drops the oldest ones together. */
function dropOldest(values: unknown[], kept: number): void {
  if (values.length > 2 * kept) values.splice(0, values.length - kept)
}
