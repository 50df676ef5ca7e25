/**
 * The NodeTable port: the nodes that share a queue, the owners of its shards, and messages between owners. A node is one opening of
 * the queue by one process; its number is the owner of its leases.
 *
 * Every method is one transaction. It rejects with StoreUnavailable when the database cannot be reached or cannot commit; the
 * call may then have had effect, and may be repeated. A method of a node whose row is gone rejects with Fenced, except where
 * stated.
 */
import type { MessageId, OwnerId } from '../../mail/message.ts'
import type { Duration, QueueTime } from '../../system/clock.ts'
import type { ProviderChange } from '../records/provider-state.ts'
import type { DestinationRecord } from '../queue-store.ts'
import type { DestinationDue } from '../message-operation.ts'
import type { Recall, TakenBack } from './taken-back.ts'
import type { Shard } from './shards.ts'

/** The parameters of a node that the others need. */
export interface NodeParameters {
  /** The settings that should be equal on all nodes: a JSON object of hashes by name. Empty for a command. */
  readonly settings: string
  /** Parameter `myhostname`. Empty for a command, and for a node of a version that does not tell it. */
  readonly hostname: string
}

/** A node as all other nodes see it. */
export interface NodeState extends NodeParameters {
  readonly id: OwnerId
  /** Parameter `node_name`: a label, which need not be unique. */
  readonly name: string
  /**
   * Changes with each beat to a value that no earlier beat of the node had, also after a failover of the database that lost beats. The
   * value means nothing else.
   */
  readonly beat: number
  /** Time since the last beat, by the clock of the database. No takeover depends on it. */
  readonly beatAge: Duration
  /** Number of shards that the node owns. */
  readonly shards: number
  /** Version of the program, for example `1.2.0`. */
  readonly program: string
  /** True for a node that gives its shards away and takes none; a command joins so. */
  readonly draining: boolean
  readonly joinedAt: QueueTime
}

/** The nodes at one instant. */
export interface NodesView {
  /** All nodes, including this one. */
  readonly nodes: readonly NodeState[]
  /** Number of shards without an owner. */
  readonly freeShards: number
  /** Shards that this node owns. */
  readonly mine: readonly Shard[]
  /** Clock of the database. No lease depends on it. */
  readonly databaseTime: QueueTime
}

/** A destination with new or changed mail, and the earliest due time of that mail. */
export interface DueArrival extends DestinationDue {
  /** True after a flush, which opens a dead destination. */
  readonly revive: boolean
}

/**
 * Changes by other nodes that concern this node. Each is a hint: the tables have the facts, which the node also reads when it takes
 * a shard.
 */
export interface Arrivals {
  readonly due: readonly DueArrival[]
  /** Messages for which a notice is due, or whose delay warning time was set. Their first recipient is in an own shard. */
  readonly notices: readonly MessageId[]
  /** States of own destinations that other nodes saved, because an operator suspended or resumed the destination there. */
  readonly destinations: readonly DestinationRecord[]
  /** Orders of operators about own providers at other nodes, and states that these saved because an order ended a suspension by a rule. */
  readonly providers: readonly ProviderChange[]
  /** Recalls of other nodes that this node has not answered. They come again until it has. */
  readonly recalls: readonly AskedRecall[]
}

export const NO_ARRIVALS: Arrivals = { due: [], notices: [], destinations: [], providers: [], recalls: [] }

/** A recall of another node. */
export interface AskedRecall {
  readonly asker: OwnerId
  /** Number of the recall at that node. */
  readonly number: number
  readonly recall: Recall
}

/** Answer to a recall; null while the node has not answered. */
export interface RecallAnswer {
  readonly node: OwnerId
  readonly answer: TakenBack | null
}

/** Result of a takeover. */
export interface Takeover {
  /** Number of shards that became free. */
  readonly shards: number
  /** Number of recipients whose lease ended. */
  readonly leases: number
  /** Queue ids of the messages that were moved to `corrupt`, because they were in delivery at SHARED_STARTS_UNTIL_CORRUPT such ends. */
  readonly corrupt: readonly string[]
}

export interface NodeTable {
  /** The number of this node. Never reused; the row exists from the opening of the queue. */
  readonly me: OwnerId
  /** Counts a beat of this node and returns the nodes. Null when this node's row is gone: another node took it over. */
  beat(): Promise<NodesView | null>
  /**
   * Removes a node that has not beaten since `seenBeat`: ends its leases, frees its shards and deletes its staged contents. Waits for
   * its open transactions. Null, without a change, when the node has beaten or is gone.
   */
  takeOver(node: OwnerId, seenBeat: number): Promise<Takeover | null>
  /** Takes up to `limit` shards without an owner, and returns them. */
  takeShards(limit: number): Promise<readonly Shard[]>
  /** Gives own shards up. Ignores shards of other owners. */
  releaseShards(shards: readonly Shard[]): Promise<void>
  /** Takes the messages to the owners of this node's shards. They are not returned again. */
  arrivals(): Promise<Arrivals>
  /**
   * Asks other nodes for a recall: those that lease mail of its messages; for a destination, those that own shards. Returns the nodes that were
   * asked. A repetition with the same number asks nobody twice.
   */
  recall(number: number, recall: Recall): Promise<readonly OwnerId[]>
  /** The answers of those of the asked nodes that are not gone. */
  recallAnswers(number: number, asked: readonly OwnerId[]): Promise<readonly RecallAnswer[]>
  /** Forgets an own recall. */
  endRecall(number: number): Promise<void>
  answerRecall(asked: Pick<AskedRecall, 'asker' | 'number'>, answer: TakenBack): Promise<void>
  /**
   * Calls `listener` when arrivals may be waiting; with true when the node itself was recalled, drained or undrained. May miss some, so that
   * callers also ask from time to time.
   */
  onHint(listener: (ofNode: boolean) => void): void
  /** Sets whether a node gives its shards away. False when there is no such node. */
  setDraining(node: OwnerId, draining: boolean): Promise<boolean>
  /** Sets the parameters of this node, as in NodeState. */
  setParameters(parameters: NodeParameters): Promise<void>
  /** Removes this node, whose mail and shards were given back. Has no effect when the row is gone. */
  leave(): Promise<void>
}
