/**
 * Removes messages that have neither a live recipient nor a notice due. Their rows are replaced by one row of history each.
 */
import { messageOf, type Message, type MessageId, type OwnerId, type Recipient, type RecipientId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { encodeHistory, type HistoryRecord } from '../../history-record.ts'
import { isReturned } from '../../returned-mail.ts'
import { int8s, storableText, texts } from '../session/arrays.ts'
import { keepContents, lockKeptSharers } from './departed-queries.ts'
import * as sql from './queries.ts'
import { toAttempt, type AttemptRow } from '../../sql/stored-rows.ts'
import { toMessage, toRecipient, type MessageRow, type RecipientRow } from './rows.ts'
import type { Transaction } from './write-transaction.ts'

/** Time when a message left: that of its last outcome. */
export const leftAt = (recipients: readonly Recipient[]): QueueTime =>
  recipients.reduce((latest, { settledAt = 0 }) => Math.max(latest, settledAt), 0)

/** The record of a message that leaves, without the prepended header fields, which belong to the deleted content. */
export function recordOf(record: HistoryRecord): string {
  const { prependedHeaders: _, ...message } = record.message
  return storableText(encodeHistory({ ...record, message: message satisfies Message }))
}

/** Removes those of the locked messages that nothing keeps, and returns their ids. */
export async function removeUnkept(
  tx: Transaction,
  owner: OwnerId,
  messages: readonly MessageId[],
  keepUntil: ReadonlyMap<MessageId, QueueTime>,
): Promise<readonly MessageId[]> {
  const rows = await tx.query<MessageRow>(sql.unkeptAmong, [int8s(messages)])
  if (rows.length > 0) await remove(tx, owner, rows, keepUntil)
  return rows.map(({ message }) => message)
}

/** No content is kept. */
const KEEPS_NONE: ReadonlyMap<MessageId, QueueTime> = new Map()

/** Removes locked messages. `keepUntil` has the times of Settlement. */
export async function remove(
  tx: Transaction,
  owner: OwnerId,
  rows: readonly MessageRow[],
  keepUntil: ReadonlyMap<MessageId, QueueTime> = KEEPS_NONE,
): Promise<void> {
  const ids = int8s(rows.map(({ message }) => message))
  const shared = rows.flatMap(({ shares_content: isShared, content_id: content }) => (isShared ? [content] : []))
  const [recipients, attempts] = await Promise.all([
    tx.query<RecipientRow>(sql.recipientsOf, [ids]),
    tx.query<AttemptRow>(sql.attemptsOf, [ids]),
    shared.length === 0 ? [] : tx.query(sql.lockSharers, [int8s(shared)]),
    shared.length === 0 ? [] : tx.query(sql.lockMovingSharers, [int8s(shared)]),
    shared.length === 0 ? [] : tx.query(lockKeptSharers, [int8s(shared)]),
  ])
  const [recipientsBy, attemptsBy] = [Map.groupBy(recipients, byMessage), Map.groupBy(attempts, ({ recipient }) => messageOf(recipient))]
  const records = rows.map((row) => {
    const settled = (recipientsBy.get(row.message) ?? []).map(toRecipient)
    const history = (attemptsBy.get(row.message) ?? []).map(toAttempt)
    const { forced_expire: forcedExpire, warnings } = row
    tx.events.removed(toMessage(row), leftAt(settled))
    tx.shares.left(row, row.placement)
    return { at: leftAt(settled), record: recordOf({ message: toMessage(row), forcedExpire, warnings, recipients: settled, history }) }
  })
  const kept = rows.filter(({ message }) => keepUntil.has(message) && isReturned((recipientsBy.get(message) ?? []).map(toRecipient)))
  for (const [until, those] of Map.groupBy(kept, ({ message }) => keepUntil.get(message) ?? 0))
    await tx.query(keepContents, [int8s(those.map(({ message }) => message)), until])
  await tx.query(sql.depart, [
    owner,
    ids,
    int8s(records.map(({ at }) => at)),
    texts(records.map(({ record }) => record)),
    int8s(rows.map(({ content_id: content }) => content)),
  ])
}

const byMessage = ({ id }: { readonly id: RecipientId }): MessageId => messageOf(id)
