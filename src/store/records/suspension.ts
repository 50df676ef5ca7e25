/** A suspension of a destination or of a provider, which stops its deliveries. */
import type { QueueTime } from '../../system/clock.ts'

/** Suspension of a destination or of a provider, by an operator or by a reply rule. */
export interface Suspension {
  /** The operator, or the rule. */
  readonly by: string
  /** Time when the suspension ends by itself; null when only an operator ends it. */
  readonly until: QueueTime | null
  /** Reason that the operator gave, or the reply that the rule answered. */
  readonly reason: string | null
  /** Provider with which a destination is suspended; absent for a suspension of its own. */
  readonly provider?: string | undefined
  /** Suspension of the provider beside that of the destination itself; absent without both. No delivery begins before both have ended. */
  readonly also?: ProviderSuspended | undefined
}

/** True for a suspension that is known already: an order of another node arrives by a message and is found in the record, and is told once. */
export const isKnownAs = (known: Suspension | null, { by, until, reason }: Suspension): boolean =>
  known !== null && known.by === by && known.until === until && known.reason === reason

/** A suspended provider of a destination that is suspended itself. */
export interface ProviderSuspended extends Pick<Suspension, 'by' | 'until'> {
  readonly provider: string
}

/** The suspension of a destination itself beside that of its provider, which is null for none. */
export const besideProvider = (own: Suspension, provider: string, suspension: Suspension | null): Suspension =>
  suspension === null ? own : { ...own, also: { provider, by: suspension.by, until: suspension.until } }

/** Time when deliveries begin again by themselves; null when an operator must end a suspension. */
export function endOfAll({ until, also }: Pick<Suspension, 'until' | 'also'>): QueueTime | null {
  if (also === undefined) return until
  return until === null || also.until === null ? null : Math.max(until, also.until)
}
