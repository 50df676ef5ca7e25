/** Routes of the API that change the subscriptions of commands: add, remove, new secret. */
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem, type ProblemKind } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import { auditName } from '../http/requester.ts'
import { isTarget } from '../config/values/event-tables.ts'
import { settingShapes, SubscriptionRefused, type SubscriptionChanges } from '../subscriptions/subscription-changes.ts'
import { SECOND } from '../system/clock.ts'
import type { TestAnswer } from '../subscriptions/test-event.ts'
import { UNKNOWN_SUBSCRIPTION } from '../queries/subscriptions.ts'
import { apiRoute, assertUnlimited, json, LONGEST_TIME, SMALL_BODY, type ApiRoute } from './api-route.ts'

export interface WebhookChanges extends Pick<SubscriptionChanges, 'add' | 'remove' | 'changeSecret'> {
  /** Sends a test event. Undefined for an unknown name. */
  test(name: string): Promise<TestAnswer | undefined>
}

const { name, to, types, destinations, senders, format, batch, secret } = settingShapes

const newWebhook = z
  .strictObject({
    name,
    to: to.describe('the URL'),
    types: types.default([]).describe('types of events; all when empty'),
    destinations: destinations.default([]),
    senders: senders.default([]),
    allow_private: z.boolean().default(false).describe('send to private addresses, and by http://'),
    format: format.default('deferd'),
    batch: batch.default(1).describe('events in one request'),
    secret: secret.describe('signs the events: whsec_ and the base64 of 24 to 64 random bytes'),
  })
  .refine((given) => /^https?:/.test(given.to) && isTarget(given.to, given.allow_private), {
    path: ['to'],
    message: 'expected https://…; http://… and private addresses need "allow_private": true',
  })

const REFUSED: ProblemKind = {
  slug: 'subscription-refused',
  status: 409,
  title: 'Subscription cannot be changed',
  about: 'The name is in use, or no command has added a subscription of the name: those of the configuration are changed there.',
}

const refused = (error: unknown): never => {
  throw error instanceof SubscriptionRefused ? new Problem(REFUSED, error.message, { cause: error }) : error
}

const named = z.object({ name: z.string() })

const targetRoutes = (changes: () => WebhookChanges): readonly ApiRoute[] => [
  apiRoute({
    method: 'POST',
    path: '/subscriptions',
    role: 'admin',
    summary: 'Send events to a URL',
    about: 'As `deferd webhook add`. The client chooses the secret, which no answer repeats.',
    body: jsonBody(newWebhook, SMALL_BODY),
    answers: { 201: { about: 'added', shape: named } },
    problems: [REFUSED],
    handler: async ({ body: { allow_private: allowPrivate, ...settings }, requester }) => {
      await changes()
        .add({ ...settings, allowPrivate, who: auditName(requester) })
        .catch(refused)
      return { kind: 'json', status: 201, value: { name: settings.name } }
    },
  }),
  apiRoute({
    method: 'DELETE',
    path: '/subscriptions/:name',
    role: 'admin',
    summary: 'Remove a subscription that a command has added',
    answers: { 200: { about: 'removed', shape: named } },
    problems: [REFUSED],
    handler: async ({ parameters, requester }) => {
      const removal = { name: parameters['name'] ?? '', who: auditName(requester) }
      await changes().remove(removal).catch(refused)
      return json({ name: removal.name })
    },
  }),
]

const secretRoutes = (changes: () => WebhookChanges): readonly ApiRoute[] => [
  apiRoute({
    method: 'POST',
    path: '/subscriptions/:name/test',
    role: 'operator',
    summary: 'Send one event of the type test',
    about: 'As `deferd webhook test`, from this node. The subscription stays as it is.',
    answers: { 200: { about: 'the answer of the target', shape: z.object({ to: z.string(), taken: z.boolean(), answer: z.string() }) } },
    problems: [UNKNOWN_SUBSCRIPTION],
    handler: async (request) => {
      assertUnlimited(request)
      const { name: asked = '' } = request.parameters
      const answer = await changes().test(asked)
      if (answer !== undefined) return json(answer)
      throw new Problem(UNKNOWN_SUBSCRIPTION, `there is no subscription ${asked}; GET /subscriptions has all names`)
    },
  }),
  apiRoute({
    method: 'POST',
    path: '/subscriptions/:name/secret',
    role: 'admin',
    summary: 'Give a subscription a new secret',
    body: jsonBody(
      z.strictObject({ secret, overlap: z.number().min(0).max(LONGEST_TIME).describe('seconds for which the old secrets sign beside it') }),
      SMALL_BODY,
    ),
    answers: { 200: { about: 'changed', shape: named } },
    problems: [REFUSED, HTTP_PROBLEMS.unavailable],
    handler: async ({ parameters, body, requester }) => {
      const given = { name: parameters['name'] ?? '', secret: body.secret, overlap: Math.round(body.overlap * SECOND) }
      await changes()
        .changeSecret({ ...given, who: auditName(requester) })
        .catch(refused)
      return json({ name: given.name })
    },
  }),
]

export const webhookRoutes = (changes: () => WebhookChanges): readonly ApiRoute[] => [...targetRoutes(changes), ...secretRoutes(changes)]
