/** Rows of subscriptions: what each receives, how far it has come, and what its target refused. */
import type { Database } from 'better-sqlite3'
import type { EventSeq } from '../../../events/kept-event.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { lossOf, prunable, pulledLoss, selectedPage, withLoss, withoutLoss } from '../../outbox/event-pages.ts'
import { takenSubscription, type MovedSubscription } from '../../outbox/moved-subscription.ts'
import {
  EVENTS_PRUNED,
  EVENTS_SEARCHED,
  type EventLimits,
  type NewSubscription,
  type ParkedEnd,
  type ParkedEvent,
  type ProgressChange,
  type PulledEvents,
  type Replay,
  type SigningSecret,
  type Subscription,
  REPEATED,
} from '../../outbox/subscription.ts'
import { answerText, lossesIn, settingsIn, toLost, toSubscription, type SubscriptionRow } from '../../outbox/subscription-row.ts'
import { eventRow } from './event-lines.ts'
import type { EventRows } from './event-rows.ts'
import { KeptEvents, type ParkedRow } from './kept-events.ts'
import * as sql from './outbox-queries.ts'

export class SubscriptionRows {
  readonly #db: Database
  readonly #events: EventRows
  readonly #all
  readonly #one
  readonly #insert
  readonly #saveLosses
  readonly #reading: KeptEvents

  constructor(db: Database, events: EventRows) {
    this.#db = db
    this.#events = events
    this.#all = db.prepare<[], SubscriptionRow>(sql.subscriptions)
    this.#one = db.prepare<[string], SubscriptionRow>(sql.subscriptionByName)
    this.#insert = db.prepare<object>(sql.insertSubscription)
    this.#saveLosses = db.prepare<{ name: string; cursor: EventSeq; losses: string }>(sql.saveLosses)
    this.#reading = new KeptEvents(db)
  }

