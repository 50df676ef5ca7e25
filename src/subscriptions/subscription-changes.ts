/** Changes of subscriptions by commands, each with its record in the audit log. Subscriptions of the configuration are read-only. */
import type { Actor } from '../store/records/audit-log.ts'
import { z } from 'zod'
import {
  EVENT_FORMATS,
  isSigningSecret,
  isTarget,
  maskedTarget,
  MOST_PER_REQUEST,
  SUBSCRIPTION_NAME,
} from '../config/values/tables/event-tables.ts'
import { selectedTypes } from '../events/event-filter.ts'
import type { Replay } from '../store/outbox/subscription.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { StoreUnavailable, type QueueStore } from '../store/queue-store.ts'
import type { Clock, Duration, QueueTime } from '../system/clock.ts'
import { formatDuration } from '../system/duration.ts'
import { oneEvent } from './one-event.ts'

const patterns = z.array(z.string().min(1).max(1_000)).max(100)
const typePattern = z
  .string()
  .refine(
    (type) => selectedTypes([type]).length > 0,
    'expected a type of event such as recipient.bounced, or a pattern such as recipient.*',
  )

export const settingShapes = {
  name: z.string().regex(SUBSCRIPTION_NAME, 'expected letters, digits, dots, hyphens and underscores'),
  to: z.string().min(1).max(2_000),
  types: z.array(typePattern).max(100),
  destinations: patterns,
  senders: patterns,
  format: z.enum(EVENT_FORMATS),
  batch: z.number().int().min(1).max(MOST_PER_REQUEST),
  secret: z.string().refine(isSigningSecret, 'expected whsec_ and base64 of 24 to 64 bytes'),
}

export const WEB_TARGET = 'expected https://…; http://… and private addresses need allow_private (--allow-private)'

export const isWebTarget = (to: string, allowPrivate: boolean): boolean => /^https?:/.test(to) && isTarget(to, allowPrivate)

/** Patterns that are separated by commas or spaces. */
export const patternsIn = (text: string): string[] => text.split(/[\s,]+/).filter((part) => part !== '')

export const newSubscriptionShape = z
  .strictObject({ ...settingShapes, allowPrivate: z.boolean(), who: z.string() })
  .refine(({ to, allowPrivate }) => isWebTarget(to, allowPrivate), {
    path: ['to'],
    message: WEB_TARGET,
  })
export type NewSubscriptionRequest = z.infer<typeof newSubscriptionShape> & Actor

export type SubscriptionRemoval = Pick<NewSubscriptionRequest, 'name' | keyof Actor>

/** A new secret. The old secrets sign for `overlap` ms more. */
export type NewSecretRequest = Pick<NewSubscriptionRequest, 'name' | 'secret' | keyof Actor> & { readonly overlap: Duration }

const TIME = 'expected a time above 0, such as 30m, 2h or 1d'
/** Time in ms before now from which events are sent again. */
export const replayTime = z.number().int(TIME).positive(TIME)

/** Events to send again: those that wait, those of the last `ago` ms, the parked ones, or the one with an id. */
export type Replayed =
  | { readonly kind: 'waiting' | 'parked' }
  | { readonly kind: 'since'; readonly ago: Duration }
  | { readonly kind: 'one'; readonly id: string }
export type ReplayRequest = Pick<NewSubscriptionRequest, 'name' | keyof Actor> & { readonly events: Replayed }

/** Arguments of `deferd webhook replay` for a replay. */
export const replayArguments = (name: string, events: Replayed): readonly string[] => {
  switch (events.kind) {
    case 'waiting':
      return [name]
    case 'parked':
      return [name, '--parked']
    case 'since':
      return [name, '--since', formatDuration(events.ago)]
    case 'one':
      return [name, '--event', events.id]
  }
}

/** A subscription that does not exist, exists already, or belongs to the configuration (EX_DATAERR). */
export class SubscriptionRefused extends Error {
  override readonly name = 'SubscriptionRefused'
  readonly exitCode = 65
}

const NEW_SECRET = 'the secret was not shown: for another one, deferd webhook secret'

interface SubscriptionChangesDeps {
  readonly store: Pick<QueueStore, 'outbox' | 'records'>
  readonly reader: Pick<QueueReader, 'allSubscriptions' | 'eventsAfter'>
  readonly clock: Pick<Clock, 'now'>
  /** Called after a change. */
  readonly changed: () => Promise<void>
}

