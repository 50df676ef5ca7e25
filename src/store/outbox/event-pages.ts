/** Decisions about kept events: which ones a page has, and which subscriptions lose some when they are deleted. */
import { eventSelector, type EventFilter } from '../../events/event-filter.ts'
import type { EventSeq, KeptEvent, LostEvents } from '../../events/kept-event.ts'
import { EVENTS_SEARCHED, type EventLimits } from './subscription.ts'

/** A loss as it is stored. One that was pulled does not grow, so that its event is the same at each try. */
export interface StoredLoss extends LostEvents {
  readonly pulled: boolean
}

/** Adds a loss to those that a subscription was not told of. */
export function withLoss(losses: readonly StoredLoss[], { from, to, count }: LostEvents): readonly StoredLoss[] {
  if (count === 0) return losses
  const last = losses.at(-1)
  if (last === undefined || last.pulled) return [...losses, { from, to, count, pulled: false }]
  return [...losses.slice(0, -1), { from: last.from, to, count: last.count + count, pulled: false }]
}

/** Marks the first loss as pulled. */
export const pulledLoss = (losses: readonly StoredLoss[]): readonly StoredLoss[] =>
  losses.map((loss, n) => (n === 0 ? { ...loss, pulled: true } : loss))

/** Removes a loss that the subscription was told of. */
export const withoutLoss = (losses: readonly StoredLoss[], told: LostEvents): readonly StoredLoss[] =>
  losses.filter(({ from, to }) => from !== told.from || to !== told.to)

/**
 * The selected ones of the events that were read, up to a number. `rows` are at most EVENTS_SEARCHED events after `after`, in order; no more
 * of them are read than needed.
 */
export function selectedPage(
  rows: Iterable<KeptEvent>,
  { filter, limit, after }: { readonly filter: EventFilter; readonly limit: number; readonly after: EventSeq },
): { readonly events: readonly KeptEvent[]; readonly through: EventSeq; readonly more: boolean } {
  const selects = eventSelector(filter)
  const events: KeptEvent[] = []
  let through = after
  let searched = 0
  for (const row of rows) {
    if (events.length >= limit) return { events, through, more: true }
    searched++
    through = row.seq
    if (selects(row)) events.push(row)
  }
  return { events, through, more: searched >= EVENTS_SEARCHED }
}

/**
 * Number of the last event to delete of the oldest ones, which are at most EVENTS_PRUNED; null for none. The newest event stays. `more` is
 * true when more may have to be deleted. No more of them are read than needed.
 */
export function prunable(
  oldest: Iterable<Pick<KeptEvent, 'seq' | 'at'>>,
  last: EventSeq,
  { before, count }: EventLimits,
): { readonly through: EventSeq | null; readonly more: boolean } {
  let through: EventSeq | null = null
  for (const { seq, at } of oldest) {
    if (seq === last || (at >= before && seq > last - count)) return { through, more: false }
    through = seq
  }
  return { through, more: through !== null }
}

/**
 * Events that a subscription loses when they are deleted: those after its position that it selects, and those that are parked for it. Null
 * when it loses nothing.
 */
export function lossOf(
  deleted: readonly KeptEvent[],
  { filter, cursor, parked }: { readonly filter: EventFilter; readonly cursor: EventSeq; readonly parked: ReadonlySet<EventSeq> },
): LostEvents | null {
  const selects = eventSelector(filter)
  const lost = deleted.filter((event) => (event.seq > cursor ? selects(event) : parked.has(event.seq)))
  const [first, last] = [lost.at(0), lost.at(-1)]
  return first === undefined || last === undefined ? null : { from: first.seq, to: last.seq, count: lost.length }
}
