/** Routes of the events of a world, as programs get them. */
import { eventQuery, lastEventId } from '../api/event-routes.ts'
import { json, viewerOf, type ApiRoute } from '../api/route/api-route.ts'
import { CURSOR_PROBLEM } from '../queries/cursor.ts'
import { HTTP_PROBLEMS } from '../http/problem-details.ts'
import { eventPage, eventStream } from '../queries/event-feed.ts'
import { eventPageShape, eventShape } from '../resources/event-json.ts'
import type { Lab } from './lab.ts'
import { worldRoute } from './lab-route.ts'

export const worldEventRoutes = (lab: Lab): readonly ApiRoute[] => [
  worldRoute(lab, {
    method: 'GET',
    path: '/events',
    summary: 'Events, in the order in which they were committed',
    query: eventQuery,
    answers: { 200: { about: 'a page', shape: eventPageShape } },
    problems: [CURSOR_PROBLEM],
    handler: (world, request) => world.inOrder(async () => json(await eventPage(world.site.api.view, request.query, viewerOf(request)))),
  }),
  worldRoute(lab, {
    method: 'GET',
    path: '/events/stream',
    summary: 'Events so far, then each new one',
    about: 'Server-sent events. A client that connects again continues behind the event that it names in `Last-Event-ID`.',
    query: eventQuery.omit({ limit: true }),
    headers: { 'Last-Event-ID': 'id of the last event that the client has' },
    answers: { 200: { about: 'events', type: 'text/event-stream', shape: eventShape } },
    problems: [CURSOR_PROBLEM, HTTP_PROBLEMS.busy],
    handler: (world, request) => {
      const { after = lastEventId(request), ...conditions } = request.query
      return { kind: 'complete-events', chunks: eventStream(world.site.api.view, { ...conditions, after }, viewerOf(request)) }
    },
  }),
]
