/** The methods of a queue in memory for events and subscriptions. */
import type { EventType } from '../../events/event-types.ts'
import type { EventSeq, NewEvent } from '../../events/kept-event.ts'
import type { QueueTime } from '../../system/clock.ts'
import { subscriptionShard } from '../membership/shards.ts'
import type { OutboxStore } from '../outbox-store.ts'
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
} from '../outbox/subscription.ts'
import type { MemoryQueue } from './queue-state.ts'
import type { QueueOwner } from './queue-owner.ts'

export class MemoryEvents implements OutboxStore {
  readonly #queue: MemoryQueue
  readonly #owner: QueueOwner

  constructor(queue: MemoryQueue, owner: QueueOwner) {
    this.#queue = queue
    this.#owner = owner
  }

  async subscribe(subscription: Parameters<OutboxStore['subscribe']>[0]): Promise<boolean> {
    return this.#queue.outbox.subscribe(subscription)
  }

  async unsubscribe(name: string): Promise<boolean> {
    return this.#queue.outbox.unsubscribe(name)
  }

  async changeSecrets(name: string, secrets: readonly SigningSecret[]): Promise<boolean> {
    return this.#queue.outbox.changeSecrets(name, secrets)
  }

  async configureSubscriptions(entries: readonly NewSubscription[], at: QueueTime): Promise<readonly string[]> {
    return this.#queue.outbox.configureSubscriptions(entries, at, this.#owner.configuring)
  }

  async subscriptions(): Promise<readonly Subscription[]> {
    return this.#queue.outbox.subscriptions().filter(({ name }) => this.#owner.ownsShard(subscriptionShard(name)))
  }

  async wantedTypes(): Promise<readonly EventType[]> {
    return this.#queue.outbox.wantedTypes()
  }

  async numberEvents(): Promise<boolean> {
    return false
  }

  async pullEvents(name: string, limit: number): Promise<PulledEvents | null> {
    return this.#queue.outbox.pullEvents(name, limit)
  }

  async saveProgress(name: string, from: EventSeq, change: ProgressChange): Promise<boolean> {
    return this.#queue.outbox.saveProgress(name, from, change)
  }

  async parkedDue(name: string, limit: number): Promise<readonly ParkedEvent[]> {
    return this.#queue.outbox.parkedDue(name, limit)
  }

  async settleParked(name: string, seq: EventSeq, end: ParkedEnd): Promise<void> {
    this.#queue.outbox.settleParked(name, seq, end)
  }

  async replayEvents(name: string, replay: Replay): Promise<number | null> {
    return this.#queue.outbox.replayEvents(name, replay)
  }

  async recordEvents(events: readonly NewEvent[]): Promise<void> {
    this.#queue.outbox.keep(events)
  }

  async pruneEvents(limits: EventLimits): Promise<{ readonly more: boolean }> {
    this.#queue.outbox.prune(limits)
    return { more: false }
  }
}
