/**
 * Mail that a node has queued lately. After a failover to a standby that had not received all commits, the node finds the lost
 * acknowledged messages by this list. The list belongs to the process, since a node that was taken over meanwhile joins again as
 * another one.
 */
import { queueIdOf, type MessageId } from '../../../mail/message.ts'
import { minutes, type Clock, type Duration } from '../../../system/clock.ts'
import { int8s } from '../session/arrays.ts'
import type { Statements } from '../session/database-connection.ts'
import { knownMessages } from './doubt.ts'
import type { WriteCall } from './call-batching.ts'

/** Maximum number of messages, and their maximum age. An asynchronous standby that lags by more is seen in the metrics. */
const MOST = 1_000
const AGE: Duration = minutes(10)

interface Queued {
  readonly queueId: string
  /** Time of the commit, on the monotonic clock. */
  readonly at: Duration
}

export class RecentMail {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #messages = new Map<MessageId, Queued>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Notes the effect of a committed call. A message that this node has seen leave the queue is lost by no failover. */
  committed(call: WriteCall, answer: unknown): void {
    if (call.method === 'enqueue') this.#add(call.args[0].message)
    if (call.method === 'settle' && (answer as { readonly removed: boolean }).removed) this.#messages.delete(call.args[0].message)
  }

  #add(message: { readonly id: MessageId; readonly createdAt: number }): void {
    this.#messages.set(message.id, { queueId: queueIdOf(message), at: this.#clock.monotonic() })
    const [oldest] = this.#messages.keys()
    if (this.#messages.size > MOST && oldest !== undefined) this.#messages.delete(oldest)
  }

  /** Returns the messages that the database does not have. */
  async missing(statements: Statements): Promise<ReadonlyMap<MessageId, string>> {
    const since = this.#clock.monotonic() - AGE
    for (const [id, { at }] of this.#messages) if (at < since) this.#messages.delete(id)
    const ids = [...this.#messages.keys()]
    if (ids.length === 0) return new Map()
    const known = new Set((await statements.query<{ id: MessageId }>(knownMessages, [int8s(ids)])).map(({ id }) => id))
    return new Map([...this.#messages].filter(([id]) => !known.has(id)).map(([id, { queueId }]) => [id, queueId]))
  }

  /** Forgets messages that were reported as missing. */
  forget(messages: Iterable<MessageId>): void {
    for (const id of messages) this.#messages.delete(id)
  }
}
