/** Subscriptions to events: what a program receives, where, and how far it has come. */
import type { SubscriptionTerms } from '../../config/values/tables/event-tables.ts'
import type { EventSeq, KeptEvent, LostEvents } from '../../events/kept-event.ts'
import type { QueueTime } from '../../system/clock.ts'

/** A subscription of the configuration cannot be changed by commands, and one of a command not by the configuration. */
export type SubscriptionOwner = 'configuration' | 'command'

/** A key that signs events, as `whsec_` and base64. */
export interface SigningSecret {
  readonly secret: string
  /** Time until which it signs beside a newer one; null for the newest. */
  readonly until: QueueTime | null
}

export interface SubscriptionSettings extends SubscriptionTerms {
  /** Secrets of a subscription of a command, the newest first. Those of the configuration are not stored. */
  readonly secrets: readonly SigningSecret[]
}

export interface NewSubscription {
  readonly name: string
  readonly settings: SubscriptionSettings
}

/** The last answer of a target. */
export interface TargetAnswer {
  readonly at: QueueTime
  readonly ok: boolean
  /** `200 OK`, or why there was none. */
  readonly text: string
}

/** Position and state of a subscription. */
export interface Progress {
  /** All events up to this number are done: sent, parked, lost, or not selected. */
  readonly cursor: EventSeq
  readonly state: 'active' | 'disabled'
  /** Why it is disabled. */
  readonly why: string | null
  /** Failed tries of the next event. */
  readonly tries: number
  /** Refusals among them of the event alone, after which it is parked. */
  readonly refusals: number
  /** Time of the next try; null when the next event is due. */
  readonly dueAt: QueueTime | null
  readonly lastAnswer: TargetAnswer | null
}

export const newProgress = (cursor: EventSeq): Progress => ({
  cursor,
  state: 'active',
  why: null,
  tries: 0,
  refusals: 0,
  dueAt: null,
  lastAnswer: null,
})

/** The progress with which a subscription goes on at once: enabled, without a wait, and without what the target refused so far. */
export const resumed = (progress: Progress): Progress => ({ ...newProgress(progress.cursor), lastAnswer: progress.lastAnswer })

export interface Subscription extends NewSubscription {
  readonly owner: SubscriptionOwner
  readonly createdAt: QueueTime
  /** The operator; empty for one of the configuration. */
  readonly createdBy: string
  readonly progress: Progress
}

/** A subscription as operators see it. */
export interface SubscriptionView extends Subscription {
  /** Number of kept events after the cursor, of any type. */
  readonly behind: number
  /** Time of the oldest of them; null when there is none. */
  readonly oldestAt: QueueTime | null
  readonly parked: number
  /** Losses that it was not told of yet. */
  readonly lost: readonly LostEvents[]
}

/** An event that a target refused. The later events are sent all the same. */
export interface ParkedEvent {
  readonly event: KeptEvent
  readonly tries: number
  readonly parkedAt: QueueTime
  /** Time of the next try; null until an operator asks for one. */
  readonly dueAt: QueueTime | null
  /** The last answer to it. */
  readonly answer: string
}

/** The next events of a subscription. */
export interface PulledEvents {
  /** Random number of the queue, for ids of events. */
  readonly epoch: number
  /** Position of the subscription before them. */
  readonly cursor: EventSeq
  /** A loss that the subscription has to be told of before the events; null when there is none. */
  readonly lost: LostEvents | null
  /** Events after the cursor that its filter selects, in order. */
  readonly events: readonly KeptEvent[]
  /** Number of the last event that was compared with the filter. The cursor may move to it when all `events` are done. */
  readonly through: EventSeq
  /** True when more events may follow `through`. */
  readonly more: boolean
}

/** New position of a subscription, with the events that are parked on the way. */
export interface ProgressChange {
  readonly progress: Progress
  /** The loss that the subscription was told of; null for none. */
  readonly told: LostEvents | null
  readonly parked: readonly { readonly seq: EventSeq; readonly tries: number; readonly at: QueueTime; readonly answer: string }[]
}

/** Number of events that one call reads and compares with a filter, which takes some milliseconds. */
export const EVENTS_SEARCHED = 1_000

/** Number of events that one call deletes, which takes some milliseconds. */
export const EVENTS_PRUNED = 1_000

/** Answer of an event that is parked for its repetition, until the target gives one. */
export const REPEATED = 'sent again on request'

/**
 * Events that an operator asks to be sent: those that wait, those since a time, or the parked ones, whose try is at `at`. `one` parks an
 * event that the subscription has had, with its try at `at`.
 */
export type Replay =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'since'; readonly at: QueueTime }
  | { readonly kind: 'parked'; readonly at: QueueTime }
  | { readonly kind: 'one'; readonly seq: EventSeq; readonly at: QueueTime }

/** Outcome of another try of a parked event. */
export type ParkedEnd =
  | { readonly kind: 'sent' }
  | { readonly kind: 'refused'; readonly tries: number; readonly answer: string; readonly dueAt: QueueTime | null }

/** Retention of events: those before a time are deleted, and the oldest in excess of a number. */
export interface EventLimits {
  readonly before: QueueTime
  readonly count: number
}
