/** Operations on whole messages. A recipient in delivery keeps its lease; its row has the state that follows the lease (`parks`). */
import { messageOf, recipientId, type DestinationName, type MessageId, type OwnerId } from '../../../mail/message.ts'
import type { Shard } from '../../membership/shards.ts'
import type { OperationRound } from '../../records/audit-log.ts'
import {
  changesOf,
  formerOf,
  idsOf,
  purged,
  wakes,
  type Change,
  type OperatedMessage,
  type OperatedRecipient,
} from '../../decisions/operation-changes.ts'
import { formerText } from '../../former-times.ts'
import type { DestinationDue, MessageOperation, Move, Operation, OperationResult } from '../../message-operation.ts'
import { fromStatus } from '../../stored-values.ts'
import { int2s, int8s, storableText, texts } from '../session/arrays.ts'
import type { Operated as Changed } from '../../records/audit-records.ts'
import { BEGIN_ROUND, END_ROUND, HELD_BEFORE } from '../../records/operation-round.ts'
import { runRecord } from '../session/record-calls.ts'
import { remove } from './departures.ts'
import * as sql from './operation-queries.ts'
import type { OwnLeases } from './own-leases.ts'
import { toMessage, type MessageRow, type RecipientRow } from './rows.ts'
import type { Send, Transaction } from './write-transaction.ts'

/** A message with its recipients, locked. */
export interface HeldMessage {
  readonly row: MessageRow
  readonly recipients: readonly RecipientRow[]
}

interface Operated extends OperatedMessage<OperatedRecipient & { readonly row: RecipientRow }> {
  readonly row: MessageRow
}

type Of<Kind extends Change<Operated>['kind']> = Extract<Change<Operated>, { readonly kind: Kind }>

const PLACEMENTS = [
  ['park', sql.park],
  ['unpark', sql.unpark],
  ['discard', sql.discard],
] as const

const UNCHANGED: OperationResult = { changed: false, woken: [] }

/** Locks recipients and then messages, both by id, and returns the messages that exist. */
export async function lock(tx: Transaction, messages: readonly MessageId[]): Promise<ReadonlyMap<MessageId, HeldMessage>> {
  const ids = int8s([...new Set(messages)].toSorted((a, b) => a - b))
  const [, recipients, rows] = await Promise.all([
    tx.query(sql.limitLockWait),
    tx.query<RecipientRow>(sql.lockRecipientsOf, [ids]),
    tx.query<MessageRow>(sql.lockMessageRows, [ids]),
  ])
  const byMessage = Map.groupBy(recipients, ({ id }) => messageOf(id))
  return new Map(rows.map((row) => [row.message, { row, recipients: byMessage.get(row.message) ?? [] }]))
}

const operatedOf = ({ row, recipients }: HeldMessage): Operated => ({
  row,
  message: {
    id: row.message,
    notBefore: row.not_before ?? undefined,
    scheduled: row.scheduled === true ? true : undefined,
    holdRequest: row.hold_request ?? undefined,
    expires: row.expires ?? undefined,
    class: row.class ?? undefined,
  },
  placement: row.placement,
  deletedAt: row.deleted_at,
  forcedExpire: row.forced_expire,
  recipients: recipients.map((one) => ({
    id: one.id,
    destination: one.destination,
    state: one.state,
    dueAt: one.due_at,
    keptDueAt: one.kept_due_at,
    expiresAt: one.expires_at,
    noticeDue: one.notice_due ?? undefined,
    row: one,
  })),
})

export class Operating {
  readonly #owner: OwnerId
  readonly #leases: OwnLeases

  constructor(owner: OwnerId, leases: OwnLeases) {
    this.#owner = owner
    this.#leases = leases
  }

