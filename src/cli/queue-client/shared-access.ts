/**
 * Access to a queue in PostgreSQL from any machine with its credentials. Running nodes are asked through the database; an operation
 * runs in this process, which is a node without shards until it has ended.
 */
import type { Config } from '../../config/options.ts'
import { databaseName } from '../../config/values/database-url.ts'
import { askNodes, type Answered, type NodeQuestion } from '../../queries/node-questions.ts'
import type { MoveProgress, MoveRequest, MoveSummary } from '../../queue/queue-move.ts'
import type { SchedulerControl } from '../../queue/operation-rounds.ts'
import { mergedStatus, type LiveStatus } from '../../queue/queue-status.ts'
import type { LiveDestination } from '../../queue/scheduler/destination.ts'
import type { LiveShare } from '../../queue/scheduler/turns/share-activity.ts'
import { databaseOf } from '../../store/membership/queue-database.ts'
import type { NodeDirectory } from '../../store/membership/node-directory.ts'
import { openNodeDirectory, openPostgresReader } from '../../store/postgres/open-reader.ts'
import { visitQueue, type VisitingNode } from '../../store/postgres/visiting-node.ts'
import { SECOND, type Duration, type MachineClock } from '../../system/clock.ts'
import { clockOf } from '../../system/queue-clock.ts'
import type { QueueClient } from '../shell/queue-client.ts'
import type { OpenedReader } from '../shell/shell.ts'
import type { PlaceAccess } from './file-access.ts'
import { clientOfQueue } from './opened-queue-client.ts'

export interface AccessDeps {
  readonly clock: MachineClock
  /** Reports that a node did not answer. */
  readonly warn: (text: string) => unknown
}

/** Time for which a command waits for the destinations and shares of nodes, and for their status, which counts the queue. */
const PATIENCE: Duration = SECOND
const STATUS_PATIENCE: Duration = 5 * SECOND

export class SharedAccess implements PlaceAccess {
  readonly #config: Config
  readonly #deps: AccessDeps

  constructor(config: Config, deps: AccessDeps) {
    this.#config = config
    this.#deps = deps
  }

  async openReader(): Promise<OpenedReader> {
    const reader = await openPostgresReader(databaseOf(this.#config))
    return { reader, clock: clockOf(await reader.clockRecord(), this.#deps.clock) }
  }

  async openNodes(): Promise<NodeDirectory> {
    return openNodeDirectory(databaseOf(this.#config), clockOf(null, this.#deps.clock))
  }

  /** Those of all nodes that answer. */
  async destinations(): Promise<readonly LiveDestination[] | null> {
    const answers = await this.#ask('destinations', PATIENCE)
    return answers === null ? null : answers.flatMap(({ answer }) => answer)
  }

  /** That of all nodes that answer; null when none does. */
  async status(): Promise<LiveStatus | null> {
    const answers = (await this.#ask('status', STATUS_PATIENCE)) ?? []
    return mergedStatus(answers.map(({ answer }) => answer))
  }

  async shares(): Promise<readonly LiveShare[]> {
    const answers = (await this.#ask('shares', PATIENCE)) ?? []
    return answers.flatMap(({ answer }) => answer)
  }

  async openClient(): Promise<QueueClient> {
    const config = this.#config
    const { node_name: name, node_lease: lease } = config
    const visit = await visitQueue({ database: databaseOf(config), name, lease, machine: this.#deps.clock })
    const { store, reader, clock, recall, close } = visit
    const transfers = async () => ((await this.#ask('transfers', PATIENCE)) ?? []).flatMap(({ answer }) => answer)
    const move = (request: MoveRequest, progress: (soFar: MoveProgress) => void) => this.#move(visit, request, progress)
    return clientOfQueue({ config, store, reader, clock, others: { recall, transfers }, move, close })
  }

  async #move(visit: VisitingNode, request: MoveRequest, progress: (soFar: MoveProgress) => void): Promise<MoveSummary> {
    const config = this.#config
    const [{ moveAlone }, { noneDelivers, othersIn }] = await Promise.all([
      import('./move-alone.ts'),
      import('../../daemon/node/sole-node.ts'),
    ])
    const { id, store, reader, clock, recall } = visit
    const takeBack: SchedulerControl['takeBack'] = (messages, { rests }) => recall({ messages, destination: null, rests })
    const name = databaseName(config.queue_database)
    const isDelivered = () => othersIn(visit.view(), id).length > 0
    const close = () => noneDelivers({ me: id, view: visit.view, clock })
    const source = { store, moves: store, reader, clock, name, isDelivered, takeBack, close }
    return moveAlone(config, source, { request, progress, machine: this.#deps.clock })
  }

  /** Answers of the nodes; null when there is no node. Reports each node that does not answer. */
  async #ask<Q extends NodeQuestion>(question: Q, patience: Duration): Promise<Answered<Q>['answers'] | null> {
    const nodes = await this.openNodes()
    try {
      const { answers, silent } = await askNodes(nodes, question, { patience })
      for (const name of silent) this.#deps.warn(`${name} did not answer`)
      return answers.length + silent.length === 0 ? null : answers
    } finally {
      await nodes.close()
    }
  }
}
