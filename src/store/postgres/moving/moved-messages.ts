/** Messages that leave or enter the tables of queued mail with their whole state, because they move between queues. */
import { isLive, messageOf, STARTS_UNTIL_SUSPECT, type DestinationName, type MessageId } from '../../../mail/message.ts'
import { shardOf, type Shard } from '../../membership/shards.ts'
import { liveRecipients, withoutClass, type MovedMessage, type MovedRecipient } from '../../move-store.ts'
import type { DestinationDue } from '../../message-operation.ts'
import { fromNotify, fromStatus } from '../../stored-values.ts'
import { booleans, int2s, int4s, int8s, storableText, texts } from '../session/arrays.ts'
import * as sql from './move-queries.ts'
import { messageArrays } from '../writing/message-columns.ts'
import type { HeldMessage, Operating } from '../writing/operate.ts'
import { insertAttempts } from '../writing/outcomes.ts'
import { attemptsOf } from '../writing/queries.ts'
import { toAttempt, type AttemptRow } from '../../sql/stored-rows.ts'
import { toMessage, toRecipient } from '../writing/rows.ts'
import type { Transaction } from '../writing/write-transaction.ts'

/** A row of the tables moving and origin. */
export interface RecordRow {
  readonly message: MessageId
  readonly record: string
}

export const encoded = (moved: MovedMessage): string => storableText(JSON.stringify(moved))
export const decoded = ({ record }: Pick<RecordRow, 'record'>): MovedMessage => JSON.parse(record) as MovedMessage

/** Locked messages with everything that belongs to them, except their contents. */
export async function readMoved(tx: Transaction, held: readonly HeldMessage[]): Promise<readonly MovedMessage[]> {
  const ids = int8s(held.map(({ row }) => row.message))
  const [attempts, states] = await Promise.all([
    tx.query<AttemptRow>(attemptsOf, [ids]),
    tx.query<{ id: MessageId; warn_at: number | null; why: string | null }>(sql.stateToMove, [ids]),
  ])
  const attemptsBy = Map.groupBy(attempts, ({ recipient }) => messageOf(recipient))
  const stateBy = new Map(states.map((one) => [one.id, one]))
  return held.map(({ row, recipients }) => ({
    message: toMessage(row),
    placement: row.placement,
    deletedAt: row.deleted_at,
    why: stateBy.get(row.message)?.why ?? null,
    forcedExpire: row.forced_expire,
    warnings: row.warnings,
    warnAt: stateBy.get(row.message)?.warn_at ?? null,
    recipients: recipients.map((one) => ({ ...toRecipient(one), keptDueAt: one.kept_due_at })),
    attempts: (attemptsBy.get(row.message) ?? []).map(toAttempt),
  }))
}

/** A message that enters the queue, and whether another message has the same content. */
interface Entering {
  readonly moved: MovedMessage
  readonly sharesContent: boolean
}

/** Adds messages to the queue. The caller tells the owners of their destinations (dueOf). */
export async function enterMoved(tx: Transaction, given: readonly Entering[]): Promise<void> {
  if (given.length === 0) return
  const entering = await withKnownClasses(tx, given)
  const all = entering.map(({ moved }) => moved)
  for (const moved of all) tx.traffic.note({ kind: 'accepted', at: moved.message.arrivedAt, recipients: liveRecipients(moved) })
  const attempts = all.flatMap((moved) => moved.attempts)
  await Promise.all([restoreMessages(tx, entering), restoreRecipients(tx, all), insertAttempts(tx, attempts), tellOfNotices(tx, all)])
}

/** The messages, without those classes that the queue does not have. */
async function withKnownClasses(tx: Transaction, entering: readonly Entering[]): Promise<readonly Entering[]> {
  if (entering.every(({ moved }) => moved.message.class === undefined)) return entering
  const known = new Set((await tx.query<{ name: string }>(sql.classNames)).map(({ name }) => name))
  return entering.map((one) => (known.has(one.moved.message.class ?? '') ? one : { ...one, moved: withoutClass(one.moved) }))
}

