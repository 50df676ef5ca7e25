/** Division of the shards among the nodes. Each node decides on its own shards. */
import type { OwnerId } from '../../mail/message.ts'
import type { NodesView } from './node-table.ts'
import { SHARDS, type Shard } from './shards.ts'

/** Maximum number of surplus shards that a node lets go per beat. Each transfer interrupts the deliveries of its destinations. */
export const LET_GO_PER_BEAT = 4

export interface Balance {
  /** Maximum number of free shards to take now. */
  readonly take: number
  /** Shards to let go now. */
  readonly letGo: readonly Shard[]
}

/**
 * Decides on the shards of a node, which holds `held` and is not letting go of them. The fair share is the same for all nodes that
 * are not draining; a draining node has none and lets all go at once, as a node that leaves does.
 */
export function balance({ nodes, freeShards }: Pick<NodesView, 'nodes' | 'freeShards'>, me: OwnerId, held: ReadonlySet<Shard>): Balance {
  const sharing = nodes.filter(({ draining }) => !draining)
  const share = sharing.some(({ id }) => id === me) ? Math.ceil(SHARDS / sharing.length) : 0
  if (share === 0) return { take: 0, letGo: [...held] }
  const surplus = Math.max(0, held.size - share)
  return {
    take: Math.min(freeShards, Math.max(0, share - held.size)),
    letGo: [...held].slice(0, Math.min(surplus, LET_GO_PER_BEAT)),
  }
}
