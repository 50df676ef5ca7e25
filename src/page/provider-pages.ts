/** Routes of the screens of providers, and of their suspension and its end. */
import { assertUnlimited } from '../api/route/api-route.ts'
import { actorOf } from '../http/requests/requester.ts'
import { route, type Route, type RouteRequest } from '../http/route-table.ts'
import { namedProviders, providerDetails, providerName, shownProvider } from '../queries/providers.ts'
import { suspensionAnswer, suspensionBody } from './suspension-form.ts'
import { formRoute, requesterOf, screenAnswer, screenRoute, type PageDeps } from './page-view.ts'
import { providerScreen, providersScreen } from './screens/providers-screen.ts'
import { suspensionPanel, type SuspensionVerb } from './screens/suspension-panels.ts'

const asked = ({ parameters }: Pick<RouteRequest<unknown>, 'parameters'>): string => parameters['name'] ?? ''

/** Throws Problem for a client that is limited to some destinations. */
function unlimited(request: RouteRequest<unknown>) {
  const requester = requesterOf(request)
  assertUnlimited({ requester })
  return requester
}

const question = (deps: PageDeps, verb: SuspensionVerb): Route =>
  screenRoute(deps, { path: `/providers/:name/${verb}`, role: 'operator', slots: 'searches' }, async (request, view) => {
    unlimited(request)
    const { provider: name, waiting } = await providerDetails(deps.view, asked(request))
    return screenAnswer(view, suspensionPanel(view, verb, { kind: 'provider', name, waiting, alsoWith: null }))
  })

const changed = (name: string) => ({ kind: 'redirect', location: `../${encodeURIComponent(name)}` }) as const

export const providerPages = (deps: PageDeps): readonly Route[] => [
  screenRoute(deps, { path: '/providers', slots: 'searches' }, async (request, view) => {
    unlimited(request)
    return screenAnswer(view, providersScreen(view, await namedProviders(deps.view)))
  }),
  screenRoute(deps, { path: '/providers/:name', slots: 'searches' }, async (request, view) => {
    unlimited(request)
    return screenAnswer(view, providerScreen(view, await shownProvider(deps.view, asked(request))))
  }),
  question(deps, 'suspend'),
  question(deps, 'resume'),
  formRoute(deps, { path: '/providers/:name/suspend', role: 'operator', body: suspensionBody }, async (request, view) => {
    unlimited(request)
    const name = providerName(deps.view, asked(request))
    return suspensionAnswer(request, view, {
      suspended: async () => ({ kind: 'provider', name, waiting: (await providerDetails(deps.view, name)).waiting, alsoWith: null }),
      suspend: async (suspension) => {
        await deps.view.operations().suspendProvider(name, suspension)
        return changed(name)
      },
    })
  }),
  route({
    method: 'POST',
    path: '/providers/:name/resume',
    role: 'operator',
    handler: async (request) => {
      const actor = actorOf(unlimited(request))
      const name = providerName(deps.view, asked(request))
      await deps.view.operations().resumeProvider(name, actor)
      return changed(name)
    },
  }),
]
