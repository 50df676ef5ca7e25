/**
 * Makes the events that the store commits with their causes, of the types that a subscription wants. Without a subscription, a call costs
 * one comparison.
 */
import type { EventType } from '../events/event-types.ts'
import type { NewEvent, RecipientEvent } from '../events/kept-event.ts'
import type { OutboxStore } from '../store/outbox-store.ts'
import type { Clock } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { eventOf, recipientEvents, typeOf, type Outcome, type Published } from './event-data.ts'

export class EventRecorder {
  readonly #clock: Pick<Clock, 'now' | 'wall'>
  #wanted: ReadonlySet<EventType> = new Set()
  #listeners: (() => void)[] = []

  constructor(clock: Pick<Clock, 'now' | 'wall'>) {
    this.#clock = clock
  }

  async refresh(outbox: Pick<OutboxStore, 'wantedTypes'>): Promise<void> {
    this.#wanted = new Set(await outbox.wantedTypes())
  }

  get wall(): WallView {
    return this.#clock.wall
  }

  get isIdle(): boolean {
    return this.#wanted.size === 0
  }

  /**
   * Adds a listener, called whenever events may have been made. The events are in the next transaction of the store, which itself makes
   * those of removed and quarantined messages.
   */
  onRecorded(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** A list with the typed event of `happened`; undefined when no subscription wants it. */
  of(happened: Published): readonly NewEvent[] | undefined {
    if (this.isIdle) return undefined
    this.#tell()
    return this.#wanted.has(typeOf(happened)) ? [eventOf(happened, this.#clock.now())] : undefined
  }

  /** The typed events of a list; undefined when no subscription wants any of them. */
  ofAll(happened: readonly Published[]): readonly NewEvent[] | undefined {
    return this.isIdle ? undefined : listed(happened.flatMap((one) => this.of(one) ?? []))
  }

  /** The events of the recipients of a settlement. `dropped` tells why no notice is sent about a failure. */
  settlement(outcome: Omit<Outcome, 'wall'>, dropped: string | undefined): readonly RecipientEvent[] | undefined {
    if (this.isIdle) return undefined
    this.#tell()
    const events = recipientEvents({ ...outcome, wall: this.#clock.wall }, (type) => this.#wanted.has(type))
    return listed(dropped === undefined ? events : [...events, ...this.#dropped(outcome, dropped)])
  }

  /** The event `notice.dropped`. It belongs to a failed recipient, so that it is committed with the recipient's settlement. */
  #dropped({ request: { message }, settlement }: Omit<Outcome, 'wall'>, why: string): readonly RecipientEvent[] {
    const failed = settlement.recipients.find(({ state }) => state === 'bounced' || state === 'expired')
    if (failed === undefined) return []
    const events = this.of({ kind: 'notice-dropped', message, why }) ?? []
    return events.map((event) => ({ ...event, recipient: failed.recipient }))
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}

const listed = <E>(events: readonly E[]): readonly E[] | undefined => (events.length === 0 ? undefined : events)