  /** The kept events, with those of the running transaction. */
  get #kept(): KeptEvents {
    this.#events.write()
    return this.#reading
  }

  subscribe({ name, settings, at, by }: NewSubscription & { readonly at: QueueTime; readonly by: string }): boolean {
    this.#events.forgetWanted()
    return this.#add({ name, owner: 'command', settings, createdAt: at, createdBy: by })
  }

  unsubscribe(name: string): boolean {
    return this.#remove(name, 'command')
  }

  changeSecrets(name: string, secrets: readonly SigningSecret[]): boolean {
    const row = this.#one.get(name)
    if (row?.owner !== 'command') return false
    this.#change(name, { ...settingsIn(row), secrets })
    return true
  }

  configureSubscriptions(entries: readonly NewSubscription[], at: QueueTime): readonly string[] {
    this.#events.forgetWanted()
    const names = new Set(entries.map(({ name }) => name))
    for (const { name, owner } of this.#all.all()) if (owner === 'configuration' && !names.has(name)) this.#remove(name, owner)
    return entries.flatMap(({ name, settings }) => {
      const known = this.#one.get(name)
      if (known?.owner === 'command') return [name]
      if (known !== undefined) {
        this.#change(name, settings)
        if (settingsIn(known).to !== settings.to) this.#resume(name)
      } else this.#add({ name, owner: 'configuration', settings, createdAt: at, createdBy: '' })
      return []
    })
  }

  /** Adds a subscription that begins after the newest event. False when the name is in use. */
  #add({ settings, ...row }: Omit<Subscription, 'progress'>): boolean {
    return this.#insert.run({ ...row, settings: JSON.stringify(settings), cursor: this.#kept.last }).changes > 0
  }

  /** Takes a subscription of another queue. */
  take(moved: MovedSubscription): void {
    const { name, createdAt, createdBy } = moved
    const row = this.#one.get(name)
    const known = row === undefined ? undefined : { ...toSubscription(row), losses: lossesIn(row) }
    const taken = takenSubscription(known, moved, this.#kept.last)
    if (taken === null) return
    const { settings, cursor, state, why, losses, begins } = taken
    this.#events.forgetWanted()
    if (begins) this.#db.prepare<[string]>(sql.deleteParkedOf).run(name)
    const stored = { settings: JSON.stringify(settings), losses: JSON.stringify(losses) }
    this.#db.prepare<object>(sql.takeSubscription).run({ name, createdAt, createdBy, cursor, state, why, ...stored })
  }

  #remove(name: string, owner: Subscription['owner']): boolean {
    this.#events.forgetWanted()
    const isGone = this.#db.prepare<[string, string]>(sql.deleteSubscription).run(name, owner).changes > 0
    if (isGone) this.#db.prepare<[string]>(sql.deleteParkedOf).run(name)
    return isGone
  }

  #change(name: string, settings: NewSubscription['settings']): void {
    this.#db.prepare<[string, string]>(sql.changeSettings).run(JSON.stringify(settings), name)
  }

  #resume(name: string): void {
    this.#db.prepare<[string]>(sql.resume).run(name)
  }

  subscriptions(): Subscription[] {
    return this.#all.all().map(toSubscription)
  }

  pullEvents(name: string, limit: number): PulledEvents | null {
    const row = this.#one.get(name)
    if (row === undefined) return null
    const { cursor } = row
    const losses = lossesIn(row)
    const [loss] = losses
    if (loss?.pulled === false) this.#saveLosses.run({ name, cursor, losses: JSON.stringify(pulledLoss(losses)) })
    const kept = this.#kept
    const page = selectedPage(kept.after(cursor, EVENTS_SEARCHED), { filter: settingsIn(row), limit, after: cursor })
    return { epoch: kept.epoch, cursor, lost: loss === undefined ? null : toLost(loss), ...page }
  }

  saveProgress(name: string, from: EventSeq, { progress, told, parked }: ProgressChange): boolean {
    const row = this.#one.get(name)
    if (row?.cursor !== from || row.state === 'disabled') return false
    const { cursor, state, why, tries, refusals, dueAt } = progress
    this.#db
      .prepare<object>(sql.saveProgress)
      .run({ name, from, cursor, state, why, tries, refusals, dueAt, lastAnswer: answerText(progress.lastAnswer) })
    if (told !== null) this.#saveLosses.run({ name, cursor, losses: JSON.stringify(withoutLoss(lossesIn(row), told)) })
    const insert = this.#db.prepare<object>(sql.insertParked)
    for (const one of parked) if (this.#kept.find(one.seq) !== undefined) insert.run({ name, ...one })
    return true
  }

  parkedDue(name: string, limit: number): ParkedEvent[] {
    return this.#kept.parked(this.#db.prepare<object, ParkedRow>(sql.parkedDue).all({ name, limit }))
  }

  settleParked(name: string, seq: EventSeq, end: ParkedEnd): void {
    if (end.kind === 'sent') this.#db.prepare<[string, EventSeq]>(sql.deleteParked).run(name, seq)
    else this.#db.prepare<object>(sql.changeParked).run({ name, seq, tries: end.tries, answer: end.answer, dueAt: end.dueAt })
  }

  replayEvents(name: string, replay: Replay): number | null {
    const row = this.#one.get(name)
    if (row === undefined) return null
    this.#resume(name)
    if (replay.kind === 'parked') return this.#db.prepare<[QueueTime, string]>(sql.retryParked).run(replay.at, name).changes
    const kept = this.#kept
    if (replay.kind === 'one') {
      const { seq, at } = replay
      if (seq > row.cursor || kept.find(seq) === undefined) return 0
      return this.#db.prepare<object>(sql.repeatEvent).run({ name, seq, at, answer: REPEATED }).changes
    }
    const { last } = kept
    if (replay.kind === 'waiting') return Math.max(0, last - row.cursor)
    const cursor = Math.min(row.cursor, kept.firstSince(replay.at) - 1)
    this.#db.prepare<object>(sql.moveCursor).run({ name, cursor })
    // The stream sends these again.
    this.#db.prepare<[string, EventSeq]>(sql.deleteParkedAfter).run(name, cursor)
    return last - cursor
  }

  pruneEvents(limits: EventLimits): { readonly more: boolean } {
    const kept = this.#kept
    const { through, more } = prunable(kept.after(0, EVENTS_PRUNED), kept.last, limits)
    if (through === null) return { more: false }
    for (const row of this.#all.all()) this.#lose(row, through)
    this.#deleteThrough(through)
    return { more }
  }

  #deleteThrough(through: EventSeq): void {
    this.#db.prepare<[EventSeq]>(sql.deleteEventsThrough).run(through)
    const [first, ...others] = this.#kept.rowAfter(through)
    if (first === undefined || first.seq > through) return
    const left = others.filter(({ seq }) => seq > through)
    const { last, at, lines } = eventRow(first.seq + others.length, left)
    this.#db.prepare<[QueueTime, string, EventSeq]>(sql.shortenEvents).run(at, lines, last)
  }

  /** Counts events up to a number that a subscription has not had. One without a target has no position. */
  #lose(row: SubscriptionRow, through: EventSeq): void {
    const { name, cursor } = row
    const filter = settingsIn(row)
    if (filter.to === '') return
    const parked = new Set(this.#db.prepare<[string, EventSeq], EventSeq>(sql.parkedThrough).pluck().all(name, through))
    if (parked.size === 0 && cursor >= through) return
    const deleted = [...this.#kept.after(0, EVENTS_PRUNED)].filter(({ seq }) => seq <= through)
    const loss = lossOf(deleted, { filter, cursor, parked })
    const losses = lossesIn(row)
    this.#saveLosses.run({ name, cursor: through, losses: JSON.stringify(loss === null ? losses : withLoss(losses, loss)) })
    if (parked.size > 0) this.#db.prepare<[string, EventSeq]>(sql.deleteParkedThrough).run(name, through)
  }
}
