/**
 * Traffic of a queue: recipients by what happened to them, in each minute. The store records traffic in the transaction of the
 * event, so that the sums over all minutes are exact: accepted = delivered + bounced + expired + deleted + those still queued.
 */
import { DAY, MINUTE, type Duration, type QueueTime } from '../../system/clock.ts'

/**
 * - `accepted`: queued, notices included; a requeued recipient is not accepted again;
 * - `delivered`, `bounced`, `expired`: left with this outcome;
 * - `deferred`: attempts that were deferred; the recipient stays in the queue;
 * - `deleted`: deleted permanently by an operator, or with the trash.
 */
export const TRAFFIC_KINDS = ['accepted', 'delivered', 'deferred', 'bounced', 'expired', 'deleted'] as const
export type TrafficKind = (typeof TRAFFIC_KINDS)[number]

/** Recipients by kind. */
export type Traffic = Readonly<Record<TrafficKind, number>>

/** Traffic of the minute that begins at `at`; of old minutes, that of their hour. */
export interface TrafficMinute extends Traffic {
  readonly at: QueueTime
}

/** Number of minutes that a store keeps: seven days. Older minutes are added up by hour, so that the sums stay exact. */
export const TRAFFIC_MINUTES = 7 * 24 * 60
/** Time before the first minute for which hours are kept. Older hours are added up in one row. */
export const TRAFFIC_HOURS: Duration = 400 * DAY

/** `at` of the row that holds the sum of all that is older. */
export const OLDER_MINUTES: QueueTime = 0

export const NO_TRAFFIC: Traffic = { accepted: 0, delivered: 0, deferred: 0, bounced: 0, expired: 0, deleted: 0 }

/** Start of the minute that contains an instant. At least one minute after 1970, because 0 is OLDER_MINUTES. */
export const minuteOf = (at: QueueTime): QueueTime => Math.max(MINUTE, Math.floor(at / MINUTE) * MINUTE)

export const addTraffic = (one: Traffic, other: Traffic): Traffic => ({
  accepted: one.accepted + other.accepted,
  delivered: one.delivered + other.delivered,
  deferred: one.deferred + other.deferred,
  bounced: one.bounced + other.bounced,
  expired: one.expired + other.expired,
  deleted: one.deleted + other.deleted,
})

export const sumOfTraffic = (all: readonly Traffic[]): Traffic => all.reduce(addTraffic, NO_TRAFFIC)
