/** Routes of the webhooks of a world. */
import { z } from 'zod'
import { json, type ApiRoute } from '../api/route/api-route.ts'
import { isTarget } from '../config/values/tables/event-tables.ts'
import { HTTP_PROBLEMS } from '../http/problem-details.ts'
import { settingShapes } from '../subscriptions/subscription-changes.ts'
import type { Webhook, WebhookRequest } from '../testkit/scripted/webhook.ts'
import type { Lab } from './lab.ts'
import { LAB_PROBLEMS } from './lab-problems.ts'
import { optionalJson, seconds, time, worldRoute } from './lab-route.ts'

const { name, types, destinations, senders, format, batch } = settingShapes

const newWebhook = z
  .strictObject({
    name,
    types: types.default([]).describe('types of events such as recipient.bounced, or patterns such as recipient.*; all when empty'),
    destinations: destinations.default([]),
    senders: senders.default([]),
    format: format.default('deferd'),
    batch: batch.default(1).describe('maximum number of events in one request'),
    url: z
      .string()
      .max(2_000)
      .refine((text) => /^https?:/.test(text) && isTarget(text, true), 'expected http://… or https://… without a password')
      .optional()
      .describe('URL of the application; without it, requests are recorded only'),
    timestamps: z
      .enum(['real', 'virtual'])
      .default('real')
      .describe('clock of the signatures that are sent to `url`: verifiers compare them with the clock of their machine'),
  })
  .refine(({ url, timestamps }) => url !== undefined || timestamps === 'real', {
    path: ['timestamps'],
    message: 'is for a webhook with a url: requests that are recorded only have the time of the world',
  })

const createdShape = z
  .object({ name: z.string(), secret: z.string().describe('verifies the signatures: whsec_ and base64 (Standard Webhooks)') })
  .meta({ id: 'Webhook' })

const requestShape = z
  .object({
    at: seconds.describe('seconds since the start of the world'),
    headers: z.record(z.string(), z.string()),
    body: z.string(),
    status: z.int().nullable().describe('status of the answer; null when there was none'),
  })
  .meta({ id: 'WebhookRequest' })

const requestsShape = z.object({ name: z.string(), requests: z.array(requestShape) }).meta({ id: 'WebhookRequests' })

const requestJson = ({ at, headers, body, status }: WebhookRequest): z.output<typeof requestShape> => ({
  at,
  headers: { ...headers },
  body,
  status,
})

const requestsJson = (called: string, webhook: Webhook): z.output<typeof requestsShape> => ({
  name: called,
  requests: webhook.requests().map(requestJson),
})

const script = z.union([
  z.strictObject({ is_down_for: time }).transform(
    ({ is_down_for: lasting }) =>
      (webhook: Webhook) =>
        webhook.isDownFor(lasting),
  ),
  z.strictObject({ replies: z.int().min(200).max(599), first: z.int().min(1).optional(), for: time.optional() }).transform(
    ({ replies, first, for: lasting }) =>
      (webhook: Webhook) =>
        webhook.replies(replies, { ...(first === undefined ? {} : { first }), ...(lasting === undefined ? {} : { for: lasting }) }),
  ),
  z.strictObject({ recovers: z.literal(true) }).transform(() => (webhook: Webhook) => webhook.recovers()),
])

const creationRoute = (lab: Lab): ApiRoute =>
  worldRoute(lab, {
    method: 'POST',
    path: '/webhooks',
    summary: 'Add a webhook, which gets the events from now on',
    about:
      'Without `url`, requests are answered with 200, or as its script says, and can be read. With it, they are posted to the application on loopback, and the clock of the world stands until it has answered: an answer after 10 s of real time is a failure. They have the time of the world in `Deferd-Lab-Time`.',
    body: optionalJson(newWebhook),
    example: { name: 'app', types: ['recipient.bounced'], url: 'http://127.0.0.1:3000/hook' },
    answers: { 201: { about: 'its name and secret', shape: createdShape } },
    problems: [LAB_PROBLEMS.nameTaken, LAB_PROBLEMS.relayDown, LAB_PROBLEMS.targetNotAllowed],
    handler: (world, { body: { url = null, ...settings } }) =>
      world.inOrder(async () => {
        world.assertUp()
        const { secret } = await world.webhooks.add({ ...settings, url })
        return { kind: 'json', status: 201, value: { name: settings.name, secret } }
      }),
  })

export const webhookRoutes = (lab: Lab): readonly ApiRoute[] => [
  creationRoute(lab),
  worldRoute(lab, {
    method: 'GET',
    path: '/webhooks/:name/requests',
    summary: 'Requests of a webhook so far, oldest first',
    answers: { 200: { about: 'the requests, those that failed included', shape: requestsShape } },
    problems: [HTTP_PROBLEMS.unknown],
    handler: (world, { parameters }) =>
      world.inOrder(() => {
        const called = parameters['name'] ?? ''
        return json(requestsJson(called, world.webhooks.named(called)))
      }),
  }),
  worldRoute(lab, {
    method: 'POST',
    path: '/webhooks/:name/script',
    summary: 'Script the answers of a webhook',
    about:
      '`{"is_down_for": "3h"}` refuses connections, `{"replies": 500, "first": 2}` answers with a status (the next `first` requests, or those in the time `for`), and `{"recovers": true}` ends both. A request that the script answers does not reach the application.',
    body: optionalJson(script),
    example: { replies: 500, first: 2 },
    answers: { 200: { about: 'its requests so far', shape: requestsShape } },
    problems: [HTTP_PROBLEMS.unknown],
    handler: (world, { parameters, body: apply }) =>
      world.inOrder(() => {
        const called = parameters['name'] ?? ''
        return json(requestsJson(called, apply(world.webhooks.named(called))))
      }),
  }),
  worldRoute(lab, {
    method: 'POST',
    path: '/webhooks/:name/replay',
    summary: 'Send the events of a webhook that wait, or that it has refused',
    about: 'As `deferd webhook replay`, it enables a webhook that was disabled by 410.',
    body: optionalJson(z.strictObject({ kind: z.enum(['waiting', 'parked']).default('waiting') })),
    example: { kind: 'parked' },
    answers: { 200: { about: 'the number of events', shape: z.object({ count: z.int() }) } },
    problems: [HTTP_PROBLEMS.unknown, LAB_PROBLEMS.relayDown],
    handler: (world, { parameters, body }) =>
      world.inOrder(async () => {
        world.assertUp()
        const called = parameters['name'] ?? ''
        world.webhooks.named(called)
        return json({ count: await world.world.replay(called, body.kind) })
      }),
  }),
]
