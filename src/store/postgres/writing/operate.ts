/** Operations on whole messages. A recipient in delivery keeps its lease; its row has the state that follows the lease (`parks`). */
import { messageOf, recipientId, type DestinationName, type MessageId, type OwnerId, type Placement } from '../../../mail/message.ts'
import type { Shard } from '../../membership/shards.ts'
import type { OperationRound } from '../../audit-log.ts'
import { formerText, perDestination, type FormerTimes } from '../../former-times.ts'
import type { DestinationDue, MessageOperation, Move, OperationResult } from '../../queue-store.ts'
import { int2s, int8s, storableText, texts } from '../session/arrays.ts'
import type { AuditWriter } from './audit-rows.ts'
import { remove } from './departures.ts'
import * as sql from './operation-queries.ts'
import { changesOf, purged, wakes, type Change, type HeldMessage } from './operation-changes.ts'
import type { OwnLeases } from './own-leases.ts'
import { toMessage, type MessageRow, type RecipientRow } from './rows.ts'
import type { Send, Transaction } from './write-transaction.ts'

type Of<Kind extends Change['kind']> = Extract<Change, { readonly kind: Kind }>

const PLACEMENTS = [
  ['park', sql.park],
  ['unpark', sql.unpark],
  ['discard', sql.discard],
] as const

/** A changed message with its placement before. */
type Operated = readonly [message: MessageId, was: Placement, former: string | null]

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

export class Operating {
  readonly #owner: OwnerId
  readonly #leases: OwnLeases
  readonly #audit: AuditWriter

  constructor(owner: OwnerId, leases: OwnLeases, audit: AuditWriter) {
    this.#audit = audit
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
      held.flatMap((one) => purged(one, one.row.deleted_at ?? before)),
    )
  }

  async #operate(
    tx: Transaction,
    operations: readonly MessageOperation[],
    round: OperationRound | undefined,
  ): Promise<readonly OperationResult[] | null> {
    if (round !== undefined && !(await this.#audit.locks(tx, round))) return null
    const results: OperationResult[] = []
    const operated: Operated[] = []
    for (const part of partsOf(operations)) results.push(...(await this.#part(tx, part, operated)))
    const changed = results.filter((one) => one.changed).length
    if (round !== undefined) await this.#audit.count(tx, round, changed, operated)
    return results
  }

  /** Applies operations on different messages. Adds the changed messages to `operated`. */
  async #part(tx: Transaction, operations: readonly MessageOperation[], operated: Operated[]): Promise<readonly OperationResult[]> {
    const held = await lock(
      tx,
      operations.map(({ message }) => message),
    )
    const restored = operations.filter(({ operation }) => operation.kind === 'restore').map(({ message }) => message)
    const heldBefore = await this.#audit.heldBefore(tx, restored)
    const decided = operations.map(({ message, operation, events }) => {
      const found = held.get(message)
      const one = found === undefined ? undefined : { ...found, wasHeld: heldBefore.has(message) }
      const changes = one === undefined ? [] : changesOf(one, operation)
      const woken = one === undefined || changes.length === 0 ? [] : wakes(one, operation).map(({ destination }) => destination)
      if (changes.length > 0) tx.events.note(events)
      if (one !== undefined && changes.length > 0)
        operated.push([message, one.row.placement, operation.kind === 'reschedule' ? formerText(formerTimes(one)) : null])
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
  async #change(tx: Transaction, changes: readonly Change[]): Promise<void> {
    const of = <Kind extends Change['kind']>(kind: Kind): Of<Kind>[] => changes.filter((one): one is Of<Kind> => one.kind === kind)
    const statements: Promise<unknown>[] = []
    for (const [kind, text] of PLACEMENTS) {
      const ids = changes.flatMap((one) => (one.kind === kind ? one.ids : []))
      if (ids.length > 0) statements.push(tx.query(text, [int8s(ids)]))
    }
    for (const [now, those] of Map.groupBy(of('flush'), (one) => one.now))
      statements.push(tx.query(sql.flush, [int8s(those.flatMap(({ ids }) => ids)), now]))
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
    for (const { ids, at, last, isCounted } of of('remove')) {
      if (isCounted) tx.traffic.note('deleted', at, ids.length)
      if (ids.length > 0) statements.push(tx.query(sql.removeRecipients, [int8s(ids), at, last]))
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

const messagesOf = (changes: readonly { readonly held: HeldMessage }[]): Buffer => int8s(changes.map(({ held }) => held.row.message))

async function reschedule(tx: Transaction, { held: { row }, operation }: Of<'reschedule'>): Promise<void> {
  const { notBefore = null, scheduled, holdRequest, expires = null, times } = operation
  const request = holdRequest === undefined ? row.hold_request : holdRequest
  await Promise.all([
    tx.query(sql.reschedule, [row.message, notBefore, scheduled === true ? true : null, request, expires]),
    ...times.map(({ destination, dueAt, expiresAt }) => tx.query(sql.rescheduleAt, [row.message, destination, dueAt, expiresAt])),
  ])
}

/** The times that a reschedule replaces. */
const formerTimes = ({ row, recipients }: HeldMessage): FormerTimes => ({
  notBefore: row.not_before ?? undefined,
  scheduled: row.scheduled === true ? true : undefined,
  holdRequest: row.hold_request ?? undefined,
  expires: row.expires ?? undefined,
  times: perDestination(
    recipients
      .filter(({ settled_at: at }) => at === null)
      .map((one) => ({ destination: one.destination, dueAt: one.kept_due_at ?? one.due_at, expiresAt: one.expires_at })),
  ),
})

async function requeue(tx: Transaction, { held: { row }, moving, operation: { now, newId, expiresAt } }: Of<'requeue'>): Promise<void> {
  const home = moving[0]?.shard ?? row.home
  tx.shares.entered(row, 'queued')
  await Promise.all([
    tx.query(sql.copyMessage, [row.message, newId, now, moving.length, home]),
    tx.query(sql.shareContent, [row.message]),
    tx.query(sql.insertRequeued, [
      int8s(moving.map((_, position) => recipientId(newId, position))),
      Math.max(now, row.not_before ?? now),
      expiresAt,
      home,
      int2s(moving.map(({ shard }) => shard)),
      texts(moving.map(({ destination }) => destination)),
      texts(moving.map(({ address }) => address)),
      texts(moving.map(({ notify }) => notify)),
      texts(moving.map(({ orcpt }) => orcpt)),
    ]),
  ])
}
