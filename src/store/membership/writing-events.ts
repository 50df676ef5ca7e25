/** Facts about the transactions of a node, for its log and its metrics. */
import type { Duration } from '../../system/clock.ts'

/** The state after a failover. */
export interface Failover {
  /** Null where the server does not tell. */
  readonly timeline: number | null
  /** Queue ids of acknowledged messages that the server does not have. */
  readonly lost: readonly string[]
}

export type WritingEvent =
  /** `took` is the time from the first statement of a transaction to the answer to its commit. */
  | { readonly kind: 'committed'; readonly took: Duration }
  /** The answer to a commit was lost. */
  | { readonly kind: 'in-doubt'; readonly resolution: DoubtResolution }
  /** The database is another server, or acknowledged mail is missing there. */
  | ({ readonly kind: 'failover' } & Failover)

/** Result of the look-up. `unknown`: the database could not be asked in time, or another node took this one over meanwhile. */
export type DoubtResolution = 'committed' | 'not-committed' | 'unknown'
