/**
 * The outbox: events that the queue keeps for its subscriptions. An event is written in the transaction of what happened, by the methods of
 * QueueStore that take events. `message.removed` and `message.quarantined` are written by the store itself, whichever call removes
 * or quarantines the message.
 *
 * Without a subscription no event is written. A type is written while a subscription wants it.
 */
import { nothing, type MethodRows } from './method-traits.ts'
import type { EventFilter } from '../events/event-filter.ts'
import type { EventType } from '../events/event-types.ts'
import type { EventSeq, KeptEvent, NewEvent } from '../events/kept-event.ts'
import type { QueueTime } from '../system/clock.ts'
import type {
  EventLimits,
  NewSubscription,
  ParkedEnd,
  ParkedEvent,
  ProgressChange,
  PulledEvents,
  Replay,
  SigningSecret,
  Subscription,
  SubscriptionView,
} from './outbox/subscription.ts'

/** Methods of QueueStore for events, its member `outbox`. */
export interface OutboxStore {
  /** Adds a subscription by command, which receives the events from now on. False, without effect, when the name is in use. */
  subscribe(subscription: NewSubscription & { readonly at: QueueTime; readonly by: string }): Promise<boolean>
  /** Removes a subscription by command, with what is parked for it. False when no command has added one of the name. */
  unsubscribe(name: string): Promise<boolean>
  /** Replaces the secrets of a subscription. False when no command has added one of the name. */
  changeSecrets(name: string, secrets: readonly SigningSecret[]): Promise<boolean>
  /**
   * Makes the subscriptions of the configuration equal to a list: adds and removes, and changes settings. One with a new target is enabled,
   * and tried at once. On a queue that several nodes share, one stays while another node has configured it, and the last call decides
   * about its settings. Returns the names that subscriptions by command have, which stay as they are.
   */
  configureSubscriptions(entries: readonly NewSubscription[], at: QueueTime): Promise<readonly string[]>
  /**
   * The subscriptions that this owner sends, by name. On a queue that several nodes share, each belongs to the shard of `events:NAME`,
   * and is taken over with it.
   */
  subscriptions(): Promise<readonly Subscription[]>
  /**
   * The types that subscriptions want, ordered as in EVENT_TYPES. On a queue that several nodes share, a node writes the events of a new
   * subscription from the first call after its addition.
   */
  wantedTypes(): Promise<readonly EventType[]>
  /**
   * Numbers the events that are committed. A later commit has higher numbers, whenever its events were written. Returns whether more
   * events wait for a number. Has no effect on a queue with one owner, which numbers its events when it writes them.
   */
  numberEvents(): Promise<boolean>
  /** The next events of a subscription, at most `limit`; null when there is no such subscription. */
  pullEvents(name: string, limit: number): Promise<PulledEvents | null>
  /**
   * Records how far a subscription has come since the position `from`. Returns false, without effect, when its position is another one,
   * because of a replay or of another sender, or when the subscription was removed or is disabled.
   */
  saveProgress(name: string, from: EventSeq, change: ProgressChange): Promise<boolean>
  /** Parked events of a subscription with a due time, past or coming, the earliest first, at most `limit`. */
  parkedDue(name: string, limit: number): Promise<readonly ParkedEvent[]>
  /** Records the outcome of another try of a parked event. */
  settleParked(name: string, seq: EventSeq, end: ParkedEnd): Promise<void>
  /**
   * Has events sent, with the ids that they had: a disabled subscription is enabled, and none waits for its next try. Returns how many
   * kept events follow, or how many parked ones are due; null when there is no such subscription. Of one event: 1, or 0 when it is not
   * kept or the subscription has not had it.
   */
  replayEvents(name: string, replay: Replay): Promise<number | null>
  /** Keeps events that belong to no other transaction. */
  recordEvents(events: readonly NewEvent[]): Promise<void>
  /**
   * Deletes a slice of the events beyond their limits, the oldest first, and counts them as lost for the subscriptions that have not
   * had them. The newest event stays. `more` is true while work may be left.
   */
  pruneEvents(limits: EventLimits): Promise<{ readonly more: boolean }>
}

/** A page of the kept events. */
export interface EventPage {
  readonly epoch: number
  /** Number of the oldest kept event; that of the next event when none is kept. */
  readonly first: EventSeq
  /** Number of the newest event; 0 when there was none. */
  readonly last: EventSeq
  readonly events: readonly KeptEvent[]
  /** Number of the last event that was compared with the filter: the position of the next page. */
  readonly through: EventSeq
}

/** Methods of QueueReader for events. */
export interface OutboxReader {
  /** All subscriptions, by name. */
  allSubscriptions(): Promise<readonly SubscriptionView[]>
  /** Parked events of a subscription with numbers above `after`, in order. */
  parkedEvents(name: string, page: { readonly after: EventSeq; readonly limit: number }): Promise<readonly ParkedEvent[]>
  /** Kept events with numbers above `after` that a filter selects, in order. */
  eventsAfter(page: { readonly after: EventSeq; readonly limit: number; readonly filter: EventFilter }): Promise<EventPage>
}

/** The rows of the methods, in the order of the contract. */
export const OUTBOX_METHODS = {
  subscribe: { room: 'neither', sending: ([{ name }]) => [`s${name}`], changes: nothing },
  unsubscribe: { room: 'reserve', sending: ([name]) => [`s${name}`], changes: nothing },
  changeSecrets: { room: 'neither', sending: ([name]) => [`s${name}`], changes: nothing },
  configureSubscriptions: { room: 'reserve', sending: 'alone', changes: nothing },
  subscriptions: { room: 'neither', sending: 'direct', changes: nothing },
  wantedTypes: { room: 'neither', sending: 'direct', changes: nothing },
  numberEvents: { room: 'neither', sending: 'alone', changes: nothing },
  pullEvents: { room: 'neither', sending: 'direct', changes: nothing },
  saveProgress: { room: 'reserve', sending: ([name]) => [`s${name}`], changes: nothing },
  parkedDue: { room: 'neither', sending: 'direct', changes: nothing },
  settleParked: { room: 'reserve', sending: ([name]) => [`s${name}`], changes: nothing },
  replayEvents: { room: 'neither', sending: 'alone', changes: nothing },
  recordEvents: { room: 'reserve', sending: 'batched', changes: nothing },
  pruneEvents: { room: 'reserve', sending: 'alone', changes: nothing },
} as const satisfies MethodRows<OutboxStore>
