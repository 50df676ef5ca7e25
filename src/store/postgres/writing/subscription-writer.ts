/** Changes subscriptions: what each receives, how far it has come, and what its target refused. Numbers and deletes events. */
import { selectedTypes } from '../../../events/event-filter.ts'
import type { EventSeq, KeptEvent } from '../../../events/kept-event.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { lossOf, prunable, withLoss } from '../../outbox/event-pages.ts'
import { takenSubscription, type MovedSubscription } from '../../outbox/moved-subscription.ts'
import {
  answerText,
  lossesIn,
  settingsIn,
  toEvent,
  toSubscription,
  type EventRow,
  type SubscriptionRow,
} from '../../outbox/subscription-row.ts'
import {
  EVENTS_PRUNED,
  EVENTS_SEARCHED,
  type EventLimits,
  type NewSubscription,
  type ProgressChange,
  REPEATED,
  type Replay,
  type SubscriptionOwner,
  type SubscriptionSettings,
} from '../../outbox/subscription.ts'
import { int4s, int8s, storableText, texts } from '../session/arrays.ts'
import * as sql from './outbox-queries.ts'
import type { Statements } from '../session/database-connection.ts'
import type { WantedTypes } from './transaction-events.ts'
import { sent, sentOnce, type Send, type Transaction } from './write-transaction.ts'

type Added = NewSubscription & { readonly owner: SubscriptionOwner; readonly at: QueueTime; readonly by: string }

const stored = (settings: SubscriptionSettings): string => storableText(JSON.stringify(settings))

export class SubscriptionWriter {
  readonly #wanted: WantedTypes
  /** Name of the node. */
  readonly #node: string

  constructor(wanted: WantedTypes, node: string) {
    this.#wanted = wanted
    this.#node = node
  }

