/** Changes of the subscriptions that commands have added, and test events, for the API and the page. */
import { z } from 'zod'
import { Problem, type ProblemKind } from '../../http/problem-details.ts'
import { actorOf, type Requester } from '../../http/requests/requester.ts'
import { isWebTarget, settingShapes, SubscriptionRefused, WEB_TARGET } from '../../subscriptions/subscription-changes.ts'
import type { TestAnswerJson } from '../../resources/subscription-json.ts'
import { SECOND } from '../../system/clock.ts'
import { LONGEST_TIME, spanInSeconds } from '../named-time.ts'
import type { QueueView } from '../queue-view.ts'
import { storedSubscription } from '../subscriptions.ts'

const { name, to, types, destinations, senders, format, batch, secret } = settingShapes

export const newWebhook = z
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
  .refine((given) => isWebTarget(given.to, given.allow_private), { path: ['to'], message: WEB_TARGET })

export const newSecretBody = z.strictObject({
  secret,
  overlap: spanInSeconds(z.number().min(0).max(LONGEST_TIME)).describe(
    'time for which the old secrets sign beside it: 30m, 2h, 1d, or seconds',
  ),
})

export const SUBSCRIPTION_REFUSED: ProblemKind = {
  slug: 'subscription-refused',
  status: 409,
  title: 'Subscription cannot be changed',
  about: 'The name is in use, or no command has added a subscription of the name: those of the configuration are changed there.',
}

const refused = (error: unknown): never => {
  throw error instanceof SubscriptionRefused ? new Problem(SUBSCRIPTION_REFUSED, error.message, { cause: error }) : error
}

type Port = Pick<QueueView, 'subscriptions'>

/** Throws Problem when the name is in use. */
export async function addWebhook(
  view: Port,
  { allow_private: allowPrivate, ...settings }: z.output<typeof newWebhook>,
  requester: Requester,
): Promise<void> {
  const request = { ...settings, allowPrivate, ...actorOf(requester) }
  await view.subscriptions().add(request).catch(refused)
}

/** Throws Problem when no command has added a subscription of the name. */
export async function removeWebhook(view: Port, called: string, requester: Requester): Promise<void> {
  const removal = { name: called, ...actorOf(requester) }
  await view.subscriptions().remove(removal).catch(refused)
}

/** Throws Problem when no command has added a subscription of the name. */
export async function changeWebhookSecret(
  view: Port,
  called: string,
  { secret: text, overlap }: z.output<typeof newSecretBody>,
  requester: Requester,
): Promise<void> {
  const request = { name: called, secret: text, overlap: Math.round(overlap * SECOND), ...actorOf(requester) }
  await view.subscriptions().changeSecret(request).catch(refused)
}

/** Sends one event of the type `test` from this node. Throws Problem for an unknown name. */
export const testWebhook = async (view: QueueView, called: string): Promise<TestAnswerJson> =>
  view.subscriptions().test(await storedSubscription(view, called))
