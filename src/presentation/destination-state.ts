/** State of a destination and the reason for it, as text. Pure. */
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { DestinationState, LiveDestination } from '../store/destination-status.ts'
import type { DestinationRecord } from '../store/queue-store.ts'
import type { QueueTime } from '../system/clock.ts'
import { relative } from './text.ts'

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

/** `open`, `throttled`, `dead, probed in 5m` or `suspended by root, ends in 2h: maintenance`. */
export function stateText(known: KnownDestination, now: QueueTime): string {
  const { state, deadUntil, suspension } = healthOf(known)
  if (suspension !== null) {
    const { by, until, reason } = suspension
    // A suspension that ends while no daemon runs stays until the next start.
    const end = until === null ? '' : until > now ? `, ends ${relative(until, now)}` : `, ended ${relative(until, now)}`
    return `suspended by ${by}${end}${reason === null ? '' : `: ${reason}`}`
  }
  return state === 'dead' && deadUntil !== null ? `dead, probed ${relative(deadUntil, now)}` : state
}

/** `, at most 50 a minute`, empty without a limit of the message rate. */
export const rateText = ({ messageRate }: Pick<LiveDestination, 'messageRate'>): string =>
  messageRate === null ? '' : `, at most ${Number(messageRate.toFixed(1))} a minute`

/**
 * Reason for the state of a destination: the host's own reply or, without one, the reason of the failure. `does not answer`
 * precedes the reason of a failure to connect or to get a greeting.
 */
export function siteReason({ reply, reason, stage }: DeliveryStatus): string {
  if (reply !== undefined) return reply
  return stage === 'connect' || stage === 'greeting' ? `does not answer: ${reason}` : reason
}
