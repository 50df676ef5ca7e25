/** Routes of the screens that list and change webhooks: add, test, new secret, remove. Secrets are in answers to forms only. */
import { z } from 'zod'
import { assertUnlimited } from '../api/route/api-route.ts'
import { formBody } from '../http/request-body.ts'
import { Problem } from '../http/problem-details.ts'
import { route, type Answer, type Route, type RouteRequest } from '../http/route-table.ts'
import { checkValue } from '../presentation/checked-value.ts'
import {
  addWebhook,
  changeWebhookSecret,
  newSecretBody,
  newWebhook,
  removeWebhook,
  SUBSCRIPTION_REFUSED,
  testWebhook,
} from '../queries/programs/webhook-changes.ts'
import { numberIn } from '../queries/cursor.ts'
import { subscription, subscriptionList } from '../queries/subscriptions.ts'
import type { SubscriptionJson } from '../resources/subscription-json.ts'
import { newSigningSecret } from '../subscriptions/new-secret.ts'
import { patternsIn } from '../subscriptions/subscription-changes.ts'
import { span } from '../presentation/text.ts'
import { parseDuration } from '../system/duration.ts'
import { SECOND } from '../system/clock.ts'
import type { View } from './markup/view.ts'
import { checkField, textField } from './form-fields.ts'
import { FORM_LIMIT, formRoute, problemOf, requesterOf, screenAnswer, screenRoute, type PageDeps, type SentForm } from './page-view.ts'
import {
  newSecretScreen,
  newWebhookScreen,
  NO_WEBHOOK,
  testAnswerScreen,
  webhookRemovalScreen,
  webhookSecretScreen,
  webhooksScreen,
  webhookTestScreen,
  type WebhookText,
} from './screens/system/webhooks-screen.ts'

const webhookForm = z.strictObject({
  name: textField,
  to: textField,
  types: textField,
  destinations: textField,
  senders: textField,
  format: textField,
  batch: textField,
  allow_private: checkField,
})

const nameOf = ({ parameters }: Pick<RouteRequest<unknown>, 'parameters'>): string => parameters['name'] ?? ''

async function added(deps: PageDeps, { body, requester }: SentForm<WebhookText>, view: View): Promise<Answer> {
  const secret = newSigningSecret(deps.view.random)
  const lists = { types: patternsIn(body.types), destinations: patternsIn(body.destinations), senders: patternsIn(body.senders) }
  const checked = checkValue(newWebhook, { ...body, ...lists, batch: numberIn(body.batch) ?? body.batch, secret })
  if (!checked.ok) return screenAnswer(view, newWebhookScreen(view, body, problemOf(checked.invalid)), 422)
  try {
    await addWebhook(deps.view, checked.value, requester)
  } catch (error) {
    if (!(error instanceof Problem) || error.kind !== SUBSCRIPTION_REFUSED) throw error
    return screenAnswer(view, newWebhookScreen(view, body, `${error.message}.`), 409)
  }
  const title = `The webhook ${body.name} was added`
  return screenAnswer(view, webhookSecretScreen(view, { name: body.name, title, secret, about: 'A test event shows whether it does.' }))
}

const additionRoutes = (deps: PageDeps): readonly Route[] => [
  screenRoute(deps, { path: '/new-webhook', role: 'admin' }, async (request, view) => {
    assertUnlimited(request)
    return screenAnswer(view, newWebhookScreen(view, NO_WEBHOOK, null))
  }),
  formRoute(deps, { path: '/new-webhook', role: 'admin', body: formBody(webhookForm, FORM_LIMIT) }, async (request, view) => {
    assertUnlimited(request)
    return added(deps, request, view)
  }),
]

/** The subscription of a request. Throws Problem for an unknown one, and for one of the configuration. */
async function changeable({ view }: PageDeps, request: SentForm<unknown>): Promise<SubscriptionJson> {
  assertUnlimited(request)
  const one = await subscription(view, nameOf(request), request.requester)
  if (one.owner === 'command') return one
  throw new Problem(SUBSCRIPTION_REFUSED, `${one.name} is of the configuration: it is changed in [events.${one.name}]`)
}

const OVERLAP = '1d'

const secretRoutes = (deps: PageDeps): readonly Route[] => {
  const place = { path: '/webhooks/:name/secret', role: 'admin' } as const
  const body = formBody(z.strictObject({ overlap: textField }), FORM_LIMIT)
  return [
    screenRoute(deps, place, async (request, view) => {
      const { name } = await changeable(deps, request)
      return screenAnswer(view, newSecretScreen(view, { name, overlap: OVERLAP, problem: null }))
    }),
    formRoute(deps, { ...place, body }, async (request, view) => {
      const { name } = await changeable(deps, request)
      const { overlap } = request.body
      const secret = newSigningSecret(deps.view.random)
      const time = parseDuration(overlap)
      const checked = newSecretBody.safeParse({ secret, overlap: (time ?? Number.NaN) / SECOND })
      if (!checked.success) {
        const problem = 'A time is expected, such as 12h or 1d, or 0s for none. The secret is the former one.'
        return screenAnswer(view, newSecretScreen(view, { name, overlap, problem }), 422)
      }
      await changeWebhookSecret(deps.view, name, checked.data, request.requester)
      const about = `The old one signs beside it for ${span(time ?? 0)}.`
      return screenAnswer(view, webhookSecretScreen(view, { name, title: `${name} has a new secret`, secret, about }))
    }),
  ]
}

const testRoutes = (deps: PageDeps): readonly Route[] => {
  const place = { path: '/webhooks/:name/test', role: 'operator' } as const
  return [
    screenRoute(deps, place, async (request, view) => {
      assertUnlimited(request)
      return screenAnswer(view, webhookTestScreen(view, await subscription(deps.view, nameOf(request), request.requester)))
    }),
    formRoute(deps, place, async (request, view) => {
      assertUnlimited(request)
      const shown = await subscription(deps.view, nameOf(request), request.requester)
      return screenAnswer(view, testAnswerScreen(view, shown, await testWebhook(deps.view, shown.name)))
    }),
  ]
}

const removalRoutes = (deps: PageDeps): readonly Route[] => {
  const place = { path: '/webhooks/:name/remove', role: 'admin' } as const
  return [
    screenRoute(deps, place, async (request, view) => screenAnswer(view, webhookRemovalScreen(view, await changeable(deps, request)))),
    route({
      method: 'POST',
      ...place,
      handler: async (request) => {
        const requester = requesterOf(request)
        assertUnlimited({ requester })
        await removeWebhook(deps.view, nameOf(request), requester)
        return { kind: 'redirect', location: '../../webhooks' }
      },
    }),
  ]
}

export const webhookPages = (deps: PageDeps): readonly Route[] => [
  screenRoute(deps, { path: '/webhooks' }, async (request, view) => {
    assertUnlimited(request)
    return screenAnswer(view, webhooksScreen(view, await subscriptionList(deps.view, request.requester)))
  }),
  ...additionRoutes(deps),
  ...testRoutes(deps),
  ...secretRoutes(deps),
  ...removalRoutes(deps),
]
