/** The state of the database of a queue, as its operators need it. */
import type { Duration, QueueTime } from '../../system/clock.ts'

/** The oldest transaction that has a snapshot or has changed rows. Rows that die while it is open are kept until its end. */
interface OpenTransaction {
  readonly age: Duration
  /** The session: `psql of alice, process 4711`; a prepared transaction: `prepared transaction NAME`. */
  readonly of: string
}

interface Standby {
  /** Name of the standby (application_name). */
  readonly name: string
  /** `sync` and `quorum` are synchronous; `potential` and `async` are not. */
  readonly sync: string
  /** Bytes of log that the standby has not stored durably. */
  readonly behind: number
  /** Time that it was behind at its last answer. */
  readonly lag: Duration
}

export interface DatabaseState {
  readonly at: QueueTime
  /** Null when there is none. Sessions of other users are seen with the rights of pg_read_all_stats only. */
  readonly oldest: OpenTransaction | null
  /** Number of transactions since the oldest one whose rows must be kept, also for standbys and replication slots. */
  readonly horizon: number
  /** Dead rows by table. */
  readonly deadRows: readonly { readonly table: string; readonly rows: number }[]
  /** Null without the rights of pg_read_all_stats. */
  readonly standbys: readonly Standby[] | null
}

/** True for a standby for which commits wait. */
export const isSynchronous = ({ sync }: Standby): boolean => sync === 'sync' || sync === 'quorum'
