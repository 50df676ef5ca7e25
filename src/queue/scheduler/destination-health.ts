/**
 * Health of a destination: whether mail is attempted, its concurrency window, and its site status. Pure functions map the outcome
 * of a delivery to the next health.
 */
import type { Settings } from '../../config/destination-settings.ts'
import type { AttemptResult } from '../../delivery/delivery-agent.ts'
import type { DestinationName } from '../../mail/message.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { DestinationState } from '../../store/destination-status.ts'
import type { Suspension } from '../../store/records/suspension.ts'
import type { DestinationRecord } from '../../store/queue-store.ts'
import type { Duration, QueueTime } from '../../system/clock.ts'
import type { CutFacts } from './window/tcp-window.ts'
import { succeeded, congested, failed, freshWindow, sizeOf, type Window } from './window/window.ts'
import type { WindowPolicy } from './window/window-policy.ts'

/** Whether mail for the destination is attempted. */
export type Access =
  | { readonly kind: 'open' }
  /** The failed-cohort limit was reached. Mail waits, and one probe is made at `until` or later. */
  | {
      readonly kind: 'dead'
      readonly until: QueueTime
      /** Wait before this probe. Doubles while probes fail. */
      readonly interval: Duration
      readonly siteStatus: DeliveryStatus
      /** True while the probe is claimed or in delivery. */
      readonly probing: boolean
    }
  | { readonly kind: 'suspended'; readonly suspension: Suspension }

export interface DestinationHealth {
  readonly access: Access
  readonly window: Window
  /** Largest size of the window since its last reset. */
  readonly bestWindow: number
  /** Status of the last failure that concerned the site as a whole; null when there was none. */
  readonly siteStatus: DeliveryStatus | null
}

/** Facts about the delivery that has just ended. */
export interface LearnFacts {
  readonly settings: Settings
  readonly now: QueueTime
  /** Number of deliveries in flight, including this one. */
  readonly inFlight: number
  /** True when no other mail for the destination is in memory or known to wait. */
  readonly alone: boolean
  /** Serial number of this delivery at the destination. */
  readonly begunAs: number
  /** Serial number of the last delivery to the destination that was started. */
  readonly latestBegun: number
}

const OPEN: Access = { kind: 'open' }

const UNKNOWN: DeliveryStatus = { status: '4.4.0', reason: 'unknown failure', stage: 'connect' }

function windowPolicy(settings: Settings): WindowPolicy {
  return {
    control: settings.destination_concurrency_control,
    decrease: settings.destination_concurrency_decrease_factor,
    initial: settings.initial_destination_concurrency,
    // With a delay after each delivery, one delivery is made at a time (Postfix default_destination_rate_delay).
    limit: settings.destination_rate_delay > 0 ? 1 : settings.destination_concurrency_limit,
    positive: settings.destination_concurrency_positive_feedback,
    negative: settings.destination_concurrency_negative_feedback,
    failedCohortLimit: settings.destination_concurrency_failed_cohort_limit,
  }
}

/** Health of a destination that has no history. */
export const freshHealth = (settings: Settings): DestinationHealth => withFreshWindow({ access: OPEN, siteStatus: null }, settings)

/** Maximum number of concurrent deliveries; at least 1. */
export const windowSize = ({ window }: DestinationHealth, settings: Settings): number => sizeOf(window, windowPolicy(settings))

/**
 * Maximum number of outcomes that are written and not durable, with which a delivery may begin. Without a concurrency limit, a multiple is one of
 * the window.
 */
export function unsettledLimit(settings: Settings, window: number): number {
  const { destination_unsettled_limit: limit, destination_concurrency_limit: concurrency } = settings
  return limit.perConcurrency ? limit.count * (concurrency > 0 ? concurrency : window) : limit.count
}

/** A new window of `size` deliveries, or of `initial_destination_concurrency` when `size` is absent. */
export function withFreshWindow(
  { access, siteStatus }: Pick<DestinationHealth, 'access' | 'siteStatus'>,
  settings: Settings,
  size?: number,
): DestinationHealth {
  const policy = windowPolicy(settings)
  const window = freshWindow(policy, size)
  return { access, siteStatus, window, bestWindow: sizeOf(window, policy) }
}

/** Health after an operator has suspended the destination. */
export const suspended = (health: DestinationHealth, suspension: Suspension): DestinationHealth => ({
  ...health,
  access: { kind: 'suspended', suspension },
})

/** Opens the destination by order of an operator. The window returns to its initial size, so that no burst follows. */
export const reopened = ({ siteStatus }: DestinationHealth, settings: Settings): DestinationHealth =>
  withFreshWindow({ access: OPEN, siteStatus }, settings)

/** Marks the start or the end of a probe of a dead destination. */
export function withProbe(health: DestinationHealth, probing: boolean): DestinationHealth {
  const { access } = health
  return access.kind === 'dead' && access.probing !== probing ? { ...health, access: { ...access, probing } } : health
}

/** Health after a delivery. */
export function learned(
  before: DestinationHealth,
  result: Pick<AttemptResult, 'feedback' | 'congestion' | 'siteStatus'>,
  facts: LearnFacts,
): DestinationHealth {
  const siteStatus = result.siteStatus ?? (result.feedback === 'positive' ? null : before.siteStatus)
  const health = siteStatus === before.siteStatus ? before : { ...before, siteStatus }
  if (result.feedback === 'positive' && result.congestion === undefined) return afterAnswer(health, facts)
  if (health.access.kind === 'suspended') return health
  if (result.feedback === 'negative' || result.congestion === 'early') return afterFailure(health, facts, result.siteStatus ?? UNKNOWN)
  if (result.congestion === 'late' && health.access.kind === 'dead') return afterAnswer(health, facts)
  const policy = windowPolicy(facts.settings)
  const window = result.congestion === 'late' ? congested(health.window, policy, cutFacts(facts)) : health.window
  return afterInconclusiveProbe({ ...health, window }, facts.now)
}

