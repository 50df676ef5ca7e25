/** Asks the running nodes of a shared queue, this one included, over one session, which is opened again after a loss. */
import type { NodeDirectory } from '../../store/membership/node-directory.ts'
import type { NodesPort } from '../../admin/queue-nodes.ts'
import type { DestinationName, OwnerId } from '../../mail/message.ts'
import { askNodes, type Answered, type NodeAnswers, type NodeQuestion } from '../../queries/node-questions.ts'
import { SECOND, type Clock, type Duration } from '../../system/clock.ts'

interface PeersDeps {
  readonly clock: Clock
  readonly open: () => Promise<NodeDirectory>
}

/** The other nodes have this time to answer. */
const ANSWER_LIMIT: Duration = SECOND
/** Age of a question up to which the nodes that did not answer it are told. */
const UNANSWERED_AGE: Duration = 3 * SECOND
/** Owners of destinations that were read longer ago are read again. */
const OWNERS_AGE: Duration = SECOND

export class Peers {
  readonly #deps: PeersDeps
  #directory: Promise<NodeDirectory> | null = null
  #owners: { readonly at: Duration; readonly nameOf: (destination: DestinationName) => string | null } | null = null

  /** Names of the nodes that did not answer the last question, and its time. */
  #missing: { readonly at: Duration; readonly names: readonly string[] } | null = null

  constructor(deps: PeersDeps) {
    this.#deps = deps
  }

  /** Answers that arrive in time. */
  async ask<Q extends NodeQuestion>(question: Q, rest?: string): Promise<readonly NodeAnswers[Q][]> {
    return [...(await this.askEach(question, rest)).values()]
  }

  /** The same, by node. */
  async askEach<Q extends NodeQuestion>(question: Q, rest?: string): Promise<ReadonlyMap<OwnerId, NodeAnswers[Q]>> {
    const { answers } = await this.answers(question, rest)
    return new Map(answers.map(({ node, answer }) => [node.id, answer]))
  }

  /** The same, with the nodes that do not answer. */
  async answers<Q extends NodeQuestion>(question: Q, rest?: string): Promise<Answered<Q>> {
    const answered = await this.#with((directory) => askNodes(directory, question, { patience: ANSWER_LIMIT, rest }))
    this.#missing = { at: this.#deps.clock.monotonic(), names: answered.silent }
    return answered
  }

  /** Names of the nodes that did not answer a question of the last seconds. */
  get unanswered(): readonly string[] {
    const missing = this.#missing
    return missing === null || this.#deps.clock.monotonic() - missing.at > UNANSWERED_AGE ? [] : missing.names
  }

  /** Names the node that schedules a destination; null while no node does. */
  async owners(): Promise<(destination: DestinationName) => string | null> {
    const at = this.#deps.clock.monotonic()
    if (this.#owners === null || at - this.#owners.at >= OWNERS_AGE) {
      const nameOf = await this.#with((directory) => directory.owners())
      this.#owners = { at, nameOf }
    }
    return this.#owners.nameOf
  }

  /** The nodes, for changes of operators. */
  get nodes(): NodesPort {
    return {
      list: () => this.#with((directory) => directory.list()),
      lost: () => this.#with((directory) => directory.lost()),
      setDraining: (...change) => this.#with((directory) => directory.setDraining(...change)),
      takeOver: (...seen) => this.#with((directory) => directory.takeOver(...seen)),
      forget: (name) => this.#with((directory) => directory.forget(name)),
      audit: (...entry) => this.#with((directory) => directory.audit(...entry)),
    }
  }

  async close(): Promise<void> {
    const directory = await this.#directory?.catch(() => null)
    await directory?.close()
  }

  async #with<T>(work: (directory: NodeDirectory) => Promise<T>): Promise<T> {
    const opened = (this.#directory ??= this.#deps.open())
    try {
      return await work(await opened)
    } catch (error) {
      if (this.#directory === opened) this.#directory = null
      await opened.then((directory) => directory.close()).catch(() => undefined)
      throw error
    }
  }
}
