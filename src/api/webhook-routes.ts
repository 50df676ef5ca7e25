/** Routes of the API that change the subscriptions of commands: add, remove, new secret. */
import { z } from 'zod'
import { HTTP_PROBLEMS } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import {
  addWebhook,
  changeWebhookSecret,
  newSecretBody,
  newWebhook,
  removeWebhook,
  SUBSCRIPTION_REFUSED,
  testWebhook,
} from '../queries/programs/webhook-changes.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { UNKNOWN_SUBSCRIPTION } from '../queries/subscriptions.ts'
import { testAnswerShape } from '../resources/subscription-json.ts'
import { apiRoute, assertUnlimited, json, SMALL_BODY, type ApiRoute } from './route/api-route.ts'

const named = z.object({ name: z.string() })

const targetRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'POST',
    path: '/subscriptions',
    role: 'admin',
    summary: 'Send events to a URL',
    about: 'As `deferd webhook add`. The client chooses the secret, which no answer repeats.',
    body: jsonBody(newWebhook, SMALL_BODY),
    answers: { 201: { about: 'added', shape: named } },
    problems: [SUBSCRIPTION_REFUSED],
    handler: async (request) => {
      assertUnlimited(request)
      await addWebhook(view, request.body, request.requester)
      return { kind: 'json', status: 201, value: { name: request.body.name } }
    },
  }),
  apiRoute({
    method: 'DELETE',
    path: '/subscriptions/:name',
    role: 'admin',
    summary: 'Remove a subscription that a command has added',
    answers: { 200: { about: 'removed', shape: named } },
    problems: [SUBSCRIPTION_REFUSED],
    handler: async (request) => {
      assertUnlimited(request)
      const { name = '' } = request.parameters
      await removeWebhook(view, name, request.requester)
      return json({ name })
    },
  }),
]

const secretRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'POST',
    path: '/subscriptions/:name/test',
    role: 'operator',
    summary: 'Send one event of the type test',
    about: 'As `deferd webhook test`, from this node. The subscription stays as it is.',
    answers: { 200: { about: 'the answer of the target', shape: testAnswerShape } },
    problems: [UNKNOWN_SUBSCRIPTION],
    handler: async (request) => {
      assertUnlimited(request)
      return json(await testWebhook(view, request.parameters['name'] ?? ''))
    },
  }),
  apiRoute({
    method: 'POST',
    path: '/subscriptions/:name/secret',
    role: 'admin',
    summary: 'Give a subscription a new secret',
    body: jsonBody(newSecretBody, SMALL_BODY),
    answers: { 200: { about: 'changed', shape: named } },
    problems: [SUBSCRIPTION_REFUSED, HTTP_PROBLEMS.unavailable],
    handler: async (request) => {
      assertUnlimited(request)
      const { name = '' } = request.parameters
      await changeWebhookSecret(view, name, request.body, request.requester)
      return json({ name })
    },
  }),
]

export const webhookRoutes = (view: QueueView): readonly ApiRoute[] => [...targetRoutes(view), ...secretRoutes(view)]
