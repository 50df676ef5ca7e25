/** Times that clients name for their messages: FUTURERELEASE (RFC 4865), BY (RFC 2852), `not_before` and `expires` of the API. Pure. */
import { HOUR, MINUTE, SECOND, type Duration, type QueueTime, type WallTime } from '../system/clock.ts'
import { parseDuration } from '../system/duration.ts'
import type { WallView } from '../system/wall-view.ts'
import { isoInstant, midnightOf } from './mail-date.ts'

/** Times of a queued message that its client has named. */
export interface MessageTimes {
  /** Time before which no delivery begins, as the client asked. Ages and lifetimes are counted from it; see releasedAt. */
  readonly notBefore?: QueueTime | undefined
  /** True until the time `notBefore` has come. */
  readonly scheduled?: boolean | undefined
  /** The client's request to hold the message, as RFC 4865 §6 has it in notices: `for;3600`, `until;2026-11-24T08:00:00Z`. After `queue reschedule` the order of the operator; see orderedRequestOf. Of mail that a quota holds, the quota; see quotaRequestOf. */
  readonly holdRequest?: string | undefined
  /** Time at which the client gives the message up. The lifetime may end before. */
  readonly expires?: QueueTime | undefined
  /** Deliver-by time of BY (RFC 2852 §4). With the mode R, `expires` is this time. */
  readonly deliverBy?: QueueTime | undefined
  readonly byMode?: ByMode | undefined
}

/**
 * Treatment of a message that is undelivered at its deliver-by time (RFC 2852 §4): R returns it, N reports the delay and goes on. T requests
 * a notice of each relay.
 */
export const BY_MODES = ['R', 'N', 'RT', 'NT'] as const
export type ByMode = (typeof BY_MODES)[number]

/** True for a mode that returns an undelivered message. */
export const isReturned = (mode: ByMode): boolean => mode.startsWith('R')

/** True for a mode that requests a notice of each relay. */
export const isTraced = (mode: ByMode): boolean => mode.endsWith('T')

/** Deliver-by time in an envelope. */
export interface DeliverBy {
  readonly at: QueueTime
  readonly mode: ByMode
}

/** A span from the acceptance, which elapses whatever is done to the wall clock, or an instant of the wall clock. */
export type NamedTime = { readonly kind: 'span'; readonly span: Duration } | { readonly kind: 'instant'; readonly at: WallTime }

/** The same times in the envelope. */
export interface NamedTimes {
  /** Time before which no delivery begins. */
  readonly release?: NamedTime | undefined
  /** Time at which the client gives the message up. */
  readonly expires?: NamedTime | undefined
  readonly deliverBy?: DeliverBy | undefined
}

/** Time in the past that counts as now: the latency of the client, and the difference of two clocks. */
const LATENCY: Duration = MINUTE

const INSTANT = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))$/

/** Parses a date-time with any offset and fraction (RFC 3339 §5.6), cut to ms. Undefined for other text and for a date that does not exist. */
export function parseInstant(text: string): WallTime | undefined {
  const match = INSTANT.exec(text)
  if (match === null) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number)
  const [fraction = '', sign, offsetHours, offsetMinutes] = match.slice(7)
  const midnight = midnightOf({ year, month, day })
  const offset = sign === undefined ? 0 : Number(offsetHours) * HOUR + Number(offsetMinutes) * MINUTE
  if (midnight === undefined || hour > 23 || minute > 59 || second > 60 || Number(offsetHours ?? 0) > 23 || Number(offsetMinutes ?? 0) > 59)
    return undefined
  const local = midnight + hour * HOUR + minute * MINUTE + second * SECOND + Math.floor(Number(`0${fraction}`) * SECOND)
  return sign === '-' ? local + offset : local - offset
}

/** Formats an instant in UTC as RFC 3339, without a fraction that is 0. */
export const formatInstant = (at: WallTime): string => isoInstant(at).replace('.000Z', 'Z')

/** 9999-12-31T23:59:59.999Z. RFC 3339 has no later instant. */
const LATEST: WallTime = 253_402_300_799_999

/** Parses a time of the API: seconds since 1970, RFC 3339, or a span with its unit. Undefined for another value. */
export function parseNamedTime(given: string | number): NamedTime | undefined {
  if (typeof given === 'number' || /^\d+(\.\d+)?$/.test(given)) {
    const at = Math.round(Number(given) * SECOND)
    return at >= 0 && at <= LATEST ? { kind: 'instant', at } : undefined
  }
  const at = parseInstant(given)
  if (at !== undefined) return { kind: 'instant', at }
  const span = parseDuration(given)
  return span === undefined ? undefined : { kind: 'span', span }
}