/** The own destinations with waiting mail of these messages, each with its earliest due time. The owners of the others are told. */
export async function dueOf(tx: Transaction, messages: readonly MessageId[], operating: Operating): Promise<readonly DestinationDue[]> {
  const rows = await tx.query<{ destination: DestinationName }>(sql.destinationsOf, [int8s(messages)])
  return operating.wakeOwn(
    tx,
    rows.map(({ destination }) => destination),
  )
}

const homeOf = ({ recipients: [first] }: MovedMessage): Shard => shardOf(first?.destination ?? '')

function restoreMessages(tx: Transaction, entering: readonly Entering[]): Promise<unknown> {
  const all = entering.map(({ moved }) => moved)
  for (const { message, placement } of all) tx.shares.entered(message, placement)
  return tx.query(sql.restoreMessages, [
    ...messageArrays(all.map(({ message }) => message)),
    int8s(all.map(({ warnAt }) => warnAt)),
    int8s(all.map(({ deletedAt }) => deletedAt)),
    int4s(all.map(({ recipients }) => recipients.length)),
    int4s(all.map(({ warnings }) => warnings)),
    int2s(all.map(homeOf)),
    booleans(entering.map(({ sharesContent }) => sharesContent)),
    booleans(all.map(({ forcedExpire }) => forcedExpire)),
    texts(all.map(({ placement }) => placement)),
    texts(all.map(({ placement, why }) => (placement === 'corrupt' ? (why ?? 'corrupt in the queue from which it came') : null))),
  ])
}

interface EnteringRecipient extends MovedRecipient {
  readonly home: Shard
  readonly parks: boolean
}

function restoreRecipients(tx: Transaction, entering: readonly MovedMessage[]): Promise<unknown> {
  const all = entering.flatMap((moved) =>
    moved.recipients.map((one): EnteringRecipient => ({ ...one, home: homeOf(moved), parks: isLive(one) && moved.placement !== 'queued' })),
  )
  return tx.query(sql.restoreRecipients, [
    int8s(all.map(({ id }) => id)),
    int8s(all.map(({ dueAt }) => dueAt)),
    int8s(all.map(({ keptDueAt }) => keptDueAt)),
    int8s(all.map(({ expiresAt }) => expiresAt)),
    int8s(all.map(({ settledAt }) => settledAt ?? null)),
    int4s(all.map(({ steps }) => steps)),
    int4s(all.map(({ attempts }) => attempts)),
    int4s(all.map(({ deliveryStarts }) => deliveryStarts)),
    int2s(all.map(({ destination }) => tx.shardOf(destination))),
    int2s(all.map(({ home }) => home)),
    booleans(all.map(({ state, deliveryStarts }) => state === 'waiting' && deliveryStarts >= STARTS_UNTIL_SUSPECT)),
    booleans(all.map(({ parks }) => parks)),
    texts(all.map(({ state }) => state)),
    texts(all.map(({ destination }) => destination)),
    texts(all.map(({ address }) => address)),
    texts(all.map(({ notify }) => fromNotify(notify))),
    texts(all.map(({ orcpt }) => orcpt ?? null)),
    texts(all.map(({ noticeDue }) => noticeDue ?? null)),
    texts(all.map(({ last }) => fromStatus(last))),
  ])
}

/** Tells the owners, this node too: the answer of this transaction may be lost. */
async function tellOfNotices(tx: Transaction, entering: readonly MovedMessage[]): Promise<void> {
  const owing = entering.filter(({ warnAt, recipients }) => warnAt !== null || recipients.some(({ noticeDue }) => noticeDue !== undefined))
  if (owing.length === 0) return
  tx.told(await tx.query<{ shard: Shard }>(sql.tellOfNotices, [int2s(owing.map(homeOf)), int8s(owing.map(({ message }) => message.id))]))
}
