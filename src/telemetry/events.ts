/** Events of the relay, as plain values. The log, the metrics and the test kit use them. */
import type { EventKind, UnloggedKind } from '../events/event-kind.ts'
import {
  ARRIVALS,
  DEPARTURES,
  DESTINATIONS,
  LIMITS,
  NOTICES,
  OPERATIONS,
  QUOTAS,
  SCHEDULES,
  STORE,
  SUPPRESSIONS,
  TOKENS,
} from '../events/published-kinds.ts'
import type { WallTime } from '../system/clock.ts'
import { CONNECTION_KINDS, DELIVERY_KINDS, UNLOGGED_KINDS } from './kinds/delivery-kinds.ts'
import { DAEMON_KINDS, NODE_KINDS } from './kinds/node-kinds.ts'
import { SCHEDULE_KINDS } from './kinds/schedule-kinds.ts'
import { SMTPD_KINDS } from './kinds/smtpd-kinds.ts'

/** All kinds of events, in the order of docs/monitoring.md. The type of an event, its record and its lines are those of its kind. */
export const KINDS = {
  ...SMTPD_KINDS,
  ...ARRIVALS,
  ...DELIVERY_KINDS,
  ...DEPARTURES,
  ...NOTICES,
  ...OPERATIONS,
  ...CONNECTION_KINDS,
  ...TOKENS,
  ...DESTINATIONS,
  ...SCHEDULES,
  ...SCHEDULE_KINDS,
  ...NODE_KINDS,
  ...LIMITS,
  ...QUOTAS,
  ...SUPPRESSIONS,
  ...STORE,
  ...DAEMON_KINDS,
  ...UNLOGGED_KINDS,
}

/** Kind of an event. */
export type Kind = keyof typeof KINDS

/** An event of a kind. */
export type EventOf<K extends Kind> = K extends Kind ? { readonly kind: K } & Parameters<(typeof KINDS)[K]['lines']>[0] : never

/** An event of the relay: SMTP server, queue, destinations, store. New kinds and members may be added. */
export type QueueEvent = EventOf<Kind>

/** The entry of an event; its record is null for a kind that is not logged. */
export const kindOf = ({ kind }: QueueEvent) => KINDS[kind] as unknown as EventKind<QueueEvent, object> | UnloggedKind<QueueEvent>

/** Receives an event and its time. Called synchronously; must not throw. */
export type Listen = (event: QueueEvent, at: WallTime) => void

/** A listener to some kinds. */
export const onEvents =
  <At = WallTime>(handlers: { readonly [K in Kind]?: (event: EventOf<K>, at: At) => void }) =>
  (event: QueueEvent, at: At): void =>
    handlers[event.kind]?.(event as never, at)

/** Passes each event to all listeners, in the order of registration. An error of a listener is a bug and is not caught. */
export class Events {
  readonly #listeners: Listen[] = []
  readonly #now: () => WallTime

  /** `now` returns the time of an event, for the log. */
  constructor(now: () => WallTime) {
    this.#now = now
  }

  /** Adds a listener. */
  listen(listener: Listen): void {
    this.#listeners.push(listener)
  }

  /** Returns Events that also pass each event on to these. Its listeners go with it. */
  branch(): Events {
    const branch = new Events(this.#now)
    branch.listen((event) => this.emit(event))
    return branch
  }

  /** Passes an event to all listeners. */
  emit(event: QueueEvent): void {
    const at = this.#now()
    for (const listener of this.#listeners) listener(event, at)
  }
}
