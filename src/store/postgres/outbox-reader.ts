/** Reads events and subscriptions. */
import type { EventSeq } from '../../events/kept-event.ts'
import type { OwnerId } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import { subscriptionShard } from '../membership/shards.ts'
import { pulledLoss, selectedPage } from '../outbox/event-pages.ts'
import type { OutboxReader } from '../outbox-store.ts'
import {
  lossesIn,
  settingsIn,
  toEvent,
  toLost,
  toParked,
  toSubscription,
  type EventRow,
  type ParkedRow,
  type SubscriptionRow,
} from '../outbox/subscription-row.ts'
import { EVENTS_SEARCHED, type ParkedEvent, type PulledEvents, type Subscription } from '../outbox/subscription.ts'
import { int2s, texts } from './session/arrays.ts'
import type { Statements } from './session/database-connection.ts'
import * as sql from './writing/outbox-queries.ts'

interface Bounds {
  readonly epoch: number
  readonly first: EventSeq
  readonly last: EventSeq
}

const boundsOf = async (reading: Statements): Promise<Bounds> =>
  (await reading.query<Bounds>(sql.boundsOfEvents))[0] ?? { epoch: 0, first: 1, last: 0 }

export const outboxReader = (reading: Statements): OutboxReader => ({
  allSubscriptions: async () => {
    const [{ first, last }, rows] = await Promise.all([
      boundsOf(reading),
      reading.query<SubscriptionRow & { readonly parked: number; readonly oldestAt: QueueTime | null }>(sql.subscriptionViews),
    ])
    return rows.map((row) => ({
      ...toSubscription(row),
      behind: Math.max(0, last - Math.max(row.cursor, first - 1)),
      oldestAt: row.oldestAt,
      parked: row.parked,
      lost: lossesIn(row).map(toLost),
    }))
  },
  parkedEvents: async (name, { after, limit }) => (await reading.query<ParkedRow>(sql.parkedAfter, [name, after, limit])).map(toParked),
  eventsAfter: async ({ after, limit, filter }) => {
    // The bounds are read first: events may be deleted between the two statements, but then the page shows a gap that it does not name.
    const rows = (await reading.query<EventRow>(sql.eventsAfter, [after, EVENTS_SEARCHED])).map(toEvent)
    const { epoch, first, last } = await boundsOf(reading)
    return { epoch, first: Math.min(first, rows[0]?.seq ?? first), last, ...pageOf(selectedPage(rows, { filter, limit, after })) }
  },
})

const pageOf = ({ events, through }: ReturnType<typeof selectedPage>) => ({ events, through })

/** The subscriptions of own shards. */
export async function ownSubscriptions(reading: Statements, node: OwnerId): Promise<readonly Subscription[]> {
  const all = (await reading.query<SubscriptionRow>(sql.subscriptions)).map(toSubscription)
  if (all.length === 0) return []
  const names = all.map(({ name }) => name)
  const own = await reading.query<{ name: string }>(sql.ownShardsAmong, [node, texts(names), int2s(names.map(subscriptionShard))])
  const mine = new Set(own.map(({ name }) => name))
  return all.filter(({ name }) => mine.has(name))
}

export async function pullEvents(reading: Statements, name: string, limit: number): Promise<PulledEvents | null> {
  const [row] = await reading.query<SubscriptionRow>(sql.subscriptionByName, [name])
  if (row === undefined) return null
  const { cursor } = row
  const losses = lossesIn(row)
  const [loss] = losses
  if (loss?.pulled === false) {
    const marked = await reading.query(sql.markLossPulled, [name, row.losses, JSON.stringify(pulledLoss(losses))])
    // The losses have grown meanwhile.
    if (marked.length === 0) return pullEvents(reading, name, limit)
  }
  const rows = (await reading.query<EventRow>(sql.eventsAfter, [cursor, EVENTS_SEARCHED])).map(toEvent)
  // Events that are deleted now are counted as lost, and the position of the subscription then is another one.
  const { epoch } = await boundsOf(reading)
  const lost = loss === undefined ? null : toLost(loss)
  return { epoch, cursor, lost, ...selectedPage(rows, { filter: settingsIn(row), limit, after: cursor }) }
}

export const parkedDue = async (reading: Statements, name: string, limit: number): Promise<readonly ParkedEvent[]> =>
  (await reading.query<ParkedRow>(sql.parkedDue, [name, limit])).map(toParked)
