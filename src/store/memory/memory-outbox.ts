/** The outbox of a queue in memory, with its subscriptions. Events are numbered when they are written. */
import { selectedTypes, type EventFilter } from '../../events/event-filter.ts'
import { EVENT_TYPES, type EventType } from '../../events/event-types.ts'
import type { EventData } from '../../events/published-kinds.ts'
import { keptData } from '../../events/event-values.ts'
import type { EventSeq, KeptEvent, NewEvent } from '../../events/kept-event.ts'
import { queueIdOf, type Message, type OwnerId } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import { lossOf, prunable, pulledLoss, selectedPage, withLoss, withoutLoss, type StoredLoss } from '../outbox/event-pages.ts'
import { takenSubscription, type MovedSubscription } from '../outbox/moved-subscription.ts'
import type { Eraser } from '../erasure/eraser.ts'
import { erasedData } from '../erasure/erased-tables.ts'
import type { EventPage } from '../outbox-store.ts'
import {
  EVENTS_SEARCHED,
  newProgress,
  resumed,
  type EventLimits,
  type NewSubscription,
  type ParkedEnd,
  type ParkedEvent,
  type ProgressChange,
  type PulledEvents,
  type Replay,
  type SigningSecret,
  type Subscription,
  type SubscriptionView,
  REPEATED,
} from '../outbox/subscription.ts'

interface HeldSubscription {
  subscription: Subscription
  /** Owners that have configured it. */
  readonly configuredBy: Set<OwnerId>
  losses: readonly StoredLoss[]
  readonly parked: Map<EventSeq, ParkedEvent>
}

export class MemoryOutbox {
  /** Constant, so that the ids of events in a world do not depend on chance. */
  readonly epoch = 0
  readonly #subscriptions = new Map<string, HeldSubscription>()
  #events: KeptEvent[] = []
  #last: EventSeq = 0
  /** The latest time of an event, or of a claim. */
  #latest: QueueTime = 0

  /** Notes that the queue was used at a time, for events without a time of their own. */
  passed(at: QueueTime): void {
    this.#latest = Math.max(this.#latest, at)
  }

