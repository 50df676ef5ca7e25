/** Subscriptions that the configuration asks for. */
import type { EventsTable } from '../config/values/event-tables.ts'
import type { SubscriptionSettings } from '../store/outbox/subscription.ts'

/** Settings as the queue keeps them: secrets stay in the configuration. */
export const settingsOf = ({ where: _where, secrets: _secrets, ...table }: EventsTable): SubscriptionSettings => ({ ...table, secrets: [] })

/** A table that keeps all events for those who read them. */
export const ALL_EVENTS: EventsTable = {
  to: '',
  types: [],
  destinations: [],
  senders: [],
  format: 'deferd',
  batch: 1,
  allowPrivate: false,
  size: 0,
  keep: 0,
  secrets: [],
  where: '',
}
