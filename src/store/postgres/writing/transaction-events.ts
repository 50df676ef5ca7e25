/**
 * Events of a transaction. They are written by its last statement before the commit, when all rows that decide about the order of two
 * transactions are locked; so the ids of events have that order.
 */
import { EVENT_TYPES, type EventType } from '../../../events/event-types.ts'
import type { EventData } from '../../../events/published-kinds.ts'
import { keptData } from '../../../events/event-values.ts'
import type { NewEvent } from '../../../events/kept-event.ts'
import { queueIdOf, type Message, type OwnerId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { typesWanted, type SubscriptionRow } from '../../outbox/subscription-row.ts'
import { int8s, texts } from '../session/arrays.ts'
import type { Statements } from '../session/database-connection.ts'
import { insertEvents, markBatch, subscriptions } from './outbox-queries.ts'

/** The types that subscriptions want, as this node has read them last. */
export class WantedTypes {
  #types: ReadonlySet<EventType> = new Set()

  has(type: EventType): boolean {
    return this.#types.has(type)
  }

  /** Adds types at once, for a subscription that this node has added. */
  add(types: Iterable<EventType>): void {
    this.#types = new Set([...this.#types, ...types])
  }

  async read(statements: Statements): Promise<readonly EventType[]> {
    this.#types = typesWanted(await statements.query<SubscriptionRow>(subscriptions))
    return EVENT_TYPES.filter((type) => this.#types.has(type))
  }
}

type AboutMessage = 'message.removed' | 'message.quarantined'
type Noted = Omit<NewEvent, 'at'> & { readonly at: QueueTime | null }

/** An event about a message; without a time, it has that of the database. */
function messageEvent<T extends AboutMessage>(
  type: T,
  message: Pick<Message, 'id' | 'createdAt' | 'sender'>,
  members: Omit<EventData[T], 'queue_id' | 'sender'>,
  at: QueueTime | null,
): Noted {
  return { type, at, data: keptData(type, { queue_id: queueIdOf(message), sender: message.sender, ...members } as EventData[T]) }
}

export class TransactionEvents {
  readonly #wanted: WantedTypes
  readonly #noted: Noted[] = []
  #marked: { readonly node: OwnerId; readonly number: number } | null = null
  #isMarkRequired = false

  constructor(wanted: WantedTypes) {
    this.#wanted = wanted
  }

  note(events: readonly NewEvent[] | undefined): void {
    if (events !== undefined) for (const event of events) if (this.#wanted.has(event.type)) this.#noted.push(event)
  }

  removed(message: Pick<Message, 'id' | 'createdAt' | 'sender'>, leftAt: QueueTime): void {
    if (!this.#wanted.has('message.removed')) return
    const at = this.#noted.reduce((latest, event) => Math.max(latest, event.at ?? 0), leftAt)
    this.#noted.push(messageEvent('message.removed', message, {}, at))
  }

  quarantined(message: Pick<Message, 'id' | 'createdAt' | 'sender'>, text: string): void {
    if (this.#wanted.has('message.quarantined')) this.#noted.push(messageEvent('message.quarantined', message, { text }, null))
  }

  /** Gives the number of the transaction, which is written with its events, and by which it is known later whether they were committed. */
  markBatch(batch: { readonly node: OwnerId; readonly number: number }): void {
    this.#marked = batch
  }

  /** Has the number written without events too. */
  requireMark(): void {
    this.#isMarkRequired = true
  }

  async write(statements: Statements): Promise<void> {
    const hasEvents = this.#noted.length > 0
    const marked = hasEvents || this.#isMarkRequired ? this.#marked : null
    await Promise.all([
      marked === null ? null : statements.query(markBatch, [marked.node, marked.number]),
      hasEvents ? statements.query(insertEvents, this.#columns()) : null,
    ])
  }

  #columns(): readonly Buffer[] {
    return [int8s(this.#noted.map(({ at }) => at)), texts(this.#noted.map(({ type }) => type)), texts(this.#noted.map(({ data }) => data))]
  }
}
