/** State of a destination as the scheduler holds it in memory. Commands, metrics and the API show it. */
import type { DestinationName, MessageId } from '../mail/message.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { LiveProvider } from './records/provider-state.ts'
import type { Suspension } from './records/suspension.ts'
import type { Duration, QueueTime } from '../system/clock.ts'

/**
 * - `open`: deliveries are not restricted;
 * - `throttled`: feedback or a rate limit allows fewer deliveries than the destination has accepted before;
 * - `dead`: only probes are attempted;
 * - `suspended`: an operator has stopped deliveries.
 */
export type DestinationState = 'open' | 'throttled' | 'dead' | 'suspended'

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

/** A destination in the memory of the scheduler. */
export interface LiveDestination {
  readonly destination: DestinationName
  readonly state: DestinationState
  /** Null when the destination has no provider. */
  readonly provider: LiveProvider | null
  /** Maximum number of concurrent deliveries. */
  readonly window: number
  /** Deliveries per minute that may start: the lower of the configured and the adaptive rate; null without a limit. */
  readonly messageRate: number | null
  readonly inFlight: number
  /** Messages of the deliveries in flight. */
  readonly inTransfer: readonly MessageId[]
  /** Addresses (IP) for whose greeting it waits, because their share of the delivery slots is taken. */
  readonly awaited: readonly string[]
  /** True while the probe of a dead destination is made, by itself or by another destination of its host. */
  readonly isProbed: boolean
  /** Number of recipients in the active queue that wait for a delivery slot. */
  readonly waiting: number
  readonly nextDueAt: QueueTime | null
  readonly deadUntil: QueueTime | null
  readonly probeInterval: Duration | null
  /** Null when neither the destination nor its provider is suspended. That of the destination comes first. */
  readonly suspension: Suspension | null
  /** The failure of the site as a whole, until it answers again; null when there was none. */
  readonly siteStatus: DeliveryStatus | null
  /** Absent before the first attempt. */
  readonly lastAttempt?: LastAttempt | undefined
  /** Absent after a delivery, and before the first attempt. */
  readonly undelivered?: UndeliveredAttempts | undefined
}

/** Recipients that wait for a destination: `outside` the active queue, and in it for a delivery slot. */
export const waitingAt = (outside: number, live: Pick<LiveDestination, 'waiting'> | undefined): number => outside + (live?.waiting ?? 0)

/** Number of attempts without a delivery from which on a destination is said to refuse all mail. */
const REFUSING_FROM = 10

/** True for a destination that is dead or suspended. */
export const isClosed = ({ state }: Pick<LiveDestination, 'state'>): boolean => state === 'dead' || state === 'suspended'

/** True for an open destination that has mail, and delivered none in its last attempts. */
export const isRefusing = ({ state, waiting, inFlight, nextDueAt, undelivered }: LiveDestination): boolean =>
  (state === 'open' || state === 'throttled') &&
  undelivered !== undefined &&
  undelivered.count >= REFUSING_FROM &&
  (nextDueAt !== null || waiting + inFlight > 0)