/** Schedules another probe after one without a result about the destination (a local failure, an aborted attempt). */
function afterInconclusiveProbe(health: DestinationHealth, now: QueueTime): DestinationHealth {
  const { access } = health
  if (access.kind !== 'dead' || !access.probing) return health
  return { ...health, access: { ...access, until: now + access.interval, probing: false } }
}

function afterAnswer(health: DestinationHealth, { settings, inFlight }: LearnFacts): DestinationHealth {
  const policy = windowPolicy(settings)
  if (health.access.kind === 'dead') {
    const others = inFlight - 1
    return withFreshWindow({ access: OPEN, siteStatus: health.siteStatus }, settings, others > 0 ? others : policy.initial)
  }
  const window = succeeded(health.window, policy, inFlight)
  return { ...health, window, bestWindow: Math.max(health.bestWindow, sizeOf(window, policy)) }
}

function afterFailure(health: DestinationHealth, facts: LearnFacts, siteStatus: DeliveryStatus): DestinationHealth {
  const { now, alone, settings } = facts
  if (health.access.kind === 'dead') {
    // A delivery that began before the destination became dead gives no new information.
    if (!health.access.probing) return health
    return { ...health, access: { ...afterProbe(health.access, facts), siteStatus } }
  }
  const window = failed(health.window, windowPolicy(settings), cutFacts(facts))
  if (window !== 'dead') return { ...health, window }
  // The dead state protects other mail for the destination. Without other mail, the only message continues its own retry schedule.
  if (alone) return withFreshWindow(health, settings)
  const interval = settings.minimal_backoff_time
  return { ...health, access: { kind: 'dead', until: now + interval, interval, siteStatus, probing: false } }
}

type Dead = Extract<Access, { kind: 'dead' }>

function afterProbe(access: Dead, { settings, now }: Pick<LearnFacts, 'settings' | 'now'>): Dead {
  const interval = Math.min(access.interval * 2, settings.maximal_backoff_time)
  return { ...access, until: now + interval, interval, probing: false }
}

/** Health after the failed probe of another destination at the same host, which counts as its own. One that is being probed itself stays. */
export function sharedProbe(health: DestinationHealth, settings: Settings, now: QueueTime): DestinationHealth {
  const { access } = health
  return access.kind === 'dead' && !access.probing ? { ...health, access: afterProbe(access, { settings, now }) } : health
}

/** Health of a destination whose hosts are silent, which is known from other destinations. */
export function sharedDeath(
  health: DestinationHealth,
  { siteStatus, now, settings }: Pick<LearnFacts, 'now' | 'settings'> & { readonly siteStatus: DeliveryStatus },
): DestinationHealth {
  if (health.access.kind !== 'open') return health
  const interval = settings.minimal_backoff_time
  return { ...health, siteStatus, access: { kind: 'dead', until: now + interval, interval, siteStatus, probing: false } }
}

/** Makes the next probe due at `now`, unless one is made. */
export function probedNow(health: DestinationHealth, now: QueueTime): DestinationHealth {
  const { access } = health
  if (access.kind !== 'dead' || access.probing || access.until <= now) return health
  return { ...health, access: { ...access, until: now } }
}

const cutFacts = ({ inFlight, begunAs, latestBegun }: LearnFacts): CutFacts => ({ inFlight, begunAs, latestBegun })

/**
 * State shown to operators. `throttled` has two causes: negative feedback has reduced the concurrency window below the larger of
 * its initial and its best size, or a rate limit delays the next delivery.
 */
export function stateOf(health: DestinationHealth, settings: Settings, delayed: boolean): DestinationState {
  if (health.access.kind !== 'open') return health.access.kind
  const { initial, limit } = windowPolicy(settings)
  const untroubled = Math.max(initial, health.bestWindow)
  const lowered = windowSize(health, settings) < (limit > 0 ? Math.min(untroubled, limit) : untroubled)
  return lowered || delayed ? 'throttled' : 'open'
}

/** The part of the health that the store keeps across restarts. */
export function recordOf(name: DestinationName, { access }: DestinationHealth): DestinationRecord {
  return {
    name,
    deadUntil: access.kind === 'dead' ? access.until : null,
    probeInterval: access.kind === 'dead' ? access.interval : null,
    suspension: access.kind === 'suspended' ? access.suspension : null,
    siteStatus: access.kind === 'dead' ? access.siteStatus : null,
  }
}

/** Health restored from a record. A destination that was dead is probed first. */
export function recalled(health: DestinationHealth, record: DestinationRecord, settings: Settings): DestinationHealth {
  if (record.suspension !== null) return { ...health, access: { kind: 'suspended', suspension: record.suspension } }
  if (record.deadUntil === null) return health
  const { siteStatus } = record
  const interval = record.probeInterval ?? settings.minimal_backoff_time
  const access = { kind: 'dead', until: record.deadUntil, interval, siteStatus: siteStatus ?? UNKNOWN, probing: false } as const
  return { ...health, siteStatus, access }
}
