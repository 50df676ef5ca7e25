/** The nodes that share a queue, and which of them need attention. */
import { Problem, type ProblemKind } from '../http/problem-details.ts'
import { nodesJson, settingsThatDiffer, type NodeFacts, type NodesJson } from '../resources/node-json.ts'
import { absentNodesJson, type AttentionJson } from '../resources/status-json.ts'
import { betweenNodesJson, configurationJson, type SettingsJson } from '../resources/settings-json.ts'
import { SECOND } from '../system/clock.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
import type { QueueView, SharedNodes } from './queue-view.ts'

export const NO_NODES: ProblemKind = {
  slug: 'no-nodes',
  status: 409,
  title: 'No nodes',
  about: 'The queue is in a folder and has one daemon: only a queue in PostgreSQL (`queue_database`) has nodes.',
}

/** The nodes of a shared queue. Throws Problem for a queue in a folder. */
export function sharedNodes(view: Pick<QueueView, 'nodes'>): SharedNodes {
  const found = view.nodes()
  if (found === null) throw new Problem(NO_NODES, 'the queue is in a folder and has one daemon')
  return found
}

/** Names of the nodes that did not answer a question of the last seconds; none while the queue is not open, too. */
export function unansweredNodes({ nodes }: Pick<QueueView, 'nodes'>): readonly string[] {
  try {
    return nodes()?.unanswered() ?? []
  } catch (error) {
    if (error instanceof StoreUnavailable) return []
    throw error
  }
}

async function factsOf({ nodes, slots, silent, me }: SharedNodes): Promise<NodeFacts> {
  const [listed, lost, used] = await Promise.all([nodes.list(), nodes.lost(), slots()])
  return { me, nodes: listed, lost, slots: used, isSilent: ({ id }) => silent().some((one) => one.id === id) }
}

/** The nodes by name; null for a queue in a folder. */
export async function nodeList({ nodes, clock }: QueueView): Promise<NodesJson> {
  const shared = nodes()
  if (shared === null) return { nodes: null, lease: null }
  return { nodes: nodesJson(await factsOf(shared), clock.wall), lease: shared.lease / SECOND }
}

/** Names of the settings in which the nodes of a shared queue differ; from one small table. */
export async function differingSettings({ nodes }: Pick<QueueView, 'nodes'>): Promise<readonly string[]> {
  const shared = nodes()
  return shared === null ? [] : settingsThatDiffer(await shared.nodes.list())
}

/** The nodes that have failed, or that all drain, from memory and one small table. */
export async function absentNodes({ nodes, clock }: QueueView): Promise<readonly AttentionJson[]> {
  const shared = nodes()
  return shared === null
    ? []
    : absentNodesJson(
        { silent: shared.silent().map(({ name }) => name), drained: shared.drained(), lost: await shared.nodes.lost() },
        clock.wall,
      )
}

/** The settings of the node that answers, and those in which the nodes differ. */
export async function settings({ nodes, loaded }: QueueView): Promise<SettingsJson> {
  const shared = nodes()
  if (shared === null) return { ...configurationJson(loaded()), between_nodes: null }
  const [listed, given] = [await shared.nodes.list(), await shared.settings()]
  const answers = listed.flatMap(({ id, name }) => {
    const own = given.get(id)
    return own === undefined ? [] : [{ node: name, settings: own }]
  })
  const unanswered = listed.filter(({ id }) => !given.has(id)).map(({ name }) => name)
  return { ...configurationJson(loaded()), between_nodes: betweenNodesJson(answers, unanswered) }
}
