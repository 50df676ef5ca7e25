/**
 * Writes events, in the transaction of what happened. Only types that a subscription wants are written. Calls only note their events; the
 * transaction writes them before its commit, so that a batch of calls costs one statement.
 */
import type { Database } from 'better-sqlite3'
import { EVENT_TYPES, type EventType } from '../../../events/event-types.ts'
import type { EventData } from '../../../events/published-kinds.ts'
import { keptData } from '../../../events/event-values.ts'
import type { EventSeq, NewEvent } from '../../../events/kept-event.ts'
import { queueIdOf, type MessageId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { typesWanted, type SubscriptionRow } from '../../outbox/subscription-row.ts'
import { EVENTS_IN_ROW, eventRow } from './event-lines.ts'
import * as sql from './outbox-queries.ts'

/** The message of an event that the store itself writes. */
interface AboutMessage {
  readonly id: MessageId
  readonly created_at: QueueTime
  readonly sender: string
}

export class EventRows {
  /** Events of the running transaction that are not written yet. */
  #noted: NewEvent[] = []
  readonly #insert
  readonly #newest
  /** Number of the newest event; null when it has to be read. */
  #last: EventSeq | null = null
  readonly #subscriptions
  /** Null when they have to be read. */
  #wanted: ReadonlySet<EventType> | null = null
  /** The latest time of an event, of a claim, or of the queue's clock when the queue was opened. */
  #latest: QueueTime

  constructor(db: Database) {
    this.#insert = db.prepare<[EventSeq, QueueTime, string]>(sql.insertEvents)
    this.#newest = db.prepare<[], EventSeq | null>(sql.lastEvent).pluck()
    this.#subscriptions = db.prepare<[], SubscriptionRow>(sql.subscriptions)
    this.#latest = db.prepare<[], QueueTime>(sql.timeOfClock).pluck().get() ?? 0
  }

  get wanted(): ReadonlySet<EventType> {
    this.#wanted ??= typesWanted(this.#subscriptions.all())
    return this.#wanted
  }

  /** Called when subscriptions were changed. */
  forgetWanted(): void {
    this.#wanted = null
  }

  /** Called when a call or a transaction has failed, whose changes are rolled back. */
  rolledBack(): void {
    this.#noted = []
    this.#wanted = null
    this.#last = null
  }

  /** Notes that the queue was used at a time, for events without a time of their own. */
  passed(at: QueueTime): void {
    if (at > this.#latest) this.#latest = at
  }

  keep(events: readonly NewEvent[] | undefined): void {
    if (events === undefined) return
    for (const event of events) {
      this.passed(event.at)
      if (this.wanted.has(event.type)) this.#noted.push(event)
    }
  }

  /** Writes the noted events. Runs in the transaction of the calls, and before a call that reads events. */
  write(): void {
    if (this.#noted.length === 0) return
    let last = this.#last ?? this.#newest.get() ?? 0
    for (let from = 0; from < this.#noted.length; from += EVENTS_IN_ROW) {
      const events = this.#noted.slice(from, from + EVENTS_IN_ROW)
      last += events.length
      const { at, lines } = eventRow(last, events)
      this.#insert.run(last, at, lines)
    }
    this.#noted = []
    this.#last = last
  }

  removed(message: AboutMessage, leftAt: QueueTime): void {
    if (this.wanted.has('message.removed')) this.#about('message.removed', message, leftAt, {})
  }

  quarantined(message: AboutMessage, text: string): void {
    if (this.wanted.has('message.quarantined')) this.#about('message.quarantined', message, message.created_at, { text })
  }

  #about<T extends 'message.removed' | 'message.quarantined'>(
    type: T,
    { id, created_at: createdAt, sender }: AboutMessage,
    earliest: QueueTime,
    members: Omit<EventData[T], 'queue_id' | 'sender'>,
  ): void {
    const data = { queue_id: queueIdOf({ id, createdAt }), sender, ...members } as EventData[T]
    this.#noted.push({ type, at: Math.max(earliest, this.#latest), data: keptData(type, data) })
  }

  wantedTypes(): EventType[] {
    return EVENT_TYPES.filter((type) => this.wanted.has(type))
  }
}
