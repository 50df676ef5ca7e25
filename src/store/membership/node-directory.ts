/** The nodes of a shared queue as commands see them, from any machine: their list, the owners of shards, and questions to running nodes. */
import type { DestinationName, OwnerId } from '../../mail/message.ts'
import type { Duration, QueueTime } from '../../system/clock.ts'
import type { AuditRecord } from '../records/audit-log.ts'
import type { Takeover } from './node-table.ts'

export interface ListedNode {
  readonly id: OwnerId
  readonly name: string
  readonly program: string
  /** The settings that should be equal on all nodes: a JSON object of hashes by name. Empty for a command. */
  readonly settings: string
  readonly draining: boolean
  readonly joinedAt: QueueTime
  readonly beat: number
  /** Time since the last beat. */
  readonly beatAge: Duration
  readonly shards: number
  /** Number of leased recipients. */
  readonly leased: number
}

/** A node that another one has taken over, and that has not joined again. */
export interface LostNode extends Pick<ListedNode, 'id' | 'name' | 'program' | 'joinedAt' | 'beatAge'> {
  readonly lostAt: QueueTime
  /** Name of the node that has taken it over. */
  readonly taker: string
  /** Its shards, and the recipients that it had leased. */
  readonly shards: number
  readonly recipients: number
}

/** Answers of nodes, and the names of those that did not answer in time, or that do not know the question in their version. */
export interface Answers {
  readonly answers: readonly { readonly node: ListedNode; readonly answer: unknown }[]
  readonly silent: readonly string[]
}

/** State of the tables. */
export interface Schema {
  /** Number of the last migration; 0 without tables. */
  readonly version: number
  /** A deferd that does not know this migration may not use the queue. The upgrade to it was finished. */
  readonly oldestKnown: number
}

/** A node that keeps an upgrade from being finished. */
export interface OlderNode {
  readonly name: string
  readonly program: string
}

/** Result of `finishUpgrade`: older nodes, in which case nothing was changed, or the number of the last migration. */
export type Finish = { readonly older: readonly OlderNode[] } | { readonly version: number }

export interface NodeDirectory {
  /** Nodes that deliver, by name. */
  list(): Promise<readonly ListedNode[]>
  /** Nodes that were taken over, by name, until one of the name joins or `forget` removes them. */
  lost(): Promise<readonly LostNode[]>
  /** Returns a function that names the node of a destination; null for a destination that no node schedules now. */
  owners(): Promise<(destination: DestinationName) => string | null>
  /** Sets whether a node gives its shards away and refuses mail. False when it is gone. */
  setDraining(node: OwnerId, draining: boolean): Promise<boolean>
  /** Takes over a node that has not beaten since `seenBeat`. Null, without a change, when it has beaten or is gone. */
  takeOver(node: OwnerId, seenBeat: number): Promise<Takeover | null>
  /**
   * Forgets a node that is gone: that it was lost, and its `[events]` tables, with the subscriptions that no other node has. Returns whether
   * anything was forgotten; false, without a change, while the list has a node of that name, as after a restart.
   */
  forget(name: string): Promise<boolean>
  audit(record: AuditRecord, node: string): Promise<void>
  /** Asks all nodes, and waits up to `patience` for their answers. */
  ask(what: string, patience: Duration): Promise<Answers>
  /** State of the tables. */
  schema(): Promise<Schema>
  /** Ends an upgrade, unless a node needs the tables as they are. */
  finishUpgrade(): Promise<Finish>
  close(): Promise<void>
}
