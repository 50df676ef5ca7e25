/** Routes of the API for subscriptions to events: their lag and last answers, parked events, and replays. */
import { z } from 'zod'
import { HTTP_PROBLEMS } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import {
  apiRoute,
  assertUnlimited,
  json,
  page,
  pageCursor,
  pageLimit,
  SMALL_BODY,
  type ApiRequest,
  type ApiRoute,
} from './route/api-route.ts'
import {
  EVENT_REFUSED,
  parkedPage,
  replay,
  replayPlan,
  subscription,
  subscriptionList,
  UNKNOWN_SUBSCRIPTION,
} from '../queries/subscriptions.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { CURSOR_PROBLEM, positionIn } from '../queries/cursor.ts'
import { replayedBy, replayRequest } from '../queries/operations/replay-request.ts'
import { parkedPageShape } from '../resources/event-json.ts'
import { replayShape, subscriptionListShape, subscriptionShape } from '../resources/subscription-json.ts'

const nameOf = ({ parameters }: ApiRequest<unknown, unknown>): string => parameters['name'] ?? ''

const parkedQuery = z.strictObject({ after: pageCursor, limit: pageLimit })

const stateRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/subscriptions',
    role: 'viewer',
    summary: 'Subscriptions to events, with their lag and last answer',
    about:
      'The members of `deferd webhook list --json`. `behind` is the number of kept events after the position, `oldest_time` the time of the first of them; parked events were refused by the target. The path and the query of a URL are shown to the role admin only.',
    answers: { 200: { about: 'all subscriptions', shape: subscriptionListShape } },
    problems: [HTTP_PROBLEMS.notPermitted],
    handler: async (request) => {
      assertUnlimited(request)
      return json(await subscriptionList(view, request.requester))
    },
  }),
  apiRoute({
    method: 'GET',
    path: '/subscriptions/:name',
    role: 'viewer',
    summary: 'A subscription to events',
    answers: { 200: { about: 'the subscription', shape: subscriptionShape } },
    problems: [UNKNOWN_SUBSCRIPTION],
    handler: async (request) => {
      assertUnlimited(request)
      return json(await subscription(view, nameOf(request), request.requester))
    },
  }),
  apiRoute({
    method: 'GET',
    path: '/subscriptions/:name/parked',
    role: 'viewer',
    summary: 'Events that the target of a subscription refused',
    query: parkedQuery,
    answers: { 200: { about: 'a page, in the order of the events', shape: parkedPageShape } },
    problems: [UNKNOWN_SUBSCRIPTION, CURSOR_PROBLEM],
    handler: async (request) => {
      assertUnlimited(request)
      const { after, limit } = request.query
      return page(await parkedPage(view, nameOf(request), { after: positionIn(after), limit }), request.written, 'after')
    },
  }),
]

const replayRoute = (view: QueueView): ApiRoute =>
  apiRoute({
    method: 'POST',
    path: '/subscriptions/:name/replay',
    role: 'operator',
    summary: 'Send events of a subscription now, or again',
    about:
      'As `deferd webhook replay`: enables the subscription, and sends without a wait what waits, what the target refused, the events of some time again, or one event again, with the ids that they had. With `"dry_run": true`, nothing is changed. `events` of the answer counts events of any type; those that the subscription does not select are passed over.',
    body: jsonBody(replayRequest, SMALL_BODY),
    example: { events: 'since', since: '2h', dry_run: true },
    answers: { 200: { about: 'what is sent, or would be', shape: replayShape } },
    problems: [UNKNOWN_SUBSCRIPTION, EVENT_REFUSED],
    handler: async (request) => {
      assertUnlimited(request)
      const events = replayedBy(request.body)
      const name = nameOf(request)
      return json(
        await (request.body.dry_run === true
          ? replayPlan(view, name, events, request.requester)
          : replay(view, name, events, request.requester)),
      )
    },
  })

export const subscriptionRoutes = (view: QueueView): readonly ApiRoute[] => [...stateRoutes(view), replayRoute(view)]
