/** Changes of operators to the nodes of a shared queue: draining, its end, and the removal of a node that has failed. */
import type { ListedNode, NodeDirectory } from '../store/membership/node-directory.ts'
import type { Actor, AuditRecord } from '../store/records/audit-log.ts'
import { sleep, type Clock, type Duration } from '../system/clock.ts'

export type NodesPort = Pick<NodeDirectory, 'list' | 'lost' | 'setDraining' | 'takeOver' | 'forget' | 'audit'>

/** There is no node of the name or number (EX_DATAERR). */
class UnknownNode extends Error {
  override readonly name = 'UnknownNode'
  readonly exitCode = 65
}

/** A node to remove still beats (EX_TEMPFAIL). */
class NodeAlive extends Error {
  override readonly name = 'NodeAlive'
  readonly exitCode = 75
}

/** A removed node, and what waits for the other nodes. */
export interface ForgottenNode {
  readonly name: string
  readonly node: number
  readonly shards: number
  readonly recipients: number
}

export interface NodeChangesDeps {
  readonly nodes: NodesPort
  readonly clock: Pick<Clock, 'now' | 'after'>
  /** The parameter node_lease. */
  readonly lease: Duration
  /** Name of the node that acts, for the audit log. */
  readonly own: string
}

/** `asked` is the name of nodes, or the number of one. */
export interface NodeChange extends Actor {
  readonly asked: string
}

export const unknownNode = (asked: string): string => `there is no node ${asked}; deferd node list shows all nodes`

/** A new process of a node that failed has the same name, and another number. */
const isNamed = ({ name, id }: ListedNode, asked: string): boolean => name === asked || String(id) === asked

/** Records the change of one node, at the node that acts. */
const record = ({ nodes, clock, own }: NodeChangesDeps, change: Pick<AuditRecord, 'who' | 'requestId' | 'action' | 'arguments'>) =>
  nodes.audit({ at: clock.now(), ...change, changed: 1 }, own)

async function named({ nodes }: NodeChangesDeps, asked: string): Promise<readonly ListedNode[]> {
  const found = (await nodes.list()).filter((node) => isNamed(node, asked))
  if (found.length > 0) return found
  throw new UnknownNode(unknownNode(asked))
}

/** Begins or ends the draining of the nodes with a name or number. */
export async function setDraining(
  deps: NodeChangesDeps,
  { asked, draining, ...actor }: NodeChange & { readonly draining: boolean },
): Promise<void> {
  for (const { id, name } of await named(deps, asked)) {
    await deps.nodes.setDraining(id, draining)
    await record(deps, { ...actor, action: draining ? 'drain' : 'undrain', arguments: name })
  }
}

/**
 * Removes nodes that do not beat for a whole lease, with the subscriptions that only their configuration has. Empty when the node was gone
 * already, and was listed as lost or had left its `[events]` tables.
 */
export async function forgetNode(deps: NodeChangesDeps, { asked, ...actor }: NodeChange): Promise<readonly ForgottenNode[]> {
  const { nodes, clock, lease } = deps
  const audit = (name: string): Promise<void> => record(deps, { ...actor, action: 'forget', arguments: name })
  if (!(await nodes.list()).some((node) => isNamed(node, asked)) && (await nodes.forget(asked))) {
    await audit(asked)
    return []
  }
  const before = await named(deps, asked)
  await sleep(clock, lease)
  const forgotten: ForgottenNode[] = []
  for (const { id, name, beat } of before) {
    const takeover = await nodes.takeOver(id, beat)
    if (takeover === null) continue
    await nodes.forget(name)
    await audit(name)
    forgotten.push({ name, node: id, shards: takeover.shards, recipients: takeover.leases })
  }
  if (forgotten.length > 0) return forgotten
  throw new NodeAlive(`${asked} is alive: stop its daemon first, or use deferd node drain`)
}
