/** State of a destination and the reason for it, as text. Pure. */
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { DestinationState, LiveDestination } from '../store/destination-status.ts'
import type { DestinationRecord } from '../store/queue-store.ts'
import type { WallTime } from '../system/clock.ts'
import { instantOf, relative } from './text.ts'

/** A destination: `live` as the running scheduler holds it, and `record` as stored in the queue. */
export interface KnownDestination {
  readonly live: LiveDestination | undefined
  readonly record: DestinationRecord | undefined
}

/** State of a destination and its causes: as in the running scheduler, or as stored when the scheduler does not have the destination. */
export function healthOf({ live, record }: KnownDestination): Omit<DestinationRecord, 'name'> & { readonly state: DestinationState } {
  if (live !== undefined) return live
  const { deadUntil = null, probeInterval = null, suspension = null, siteStatus = null } = record ?? {}
  const state = suspension !== null ? 'suspended' : deadUntil !== null ? 'dead' : 'open'
  return { state, deadUntil, probeInterval, suspension, siteStatus }
}

/** The state of a destination in JSON. */
export interface ShownState {
  readonly state: DestinationState
  /** In seconds, as all times here. */
  readonly dead_until: number | null
  readonly suspended_by: string | null
  readonly suspended_until: number | null
  readonly suspend_reason: string | null
}

/** `open`, `throttled`, `dead, probed in 5m` or `suspended by root, ends in 2h: maintenance`. */
export function stateText(shown: ShownState, now: WallTime): string {
  const { state, dead_until: deadUntil, suspended_by: by, suspended_until: until, suspend_reason: reason } = shown
  if (by !== null) {
    // A suspension that ends while no daemon runs stays until the next start.
    const end = until === null ? '' : `, ${instantOf(until) > now ? 'ends' : 'ended'} ${relative(instantOf(until), now)}`
    return `suspended by ${by}${end}${reason === null ? '' : `: ${reason}`}`
  }
  return state === 'dead' && deadUntil !== null ? `dead, probed ${relative(instantOf(deadUntil), now)}` : state
}

/** `, at most 50 a minute`, empty without a limit of the message rate. */
export const rateText = (messageRate: number | null): string =>
  messageRate === null ? '' : `, at most ${Number(messageRate.toFixed(1))} a minute`

/**
 * Reason for the state of a destination: the host's own reply or, without one, the reason of the failure. `does not answer`
 * precedes the reason of a failure to connect or to get a greeting.
 */
export function siteReason({ reply, reason, stage }: DeliveryStatus): string {
  if (reply !== undefined) return reply
  return stage === 'connect' || stage === 'greeting' ? `does not answer: ${reason}` : reason
}
