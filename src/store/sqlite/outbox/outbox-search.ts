/** Reads events and subscriptions, on a connection of readers. */
import type { Database } from 'better-sqlite3'
import type { EventSeq } from '../../../events/kept-event.ts'
import type { Instant } from '../../../system/clock.ts'
import { selectedPage } from '../../outbox/event-pages.ts'
import type { EventPage, OutboxReader } from '../../outbox/outbox-store.ts'
import { EVENTS_SEARCHED, type ParkedEvent, type SubscriptionView } from '../../outbox/subscription.ts'
import {
  lossesIn,
  toEvent,
  toLost,
  toParked,
  toSubscription,
  type EventRow,
  type ParkedRow,
  type SubscriptionRow,
} from '../../outbox/subscription-row.ts'
import * as sql from './outbox-queries.ts'

export class OutboxSearch {
  readonly #db: Database
  readonly #after
  readonly #first
  readonly #last
  readonly #timeAfter
  readonly #subscriptions
  readonly #countParked
  readonly #parked

  constructor(db: Database) {
    this.#db = db
    this.#after = db.prepare<{ after: EventSeq; limit: number }, EventRow>(sql.eventsAfter)
    this.#first = db.prepare<[], EventSeq | null>(sql.firstEvent).pluck()
    this.#last = db.prepare<[], EventSeq | null>(sql.lastEvent).pluck()
    this.#timeAfter = db.prepare<[EventSeq], Instant>(sql.timeAfter).pluck()
    this.#subscriptions = db.prepare<[], SubscriptionRow>(sql.subscriptions)
    this.#countParked = db.prepare<[string], number>(sql.countParked).pluck()
    this.#parked = db.prepare<object, ParkedRow>(sql.parkedAfter)
  }

  allSubscriptions(): SubscriptionView[] {
    return this.#db.transaction(() => {
      const [first, last] = this.#bounds()
      return this.#subscriptions.all().map((row) => ({
        ...toSubscription(row),
        behind: Math.max(0, last - Math.max(row.cursor, first - 1)),
        oldestAt: this.#timeAfter.get(row.cursor) ?? null,
        parked: this.#countParked.get(row.name) ?? 0,
        lost: lossesIn(row).map(toLost),
      }))
    })()
  }

  parkedEvents(name: string, page: Parameters<OutboxReader['parkedEvents']>[1]): ParkedEvent[] {
    return this.#parked.all({ name, ...page }).map(toParked)
  }

  eventsAfter({ after, limit, filter }: Parameters<OutboxReader['eventsAfter']>[0]): EventPage {
    return this.#db.transaction(() => {
      const [first, last] = this.#bounds()
      const found = this.#after.all({ after, limit: EVENTS_SEARCHED }).map(toEvent)
      const { events, through } = selectedPage(found, { filter, limit, after })
      return { epoch: this.#db.prepare<[], number>(sql.epoch).pluck().get() ?? 0, first, last, events, through }
    })()
  }

  /** Numbers of the oldest and of the newest event. */
  #bounds(): readonly [first: EventSeq, last: EventSeq] {
    const last = this.#last.get() ?? 0
    return [this.#first.get() ?? last + 1, last]
  }
}