  operate: Send<'operate'> = (tx, calls) => ({
    answers: Promise.all(calls.map(([operations, round]) => this.#operate(tx, operations, round))),
    isLast: false,
  })

  move: Send<'move'> = (tx, calls) => ({ answers: Promise.all(calls.map(([moves]) => this.#move(tx, moves))), isLast: false })

  quarantine: Send<'quarantine'> = (tx, calls) => ({
    answers: Promise.all(calls.map(([message, why]) => this.#quarantine(tx, message, why))),
    isLast: false,
  })

  /** Purges messages that are still in the trash since before a time. */
  async purge(tx: Transaction, messages: readonly MessageId[], before: number): Promise<void> {
    const held = [...(await lock(tx, messages)).values()].filter(
      ({ row }) => row.placement === 'trash' && (row.deleted_at ?? before) < before,
    )
    await this.#change(
      tx,
      held.flatMap((one) => purged(operatedOf(one), one.row.deleted_at ?? before)),
    )
  }

  async #operate(
    tx: Transaction,
    operations: readonly MessageOperation[],
    round: OperationRound | undefined,
  ): Promise<readonly OperationResult[] | null> {
    if (round !== undefined && !(await runRecord(tx, BEGIN_ROUND, round))) return null
    const results: OperationResult[] = []
    const operated: Changed[] = []
    for (const part of partsOf(operations)) results.push(...(await this.#part(tx, part, operated)))
    const changed = results.filter((one) => one.changed).length
    if (round !== undefined) await runRecord(tx, END_ROUND, round, changed, operated)
    return results
  }

  /** Applies operations on different messages. Adds the changed messages to `operated`. */
  async #part(tx: Transaction, operations: readonly MessageOperation[], operated: Changed[]): Promise<readonly OperationResult[]> {
    const held = await lock(
      tx,
      operations.map(({ message }) => message),
    )
    const restored = operations.filter(({ operation }) => operation.kind === 'restore').map(({ message }) => message)
    const heldBefore = new Set(restored.length === 0 ? [] : await runRecord(tx, HELD_BEFORE, restored))
    const decided = operations.map(({ message, operation, events }) => {
      const found = held.get(message)
      const one = found === undefined ? undefined : operatedOf(found)
      const wasHeld = heldBefore.has(message)
      const changes = one === undefined ? [] : changesOf(one, operation, wasHeld)
      const woken = one === undefined || changes.length === 0 ? [] : wakes(one, operation, wasHeld)
      if (changes.length > 0) tx.events.note(events)
      if (one !== undefined && changes.length > 0) operated.push([message, one.placement, formerTextOf(one, operation)])
      if (changes.length > 0 && operation.kind === 'requeue') operated.push([operation.newId, 'queued', null])
      return { changes, woken, revive: operation.kind === 'flush' }
    })
    await this.#change(
      tx,
      decided.flatMap(({ changes }) => changes),
    )
    const due = new Map<DestinationName, DestinationDue>()
    for (const revive of [false, true]) {
      const destinations = decided.filter((one) => one.revive === revive).flatMap(({ woken }) => woken)
      for (const { destination, dueAt } of await this.#wake(tx, destinations, revive)) due.set(destination, { destination, dueAt })
    }
    return decided.map(({ changes, woken }) =>
      changes.length === 0
        ? UNCHANGED
        : { changed: true, woken: [...due.values()].filter(({ destination }) => woken.includes(destination)) },
    )
  }

  /** Returns the earliest due time at each destination, and tells the owners of other shards. */
  async #wake(tx: Transaction, destinations: readonly DestinationName[], revive: boolean) {
    const names = [...new Set(destinations)]
    if (names.length === 0) return []
    const parameters = [this.#owner, int2s(names.map((name) => tx.shardOf(name))), texts(names), revive]
    const rows = await tx.query<DestinationDue & { isForeign: boolean; told: readonly Shard[] }>(sql.wake, parameters)
    tx.told((rows[0]?.told ?? []).map((shard) => ({ shard })))
    return rows.map(({ destination, dueAt, isForeign }) => ({ destination, dueAt, isForeign }))
  }

  /** Returns the earliest due time at each own destination with waiting mail, and tells the owners of the others. */
  async wakeOwn(tx: Transaction, destinations: readonly DestinationName[]): Promise<readonly DestinationDue[]> {
    const due = await this.#wake(tx, destinations, false)
    return due.filter(({ isForeign }) => !isForeign).map(({ destination, dueAt }) => ({ destination, dueAt }))
  }

  async #move(tx: Transaction, moves: readonly Move[]): Promise<readonly DestinationDue[]> {
    const [, locked] = await Promise.all([
      tx.query(sql.limitLockWait),
      tx.query<RecipientRow>(sql.lockRecipients, [int8s(moves.map(({ recipient }) => recipient))]),
    ])
    const movable = new Set(locked.filter(({ state }) => state === 'waiting' || state === 'parked').map(({ id }) => id))
    const moved = moves.filter(({ recipient }) => movable.has(recipient))
    await tx.query(sql.move, [
      int8s(moved.map(({ recipient }) => recipient)),
      texts(moved.map(({ destination }) => destination)),
      int2s(moved.map(({ destination }) => tx.shardOf(destination))),
      int8s(moved.map(({ expiresAt }) => expiresAt)),
    ])
    return this.wakeOwn(
      tx,
      moves.map(({ destination }) => destination),
    )
  }

  async #quarantine(tx: Transaction, message: MessageId, why: string): Promise<void> {
    const held = (await lock(tx, [message])).get(message)
    if (held === undefined) return
    const parked = await tx.query<{ id: number }>(sql.parkUnreadable, [this.#owner, message])
    if (held.row.placement !== 'corrupt') {
      tx.shares.left(held.row, held.row.placement)
      tx.events.quarantined(toMessage(held.row), why)
      await tx.query(sql.place, [int8s([message]), 'corrupt', null, storableText(why)])
    }
    tx.onCommit(() => this.#leases.end(parked.map(({ id }) => id)))
  }

  /** Makes changes of locked rows. */
  async #change(tx: Transaction, changes: readonly Change<Operated>[]): Promise<void> {
    const of = <Kind extends Change<Operated>['kind']>(kind: Kind): Of<Kind>[] =>
      changes.filter((one): one is Of<Kind> => one.kind === kind)
    const statements: Promise<unknown>[] = []
    for (const [kind, text] of PLACEMENTS) {
      const ids = changes.flatMap((one) => (one.kind === kind ? idsOf(one.recipients) : []))
      if (ids.length > 0) statements.push(tx.query(text, [int8s(ids)]))
    }
    for (const [now, those] of Map.groupBy(of('flush'), (one) => one.now))
      statements.push(tx.query(sql.flush, [int8s(those.flatMap(({ recipients }) => idsOf(recipients))), now]))
    for (const those of Map.groupBy(of('place'), ({ placement, deletedAt }) => `${placement} ${deletedAt}`).values()) {
      const [first] = those
      for (const { held, placement } of those) {
        tx.shares.left(held.row, held.row.placement)
        tx.shares.entered(held.row, placement)
      }
      if (first !== undefined) statements.push(tx.query(sql.place, [messagesOf(those), first.placement, first.deletedAt, null]))
    }
    if (of('expire').length > 0) statements.push(tx.query(sql.forceExpire, [messagesOf(of('expire'))]))
    for (const one of of('requeue')) statements.push(requeue(tx, one))
    for (const one of of('reschedule')) statements.push(reschedule(tx, one))
    for (const [name, those] of Map.groupBy(of('reclass'), (one) => one.class))
      statements.push(tx.query(sql.reclass, [messagesOf(those), name]), tx.query(sql.reclassRecipients, [messagesOf(those), name]))
    for (const { recipients, at, last, isCounted } of of('remove')) {
      if (isCounted) tx.traffic.note({ kind: 'deleted', at, recipients: recipients.length })
      if (recipients.length > 0) statements.push(tx.query(sql.removeRecipients, [int8s(idsOf(recipients)), at, fromStatus(last)]))
    }
    await Promise.all(statements)
    const leaving = of('depart').map(({ held }) => held.row.message)
    if (leaving.length > 0) await remove(tx, this.#owner, await tx.query<MessageRow>(sql.messagesById, [int8s(leaving)]))
  }
}

/** Splits operations so that no part has two on one message. */
function partsOf(operations: readonly MessageOperation[]): readonly (readonly MessageOperation[])[] {
  const parts: MessageOperation[][] = []
  let seen = new Set<MessageId>()
  for (const one of operations) {
    if (parts.length === 0 || seen.has(one.message)) {
      parts.push([])
      seen = new Set()
    }
    seen.add(one.message)
    parts.at(-1)?.push(one)
  }
  return parts
}

function formerTextOf(one: Operated, operation: Operation): string | null {
  const former = formerOf(one, operation)
  return former && formerText(former)
}

const messagesOf = (changes: readonly { readonly held: Operated }[]): Buffer => int8s(changes.map(({ held }) => held.row.message))

async function reschedule(tx: Transaction, { held: { row }, operation }: Of<'reschedule'>): Promise<void> {
  const { notBefore = null, scheduled, holdRequest, expires = null, times } = operation
  const request = holdRequest === undefined ? row.hold_request : holdRequest
  await Promise.all([
    tx.query(sql.reschedule, [row.message, notBefore, scheduled === true ? true : null, request, expires]),
    ...times.map(({ destination, dueAt, expiresAt }) => tx.query(sql.rescheduleAt, [row.message, destination, dueAt, expiresAt])),
  ])
}

async function requeue(
  tx: Transaction,
  { held: { row }, moving, dueAt, operation: { now, newId, expiresAt } }: Of<'requeue'>,
): Promise<void> {
  const rows = moving.map((one) => one.row)
  const home = rows[0]?.shard ?? row.home
  tx.shares.entered(row, 'queued')
  await Promise.all([
    tx.query(sql.copyMessage, [row.message, newId, now, moving.length, home]),
    tx.query(sql.shareContent, [row.message]),
    tx.query(sql.insertRequeued, [
      int8s(moving.map((_, position) => recipientId(newId, position))),
      dueAt,
      expiresAt,
      home,
      int2s(rows.map(({ shard }) => shard)),
      int2s(rows.map(({ band }) => band)),
      texts(rows.map(({ destination }) => destination)),
      texts(rows.map(({ address }) => address)),
      texts(rows.map(({ notify }) => notify)),
      texts(rows.map(({ orcpt }) => orcpt)),
    ]),
  ])
}
