/** Routes of the API for the state of the queue, the parameters in effect, and plans of retries. */
import { z } from 'zod'
import { spanInSeconds } from '../queries/named-time.ts'
import { HTTP_PROBLEMS } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import { apiRoute, assertUnlimited, json, SMALL_BODY, type ApiRoute } from './route/api-route.ts'
import type { Now } from '../queries/now.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { retryPlans } from '../queries/retry-plans.ts'
import { settings } from '../queries/nodes.ts'
import { configurationJson, configurationShape, settingsShape } from '../resources/settings-json.ts'
import { plansShape } from '../resources/plans/retry-plan-json.ts'
import { nowShape } from '../resources/status-json.ts'

/** Times that a request may name, up to a year. */
const seconds = z.number().min(0).max(31_536_000)
const backoffTime = spanInSeconds(seconds.min(1))

const planBody = z.strictObject({
  policies: z.array(z.string().min(1).max(1_000)).min(1).max(4).optional().describe('one to four values as of `retry_backoff`'),
  minimal_backoff_time: backoffTime.optional().describe('30m, 2h, 1d, or seconds, as all times here'),
  maximal_backoff_time: backoffTime.optional(),
  maximal_queue_lifetime: spanInSeconds(seconds).optional(),
  maximal_delivery_attempts: z.int().min(0).optional().describe('0 for no limit'),
  retry_jitter: z.number().min(0).max(1).optional(),
  outages: z.array(backoffTime).max(20).optional().describe('lengths of outages of which the consequences are computed'),
  seed: z.int().min(0).optional().describe('seed of the random draws of policies that have them'),
})

export function statusRoutes(now: Now): readonly ApiRoute[] {
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
  ]
}

export const settingsRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/config',
    role: 'viewer',
    summary: 'Parameters in effect',
    about: 'The parameters of the node that answers, as `deferd config` prints them. No other node is asked.',
    answers: { 200: { about: 'the parameters as in the configuration file', shape: configurationShape } },
    handler: (request) => {
      assertUnlimited(request)
      return json(configurationJson(view.loaded()))
    },
  }),
  apiRoute({
    method: 'GET',
    path: '/settings',
    role: 'viewer',
    summary: 'Parameters in effect, and differences between nodes',
    about: 'The members of `GET /config`, and those of `deferd node settings --json`.',
    answers: { 200: { about: 'the parameters as in the configuration file', shape: settingsShape } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await settings(view))
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
