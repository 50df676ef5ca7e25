/** States of destinations, and the facts about their deliveries that commands, metrics and the API show. */
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { DestinationRecord } from './queue-store.ts'
import type { QueueTime } from '../system/clock.ts'

export const DESTINATION_STATES = ['open', 'throttled', 'dead', 'suspended'] as const

/**
 * - `open`: deliveries are not restricted;
 * - `throttled`: feedback or a rate limit allows fewer deliveries than the destination has accepted before;
 * - `dead`: only probes are attempted;
 * - `suspended`: an operator has stopped deliveries.
 */
export type DestinationState = (typeof DESTINATION_STATES)[number]

/** An address (IP) with connections that have no greeting yet. */
export interface ConnectingAddress {
  readonly address: string
  readonly count: number
}

/** The delivery slots of a node (default_process_limit), or of several nodes together. */
export interface DeliverySlots {
  readonly inFlight: number
  readonly limit: number
  /** The addresses with most such connections first; at most CONNECTING_SHOWN. */
  readonly connecting: readonly ConnectingAddress[]
}

export const CONNECTING_SHOWN = 10

/** Those with most connections first. */
export const byConnections = (a: ConnectingAddress, b: ConnectingAddress): number =>
  b.count - a.count || (a.address < b.address ? -1 : Number(a.address > b.address))

/** Attempts since the last delivery, or since the destination is in memory. */
export interface UndeliveredAttempts {
  /** Recipients that were attempted, without those that a delivery followed. */
  readonly count: number
  /** Time of the first of them. */
  readonly since: QueueTime
  /** Status of the last one. */
  readonly last: DeliveryStatus
}

/** The last attempt at a destination, whatever its outcome. */
export interface LastAttempt {
  readonly at: QueueTime
  readonly status: DeliveryStatus
}

/** Recipients of a destination in the store: those that wait outside of the active queue, and those in it. */
export interface QueuedCount {
  readonly waiting: number
  /** Absent in the answer of an earlier version. */
  readonly leased?: number | undefined
}

export const NONE_QUEUED: QueuedCount = { waiting: 0, leased: 0 }

/** Recipients of a destination in the active queue: those that wait for a delivery slot, and those in transfer. */
interface ActiveCount {
  readonly waiting: number
  readonly transferring?: number | undefined
}

/**
 * Recipients that wait for a destination, outside of the active queue or in it for a delivery slot: all in the store but those in transfer. The
 * count of the store may be some seconds old, and mail may have entered or left the active queue since then: it counts once all the same.
 */
export function waitingAt({ waiting, leased }: QueuedCount, live: ActiveCount | undefined): number {
  if (live === undefined) return waiting
  if (leased === undefined || live.transferring === undefined) return waiting + live.waiting
  return Math.max(live.waiting, waiting + leased - live.transferring)
}

/** States in which deliveries, other than probes, are stopped. */
export const CLOSED_STATES = ['dead', 'suspended'] as const satisfies readonly DestinationState[]

/** True for a destination that is dead or suspended: no ordinary delivery is attempted there. */
export const isClosed = ({ state }: { readonly state: DestinationState }): boolean =>
  (CLOSED_STATES as readonly DestinationState[]).includes(state)

/** State of a destination that no scheduler has in memory; `record` is undefined for one without a record. */
export function recordedState(
  record: Pick<DestinationRecord, 'deadUntil' | 'suspension'> | undefined,
): Exclude<DestinationState, 'throttled'> {
  if (record !== undefined && record.suspension !== null) return 'suspended'
  return record !== undefined && record.deadUntil !== null ? 'dead' : 'open'
}

/** True for a destination that was dead or suspended when it was recorded. */
export const isRecordedClosed = (record: Parameters<typeof recordedState>[0]): boolean => isClosed({ state: recordedState(record) })

/** Number of attempts without a delivery from which on a destination is said to refuse all mail. */
const REFUSING_FROM = 10

/** Facts about a destination in memory that show whether it refuses all mail. */
export interface RefusalFacts {
  readonly state: DestinationState
  readonly waiting: number
  readonly inFlight: number
  readonly nextDueAt: QueueTime | null
  readonly undelivered?: UndeliveredAttempts | undefined
}

/** True for an open destination that has mail, and delivered none in its last attempts. */
export const isRefusing = ({ state, waiting, inFlight, nextDueAt, undelivered }: RefusalFacts): boolean =>
  !isClosed({ state }) && undelivered !== undefined && undelivered.count >= REFUSING_FROM && (nextDueAt !== null || waiting + inFlight > 0)

/** Recipients that wait, without those of scheduled mail, which are not among them in the counts of the queues; `scheduled` is null when it is not counted. */
export const waitingNow = ({ waiting, scheduled }: { readonly waiting: number; readonly scheduled: number | null }): number =>
  Math.max(0, waiting - (scheduled ?? 0))
