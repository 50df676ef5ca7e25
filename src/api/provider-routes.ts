/** Routes of the API for providers of mailboxes. */
import { jsonBody } from '../http/request-body.ts'
import { actorOf } from '../http/requests/requester.ts'
import { providerDetails, providerList, providerName, UNKNOWN_PROVIDER } from '../queries/providers.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { providerDetailsShape, providersShape } from '../resources/provider-json.ts'
import { apiRoute, assertUnlimited, json, SMALL_BODY, type ApiRequest, type ApiRoute } from './route/api-route.ts'
import { SUSPENSION_EXAMPLE, suspensionRequest, suspensionShape } from './route/suspension-body.ts'

const CHANGED = { 200: { about: 'the provider after the change', shape: providerDetailsShape } } as const

/** The provider that a request names. Throws Problem for an unknown one, and for a client that is limited to some destinations. */
function asked(view: QueueView, request: ApiRequest<unknown, unknown>): string {
  assertUnlimited(request)
  return providerName(view, request.parameters['name'] ?? '')
}

export const providerRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/providers',
    role: 'viewer',
    summary: 'Providers',
    about: 'The members of `deferd provider list --json`: the `[provider.NAME]` tables, by name, each with the mail of its destinations.',
    answers: { 200: { about: 'the providers', shape: providersShape } },
    slots: 'searches',
    handler: async (request) => {
      assertUnlimited(request)
      return json(await providerList(view))
    },
  }),
  apiRoute({
    method: 'GET',
    path: '/providers/:name',
    role: 'viewer',
    summary: 'One provider',
    about: 'The members of `deferd provider show --json`.',
    answers: { 200: { about: 'the provider', shape: providerDetailsShape } },
    problems: [UNKNOWN_PROVIDER],
    slots: 'searches',
    handler: async (request) => json(await providerDetails(view, asked(view, request))),
  }),
  apiRoute({
    method: 'POST',
    path: '/providers/:name/suspend',
    role: 'operator',
    summary: 'Suspend a provider',
    about: 'Stops deliveries to all its destinations, also to those that become known later, on all nodes.',
    body: jsonBody(suspensionShape, SMALL_BODY),
    example: SUSPENSION_EXAMPLE,
    answers: CHANGED,
    problems: [UNKNOWN_PROVIDER],
    handler: async (request) => {
      const name = asked(view, request)
      await view.operations().suspendProvider(name, suspensionRequest(request.body, actorOf(request.requester), view.clock.wall.now()))
      return json(await providerDetails(view, name))
    },
  }),
  apiRoute({
    method: 'POST',
    path: '/providers/:name/resume',
    role: 'operator',
    summary: 'Resume deliveries to a suspended provider',
    about: 'Ends a suspension by an operator or by a reply rule. Destinations that are suspended themselves stay so.',
    answers: CHANGED,
    problems: [UNKNOWN_PROVIDER],
    handler: async (request) => {
      const name = asked(view, request)
      await view.operations().resumeProvider(name, actorOf(request.requester))
      return json(await providerDetails(view, name))
    },
  }),
]
