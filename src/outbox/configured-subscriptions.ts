/** Subscriptions that the configuration asks for. */
import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/options.ts'
import type { EventsTable } from '../config/values/tables/event-tables.ts'
import type { Subscription, SubscriptionSettings } from '../store/outbox/subscription.ts'
import type { QueueTime } from '../system/clock.ts'

/** Settings as the queue keeps them: secrets stay in the configuration. */
export const settingsOf = ({ where: _where, secrets: _secrets, ...table }: EventsTable): SubscriptionSettings => ({ ...table, secrets: [] })

/** The secrets that sign for a subscription at a time of the queue's clock, newest first. */
export function signingSecrets({ name, owner, settings }: Subscription, config: Pick<Config, 'events'>, now: QueueTime): readonly string[] {
  if (owner === 'configuration') return config.events.get(name)?.secrets ?? []
  return settings.secrets.filter(({ until }) => until === null || until > now).map(({ secret }) => secret)
}

/**
 * Reason why this node must not send a subscription that another node may have configured: with this configuration, the requests would lack
 * the signature, or have another form. Null when the node may send it.
 */
export function obstacleTo({ name, owner, settings }: Subscription, config: Pick<Config, 'events'>): string | null {
  if (owner === 'command') return null
  const table = config.events.get(name)
  if (table === undefined) return `its events wait, because this node has no [events.${name}] table: give all nodes the same tables`
  if (isDeepStrictEqual(settingsOf(table), settings)) return null
  return `its events wait, because the [events.${name}] table of another node differs: give all nodes the same table, and reload`
}

/** Keeps all events for programs that read them through the API. */
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
