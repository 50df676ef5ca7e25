/** Queries for subscriptions to events, and the replay of their events. */
import { ANY_EVENT, selectedTypes, type EventFilter } from '../events/event-filter.ts'
import { EVENT_TYPES, type EventType } from '../events/event-types.ts'
import type { EventSeq } from '../events/kept-event.ts'
import { Problem, type ProblemKind } from '../http/problem-details.ts'
import { auditName, grants, type Requester } from '../http/requester.ts'
import { parkedJson, timedEventJson, type ParkedEventJson, type TimedEventJson } from '../resources/event-json.ts'
import { subscriptionJson, type ReplayJson, type SubscriptionJson, type SubscriptionListJson } from '../resources/subscription-json.ts'
import { maskControls } from '../presentation/text.ts'
import type { SubscriptionView } from '../store/outbox/subscription.ts'
import { replayArguments, type Replayed } from '../subscriptions/subscription-changes.ts'
import type { QueueTime, WallTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { asOf, type QueueView } from './queue-view.ts'

export const UNKNOWN_SUBSCRIPTION: ProblemKind = {
  slug: 'unknown-subscription',
  status: 404,
  title: 'Unknown subscription',
  about: 'No command and no `[events.NAME]` table has a subscription of the name. `GET /subscriptions` has all names.',
}

/** Requester of a list. Only an admin gets the path and query of target URLs, because they are the credential of some services. */
type UrlReader = Pick<Requester, 'role'>

const shownTo = ({ role }: UrlReader, one: SubscriptionView, { clock }: QueueView): SubscriptionJson =>
  subscriptionJson(one, clock.wall, grants(role, 'admin'))

/** Types that a subscription wants. */
export function keptTypes(subscriptions: readonly SubscriptionView[]): readonly EventType[] {
  const wanted = new Set(subscriptions.flatMap(({ settings }) => selectedTypes(settings.types)))
  return EVENT_TYPES.filter((type) => wanted.has(type))
}

/** All subscriptions, by name. */
export async function subscriptionList(view: QueueView, reader: UrlReader): Promise<SubscriptionListJson> {
  const all = await view.reader.allSubscriptions()
  return { subscriptions: all.map((one) => shownTo(reader, one, view)), kept_types: keptTypes(all), as_of: asOf(view) }
}

async function found(view: QueueView, name: string): Promise<SubscriptionView> {
  const subscription = (await view.reader.allSubscriptions()).find((one) => one.name === name)
  if (subscription !== undefined) return subscription
  throw new Problem(UNKNOWN_SUBSCRIPTION, `there is no subscription ${maskControls(name)}; GET /subscriptions has all names`)
}

/** One subscription. Throws Problem for an unknown name. */
export const subscription = async (view: QueueView, name: string, reader: UrlReader): Promise<SubscriptionJson> =>
  shownTo(reader, await found(view, name), view)

/** Number of the newest event, and the random number of the queue. */
const bounds = ({ reader }: QueueView) => reader.eventsAfter({ after: Number.MAX_SAFE_INTEGER, limit: 1, filter: ANY_EVENT })

/** Events that a target refused, with numbers above `after`. Throws Problem for an unknown name. */
export async function parkedPage(
  view: QueueView,
  name: string,
  { after, limit }: { readonly after: EventSeq; readonly limit: number },
): Promise<{ readonly events: readonly ParkedEventJson[]; readonly next: string | null }> {
  await found(view, name)
  const { epoch } = await bounds(view)
  const parked = await view.reader.parkedEvents(name, { after, limit: limit + 1 })
  const events = parked.slice(0, limit).map((one) => parkedJson(epoch, one, view.clock.wall))
  return { events, next: parked.length > limit ? String(events.at(-1)?.number ?? after) : null }
}

/** A range of times of events. */
export interface EventRange {
  /** At this time or later. */
  readonly occurred_after?: WallTime | undefined
  /** Before this time. */
  readonly occurred_before?: WallTime | undefined
}

export function inRange({ occurred_after: after = -Infinity, occurred_before: end = Infinity }: EventRange, wall: WallView) {
  return ({ at }: { readonly at: QueueTime }): boolean => wall.of(at) >= after && wall.of(at) < end
}

/** In events that the search for the newest ones compares with a filter. */
const MOST_SEARCHED = 1_000

/** The newest selected events of a range of times, newest first, among the last MOST_SEARCHED before its end. */
export async function latestEvents(
  view: QueueView,
  { filter, limit, ...range }: EventRange & { readonly filter: EventFilter; readonly limit: number },
): Promise<readonly TimedEventJson[]> {
  const { wall } = view.clock
  const { first, last } = await bounds(view)
  const { occurred_before: end } = range
  const through = end === undefined ? last : await lastBefore(view, wall.queueTime(end), { first, last })
  const page = { after: Math.max(0, through - MOST_SEARCHED), limit: MOST_SEARCHED, filter }
  const { epoch, events } = await view.reader.eventsAfter(page)
  return events
    .filter(inRange(range, wall))
    .slice(-limit)
    .toReversed()
    .map((event) => timedEventJson(epoch, event, wall))
}

/** Number of the last event before a time, by binary search, because times ascend almost with the numbers. */
export async function lastBefore(
  { reader }: QueueView,
  at: QueueTime,
  { first, last }: { readonly first: EventSeq; readonly last: EventSeq },
) {
  let [low, high] = [first - 1, last]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const { events } = await reader.eventsAfter({ after: middle, limit: 1, filter: ANY_EVENT })
    const [event] = events
    if (event === undefined || event.at >= at) high = middle
    else low = event.seq
  }
  return low
}

/** Number of kept events that a replay would send. As in a replay, events that the subscription's filter leaves out are included. */
async function counted(view: QueueView, { behind, parked, progress }: SubscriptionView, events: Replayed): Promise<number> {
  switch (events.kind) {
    case 'waiting':
      return behind
    case 'parked':
      return parked
    case 'since': {
      const { first, last } = await bounds(view)
      return last - Math.min(Math.max(progress.cursor, first - 1), await lastBefore(view, view.clock.now() - events.ago, { first, last }))
    }
  }
}

interface ReplayFacts {
  readonly events: Replayed
  readonly count: number
  readonly isDry: boolean
}

const replayJson = (view: QueueView, one: SubscriptionView, { events, count, isDry }: ReplayFacts, reader: UrlReader): ReplayJson => ({
  name: one.name,
  replay: events.kind,
  events: count,
  command: `webhook replay ${replayArguments(one.name, events).join(' ')}`,
  as_of: asOf(view),
  dry_run: isDry,
  subscription: shownTo(reader, one, view),
})

export async function replayPlan(view: QueueView, name: string, events: Replayed, reader: UrlReader): Promise<ReplayJson> {
  const one = await found(view, name)
  return replayJson(view, one, { events, count: await counted(view, one, events), isDry: true }, reader)
}

/** Queues events to be sent again. Throws Problem for an unknown name. */
export async function replay(view: QueueView, name: string, events: Replayed, requester: Requester): Promise<ReplayJson> {
  const one = await found(view, name)
  const count = await view.subscriptions().replay({ name, events, who: auditName(requester) })
  return replayJson(view, one, { events, count, isDry: false }, requester)
}
