/** Routes of the screens of events: the newest events, a subscription, and the dry run and start of a replay. */
import { assertUnlimited } from '../api/route/api-route.ts'
import { latestEvents, parkedPage, replay, replayPlan, subscription, subscriptionList } from '../queries/subscriptions.ts'
import { numberIn, positionIn } from '../queries/cursor.ts'
import { replayedBy, replayRequest } from '../queries/operations/replay-request.ts'
import { selectedTypes } from '../events/event-filter.ts'
import { formBody } from '../http/request-body.ts'
import { route, type Answer, type Route, type RouteRequest } from '../http/route-table.ts'
import { queryText } from './markup/links.ts'
import { ANY_TIME, timeRangeIn } from './markup/time-range.ts'
import type { View } from './markup/view.ts'
import {
  FORM_LIMIT,
  orUndefined,
  requesterOf,
  screenAnswer,
  screenRoute,
  type PageDeps,
  type ScreenPlace,
  type ShownRequest,
} from './page-view.ts'
import { TEXT, texts, type ScreenParameters } from './markup/screen-parameters.ts'
import { eventsScreen } from './screens/system/events-screen.ts'
import { replayProblem, replayScreen, subscriptionScreen } from './screens/system/subscription-screen.ts'

const EVENTS_PER_PAGE = 50
const EVENTS_OF_SUBSCRIPTION = 20

/** A screen for sessions that see all destinations. */
const screen = <const Declared extends ScreenParameters>(
  deps: PageDeps,
  place: ScreenPlace<Declared>,
  make: (request: ShownRequest<Declared>, view: View) => Promise<Answer>,
): Route =>
  screenRoute(deps, place, async (request, view) => {
    assertUnlimited(request)
    return make(request, view)
  })

const patterns = (value: string): readonly string[] => (value === '' ? [] : [value])

const EVENTS = texts('type', 'destination', 'sender', 'occurred_after', 'occurred_before')

const unknownType = (type: string): string | null =>
  type === '' || selectedTypes([type]).length > 0 ? null : 'Type: no type of event matches it.'

const eventsRoute = (deps: PageDeps): Route =>
  screen(deps, { path: '/events', slots: 'searches', parameters: EVENTS }, async (request, view) => {
    const { asked } = request
    const given = timeRangeIn({ after: asked.occurred_after, before: asked.occurred_before }, view)
    const [range, wrongTime] = typeof given === 'string' ? [ANY_TIME, given] : [given, null]
    const problem = wrongTime ?? unknownType(asked.type)
    const filter = { types: patterns(asked.type), destinations: patterns(asked.destination), senders: patterns(asked.sender) }
    const { subscriptions, kept_types: keptTypes } = await subscriptionList(deps.view, request.requester)
    const selection = { filter, limit: EVENTS_PER_PAGE, receivers: subscriptions, signal: request.signal }
    const latest =
      problem === null
        ? await latestEvents(deps.view, { ...selection, occurred_after: range.after, occurred_before: range.before })
        : { events: [], searched_since: null }
    return screenAnswer(
      view,
      eventsScreen(view, { subscriptions, keptTypes, latest, query: asked, range, problem }),
      problem === null ? 200 : 422,
    )
  })

const nameOf = ({ parameters }: Pick<RouteRequest<unknown>, 'parameters'>): string => parameters['name'] ?? ''

const SUBSCRIPTION = { after: TEXT, replayed: TEXT, events: replayRequest.shape.events.options } as const

const subscriptionRoute = (deps: PageDeps): Route =>
  screen(deps, { path: '/webhooks/:name', slots: 'searches', parameters: SUBSCRIPTION }, async (request, view) => {
    const { after, ...asked } = request.asked
    const name = nameOf(request)
    const one = await subscription(deps.view, name, request.requester)
    const [parked, latest] = await Promise.all([
      parkedPage(deps.view, name, { after: positionIn(orUndefined(after)), limit: EVENTS_PER_PAGE }),
      latestEvents(deps.view, { filter: one, limit: EVENTS_OF_SUBSCRIPTION, receivers: [one], signal: request.signal }),
    ])
    const count = numberIn(asked.replayed)
    const replayed = count === null ? null : { count, kind: asked.events || 'since' }
    return screenAnswer(view, subscriptionScreen(view, { subscription: one, parked, latest, after, replayed }))
  })

const planRoute = (deps: PageDeps): Route =>
  screen(
    deps,
    { path: '/webhooks/:name/replay', role: 'operator', parameters: texts('events', 'since', 'event') },
    async (request, view) => {
      const { events: kind, since, event } = request.asked
      const asked = replayRequest.safeParse({ events: kind, since: orUndefined(since), event: orUndefined(event) })
      if (!asked.success) return screenAnswer(view, replayProblem(view, nameOf(request), since), 422)
      const events = replayedBy(asked.data)
      const { subscription: one, events: count } = await replayPlan(deps.view, nameOf(request), events, request.requester)
      return screenAnswer(view, replayScreen(view, { subscription: one, events, count }))
    },
  )

const startRoute = (deps: PageDeps): Route =>
  route({
    method: 'POST',
    path: '/webhooks/:name/replay',
    role: 'operator',
    body: formBody(replayRequest, FORM_LIMIT),
    handler: async (request) => {
      assertUnlimited({ requester: requesterOf(request) })
      const { events: count } = await replay(deps.view, nameOf(request), replayedBy(request.body), requesterOf(request))
      return {
        kind: 'redirect',
        location: `../${encodeURIComponent(nameOf(request))}${queryText({ replayed: count, events: request.body.events })}`,
      }
    },
  })

export const subscriptionPages = (deps: PageDeps): readonly Route[] => [
  eventsRoute(deps),
  subscriptionRoute(deps),
  planRoute(deps),
  startRoute(deps),
]
