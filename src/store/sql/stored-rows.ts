/** Rows that both SQL engines keep in the same columns, and their conversion to values. */
import type { QueuedFailure } from '../counts/cause-groups.ts'
import type { DestinationRecord } from '../queue-store.ts'
import type { AttemptRecord } from '../recorded-outcomes.ts'
import { lenient, readableStatus, toDelays, UNREADABLE } from '../stored-values.ts'

export interface AttemptRow {
  readonly recipient: number
  readonly at: number
  readonly relay: string | null
  readonly outcome: AttemptRecord['outcome']
  readonly status: string
  readonly delays: string
  readonly session_id: string | null
}

export const toAttempt = ({ recipient, at, relay, outcome, status, delays, session_id }: AttemptRow): AttemptRecord => ({
  recipient,
  at,
  relay,
  outcome,
  status: readableStatus(status) ?? UNREADABLE,
  delays: lenient(() => toDelays(delays), [0, 0, 0, 0] as const),
  ...(session_id === null ? {} : { session: session_id }),
})

/** The parameters of a statement that inserts an attempt. */
export const attemptRow = ({
  recipient,
  at,
  relay,
  outcome,
  status,
  delays,
  session = null,
}: Omit<AttemptRecord, 'session'> & { readonly session?: string | null | undefined }) => ({
  recipient,
  at,
  relay,
  outcome,
  status: JSON.stringify(status),
  delays: JSON.stringify(delays),
  session,
})

export interface DestinationRow {
  readonly name: string
  readonly dead_until: number | null
  readonly probe_interval: number | null
  readonly suspended_by: string | null
  readonly suspended_until: number | null
  readonly suspend_reason: string | null
  readonly site_status: string | null
}

export const destinations = 'select * from destination order by name'

export const toDestination = (row: DestinationRow): DestinationRecord => ({
  name: row.name,
  deadUntil: row.dead_until,
  probeInterval: row.probe_interval,
  suspension: row.suspended_by === null ? null : { by: row.suspended_by, until: row.suspended_until, reason: row.suspend_reason },
  siteStatus: readableStatus(row.site_status),
})

/** Row of `failuresBetween` (queue-queries.ts). */
export interface FailureRow extends Omit<QueuedFailure, 'isHeld' | 'last' | 'first'> {
  readonly placement: 'queued' | 'hold'
  readonly last: string | null
  readonly firstAt: number | null
  readonly firstStatus: string | null
}

export const toFailure = ({ placement, last, firstAt, firstStatus, ...row }: FailureRow): QueuedFailure => ({
  ...row,
  isHeld: placement === 'hold',
  last: readableStatus(last),
  first: firstAt === null ? null : { at: firstAt, status: () => readableStatus(firstStatus) },
})
