/** Moves of messages out of the queue. Any node may move messages of all shards: their rows are locked, and those in delivery stay. */
import { lockKeptSharers } from '../writing/departed-queries.ts'
import { type MessageId, type OwnerId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { decodeHistory } from '../../history-record.ts'
import {
  liveRecipients,
  movedRecord,
  RECIPIENTS_PER_ROUND,
  type MovedMessage,
  type MoveRound,
  type MoveSelection,
  type MoveTarget,
  type NumberedHistory,
} from '../../move-store.ts'
import type { AuditId } from '../../records/audit-log.ts'
import { COUNT_CHANGED } from '../../records/operation-round.ts'
import { runRecord } from '../session/record-calls.ts'
import type { DestinationDue } from '../../message-operation.ts'
import { booleans, int8s, texts } from '../session/arrays.ts'
import { recordOf } from '../writing/departures.ts'
import { OUT, type MoveClaims } from './move-claims.ts'
import * as sql from './move-queries.ts'
import { decoded, dueOf, encoded, enterMoved, readMoved, type RecordRow } from './moved-messages.ts'
import { lock, type Operating, type HeldMessage } from '../writing/operate.ts'
import { lockMovingSharers, lockSharers } from '../writing/queries.ts'
import type { Send, Transaction } from '../writing/write-transaction.ts'

/** Maximum number of messages that one call considers, which takes some milliseconds. */
const SLICE = 256

interface MovingRow extends RecordRow {
  /** MoveTarget as JSON. */
  readonly target: string
}

interface LockedRow extends MovingRow {
  readonly content_id: number
  readonly shares_content: boolean
}

/** Messages that a round may take, up to the id `last`; `isEnd` when no other message follows. */
interface Candidates {
  readonly ids: readonly MessageId[]
  readonly last: MessageId
  readonly isEnd: boolean
}

interface OutgoingDeps {
  readonly node: OwnerId
  readonly claims: MoveClaims
  readonly operating: Operating
}

export class OutgoingMoves {
  readonly #deps: OutgoingDeps
  readonly beginMove: Send<'beginMove'>
  readonly leaving: Send<'leaving'>
  readonly finishMove: Send<'finishMove'>
  readonly undoMove: Send<'undoMove'>
  readonly markMoved: Send<'markMoved'>

  constructor(deps: OutgoingDeps) {
    const { claims } = deps
    const out = () => OUT
    this.#deps = deps
    this.beginMove = claims.sender<'beginMove'>(out, (tx, [selection]) => this.#begin(tx, selection))
    this.leaving = claims.sender<'leaving'>(out, (tx, [limit]) => leaving(tx, limit))
    this.finishMove = claims.sender<'finishMove'>(out, (tx, [finished, at, auditedAs]) => this.#finish(tx, finished, at, auditedAs))
    this.undoMove = claims.sender<'undoMove'>(out, (tx, [messages]) => this.#undo(tx, messages))
    this.markMoved = claims.sender<'markMoved'>(out, (tx, [name]) => markMoved(tx, name))
  }

  historyAfter: Send<'historyAfter'> = (tx, calls) => ({
    answers: Promise.all(calls.map(([seq, limit]) => historyAfter(tx, seq, limit))),
    isLast: false,
  })

  async #begin(tx: Transaction, selection: MoveSelection): Promise<MoveRound> {
    const { target, after, through, limit, withNoticesDue } = selection
    const before = await tx.query<RecordRow>(sql.takenOutBefore, [after, through, limit])
    if (before.length > 0) return { messages: before.map(decoded), unreadable: [], next: before.at(-1)?.message ?? null }
    const { ids, last, isEnd } = await candidates(tx, selection)
    const locked = await lock(tx, ids)
    const held = [...locked.values()].filter((one) => !stays(one, withNoticesDue)).toSorted((a, b) => a.row.message - b.row.message)
    const messages = await readMoved(tx, held)
    if (held.length > 0) await takeOut(tx, held, messages, target)
    return { messages, unreadable: [], next: isEnd ? null : last }
  }

  async #finish(
    tx: Transaction,
    finished: readonly { readonly id: MessageId; readonly as: string }[],
    at: QueueTime,
    auditedAs: AuditId | null,
  ): Promise<void> {
    const names = new Map(finished.map(({ id, as }) => [id, as]))
    const rows = await lockInOrder(tx, [...names.keys()])
    if (rows.length === 0) return
    const records = rows.map((row) =>
      recordOf(movedRecord(decoded(row), { name: targetOf(row).name, as: names.get(row.message) ?? '', at })),
    )
    await Promise.all([
      tx.query(sql.forgetMoved, [
        this.#deps.node,
        at,
        int8s(rows.map(({ message }) => message)),
        texts(records),
        int8s(rows.map(({ content_id: content }) => content)),
      ]),
      auditedAs === null ? [] : runRecord(tx, COUNT_CHANGED, auditedAs, rows.length),
    ])
  }

  /** Messages that an earlier call has put back count too, because its answer may have been lost. */
  async #undo(tx: Transaction, messages: readonly MessageId[]): Promise<readonly DestinationDue[]> {
    const { operating } = this.#deps
    const rows = await lockMoving(tx, messages)
    if (rows.length > 0) await tx.query(sql.deleteMoving, [int8s(rows.map(({ message }) => message))])
    await enterMoved(
      tx,
      rows.map((row) => ({ moved: decoded(row), sharesContent: row.shares_content })),
    )
    return dueOf(tx, messages, operating)
  }
}

const targetOf = ({ target }: MovingRow): MoveTarget => JSON.parse(target) as MoveTarget

const lockMoving = (tx: Transaction, messages: readonly MessageId[]): Promise<readonly LockedRow[]> =>
  tx.query<LockedRow>(sql.lockMoving, [int8s(messages)])

/**
 * Locks messages out of the queue after the messages in the queue that share their contents, as a departure does, which has a lock of its
 * message before it locks the sharers.
 */
async function lockInOrder(tx: Transaction, messages: readonly MessageId[]): Promise<readonly LockedRow[]> {
  const shared = await tx.query<{ content: number }>(sql.sharedContents, [int8s(messages)])
  const contents = int8s(shared.map(({ content }) => content))
  const locks = [lockSharers, lockMovingSharers, lockKeptSharers].map((statement) => tx.query(statement, [contents]))
  const [rows] = await Promise.all([lockMoving(tx, messages), ...locks])
  return rows
}

async function candidates(tx: Transaction, { after, through, limit, withNoticesDue }: MoveSelection): Promise<Candidates> {
  const slice = await tx.query<{ id: MessageId; recipients: number; stays: boolean }>(sql.sliceToMove, [
    after,
    through,
    SLICE,
    withNoticesDue,
  ])
  const ids: MessageId[] = []
  let [recipients, last] = [0, after]
  for (const one of slice) {
    if (ids.length === limit || recipients >= RECIPIENTS_PER_ROUND) return { ids, last, isEnd: false }
    last = one.id
    if (!one.stays) recipients += ids.push(one.id) && one.recipients
  }
  return { ids, last, isEnd: slice.length < SLICE }
}

const stays = ({ recipients }: HeldMessage, withNoticesDue: boolean): boolean =>
  recipients.some(({ state, notice_due: due }) => state === 'leased' || (due !== null && !withNoticesDue))

/** Replaces the rows of locked messages. */
async function takeOut(
  tx: Transaction,
  held: readonly HeldMessage[],
  messages: readonly MovedMessage[],
  target: MoveTarget,
): Promise<void> {
  const ids = int8s(held.map(({ row }) => row.message))
  for (const { row } of held) tx.shares.left(row, row.placement)
  for (const moved of messages) tx.traffic.note({ kind: 'accepted', at: moved.message.arrivedAt, recipients: -liveRecipients(moved) })
  await Promise.all([
    tx.query(sql.keepContents, [ids]),
    tx.query(sql.insertMoving, [
      JSON.stringify(target),
      ids,
      int8s(held.map(({ row }) => row.content_id)),
      booleans(held.map(({ row }) => row.shares_content)),
      texts(messages.map(encoded)),
    ]),
    tx.query(sql.deleteQueued, [ids]),
  ])
}

async function leaving(tx: Transaction, limit: number): Promise<readonly { readonly target: MoveTarget; readonly moved: MovedMessage }[]> {
  const rows = await tx.query<MovingRow>(sql.movingRows, [limit])
  return rows.map((row) => ({ target: targetOf(row), moved: decoded(row) }))
}

async function historyAfter(tx: Transaction, seq: number, limit: number): Promise<readonly NumberedHistory[]> {
  await tx.query(sql.lockHistory)
  const rows = await tx.query<Omit<NumberedHistory, 'record'> & { readonly record: string }>(sql.historyAfter, [seq, limit])
  return rows.map((row) => ({ ...row, record: decodeHistory(row.message, row.record) }))
}

async function markMoved(tx: Transaction, name: string): Promise<boolean> {
  if ((await tx.query(sql.movedTo)).length > 0) return true
  if (await isInUse(tx)) return false
  await tx.query(sql.refuseMail)
  if (await isInUse(tx)) {
    await tx.query(sql.acceptMail)
    return false
  }
  await tx.query(sql.markMoved, [name])
  return true
}

async function isInUse(tx: Transaction): Promise<boolean> {
  const [row] = await tx.query<{ used: boolean }>(sql.isInUse)
  return row?.used !== false
}
