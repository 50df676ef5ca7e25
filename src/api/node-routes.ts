/** Routes of the API for the nodes that share a queue. */
import { z } from 'zod'
import { forgetNode, setDraining } from '../admin/queue-nodes.ts'
import { HTTP_PROBLEMS } from '../http/problem-details.ts'
import { actorOf } from '../http/requests/requester.ts'
import { nodeList, NO_NODES, sharedNodes } from '../queries/nodes.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { forgottenNodesShape, nodesShape } from '../resources/node-json.ts'
import { apiRoute, assertUnlimited, json, type ApiRequest, type ApiRoute } from './route/api-route.ts'

export function nodeRoutes(view: QueueView): readonly ApiRoute[] {
  const changed = z.object({ name: z.string() })
  const mark = async (request: ApiRequest<unknown, unknown>, draining: boolean) => {
    assertUnlimited(request)
    const asked = request.parameters['name'] ?? ''
    await setDraining(sharedNodes(view), { asked, draining, ...actorOf(request.requester) })
    return json({ name: asked })
  }
  return [
    apiRoute({
      method: 'GET',
      path: '/nodes',
      role: 'viewer',
      summary: 'Nodes that share the queue',
      about: 'The members of `deferd node list --json`; null for a queue in a folder, which has one daemon.',
      answers: { 200: { about: 'the nodes', shape: nodesShape } },
      handler: async (request) => {
        assertUnlimited(request)
        return json(await nodeList(view))
      },
    }),
    apiRoute({
      method: 'POST',
      path: '/nodes/:name/drain',
      role: 'operator',
      summary: 'Let other nodes take the mail of a node',
      about: 'As `deferd node drain`: the node also refuses new mail.',
      answers: { 200: { about: 'begun', shape: changed } },
      problems: [HTTP_PROBLEMS.unknown, NO_NODES],
      handler: (request) => mark(request, true),
    }),
    apiRoute({
      method: 'POST',
      path: '/nodes/:name/undrain',
      role: 'operator',
      summary: 'End the draining of a node',
      answers: { 200: { about: 'ended', shape: changed } },
      problems: [HTTP_PROBLEMS.unknown, NO_NODES],
      handler: (request) => mark(request, false),
    }),
    apiRoute({
      method: 'DELETE',
      path: '/nodes/:name',
      role: 'admin',
      summary: 'Remove a node that has failed',
      about:
        'As `deferd node forget`: a lost node is removed at once; for another one the answer comes after `node_lease`, and is 503 while the node beats.',
      answers: { 200: { about: 'removed; empty for a node that was gone already', shape: forgottenNodesShape } },
      problems: [HTTP_PROBLEMS.unknown, NO_NODES],
      handler: async ({ parameters: { name = '' }, requester }) =>
        json({ forgotten: await forgetNode(sharedNodes(view), { asked: name, ...actorOf(requester) }) }),
    }),
  ]
}
