/** The nodes that share a queue, as a command reads them from the database and asks their processes. */
import type { NodeDirectory } from '../../store/membership/node-directory.ts'
import type { DeliverySlots } from '../../store/destination-status.ts'
import { nodesJson, type NodeJson } from '../../resources/node-json.ts'
import { betweenNodesJson, type BetweenNodesJson, type NodeSettings } from '../../resources/settings-json.ts'
import { SECOND, type Duration } from '../../system/clock.ts'
import type { WallView } from '../../system/wall-view.ts'

/** Time that the nodes have for an answer. */
const ANSWER_LIMIT: Duration = SECOND

/** `lease` is the parameter node_lease. */
export async function listedNodes(directory: NodeDirectory, lease: Duration, wall: WallView): Promise<readonly NodeJson[]> {
  const [nodes, lost] = [await directory.list(), await directory.lost()]
  const { answers } = await directory.ask('slots', ANSWER_LIMIT)
  const slots = new Map(answers.flatMap(({ node, answer }) => (answer === null ? [] : [[node.id, answer as DeliverySlots] as const])))
  return nodesJson({ nodes, lost, lease, me: null, slots }, wall)
}

/** The settings in which the nodes differ. */
export async function settingsBetween(directory: NodeDirectory): Promise<BetweenNodesJson> {
  const { answers, silent } = await directory.ask('settings', ANSWER_LIMIT)
  const given = answers.filter(({ answer }) => answer !== null)
  const older = answers.filter(({ answer }) => answer === null).map(({ node }) => node.name)
  return betweenNodesJson(
    given.map(({ node, answer }) => ({ node: node.name, settings: answer as NodeSettings })),
    [...silent, ...older],
  )
}