export const NAMED_INSTANT = 'RFC 3339 such as 2026-11-24T08:00:00Z, or seconds since 1970'

/** Parses an instant of the API. Undefined for another value, a span too. */
export function parseNamedInstant(given: string): WallTime | undefined {
  const time = parseNamedTime(given)
  return time?.kind === 'instant' ? time.at : undefined
}

/** False for a begin and an end between which there is no time. */
export const isRange = (begin: WallTime = -Infinity, end: WallTime = Infinity): boolean => begin < end

/** Moment at which a client names a time. */
export interface Moment {
  readonly now: QueueTime
  readonly wall: WallView
}

export const momentOf = (clock: { now: () => QueueTime; readonly wall: WallView }): Moment => ({ now: clock.now(), wall: clock.wall })

/** The time on the clock of the queue. */
export const queueTimeOf = (time: NamedTime, { now, wall }: Moment): QueueTime =>
  time.kind === 'span' ? now + time.span : wall.queueTime(time.at)

/** Problem of a time: too far in the future, or in the past; null for a good one. */
export function timeProblem(time: NamedTime, moment: Moment, limit: Duration): 'too-far' | 'past' | null {
  const ahead = queueTimeOf(time, moment) - moment.now
  return ahead > limit ? 'too-far' : ahead < -LATENCY ? 'past' : null
}

/** The times of a message that is accepted at a moment. */
export function acceptedTimes({ release, expires, deliverBy }: NamedTimes, moment: Moment): MessageTimes {
  const end = expires === undefined ? undefined : queueTimeOf(expires, moment)
  const until = { ...(end === undefined ? {} : { expires: end }), ...(deliverBy === undefined ? {} : deliverByTimes(deliverBy, end)) }
  if (release === undefined) return until
  const notBefore = queueTimeOf(release, moment)
  return { ...until, notBefore, holdRequest: holdRequestOf(release), ...(notBefore > moment.now ? { scheduled: true } : {}) }
}

const deliverByTimes = ({ at, mode }: DeliverBy, end: QueueTime = Infinity): MessageTimes => ({
  deliverBy: at,
  byMode: mode,
  ...(isReturned(mode) ? { expires: Math.min(at, end) } : {}),
})

/** A request to hold a message as notices have it (RFC 4865 §6). */
export const holdRequestOf = (time: NamedTime): string =>
  time.kind === 'span' ? `for;${Math.ceil(time.span / SECOND)}` : `until;${formatInstant(time.at)}`

const ORDERED = 'operator;'

/** The order of an operator in place of a client's request: `operator;until;2026-11-24T08:00:00Z`. */
export const orderedRequestOf = (time: NamedTime): string => `${ORDERED}${holdRequestOf(time)}`

/** True for the order of an operator. */
export const isOrdered = (request: string): boolean => request.startsWith(ORDERED)

const QUOTA = 'quota;'

/** A quota that holds a message. */
interface HoldingQuota {
  readonly quota: string
  /** The limit without room: `1000/1h`. */
  readonly limit: string
  /** Recipients that are charged. */
  readonly recipients: number
  /** Sender as the client gave it. */
  readonly sender: string
}

/** A quota in place of a client's request: `quota;app;1000/1h;3;app@example.com`. */
export const quotaRequestOf = ({ quota, limit, recipients, sender }: HoldingQuota): string =>
  `${QUOTA}${quota};${limit};${recipients};${sender}`

/** The quota that holds a message with a request; undefined for the request of a client or operator. */
export function holdingQuota(request: string): HoldingQuota | undefined {
  if (!request.startsWith(QUOTA)) return undefined
  const [, quota = '', limit = '', recipients = '', ...sender] = request.split(';')
  return { quota, limit, recipients: Number(recipients), sender: sender.join(';') }
}

/** True for a request that notices have (RFC 4865 §6): that of the client. */
export const isOfClient = (request: string): boolean => !isOrdered(request) && holdingQuota(request) === undefined

const ownRequest = (request: string): string => (isOrdered(request) ? request.slice(ORDERED.length) : request)

/** True when a request names an instant, and no span. */
export const namesInstant = (request: string): boolean => ownRequest(request).startsWith('until;')

/** The instant of the wall clock that a request names; undefined for a span. */
export const requestedInstant = (request: string): WallTime | undefined =>
  namesInstant(request) ? parseInstant(ownRequest(request).slice('until;'.length)) : undefined
