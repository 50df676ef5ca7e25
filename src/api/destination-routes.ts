/** Routes of the API for destinations. */
import { z } from 'zod'
import { jsonBody } from '../http/request-body.ts'
import { actorOf } from '../http/requests/requester.ts'
import type { Answer } from '../http/route-table.ts'
import { ANY_QUEUE } from '../queue/operation-request.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import {
  apiRoute,
  json,
  nameOrPattern,
  page,
  pageCursor,
  pageLimit,
  SMALL_BODY,
  viewerOf,
  type ApiRequest,
  type ApiRoute,
} from './route/api-route.ts'
import { listFormat, wholeList, wholeListAnswers } from './route/whole-lists.ts'
import type { Causes } from '../queries/counts/causes.ts'
import { assertVisible, destinationDetails, destinationLines, destinationPage, UNKNOWN_DESTINATION } from '../queries/destinations.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { causesShape, summedCausesShape } from '../resources/cause-json.ts'
import { destinationDetailsShape, destinationPageShape, destinationShape } from '../resources/destination-json.ts'
import { CURSOR_PROBLEM } from '../queries/cursor.ts'
import { SUSPENSION_EXAMPLE, suspensionRequest, suspensionShape, type SuspensionBody } from './route/suspension-body.ts'

const listRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/destinations',
    role: 'viewer',
    summary: 'Destinations',
    about:
      'Destinations with mail, with a recorded state, or in memory. With `Accept: application/x-ndjson`, all of them, or those of `name`, as the lines of `deferd destination list --json`.',
    query: z.strictObject({
      order: z.enum(['waiting', 'name']).default('waiting').describe('most waiting mail first, or by name'),
      name: nameOrPattern.optional().describe('name; * matches any text'),
      limit: pageLimit,
      after: pageCursor,
      format: listFormat,
    }),
    answers: {
      200: [{ about: 'a page', shape: destinationPageShape }, ...wholeListAnswers('all destinations', destinationShape)],
    },
    problems: [CURSOR_PROBLEM],
    slots: 'searches',
    handler: async (request) => {
      const { format: _format, ...query } = request.query
      const entries = () => destinationLines(view, query, viewerOf(request))
      const whole = wholeList(request, { name: 'destinations', shape: destinationShape, rowsOf: null, entries })
      return whole ?? page(await destinationPage(view, query, viewerOf(request)), request.written, 'after')
    },
  }),
  apiRoute({
    method: 'GET',
    path: '/destinations/:name',
    role: 'viewer',
    summary: 'One destination',
    about: 'The members of `deferd destination show --json`, with the outcomes of the last attempts and the settings in effect.',
    answers: { 200: { about: 'the destination', shape: destinationDetailsShape } },
    problems: [UNKNOWN_DESTINATION],
    handler: async ({ parameters, requester }) => json(await destinationDetails(view, parameters['name'] ?? '', requester.destinations)),
  }),
]

const causeRoutes = (causes: Causes): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/causes',
    role: 'viewer',
    summary: 'Causes for which mail waits',
    about:
      'The members of `deferd queue causes --json`: causes summed over the destinations that the token may see. Mail on hold is counted apart. The result is kept for 30 s; `as_of` has the time at which the count began.',
    query: z.strictObject({
      by: z.enum(['cause', 'destination']).default('cause').describe('`destination`: the causes of each destination apart'),
    }),
    answers: {
      200: [
        { about: 'the causes, those with the most recipients first', shape: summedCausesShape },
        { about: 'with `by=destination`', shape: causesShape },
      ],
    },
    slots: 'searches',
    handler: async (request) => json(await (request.query.by === 'cause' ? causes.sums(viewerOf(request)) : causes.all(viewerOf(request)))),
  }),
  apiRoute({
    method: 'GET',
    path: '/destinations/:name/causes',
    role: 'viewer',
    summary: 'Causes for which mail of a destination waits',
    about:
      'The members of `deferd queue causes --destination NAME --json`. The result is kept for 30 s; `as_of` has the time at which the count began.',
    answers: { 200: { about: 'the causes, those with the most recipients first', shape: causesShape } },
    slots: 'searches',
    handler: async (request) => json(await causes.of(request.parameters['name'] ?? '', viewerOf(request))),
  }),
]

export const destinationRoutes = (view: QueueView, causes: Causes): readonly ApiRoute[] => [...listRoutes(view), ...causeRoutes(causes)]

const CHANGED = { 200: { about: 'the destination after the change', shape: destinationDetailsShape } } as const

const nameOf = ({ parameters }: ApiRequest<unknown, unknown>): string => (parameters['name'] ?? '').toLowerCase()

const detailsOf = (view: QueueView, request: ApiRequest<unknown, unknown>): Promise<unknown> =>
  destinationDetails(view, nameOf(request), request.requester.destinations)

async function suspend(view: QueueView, request: ApiRequest<unknown, SuspensionBody>): Promise<Answer> {
  const { body, requester } = request
  assertVisible(nameOf(request), requester.destinations)
  await view.operations().suspend(nameOf(request), suspensionRequest(body, actorOf(requester), view.clock.wall.now()))
  return json(await detailsOf(view, request))
}

async function resume(view: QueueView, request: ApiRequest<unknown, unknown>): Promise<Answer> {
  await detailsOf(view, request)
  await view.operations().resume(nameOf(request), actorOf(request.requester))
  return json(await detailsOf(view, request))
}

async function probe(view: QueueView, request: ApiRequest<unknown, unknown>): Promise<Answer> {
  await detailsOf(view, request)
  const actor = actorOf(request.requester)
  const selection = { kind: 'filter', filter: { ...ANY_MESSAGE, destination: nameOf(request) }, limit: 1 } as const
  const terms = { ...ANY_QUEUE, reason: null, plan: null, request: null }
  const { ended } = await view.operations().jobs.start({ operation: 'flush', selection, ...actor, ...terms })
  await ended
  return json(await detailsOf(view, request))
}

export const destinationOperations = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'POST',
    path: '/destinations/:name/suspend',
    role: 'operator',
    summary: 'Suspend a destination',
    body: jsonBody(suspensionShape, SMALL_BODY),
    example: SUSPENSION_EXAMPLE,
    answers: CHANGED,
    problems: [UNKNOWN_DESTINATION],
    handler: (request) => suspend(view, request),
  }),
  apiRoute({
    method: 'POST',
    path: '/destinations/:name/resume',
    role: 'operator',
    summary: 'Resume deliveries to a suspended destination',
    answers: CHANGED,
    problems: [UNKNOWN_DESTINATION],
    handler: (request) => resume(view, request),
  }),
  apiRoute({
    method: 'POST',
    path: '/destinations/:name/probe',
    role: 'operator',
    summary: 'Try one message of a destination now',
    about: 'Flushes the oldest message, also at a dead destination.',
    answers: CHANGED,
    problems: [UNKNOWN_DESTINATION],
    handler: (request) => probe(view, request),
  }),
]
