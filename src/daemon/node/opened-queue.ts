/** A queue that this process has opened: its store, its place among the nodes, and how it is moved. */
import type { ProviderDirectory } from '../../config/provider-directory.ts'
import type { OwnerId } from '../../mail/message.ts'
import type { DatabaseState } from '../../store/membership/database-state.ts'
import type { Membership } from '../../store/membership/membership.ts'
import type { NodeParameters, NodesView } from '../../store/membership/node-table.ts'
import type { QuestionTable } from '../../store/membership/questions.ts'
import type { MoveStore } from '../../store/move-store.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import type { StoreSides } from '../../store/store-health.ts'
import type { Peers } from './peers.ts'

/** This process as one of the nodes that share the queue. */
export interface SharingNode {
  /** The number of this node. */
  readonly me: OwnerId
  /** The nodes at the last beat; null before the first. */
  readonly view: () => NodesView | null
  /** The nodes without a new beat for a lease. */
  readonly silent: () => readonly OwnerId[]
  /** True after `deferd node drain`: the node gives its shards away and refuses mail. */
  readonly isDraining: () => boolean
  readonly questions: QuestionTable
  /** State of the database as last read; null before the first read. */
  readonly database: () => DatabaseState | null
  /** True when commits wait for a standby, and none is connected. */
  readonly lacksStandby: () => boolean
  readonly peers: Peers
  /** Begins to beat and to take shards. Resolves when the node may accept mail, or its first beat has failed. */
  start(): Promise<void>
  /** Shows the other nodes the parameters after a reload. */
  describe(parameters: NodeParameters): void
  /** Begins to give all shards away, before the node leaves. */
  drain(): void
}

/** The open queue as the source of a move. */
interface MovableSource {
  /** The queue, as operators name it: its directory, or its URL without the password. */
  readonly name: string
  readonly moves: MoveStore
  /**
   * Ends the scheduling of all mail. Resolves when no mail waits in memory. Rejects with MoveRefused while other nodes accept mail for
   * the queue, or soon after `stopping` aborts.
   */
  giveAway(stopping: AbortSignal): Promise<void>
  /** Schedules the mail again. Has no effect unless the queue was given away. */
  takeBack(): Promise<void>
}

export interface OpenedQueue {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly sides: StoreSides
  /** Providers of destinations of a shared queue; null for a queue with one owner, whose scheduler reads them. */
  readonly providers: ProviderDirectory | null
  readonly membership: Membership
  /** Null for a queue with one owner. */
  readonly node: SharingNode | null
  readonly movable: MovableSource
  /** Notes that this process answers commands from now on. */
  readonly started: () => void
  /** Closes reader and store, and gives up the ownership. */
  readonly close: () => Promise<void>
}
