/** Routes of the API for the state of the queue, the parameters in effect, and plans of retries. */
import { z } from 'zod'
import { HTTP_PROBLEMS } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import { apiRoute, assertUnlimited, json, SMALL_BODY, type ApiRoute } from './api-route.ts'
import { SERIES, trafficSeries, type SeriesSpan } from '../queries/departed-mail.ts'
import type { Now } from '../queries/now.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { retryPlans } from '../queries/retry-plans.ts'
import { configurationJson, configurationShape } from '../resources/configuration-json.ts'
import { plansShape } from '../resources/retry-plan-json.ts'
import { nowShape, seriesShape } from '../resources/status-json.ts'

/** Times that a request may name, up to a year. */
const seconds = z.number().min(0).max(31_536_000)

const planBody = z.strictObject({
  policies: z.array(z.string().min(1).max(1_000)).min(1).max(4).optional().describe('one to four values as of `retry_backoff`'),
  minimal_backoff_time: seconds.min(1).optional().describe('in seconds, as all times here'),
  maximal_backoff_time: seconds.min(1).optional(),
  maximal_queue_lifetime: seconds.optional(),
  maximal_delivery_attempts: z.int().min(0).optional().describe('0 for no limit'),
  retry_jitter: z.number().min(0).max(1).optional(),
  outages: z.array(seconds.min(1)).max(20).optional().describe('lengths of outages of which the consequences are computed'),
  seed: z.int().min(0).optional().describe('seed of the random draws of policies that have them'),
})

export function statusRoutes(view: QueueView, now: Now): readonly ApiRoute[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/now',
      role: 'viewer',
      summary: 'State of the queue now',
      about:
        'The members of `deferd status --json`, with the name of the server, the oldest message, and the messages by age. Figures are at most some seconds old; the ages have a time of their own.',
      answers: { 200: { about: 'the state', shape: nowShape } },
      handler: async ({ requester }) => json(await now.value(requester.destinations)),
    }),
    apiRoute({
      method: 'GET',
      path: '/now/stream',
      role: 'viewer',
      summary: 'State of the queue, once a second',
      about: 'Server-sent events named `now`, each with the value of `GET /now`.',
      answers: { 200: { about: 'events', type: 'text/event-stream', shape: nowShape } },
      problems: [HTTP_PROBLEMS.busy],
      handler: ({ requester }) => ({ kind: 'events', subscribe: (send) => now.subscribe(requester.destinations, send) }),
    }),
    apiRoute({
      method: 'GET',
      path: '/now/series',
      role: 'viewer',
      summary: 'Traffic in intervals',
      query: z.strictObject({ span: z.enum(Object.keys(SERIES) as [SeriesSpan, ...SeriesSpan[]]).default('60min') }),
      answers: { 200: { about: 'recipients per interval, exact over all nodes', shape: seriesShape } },
      handler: async ({ query }) => json(await trafficSeries(view, query.span)),
    }),
  ]
}

export const settingsRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/config',
    role: 'viewer',
    summary: 'Parameters in effect',
    answers: { 200: { about: 'the parameters as in the configuration file', shape: configurationShape } },
    handler: (request) => {
      assertUnlimited(request)
      return json(configurationJson(view.loaded()))
    },
  }),
  apiRoute({
    method: 'POST',
    path: '/plans',
    role: 'viewer',
    summary: 'Plan retry policies',
    about:
      'Attempt times of mail that is never accepted, and their consequences, as `deferd simulate schedule --plan --json`. Times are in seconds. Changes nothing.',
    body: jsonBody(planBody, SMALL_BODY),
    example: { policies: ['doubling', 'fixed(10m)'], maximal_queue_lifetime: 172_800 },
    answers: { 200: { about: 'a plan for each policy', shape: plansShape } },
    handler: ({ body }) => json(retryPlans(body, view.loaded().config)),
  }),
]