export class SubscriptionChanges {
  readonly #deps: SubscriptionChangesDeps

  constructor(deps: SubscriptionChangesDeps) {
    this.#deps = deps
  }

  /** Adds a subscription. Rejects with SubscriptionRefused when the name is in use. */
  async add({ name, secret: text, who, requestId, ...settings }: NewSubscriptionRequest): Promise<void> {
    const at = this.#deps.clock.now()
    const secrets = [{ secret: text, until: null }]
    const added = await this.#deps.store.outbox.subscribe({ name, settings: { ...settings, size: 0, keep: 0, secrets }, at, by: who })
    if (!added) throw new SubscriptionRefused(`there is a subscription ${name} already: choose another name`)
    await this.#record({ who, requestId }, 'webhook add', `${name} ${maskedTarget(settings.to)}`, `${NEW_SECRET} ${name}`)
  }

  /** Removes a subscription with its parked events. Rejects with SubscriptionRefused when no command has added it. */
  async remove({ name, ...actor }: SubscriptionRemoval): Promise<void> {
    if (!(await this.#deps.store.outbox.unsubscribe(name))) throw unknown(name)
    await this.#record(actor, 'webhook remove', name)
  }

  /** Makes a new secret the first one. Rejects with SubscriptionRefused when no command has added the subscription. */
  async changeSecret({ name, secret: text, overlap, ...actor }: NewSecretRequest): Promise<void> {
    const { store, reader, clock } = this.#deps
    const now = clock.now()
    const until = now + overlap
    const known = (await reader.allSubscriptions()).find((one) => one.name === name)?.settings.secrets ?? []
    const old = known.map((one) => ({ ...one, until: Math.min(one.until ?? until, until) })).filter((one) => one.until > now)
    if (!(await store.outbox.changeSecrets(name, [{ secret: text, until: null }, ...old]))) throw unknown(name)
    await this.#record(actor, 'webhook secret', name, `${NEW_SECRET} ${name}`)
  }

  /**
   * Queues events to be sent, and enables the subscription. Returns the number of events; rejects with SubscriptionRefused for an unknown
   * name, and with EventRefused for one event that it has not had.
   */
  async replay({ name, events, ...actor }: ReplayRequest): Promise<number> {
    const { store, clock } = this.#deps
    const replay = events.kind === 'one' ? await this.#one(name, events.id) : replayOf(events, clock.now())
    const count = replay === null ? null : await store.outbox.replayEvents(name, replay)
    if (count === null) throw new SubscriptionRefused(`there is no subscription ${name}: deferd webhook list shows all names`)
    await this.#record(actor, 'webhook replay', replayArguments(name, events).join(' '))
    return count
  }

  async #one(name: string, id: string): Promise<Replay | null> {
    const { reader, clock } = this.#deps
    const found = (await reader.allSubscriptions()).find((one) => one.name === name)
    return found === undefined ? null : { kind: 'one', seq: await oneEvent(reader, found, id), at: clock.now() }
  }

  /** Records a change that was made. `next` tells the operator what to do when the record fails. Rejects with StoreUnavailable. */
  async #record(actor: Actor, action: string, text: string, next?: string): Promise<void> {
    const { store, clock, changed } = this.#deps
    try {
      await changed()
      await store.records.audit.add({ at: clock.now(), ...actor, action, arguments: text, changed: 1 })
    } catch (cause) {
      if (!(cause instanceof StoreUnavailable)) throw cause
      const rest = next === undefined ? '' : `; ${next}`
      throw new StoreUnavailable(`the change was made, but could not be recorded in the audit log: ${cause.message}${rest}`, { cause })
    }
  }
}

function replayOf(events: Exclude<Replayed, { kind: 'one' }>, now: QueueTime): Replay {
  switch (events.kind) {
    case 'waiting':
      return { kind: 'waiting' }
    case 'parked':
      return { kind: 'parked', at: now }
    case 'since':
      return { kind: 'since', at: now - events.ago }
  }
}

const unknown = (name: string): SubscriptionRefused =>
  new SubscriptionRefused(
    `there is no subscription ${name} that a command has added; those of the configuration are changed in [events.${name}]`,
  )
