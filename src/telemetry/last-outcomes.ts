/**
 * Outcomes of the last attempts at each destination, from the events. Causes are computed from them only when they are asked for.
 */
import { causeOf } from '../mail/failure-cause.ts'
import type { DestinationName } from '../mail/message.ts'
import type { AttemptRecord } from '../store/queue-store.ts'
import type { Listen } from './events.ts'

type Outcome = Pick<AttemptRecord, 'at' | 'outcome' | 'status'>

/** Maximum number of outcomes kept per destination. An attempt has one outcome for each recipient. */
export const OUTCOMES_KEPT = 50
/** Maximum number of destinations kept: those attempted last. */
export const DESTINATIONS_KEPT = 256

/** Recent attempts at a destination. */
export interface RecentAttempts {
  /** Outcomes, oldest first. */
  readonly outcomes: readonly AttemptRecord['outcome'][]
  /** Causes of the outcomes other than `delivered`, the most frequent first. */
  readonly causes: readonly { readonly cause: string; readonly attempts: number }[]
}

export class LastOutcomes {
  readonly #byDestination = new Map<DestinationName, Outcome[]>()
  /** Destination of the last attempt. */
  #latest: DestinationName | undefined

  /** Remembers the outcomes of an attempt. */
  readonly listen: Listen = (event) => {
    if (event.kind !== 'attempted') return
    const { destination } = event.request
    const kept = this.#byDestination.get(destination) ?? []
    for (const { at, outcome, status } of event.attempts) kept.push({ at, outcome, status })
    // Up to twice as many are held, so that the oldest are dropped together.
    if (kept.length > 2 * OUTCOMES_KEPT) kept.splice(0, kept.length - OUTCOMES_KEPT)
    if (destination === this.#latest) return
    this.#latest = destination
    // The map is in the order of the last attempts.
    this.#byDestination.delete(destination)
    this.#byDestination.set(destination, kept)
    const [oldest] = this.#byDestination.size > DESTINATIONS_KEPT ? this.#byDestination.keys() : []
    if (oldest !== undefined) this.#byDestination.delete(oldest)
  }

  of(destination: DestinationName): RecentAttempts {
    const kept = this.#byDestination.get(destination)?.slice(-OUTCOMES_KEPT) ?? []
    const failures = kept.filter(({ outcome }) => outcome !== 'delivered')
    const causes = [...Map.groupBy(failures, ({ status }) => causeOf(status))].map(([cause, those]) => ({ cause, attempts: those.length }))
    return { outcomes: kept.map(({ outcome }) => outcome), causes: causes.toSorted((a, b) => b.attempts - a.attempts) }
  }
}
