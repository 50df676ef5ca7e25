/** Routes of the screens of settings and of nodes, and of the drain of a node, its end, and its removal. */
import { forgetNode, setDraining, type NodeChange } from '../admin/queue-nodes.ts'
import { assertUnlimited } from '../api/route/api-route.ts'
import { actorOf } from '../http/requests/requester.ts'
import { route, type Route } from '../http/route-table.ts'
import { nodeList, settings, sharedNodes } from '../queries/nodes.ts'
import { requesterOf, screenAnswer, screenRoute, type PageDeps } from './page-view.ts'
import { settingsScreen } from './screens/system/settings-screen.ts'
import { nodeQuestion, nodesScreen, type NodeVerb } from './screens/system/nodes-screen.ts'

const ROLES = { drain: 'operator', undrain: 'operator', forget: 'admin' } as const satisfies Readonly<Record<NodeVerb, string>>

async function carriedOut(deps: PageDeps, verb: NodeVerb, change: NodeChange): Promise<void> {
  const shared = sharedNodes(deps.view)
  if (verb === 'forget') await forgetNode(shared, change)
  else await setDraining(shared, { ...change, draining: verb === 'drain' })
}

const changeRoutes = (deps: PageDeps, verb: NodeVerb): readonly Route[] => [
  screenRoute(deps, { path: `/nodes/:name/${verb}`, role: ROLES[verb] }, async (request, view) => {
    assertUnlimited(request)
    const { nodes } = await nodeList(deps.view)
    return screenAnswer(view, nodeQuestion(view, request.parameters['name'] ?? '', verb, nodes ?? []))
  }),
  route({
    method: 'POST',
    path: `/nodes/:name/${verb}`,
    role: ROLES[verb],
    handler: async (request) => {
      const requester = requesterOf(request)
      assertUnlimited({ requester })
      await carriedOut(deps, verb, { asked: request.parameters['name'] ?? '', ...actorOf(requester) })
      return { kind: 'redirect', location: '../../nodes' }
    },
  }),
]

export const nodePages = (deps: PageDeps): readonly Route[] => [
  screenRoute(deps, { path: '/nodes' }, async (request, view) => {
    assertUnlimited(request)
    return screenAnswer(view, nodesScreen(view, await nodeList(deps.view)))
  }),
  screenRoute(deps, { path: '/settings' }, async (request, view) => {
    assertUnlimited(request)
    return screenAnswer(view, settingsScreen(view, await settings(deps.view)))
  }),
  ...changeRoutes(deps, 'drain'),
  ...changeRoutes(deps, 'undrain'),
  ...changeRoutes(deps, 'forget'),
]
