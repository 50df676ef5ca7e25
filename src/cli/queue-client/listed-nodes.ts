/** The nodes that share a queue, as a command reads them from the database and asks their processes. */
import type { NodeDirectory } from '../../store/membership/node-directory.ts'
import { nodesJson, type NodeJson } from '../../resources/node-json.ts'
import { betweenNodesJson, type BetweenNodesJson } from '../../resources/settings-json.ts'
import { askNodes } from '../../queries/node-questions.ts'
import { SECOND, type Duration } from '../../system/clock.ts'
import type { WallView } from '../../system/wall-view.ts'

/** Time that the nodes have for an answer. */
const ANSWER_LIMIT: Duration = SECOND

/** `lease` is the parameter node_lease. */
export async function listedNodes(directory: NodeDirectory, lease: Duration, wall: WallView): Promise<readonly NodeJson[]> {
  const [nodes, lost] = [await directory.list(), await directory.lost()]
  const { answers } = await askNodes(directory, 'slots', { patience: ANSWER_LIMIT })
  const slots = new Map(answers.map(({ node, answer }) => [node.id, answer]))
  return nodesJson({ nodes, lost, isSilent: ({ beatAge }) => beatAge > lease, me: null, slots }, wall)
}

/** The settings in which the nodes differ. */
export async function settingsBetween(directory: NodeDirectory): Promise<BetweenNodesJson> {
  const { answers, silent } = await askNodes(directory, 'settings', { patience: ANSWER_LIMIT })
  return betweenNodesJson(
    answers.map(({ node, answer }) => ({ node: node.name, settings: answer })),
    silent,
  )
}