  /** Keeps the events that a subscription wants. */
  keep(events: readonly NewEvent[] = []): void {
    if (events.length === 0 || this.#subscriptions.size === 0) return
    const wanted = new Set(this.wantedTypes())
    for (const { type, at, data } of events) {
      this.passed(at)
      if (wanted.has(type)) this.#events.push({ type, at, data, seq: ++this.#last })
    }
  }

  /** Erases addresses, as DepartedMail.erase does. Returns the number of changed rows. */
  erase(of: 'event' | 'parked' | 'subscription', eraser: Eraser, isPlan: boolean): number {
    const { before } = eraser.terms
    const held = [...this.#subscriptions.values()]
    if (of === 'event') {
      const erased = this.#events.map((one) => (one.at < before ? { ...one, data: erasedData(one.type, one.data, eraser) } : one))
      const changed = erased.filter(({ data }, n) => data !== this.#events[n]?.data).length
      if (!isPlan) this.#events = erased
      return changed
    }
    if (of === 'subscription') return held.filter((one) => this.#eraseAnswers(one, eraser, isPlan)).length
    return held.reduce((sum, { parked }) => sum + eraseParked(parked, eraser, isPlan), 0)
  }

  #eraseAnswers(held: HeldSubscription, eraser: Eraser, isPlan: boolean): boolean {
    const { progress } = held.subscription
    const erased = eraser.value(progress) as typeof progress
    if (JSON.stringify(erased) === JSON.stringify(progress)) return false
    if (!isPlan) held.subscription = { ...held.subscription, progress: erased }
    return true
  }

  removed(message: Message, leftAt: QueueTime): void {
    this.#note('message.removed', message, leftAt, {})
  }

  quarantined(message: Message, text: string): void {
    this.#note('message.quarantined', message, message.createdAt, { text })
  }

  #note<T extends 'message.removed' | 'message.quarantined'>(
    type: T,
    message: Message,
    earliest: QueueTime,
    members: Omit<EventData[T], 'queue_id' | 'sender'>,
  ): void {
    if (this.#subscriptions.size === 0) return
    const data = { queue_id: queueIdOf(message), sender: message.sender, ...members } as EventData[T]
    this.keep([{ type, at: Math.max(earliest, this.#latest), data: keptData(type, data) }])
  }

  // --- subscriptions

  wantedTypes(): readonly EventType[] {
    const wanted = new Set([...this.#subscriptions.values()].flatMap(({ subscription }) => selectedTypes(subscription.settings.types)))
    return EVENT_TYPES.filter((type) => wanted.has(type))
  }

  subscribe({ name, settings, at, by }: NewSubscription & { readonly at: QueueTime; readonly by: string }): boolean {
    if (this.#subscriptions.has(name)) return false
    this.#add({ name, settings, owner: 'command', createdAt: at, createdBy: by, progress: newProgress(this.#last) })
    return true
  }

  unsubscribe(name: string): boolean {
    return this.#ofCommand(name) !== undefined && this.#subscriptions.delete(name)
  }

  changeSecrets(name: string, secrets: readonly SigningSecret[]): boolean {
    const held = this.#ofCommand(name)
    if (held === undefined) return false
    held.subscription = { ...held.subscription, settings: { ...held.subscription.settings, secrets } }
    return true
  }

  configureSubscriptions(entries: readonly NewSubscription[], at: QueueTime, by: OwnerId): readonly string[] {
    const names = new Set(entries.map(({ name }) => name))
    for (const [name, { subscription, configuredBy }] of this.#subscriptions) {
      if (subscription.owner === 'command' || names.has(name)) continue
      configuredBy.delete(by)
      if (configuredBy.size === 0) this.#subscriptions.delete(name)
    }
    return entries.flatMap(({ name, settings }) => {
      const held = this.#subscriptions.get(name)
      if (held?.subscription.owner === 'command') return [name]
      if (held === undefined)
        this.#add({ name, settings, owner: 'configuration', createdAt: at, createdBy: '', progress: newProgress(this.#last) })
      else {
        const { settings: before, progress } = held.subscription
        held.subscription = { ...held.subscription, settings, progress: before.to === settings.to ? progress : resumed(progress) }
      }
      this.#subscriptions.get(name)?.configuredBy.add(by)
      return []
    })
  }

  /** Takes a subscription of another queue. */
  take(moved: MovedSubscription): void {
    const { name, createdAt, createdBy } = moved
    const held = this.#subscriptions.get(name)
    const known = held === undefined ? undefined : { ...held.subscription, losses: held.losses }
    const taken = takenSubscription(known, moved, this.#last)
    if (taken === null) return
    const { settings, cursor, state, why, losses, begins } = taken
    const progress = { ...newProgress(cursor), state, why }
    const subscription = { name, settings, owner: 'command', createdAt, createdBy, progress } as const
    const parked = begins ? new Map<EventSeq, ParkedEvent>() : (held?.parked ?? new Map<EventSeq, ParkedEvent>())
    this.#subscriptions.set(name, { subscription, configuredBy: new Set(), losses, parked })
  }

  subscriptions(): readonly Subscription[] {
    return this.#inOrder().map(({ subscription }) => subscription)
  }

  views(): readonly SubscriptionView[] {
    return this.#inOrder().map(({ subscription, losses, parked }) => {
      const waiting = this.#after(subscription.progress.cursor)
      const lost = losses.map(({ from, to, count }) => ({ from, to, count }))
      return { ...subscription, behind: waiting.length, oldestAt: waiting[0]?.at ?? null, parked: parked.size, lost }
    })
  }

  #add(subscription: Subscription): void {
    this.#subscriptions.set(subscription.name, { subscription, configuredBy: new Set(), losses: [], parked: new Map() })
  }

  #ofCommand(name: string): HeldSubscription | undefined {
    const held = this.#subscriptions.get(name)
    return held?.subscription.owner === 'command' ? held : undefined
  }

  #inOrder(): readonly HeldSubscription[] {
    return [...this.#subscriptions.values()].toSorted((a, b) => (a.subscription.name < b.subscription.name ? -1 : 1))
  }

  // --- reading

  #after(seq: EventSeq): readonly KeptEvent[] {
    return this.#events.filter((event) => event.seq > seq)
  }

  eventsAfter({ after, limit, filter }: { readonly after: EventSeq; readonly limit: number; readonly filter: EventFilter }): EventPage {
    const { events, through } = selectedPage(this.#after(after).slice(0, EVENTS_SEARCHED), { filter, limit, after })
    return { epoch: this.epoch, first: this.#events[0]?.seq ?? this.#last + 1, last: this.#last, events, through }
  }

  pullEvents(name: string, limit: number): PulledEvents | null {
    const held = this.#subscriptions.get(name)
    if (held === undefined) return null
    const { settings, progress } = held.subscription
    const [loss] = held.losses
    if (loss !== undefined) held.losses = pulledLoss(held.losses)
    const page = selectedPage(this.#after(progress.cursor).slice(0, EVENTS_SEARCHED), { filter: settings, limit, after: progress.cursor })
    const lost = loss === undefined ? null : { from: loss.from, to: loss.to, count: loss.count }
    return { epoch: this.epoch, cursor: progress.cursor, lost, ...page }
  }

  // --- progress

  saveProgress(name: string, from: EventSeq, { progress, told, parked }: ProgressChange): boolean {
    const held = this.#subscriptions.get(name)
    if (held?.subscription.progress.cursor !== from || held.subscription.progress.state === 'disabled') return false
    held.subscription = { ...held.subscription, progress }
    if (told !== null) held.losses = withoutLoss(held.losses, told)
    for (const { seq, tries, at, answer } of parked) {
      const event = this.#events.find((one) => one.seq === seq)
      if (event !== undefined) held.parked.set(seq, { event, tries, parkedAt: at, dueAt: null, answer })
    }
    return true
  }

  parkedDue(name: string, limit: number): readonly ParkedEvent[] {
    return this.#parked(name)
      .flatMap((one) => (one.dueAt === null ? [] : [{ ...one, dueAt: one.dueAt }]))
      .toSorted((a, b) => a.dueAt - b.dueAt)
      .slice(0, limit)
  }

  parkedEvents(name: string, { after, limit }: { readonly after: EventSeq; readonly limit: number }): readonly ParkedEvent[] {
    return this.#parked(name)
      .filter(({ event }) => event.seq > after)
      .slice(0, limit)
  }

  #parked(name: string): readonly ParkedEvent[] {
    return [...(this.#subscriptions.get(name)?.parked.values() ?? [])].toSorted((a, b) => a.event.seq - b.event.seq)
  }

  settleParked(name: string, seq: EventSeq, end: ParkedEnd): void {
    const parked = this.#subscriptions.get(name)?.parked
    const one = parked?.get(seq)
    if (parked === undefined || one === undefined) return
    if (end.kind === 'sent') parked.delete(seq)
    else parked.set(seq, { ...one, tries: end.tries, answer: end.answer, dueAt: end.dueAt })
  }

  replayEvents(name: string, replay: Replay): number | null {
    const held = this.#subscriptions.get(name)
    if (held === undefined) return null
    const progress = resumed(held.subscription.progress)
    held.subscription = { ...held.subscription, progress }
    if (replay.kind === 'waiting') return this.#after(progress.cursor).length
    if (replay.kind === 'parked') {
      for (const [seq, one] of held.parked) held.parked.set(seq, { ...one, dueAt: replay.at })
      return held.parked.size
    }
    if (replay.kind === 'one') {
      const { seq, at } = replay
      const event = this.#events.find((one) => one.seq === seq)
      if (event === undefined || seq > progress.cursor) return 0
      held.parked.set(seq, { ...(held.parked.get(seq) ?? { tries: 0, parkedAt: at, answer: REPEATED }), event, dueAt: at })
      return 1
    }
    const before = this.#events.findLast(({ at }) => at < replay.at)?.seq ?? (this.#events[0]?.seq ?? 1) - 1
    const cursor = Math.min(progress.cursor, before)
    held.subscription = { ...held.subscription, progress: { ...progress, cursor } }
    // The stream sends these again.
    for (const seq of held.parked.keys()) if (seq > cursor) held.parked.delete(seq)
    return this.#after(cursor).length
  }

  /** Deletes all events beyond the limits at once. */
  prune(limits: EventLimits): void {
    const { through } = prunable(this.#events, this.#last, limits)
    if (through === null) return
    const deleted = this.#events.filter(({ seq }) => seq <= through)
    for (const held of this.#subscriptions.values()) this.#lose(held, deleted)
    this.#events = this.#events.slice(deleted.length)
  }

  #lose(held: HeldSubscription, deleted: readonly KeptEvent[]): void {
    const { settings, progress } = held.subscription
    if (settings.to === '') return
    const loss = lossOf(deleted, { filter: settings, cursor: progress.cursor, parked: new Set(held.parked.keys()) })
    if (loss !== null) held.losses = withLoss(held.losses, loss)
    for (const { seq } of deleted) held.parked.delete(seq)
    const cursor = Math.max(progress.cursor, deleted.at(-1)?.seq ?? 0)
    held.subscription = { ...held.subscription, progress: { ...progress, cursor, refusals: 0 } }
  }
}

function eraseParked(parked: Map<EventSeq, ParkedEvent>, eraser: Eraser, isPlan: boolean): number {
  const changed = [...parked].filter(([, { answer, parkedAt }]) => parkedAt < eraser.terms.before && eraser.text(answer) !== answer)
  if (!isPlan) for (const [seq, one] of changed) parked.set(seq, { ...one, answer: eraser.text(one.answer) })
  return changed.length
}
