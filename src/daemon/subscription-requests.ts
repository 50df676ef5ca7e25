/** Requests of the command `deferd webhook` on the control socket. */
import { jsonBody } from '../http/request-body.ts'
import { route, type Answer, type Route } from '../http/route-table.ts'
import {
  newSecretShape,
  newSubscriptionShape,
  removalShape,
  replayShape,
  type SubscriptionChanges,
} from '../subscriptions/subscription-changes.ts'

const BODY_LIMIT = 64 * 1024

const DONE: Answer = { kind: 'json', status: 200, value: {} }

const shared = { method: 'POST', role: 'local' } as const

export function subscriptionRequests(changes: SubscriptionChanges): readonly Route[] {
  return [
    route({
      ...shared,
      path: '/subscriptions',
      body: jsonBody(newSubscriptionShape, BODY_LIMIT),
      handler: async ({ body }) => (await changes.add(body), DONE),
    }),
    route({
      ...shared,
      path: '/subscriptions/remove',
      body: jsonBody(removalShape, BODY_LIMIT),
      handler: async ({ body }) => (await changes.remove(body), DONE),
    }),
    route({
      ...shared,
      path: '/subscriptions/secret',
      body: jsonBody(newSecretShape, BODY_LIMIT),
      handler: async ({ body }) => (await changes.changeSecret(body), DONE),
    }),
    route({
      ...shared,
      path: '/subscriptions/replay',
      body: jsonBody(replayShape, BODY_LIMIT),
      handler: async ({ body }) => ({ kind: 'json', status: 200, value: { events: await changes.replay(body) } }),
    }),
  ]
}