  subscribe: Send<'subscribe'> = (tx, calls) =>
    sentOnce(tx, Promise.all(calls.map(([subscription]) => this.#add(tx, { ...subscription, owner: 'command' }))))

  unsubscribe: Send<'unsubscribe'> = (tx, calls) =>
    sentOnce(tx, Promise.all(calls.map(async ([name]) => (await tx.query(sql.deleteSubscription, [name])).length > 0)))

  changeSecrets: Send<'changeSecrets'> = (tx, calls) => ({
    answers: Promise.all(
      calls.map(async ([name, secrets]) => {
        const [row] = await tx.query<SubscriptionRow>(sql.lockSubscription, [name])
        if (row?.owner !== 'command') return false
        await tx.query(sql.changeSettings, [name, stored({ ...settingsIn(row), secrets })])
        return true
      }),
    ),
    isLast: false,
  })

  configureSubscriptions: Send<'configureSubscriptions'> = (tx, calls) => ({
    answers: Promise.all(calls.map(([entries, at]) => this.#configure(tx, entries, at))),
    isLast: false,
  })

  numberEvents: Send<'numberEvents'> = (tx, calls) => ({
    answers: numberEvents(tx).then((more) => calls.map(() => more)),
    isLast: false,
  })

  saveProgress: Send<'saveProgress'> = (tx, calls) => ({
    answers: Promise.all(calls.map(([name, from, change]) => saveProgress(tx, name, from, change))),
    isLast: false,
  })

  settleParked: Send<'settleParked'> = (tx, calls) =>
    sent(
      Promise.all(
        calls.map(async ([name, seq, end]) => {
          if (end.kind === 'sent') await tx.query(sql.deleteParked, [name, seq])
          else await tx.query(sql.changeParked, [name, seq, end.tries, storableText(end.answer), end.dueAt])
        }),
      ),
    )

  replayEvents: Send<'replayEvents'> = (tx, calls) => ({
    answers: Promise.all(calls.map(([name, replay]) => replayEvents(tx, name, replay))),
    isLast: false,
  })

  recordEvents: Send<'recordEvents'> = (tx, calls) => {
    for (const [events] of calls) tx.events.note(events)
    return sent(Promise.resolve(calls.map(() => undefined)))
  }

  pruneEvents: Send<'pruneEvents'> = (tx, calls) => ({
    answers: Promise.all(calls.map(([limits]) => pruneEvents(tx, limits))),
    isLast: false,
  })

  async #add(tx: Transaction, { name, owner, settings, at, by }: Added): Promise<boolean> {
    tx.onCommit(() => this.#wanted.add(selectedTypes(settings.types)))
    const configuredBy = texts(owner === 'configuration' ? [this.#node] : [])
    return (await tx.query(sql.insertSubscription, [name, owner, stored(settings), at, storableText(by), configuredBy])).length > 0
  }

  async #configure(tx: Transaction, entries: readonly NewSubscription[], at: QueueTime): Promise<readonly string[]> {
    const known = new Map((await tx.query<SubscriptionRow>(sql.lockSubscriptions)).map((row) => [row.name, row]))
    await releaseTables(
      tx,
      this.#node,
      entries.map(({ name }) => name),
    )
    const isFree = ({ name }: NewSubscription): boolean => known.get(name)?.owner !== 'command'
    for (const { name, settings } of entries.filter(isFree)) {
      const row = known.get(name)
      if (row === undefined) await this.#add(tx, { name, settings, owner: 'configuration', at, by: '' })
      else {
        tx.onCommit(() => this.#wanted.add(selectedTypes(settings.types)))
        await tx.query(sql.configuredHere, [name, stored(settings), this.#node])
        if (settingsIn(row).to !== settings.to) await tx.query(sql.resume, [name])
      }
    }
    return entries.flatMap((entry) => (isFree(entry) ? [] : [entry.name]))
  }
}

/** Takes subscriptions of another queue. The nodes of this one write their events when they look for subscriptions the next time. */
export async function takeSubscriptions(tx: Transaction, moved: readonly MovedSubscription[]): Promise<void> {
  if (moved.length === 0) return
  const known = new Map((await tx.query<SubscriptionRow>(sql.lockSubscriptions)).map((row) => [row.name, row]))
  const [bounds] = await tx.query<{ last: EventSeq }>(sql.boundsOfEvents)
  for (const one of moved) {
    const row = known.get(one.name)
    const before = row === undefined ? undefined : { ...toSubscription(row), losses: lossesIn(row) }
    const taken = takenSubscription(before, one, bounds?.last ?? 0)
    if (taken === null) continue
    const { settings, cursor, state, why, losses, begins } = taken
    if (begins) await tx.query(sql.deleteParkedOf, [one.name])
    const text = why === null ? null : storableText(why)
    const by = storableText(one.createdBy)
    await tx.query(sql.takeSubscription, [one.name, stored(settings), one.createdAt, by, cursor, state, text, JSON.stringify(losses)])
  }
}

/** Notes that a node has no tables but some, and removes the subscriptions that no node has then. Returns the number of its former tables. */
export async function releaseTables(statements: Statements, node: string, kept: readonly string[] = []): Promise<number> {
  const former = await statements.query(sql.notConfiguredHere, [node, texts(kept)])
  await statements.query(sql.deleteUnconfigured)
  return former.length
}

/** Returns whether more events may wait for a number. While another node numbers them, it is asked again later. */
async function numberEvents(tx: Transaction): Promise<boolean> {
  if ((await tx.query(sql.lockNumbers)).length === 0) return true
  const [done] = await tx.query<{ numbered: number }>(sql.numberEvents, [EVENTS_SEARCHED])
  return done?.numbered === EVENTS_SEARCHED
}

async function saveProgress(tx: Transaction, name: string, from: EventSeq, { progress, told, parked }: ProgressChange): Promise<boolean> {
  const { cursor, state, why, tries, refusals, dueAt, lastAnswer } = progress
  const answer = answerText(lastAnswer)
  const changed = await tx.query(sql.saveProgress, [
    name,
    from,
    cursor,
    state,
    why === null ? null : storableText(why),
    tries,
    dueAt,
    answer === null ? null : storableText(answer),
    told?.from ?? null,
    told?.to ?? null,
    refusals,
  ])
  if (changed.length === 0) return false
  if (parked.length > 0)
    await tx.query(sql.insertParked, [
      name,
      int8s(parked.map(({ seq }) => seq)),
      int4s(parked.map((one) => one.tries)),
      int8s(parked.map(({ at }) => at)),
      texts(parked.map((one) => one.answer)),
    ])
  return true
}

async function replayEvents(tx: Transaction, name: string, replay: Replay): Promise<number | null> {
  const [known] = await tx.query<{ behind: number }>(sql.resume, [name])
  if (known === undefined) return null
  if (replay.kind === 'waiting') return known.behind
  if (replay.kind === 'parked') return (await tx.query(sql.retryParked, [name, replay.at])).length
  if (replay.kind === 'one') return (await tx.query(sql.repeatEvent, [name, replay.seq, replay.at, REPEATED])).length
  const [before] = await tx.query<{ cursor: EventSeq }>(sql.cursorBefore, [replay.at])
  const [moved] = await tx.query<{ behind: number }>(sql.moveCursor, [name, before?.cursor ?? 0])
  return moved?.behind ?? 0
}

async function pruneEvents(tx: Transaction, limits: EventLimits): Promise<{ readonly more: boolean }> {
  // While another node numbers or deletes events, they are deleted the next time.
  if ((await tx.query(sql.lockNumbers)).length === 0) return { more: false }
  const [[bounds], oldest] = await Promise.all([
    tx.query<{ last: EventSeq }>(sql.boundsOfEvents),
    tx.query<Pick<KeptEvent, 'seq' | 'at'>>(sql.oldestEvents, [EVENTS_PRUNED]),
  ])
  const { through, more } = prunable(oldest, bounds?.last ?? 0, limits)
  if (through === null) return { more: false }
  for (const row of await tx.query<SubscriptionRow>(sql.lockSubscriptions)) await lose(tx, row, through)
  await tx.query(sql.deleteEventsThrough, [through])
  return { more }
}

/** Counts events up to a number that a subscription has not had. One without a target has no position. */
async function lose(tx: Transaction, row: SubscriptionRow, through: EventSeq): Promise<void> {
  const { name, cursor } = row
  const filter = settingsIn(row)
  if (filter.to === '') return
  const parked = new Set((await tx.query<{ seq: EventSeq }>(sql.parkedThrough, [name, through])).map(({ seq }) => seq))
  if (parked.size === 0 && cursor >= through) return
  const deleted = (await tx.query<EventRow>(sql.eventsAfter, [0, EVENTS_PRUNED])).map(toEvent).filter(({ seq }) => seq <= through)
  const loss = lossOf(deleted, { filter, cursor, parked })
  const losses = lossesIn(row)
  await tx.query(sql.saveLosses, [name, through, JSON.stringify(loss === null ? losses : withLoss(losses, loss))])
  if (parked.size > 0) await tx.query(sql.deleteParkedThrough, [name, through])
}
