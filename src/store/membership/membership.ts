/**
 * The membership of a relay among the nodes that share its queue: whether it may deliver now, and for which destinations. A relay
 * with a queue of its own is the sole member.
 */
import type { DestinationName } from '../../mail/message.ts'
import type { Arrivals } from './node-table.ts'
import { shardOf, type Shard } from './shards.ts'
import { NOTHING_TAKEN, type Recall, type TakenBack } from './taken-back.ts'

/** Receives changes. Calls for different shards may overlap. */
export interface MembershipListener {
  /** Shards that the node now owns. Resolves when their mail is scheduled. */
  taken(shards: readonly Shard[]): Promise<void>
  /**
   * Shards that the node gives away; it no longer owns their destinations. Calls `given` for each shard as soon as no claim, no lease
   * and no delivery of it is left, and resolves after the last. A shard gets another owner after the call.
   */
  releasing(shards: readonly Shard[], given: (shard: Shard) => void): Promise<void>
  /** Changes by other nodes. */
  arrived(arrivals: Arrivals): void
  /** Changes by other nodes may have been lost: the listener reads all its work anew. */
  missed(): void
  /** Gives own claimed mail back, for another node. */
  recalled(recall: Recall): Promise<TakenBack>
  /** The node may deliver again, after a time in which `holds` was false. */
  resumed(): void
}

export interface Membership {
  /** True when other nodes may change the queue. */
  readonly isShared: boolean
  /**
   * True while no other node can have taken this one over. Asked synchronously before each delivery, connection and mail transaction,
   * because a process that was stopped may run for a while before its timers do.
   */
  holds(): boolean
  /** True when this node schedules the destination. */
  owns(destination: DestinationName): boolean
  /** Shard of a destination, which is that of its provider once that is known. */
  shardOf(destination: DestinationName): Shard
  /** Parameter `myhostname` of each node of a shared queue at the last beat, that of this node too. */
  hostnames(): readonly string[]
  /**
   * Has the other nodes give claimed mail back, and resolves when each has answered, or its leases have ended. Rejects with NotTakenBack when
   * a running node does not answer in time.
   */
  recall(recall: Recall): Promise<TakenBack>
  /** Sets the listener. Called once, before the first shard is taken. */
  attach(listener: MembershipListener): void
}

/** Membership of a relay whose queue has one owner at a time. */
export const SOLE_MEMBERSHIP: Membership = {
  isShared: false,
  holds: () => true,
  owns: () => true,
  shardOf,
  hostnames: () => [],
  recall: async () => NOTHING_TAKEN,
  attach: () => undefined,
}
