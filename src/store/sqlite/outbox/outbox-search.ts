/** Reads events and subscriptions, on a connection of readers. */
import type { Database } from 'better-sqlite3'
import { selectedPage } from '../../outbox/event-pages.ts'
import type { EventPage, OutboxReader } from '../../outbox-store.ts'
import { EVENTS_SEARCHED, type ParkedEvent, type SubscriptionView } from '../../outbox/subscription.ts'
import { lossesIn, toLost, toSubscription, type SubscriptionRow } from '../../outbox/subscription-row.ts'
import { KeptEvents, type ParkedRow } from './kept-events.ts'
import * as sql from './outbox-queries.ts'

export class OutboxSearch {
  readonly #db: Database
  readonly #kept: KeptEvents
  readonly #subscriptions
  readonly #countParked
  readonly #parked

  constructor(db: Database) {
    this.#db = db
    this.#kept = new KeptEvents(db)
    this.#subscriptions = db.prepare<[], SubscriptionRow>(sql.subscriptions)
    this.#countParked = db.prepare<[string], number>(sql.countParked).pluck()
    this.#parked = db.prepare<object, ParkedRow>(sql.parkedAfter)
  }

  allSubscriptions(): SubscriptionView[] {
    return this.#db.transaction(() => {
      const { first, last } = this.#kept
      return this.#subscriptions.all().map((row) => ({
        ...toSubscription(row),
        behind: Math.max(0, last - Math.max(row.cursor, first - 1)),
        oldestAt: this.#kept.next(row.cursor)?.at ?? null,
        parked: this.#countParked.get(row.name) ?? 0,
        lost: lossesIn(row).map(toLost),
      }))
    })()
  }

  parkedEvents(name: string, page: Parameters<OutboxReader['parkedEvents']>[1]): ParkedEvent[] {
    return this.#db.transaction(() => this.#kept.parked(this.#parked.all({ name, ...page })))()
  }

  eventsAfter({ after, limit, filter }: Parameters<OutboxReader['eventsAfter']>[0]): EventPage {
    return this.#db.transaction(() => {
      const { epoch, first, last } = this.#kept
      const { events, through } = selectedPage(this.#kept.after(after, EVENTS_SEARCHED), { filter, limit, after })
      return { epoch, first, last, events, through }
    })()
  }
}
