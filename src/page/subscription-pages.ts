/** Routes of the screens of events: subscriptions, the newest events, and the dry run and start of a replay. */
import { z } from 'zod'
import { latestEvents, parkedPage, replay, replayPlan, subscription, subscriptionList } from '../api/queries/subscriptions.ts'
import { durationText } from '../api/values/message-query.ts'
import { selectedTypes } from '../events/event-filter.ts'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { formBody } from '../http/request-body.ts'
import { route, type Answer, type Route, type RouteRequest } from '../http/route-table.ts'
import type { Replayed } from '../subscriptions/subscription-changes.ts'
import { queryText } from './markup/links.ts'
import type { View } from './markup/view.ts'
import { requesterOf, screenAnswer, viewOf, type PageDeps } from './page-view.ts'
import { eventsScreen } from './screens/events-screen.ts'
import { replayProblem, replayScreen, subscriptionScreen } from './screens/subscription-screen.ts'

/** Events on one page. */
const LIMIT = 50
const FORM_LIMIT = 4 * 1024

const text = (query: URLSearchParams, name: string): string => query.get(name)?.trim() ?? ''

/** Events tell of all destinations. */
function assertUnlimited(request: RouteRequest<unknown>): void {
  if (requesterOf(request).destinations !== null)
    throw new Problem(HTTP_PROBLEMS.notPermitted, 'the session is limited to some destinations, and events tell of all')
}

/** A screen for sessions that see all destinations. */
const screen = (
  deps: PageDeps,
  path: string,
  role: 'viewer' | 'operator',
  make: (request: RouteRequest<undefined>, view: View) => Promise<Answer>,
): Route =>
  route({
    method: 'GET',
    path,
    role,
    handler: async (request) => {
      assertUnlimited(request)
      return make(request, viewOf(deps, request, path, await deps.light()))
    },
  })

const patterns = (value: string): readonly string[] => (value === '' ? [] : [value])

const eventsRoute = (deps: PageDeps): Route =>
  screen(deps, '/events', 'viewer', async ({ query }, view) => {
    const type = text(query, 'type')
    const asked = {
      type: selectedTypes([type]).length > 0 ? type : '',
      destination: text(query, 'destination'),
      sender: text(query, 'sender'),
    }
    const filter = { types: patterns(asked.type), destinations: patterns(asked.destination), senders: patterns(asked.sender) }
    const [{ subscriptions, kept_types: keptTypes }, events] = await Promise.all([
      subscriptionList(deps.view),
      latestEvents(deps.view, filter, LIMIT),
    ])
    return screenAnswer(view, eventsScreen(view, { subscriptions, keptTypes, events, query: asked }))
  })

const nameOf = ({ parameters }: Pick<RouteRequest<unknown>, 'parameters'>): string => parameters['name'] ?? ''

const numberIn = (value: string): number | null => (/^\d{1,15}$/.test(value) ? Number(value) : null)

const subscriptionRoute = (deps: PageDeps): Route =>
  screen(deps, '/events/:name', 'viewer', async (request, view) => {
    const after = text(request.query, 'after')
    const name = nameOf(request)
    const [one, parked] = await Promise.all([
      subscription(deps.view, name),
      parkedPage(deps.view, name, { after: numberIn(after) ?? 0, limit: LIMIT }),
    ])
    const replayed = numberIn(text(request.query, 'replayed'))
    return screenAnswer(view, subscriptionScreen(view, { subscription: one, parked, after, replayed }))
  })

const replayShape = z.object({ events: z.enum(['waiting', 'parked', 'since']), since: z.string().max(100).optional() })

/** The events of a form; undefined when its time is not understood. */
function replayedBy({ events, since }: z.output<typeof replayShape>): Replayed | undefined {
  if (events !== 'since') return { kind: events }
  const parsed = durationText.safeParse(since?.trim() ?? '')
  return parsed.success && parsed.data > 0 ? { kind: 'since', ago: parsed.data } : undefined
}

const planRoute = (deps: PageDeps): Route =>
  screen(deps, '/events/:name/replay', 'operator', async (request, view) => {
    const asked = replayShape.safeParse({ events: text(request.query, 'events'), since: text(request.query, 'since') })
    const events = asked.success ? replayedBy(asked.data) : undefined
    if (events === undefined) return screenAnswer(view, replayProblem(view, nameOf(request)), 422)
    const { subscription: one, events: count } = await replayPlan(deps.view, nameOf(request), events)
    return screenAnswer(view, replayScreen(view, { subscription: one, events, count }))
  })

const startRoute = (deps: PageDeps): Route =>
  route({
    method: 'POST',
    path: '/events/:name/replay',
    role: 'operator',
    body: formBody(replayShape, FORM_LIMIT),
    handler: async (request) => {
      assertUnlimited(request)
      const events = replayedBy(request.body)
      if (events === undefined) throw new Problem(HTTP_PROBLEMS.malformed, 'expected a time such as 30m, 2h or 1d')
      const { events: count } = await replay(deps.view, nameOf(request), events, requesterOf(request))
      return { kind: 'redirect', location: `../${encodeURIComponent(nameOf(request))}${queryText({ replayed: count })}` }
    },
  })

export const subscriptionPages = (deps: PageDeps): readonly Route[] => [
  eventsRoute(deps),
  subscriptionRoute(deps),
  planRoute(deps),
  startRoute(deps),
]
