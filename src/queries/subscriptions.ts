/** Queries for subscriptions to events, and the replay of their events. */
import { ANY_EVENT, eventSelector, selectedTypes, type EventFilter } from '../events/event-filter.ts'
import { EVENT_TYPES, type EventType } from '../events/event-types.ts'
import type { EventSeq, KeptEvent } from '../events/kept-event.ts'
import { Problem, type ProblemKind } from '../http/problem-details.ts'
import { actorOf, grants, type Requester } from '../http/requests/requester.ts'
import { parkedJson, timedEventJson, type ParkedEventJson, type TimedEventJson } from '../resources/event-json.ts'
import { subscriptionJson, type ReplayJson, type SubscriptionJson, type SubscriptionListJson } from '../resources/subscription-json.ts'
import { maskControls } from '../presentation/text.ts'
import type { SubscriptionView } from '../store/outbox/subscription.ts'
import { EventRefused, oneEvent } from '../subscriptions/one-event.ts'
import { replayArguments, type Replayed } from '../subscriptions/subscription-changes.ts'
import { MINUTE, type Duration, type QueueTime, type WallTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { asOf, eventTerms, type QueueView } from './queue-view.ts'

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

/** One subscription. Throws Problem for an unknown name. */
export async function storedSubscription(view: QueueView, name: string): Promise<SubscriptionView> {
  const subscription = (await view.reader.allSubscriptions()).find((one) => one.name === name)
  if (subscription !== undefined) return subscription
  throw new Problem(UNKNOWN_SUBSCRIPTION, `there is no subscription ${maskControls(name)}`, { hint: 'GET /subscriptions has all names' })
}

/** One subscription. Throws Problem for an unknown name. */
export const subscription = async (view: QueueView, name: string, reader: UrlReader): Promise<SubscriptionJson> =>
  shownTo(reader, await storedSubscription(view, name), view)

/** Number of the newest event, and the random number of the queue. */
const bounds = ({ reader }: QueueView) => reader.eventsAfter({ after: Number.MAX_SAFE_INTEGER, limit: 1, filter: ANY_EVENT })

/** Events that a target refused, with numbers above `after`. Throws Problem for an unknown name. */
export async function parkedPage(
  view: QueueView,
  name: string,
  { after, limit }: { readonly after: EventSeq; readonly limit: number },
): Promise<{ readonly events: readonly ParkedEventJson[]; readonly next: string | null }> {
  await storedSubscription(view, name)
  const { epoch } = await bounds(view)
  const parked = await view.reader.parkedEvents(name, { after, limit: limit + 1 })
  const events = parked.slice(0, limit).map((one) => parkedJson(epoch, one, eventTerms(view)))
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

/** Maximum number of events that the search for the newest ones compares with a filter. */
const MOST_SEARCHED = 100_000
/** Number of events per read of the search. */
const SEARCHED_AT_ONCE = 1_000
/** An event with a later number may be older by this, such as by the clocks of nodes. */
const DISORDER: Duration = MINUTE

type Receivers = readonly Pick<SubscriptionJson, 'name' | 'to' | 'types' | 'destinations' | 'senders'>[]

/** An event with the names of the subscriptions with a target that select it. */
export type ReceivedEventJson = TimedEventJson & { readonly receivers: readonly string[] }

export interface LatestEvents {
  readonly events: readonly ReceivedEventJson[]
  /** Time in seconds from which on events were searched; null when the whole range was, or enough of them were found. */
  readonly searched_since: number | null
}

/** Numbers of the events that a range of times may have: those above `after`, up to `through`; and later ones unless it `isOver`. */
export async function positionsOf(
  view: QueueView,
  { occurred_after: begin, occurred_before: end }: EventRange,
  kept: { readonly first: EventSeq; readonly last: EventSeq },
): Promise<{ readonly after: EventSeq; readonly through: EventSeq; readonly isOver: boolean }> {
  const { wall } = view.clock
  return {
    after: begin === undefined ? kept.first - 1 : await lastBefore(view, wall.queueTime(begin), kept),
    through: end === undefined ? kept.last : await lastBefore(view, wall.queueTime(end) + DISORDER, kept),
    isOver: end !== undefined && wall.queueTime(end) + DISORDER <= view.clock.now(),
  }
}

/** The newest selected events of a range of times, newest first, among the last MOST_SEARCHED of the range. */
export async function latestEvents(
  view: QueueView,
  {
    filter,
    limit,
    receivers,
    signal,
    ...range
  }: EventRange & { readonly filter: EventFilter; readonly limit: number; readonly receivers: Receivers; readonly signal: AbortSignal },
): Promise<LatestEvents> {
  const selectors = receivers.filter(({ to }) => to !== '').map(({ name, ...one }) => ({ name, selects: eventSelector(one) }))
  const { epoch, ...ends } = await bounds(view)
  const { after: begin, through: last } = await positionsOf(view, range, ends)
  const isWanted = inRange(range, view.clock.wall)
  const least = Math.max(begin, last - MOST_SEARCHED)
  const newest: KeptEvent[] = []
  let through = last
  while (through > least && newest.length < limit && !signal.aborted) {
    const after = Math.max(least, through - SEARCHED_AT_ONCE)
    const end = through
    const { events } = await view.reader.eventsAfter({ after, limit: SEARCHED_AT_ONCE, filter })
    newest.unshift(...events.filter((event) => event.seq <= end && isWanted(event)))
    through = after
  }
  const events = newest
    .slice(-limit)
    .toReversed()
    .map((event) => ({
      ...timedEventJson(epoch, event, eventTerms(view)),
      receivers: selectors.filter(({ selects }) => selects(event)).map(({ name }) => name),
    }))
  return { events, searched_since: through <= begin || newest.length >= limit ? null : await timeAfter(view, through) }
}

/** Time in seconds of the first event after a position; null without one. */
async function timeAfter({ reader, clock }: QueueView, after: EventSeq): Promise<number | null> {
  const [event] = (await reader.eventsAfter({ after, limit: 1, filter: ANY_EVENT })).events
  return clock.wall.secondsOrNull(event?.at)
}

/** Number of the last event before a time, by binary search, because times ascend almost with the numbers. */
async function lastBefore({ reader }: QueueView, at: QueueTime, { first, last }: { readonly first: EventSeq; readonly last: EventSeq }) {
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

export const EVENT_REFUSED: ProblemKind = {
  slug: 'event-not-repeated',
  status: 409,
  title: 'Event cannot be sent again',
  about: 'The event is not kept any more, or the subscription has not had it: it does not select it, or the event waits in its order.',
}

/** Converts EventRefused into a Problem. */
const refusedEvent = (error: unknown): never => {
  throw error instanceof EventRefused ? new Problem(EVENT_REFUSED, error.message, { cause: error }) : error
}

/** Number of kept events that a replay would send. As in a replay, events that the subscription's filter leaves out are included. */
async function counted(view: QueueView, one: SubscriptionView, events: Replayed): Promise<number> {
  const { behind, parked, progress } = one
  switch (events.kind) {
    case 'waiting':
      return behind
    case 'parked':
      return parked
    case 'since': {
      const { first, last } = await bounds(view)
      return last - Math.min(Math.max(progress.cursor, first - 1), await lastBefore(view, view.clock.now() - events.ago, { first, last }))
    }
    case 'one':
      await oneEvent(view.reader, one, events.id).catch(refusedEvent)
      return 1
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
  const one = await storedSubscription(view, name)
  return replayJson(view, one, { events, count: await counted(view, one, events), isDry: true }, reader)
}

/** Queues events to be sent again. Throws Problem for an unknown name, and for one event that cannot be sent again. */
export async function replay(view: QueueView, name: string, events: Replayed, requester: Requester): Promise<ReplayJson> {
  const one = await storedSubscription(view, name)
  const count = await view
    .subscriptions()
    .replay({ name, events, ...actorOf(requester) })
    .catch(refusedEvent)
  return replayJson(view, one, { events, count, isDry: false }, requester)
}
