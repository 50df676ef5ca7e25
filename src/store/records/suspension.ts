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
}
