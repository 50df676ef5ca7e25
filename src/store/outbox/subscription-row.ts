/** Rows of events, of subscriptions and of parked events, as the engines read them from SQL. */
import { selectedTypes } from '../../events/event-filter.ts'
import { storedType, type EventSeq, type KeptEvent, type LostEvents } from '../../events/kept-event.ts'
import type { EventType } from '../../events/event-types.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { StoredLoss } from './event-pages.ts'
import type { ParkedEvent, Progress, Subscription, SubscriptionOwner, SubscriptionSettings, TargetAnswer } from './subscription.ts'

export interface SubscriptionRow extends Omit<Progress, 'lastAnswer'> {
  readonly name: string
  readonly owner: SubscriptionOwner
  /** JSON, here and below. */
  readonly settings: string
  readonly createdAt: number
  readonly createdBy: string
  readonly lastAnswer: string | null
  readonly losses: string
}

export const settingsIn = ({ settings }: Pick<SubscriptionRow, 'settings'>): SubscriptionSettings =>
  JSON.parse(settings) as SubscriptionSettings

export const lossesIn = ({ losses }: Pick<SubscriptionRow, 'losses'>): readonly StoredLoss[] => JSON.parse(losses) as readonly StoredLoss[]

const answerIn = (json: string | null): TargetAnswer | null => (json === null ? null : (JSON.parse(json) as TargetAnswer))

export const answerText = (answer: TargetAnswer | null): string | null => (answer === null ? null : JSON.stringify(answer))

export function toSubscription(row: SubscriptionRow): Subscription {
  const { name, owner, createdAt, createdBy, cursor, state, why, tries, refusals, dueAt } = row
  const progress = { cursor, state, why, tries, refusals, dueAt, lastAnswer: answerIn(row.lastAnswer) }
  return { name, owner, settings: settingsIn(row), createdAt, createdBy, progress }
}

/** The types that subscriptions want. */
export const typesWanted = (rows: readonly Pick<SubscriptionRow, 'settings'>[]): ReadonlySet<EventType> =>
  new Set(rows.flatMap((row) => selectedTypes(settingsIn(row).types)))

export const toLost = ({ from, to, count }: StoredLoss): LostEvents => ({ from, to, count })

export interface EventRow {
  readonly seq: EventSeq
  readonly at: QueueTime
  readonly type: string
  /** JSON. */
  readonly data: string
}

export const toEvent = ({ seq, at, type, data }: EventRow): KeptEvent => ({ seq, at, type: storedType(type), data })

export interface ParkedRow extends EventRow, Omit<ParkedEvent, 'event'> {}

export const toParked = ({ tries, parkedAt, dueAt, answer, ...event }: ParkedRow): ParkedEvent => ({
  event: toEvent(event),
  tries,
  parkedAt,
  dueAt,
  answer,
})
