/** Subscriptions of commands during a move to another queue, and their state there. */
import type { LostEvents, EventSeq } from '../../events/kept-event.ts'
import type { StoredLoss } from './event-pages.ts'
import type { Progress, Subscription, SubscriptionOwner, SubscriptionSettings } from './subscription.ts'

/** A subscription that a command has added, for another queue. Its position stays behind. */
export interface MovedSubscription
  extends Pick<Subscription, 'name' | 'settings' | 'createdAt' | 'createdBy'>, Pick<Progress, 'state' | 'why'> {
  /** Events of its queue that it will not have had, in the numbers of that queue; null for none. */
  readonly lost: LostEvents | null
}

/** Why a subscription is disabled whose queue moves as a whole. */
export const MOVED_ON = 'the queue moves: its events are sent from the new place'

/** The subscription of the name in the other queue. */
interface KnownSubscription {
  readonly owner: SubscriptionOwner
  readonly settings: SubscriptionSettings
  readonly progress: Pick<Progress, 'cursor' | 'state' | 'why'>
  readonly losses: readonly StoredLoss[]
}

interface TakenSubscription extends Pick<Progress, 'cursor' | 'state' | 'why'> {
  readonly settings: SubscriptionSettings
  readonly losses: readonly StoredLoss[]
  /** True when what was parked for a subscription of the name has to be deleted. */
  readonly begins: boolean
}

/**
 * A subscription as the other queue takes it; null to leave what is there. It begins after the newest event (`last`). One that an
 * earlier call has taken, which has the same secret, keeps its position; its loss grows.
 */
export function takenSubscription(
  known: KnownSubscription | undefined,
  moved: MovedSubscription,
  last: EventSeq,
): TakenSubscription | null {
  const { settings, state, why, lost } = moved
  const losses = lost === null ? [] : [{ ...lost, pulled: false }]
  // One that is disabled for a move was here before, and comes back.
  if (known === undefined || (isSame(known, moved) && known.progress.why === MOVED_ON))
    return { settings, state, why, losses, cursor: last, begins: true }
  if (!isSame(known, moved)) return null
  const { progress } = known
  return {
    settings,
    cursor: progress.cursor,
    state: progress.state,
    why: progress.why,
    losses: losses.reduce(withRepeated, known.losses),
    begins: false,
  }
}

/**
 * Adds the loss of a repeated step, which begins with the same event as that of the step before and has those that were left behind since.
 * A loss that was pulled does not grow: what it lacks is another one.
 */
function withRepeated(known: readonly StoredLoss[], repeated: StoredLoss): readonly StoredLoss[] {
  const at = known.findIndex(({ from }) => from === repeated.from)
  const before = known[at]
  if (before === undefined) return [...known, repeated]
  if (!before.pulled)
    return known.with(at, { ...before, to: Math.max(before.to, repeated.to), count: Math.max(before.count, repeated.count) })
  const count = repeated.count - before.count
  return count <= 0 ? known : withRepeated(known, { from: before.to + 1, to: repeated.to, count, pulled: false })
}

const isSame = ({ owner, settings }: KnownSubscription, moved: MovedSubscription): boolean =>
  owner === 'command' && settings.secrets.some(({ secret }) => moved.settings.secrets.some((one) => one.secret === secret))
