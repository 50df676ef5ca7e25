/**
 * Recalls among the nodes of a shared queue: a node that has changed messages, or has suspended a destination, has the other nodes give claimed
 * mail back, and waits for their answers. A node that is silent is taken over, which ends its claims.
 */
import type { OwnerId } from '../../mail/message.ts'
import { SECOND, sleep, type Clock, type Duration } from '../../system/clock.ts'
import { formatDuration } from '../../system/duration.ts'
import type { TaskSet } from '../../system/task-set.ts'
import { Fenced, StoreUnavailable } from '../queue-store.ts'
import { NOTHING_TAKEN, takenTogether, type Recall, type TakenBack } from './taken-back.ts'
import type { AskedRecall, NodeTable } from './node-table.ts'

/** A running node has not given claimed mail back in time (EX_TEMPFAIL). The change that preceded the recall has taken effect. */
export class NotTakenBack extends Error {
  override readonly name = 'NotTakenBack'
  readonly exitCode = 75
}

interface RecallsDeps {
  readonly nodes: NodeTable
  readonly clock: Clock
  /** Parameter `node_lease`. */
  readonly lease: Duration
  readonly tasks: TaskSet
  readonly nameOf: (node: OwnerId) => string
}

/** Time for answers after the time in which a silent node is taken over. */
const GRACE: Duration = 2 * SECOND
/** Pause between two looks for answers, and between two tries to reach the database. */
const LOOK: Duration = 20
const PAUSE: Duration = SECOND / 10

export class Recalls {
  readonly #deps: RecallsDeps
  /** Number of the last own recall. */
  #last = 0
  /** Recalls of other nodes that are being answered. */
  readonly #answering = new Set<string>()
  /** Answers that may not have arrived. */
  readonly #taken = new Map<string, Promise<TakenBack>>()

  constructor(deps: RecallsDeps) {
    this.#deps = deps
  }

  /** See Membership.recall. */
  async ask(recall: Recall): Promise<TakenBack> {
    const { nodes, clock, lease, tasks } = this.#deps
    const number = ++this.#last
    const deadline = clock.monotonic() + lease + GRACE
    const asked = await this.#repeated(() => nodes.recall(number, recall), deadline)
    if (asked.length === 0) return NOTHING_TAKEN
    try {
      for (;;) {
        const answers = await this.#repeated(() => nodes.recallAnswers(number, asked), deadline)
        const given = answers.flatMap(({ answer }) => answer ?? [])
        if (given.length === answers.length) return takenTogether(given)
        if (clock.monotonic() >= deadline) throw this.#refusal(answers.filter(({ answer }) => answer === null))
        await sleep(clock, LOOK)
      }
    } finally {
      tasks.add(nodes.endRecall(number))
    }
  }

  /** Repeats a call while the database cannot be reached, until the deadline. */
  async #repeated<T>(call: () => Promise<T>, deadline: Duration): Promise<T> {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || error instanceof Fenced || this.#deps.clock.monotonic() >= deadline) throw error
        await sleep(this.#deps.clock, PAUSE)
      }
    }
  }

  #refusal(silent: readonly { readonly node: OwnerId }[]): NotTakenBack {
    const { lease, nameOf } = this.#deps
    const names = silent.map(({ node }) => nameOf(node)).join(', ')
    return new NotTakenBack(
      `the messages were changed, but ${names} did not confirm within ${formatDuration(lease + GRACE)} that claimed mail was given back, and may still attempt it: repeat the operation`,
    )
  }

  /** Answers the recalls of other nodes. A call with a recall that is being answered has no effect. */
  answer(asked: readonly AskedRecall[], take: (recall: Recall) => Promise<TakenBack>): void {
    const keys = new Set(asked.map(keyOf))
    for (const key of this.#taken.keys()) if (!keys.has(key) && !this.#answering.has(key)) this.#taken.delete(key)
    for (const one of asked) {
      const key = keyOf(one)
      if (this.#answering.has(key)) continue
      this.#answering.add(key)
      const taken = this.#taken.get(key) ?? take(one.recall)
      this.#taken.set(key, taken)
      this.#deps.tasks.add(this.#send(one, taken).finally(() => this.#answering.delete(key)))
    }
  }

  /** A lost answer is sent again, at the next request for arrivals. */
  async #send(one: AskedRecall, taken: Promise<TakenBack>): Promise<void> {
    try {
      await this.#deps.nodes.answerRecall(one, await taken)
    } catch (error) {
      if (error instanceof Fenced || !(error instanceof StoreUnavailable)) throw error
      await taken.catch(() => this.#taken.delete(keyOf(one)))
    }
  }
}

const keyOf = ({ asker, number }: AskedRecall): string => `${asker} ${number}`
