/** Counts the attempts at a destination since its last delivery. Pure. */
import type { RecipientOutcome } from '../../delivery/delivery-agent.ts'
import type { UndeliveredAttempts } from '../../store/destination-status.ts'
import type { QueueTime } from '../../system/clock.ts'

/** The count after an attempt with these outcomes; undefined after a delivery. */
export function countedAttempts(
  before: UndeliveredAttempts | undefined,
  outcomes: readonly RecipientOutcome[],
  now: QueueTime,
): UndeliveredAttempts | undefined {
  if (outcomes.some(({ outcome }) => outcome === 'delivered')) return undefined
  const last = outcomes.at(-1)?.status
  if (last === undefined) return before
  return { count: (before?.count ?? 0) + outcomes.length, since: before?.since ?? now, last }
}
