/** Contents that stay after their messages have left, and mail that is sent again with them. */
import type { ContentId, MessageId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import type { OperationRound } from '../../records/audit-log.ts'
import { DROPPED, resentRecipients, sliceToDrop, type KeptLimits, type Resending } from '../../returned-mail.ts'
import { decodeHistory, encodeHistory } from '../../history-record.ts'
import { int8s, storableText, texts } from '../session/arrays.ts'
import type { Operated } from '../../records/audit-records.ts'
import { BEGIN_ROUND, END_ROUND } from '../../records/operation-round.ts'
import { runRecord } from '../session/record-calls.ts'
import type { Intake } from '../writing/enqueue.ts'
import * as sql from '../writing/departed-queries.ts'
import { lockMovingSharers, lockSharers } from '../writing/queries.ts'
import type { Send, Transaction } from '../writing/write-transaction.ts'

export interface KeptRow {
  readonly message: MessageId
  readonly content: ContentId
  readonly until: QueueTime
  readonly size: number
}

export class DepartedWriter {
  readonly #intake: Intake

  constructor(intake: Intake) {
    this.#intake = intake
  }

  resend: Send<'resend'> = (tx, calls) => ({
    answers: Promise.all(calls.map(([mail, round]) => this.#resend(tx, mail, round))),
    isLast: false,
  })

  dropKept: Send<'dropKept'> = (tx, calls) => ({ answers: Promise.all(calls.map(([limits]) => dropKept(tx, limits))), isLast: false })

  async #resend(tx: Transaction, mail: readonly Resending[], round: OperationRound): Promise<readonly boolean[] | null> {
    if (!(await runRecord(tx, BEGIN_ROUND, round))) return null
    const messages = int8s(mail.map(({ message }) => message))
    const kept = await tx.query<{ message: MessageId; content: ContentId }>(sql.lockKeptOf, [messages])
    const contents = new Map(kept.map(({ message, content }) => [message, content]))
    const rows = await tx.query<{ seq: number; message: MessageId; record: string }>(sql.lockDepartures, [messages])
    const departures = new Map(
      rows.map(({ message, seq, record }) => [message, { seq, details: decodeHistory(message, record), isChanged: false }]),
    )
    const sent = new Set<Resending>()
    for (const one of mail) {
      const departure = departures.get(one.message)
      if (departure === undefined || contents.get(one.message) !== one.entry.message.contentId) continue
      const recipients = resentRecipients(departure.details.recipients, one)
      if (recipients === null) continue
      departures.set(one.message, { ...departure, details: { ...departure.details, recipients }, isChanged: true })
      sent.add(one)
    }
    const entries = [...sent].map(({ entry }) => entry)
    if (entries.length > 0) {
      const changed = [...departures.values()].filter(({ isChanged }) => isChanged)
      await Promise.all([
        tx.query(sql.changeDepartures, [
          int8s(changed.map(({ seq }) => seq)),
          texts(changed.map(({ details }) => storableText(encodeHistory(details)))),
        ]),
        this.#intake.enter(tx, entries),
        tx.query(sql.shareContents, [int8s(entries.map(({ message }) => message.id))]),
      ])
    }
    const operated = entries.map(({ message }): Operated => [message.id, 'queued', null])
    await runRecord(tx, END_ROUND, round, entries.length, operated)
    return mail.map((one) => sent.has(one))
  }
}

async function dropKept(tx: Transaction, limits: KeptLimits): Promise<{ readonly bytes: number; readonly more: boolean }> {
  const [[sum], oldest] = await Promise.all([tx.query<{ bytes: number }>(sql.keptBytes), tx.query<KeptRow>(sql.oldestKept, [DROPPED])])
  const { dropped, bytes, more } = sliceToDrop(oldest, sum?.bytes ?? 0, limits)
  if (dropped.length > 0) await dropContents(tx, dropped)
  return { bytes, more }
}

/** Deletes contents unless other messages have them. Locks messages that share a content before its row, as a departure does. */
export async function dropContents(tx: Transaction, dropped: readonly KeptRow[]): Promise<void> {
  const contents = int8s(dropped.map(({ content }) => content))
  const messages = int8s(dropped.map(({ message }) => message))
  await tx.query(lockSharers, [contents])
  await tx.query(lockMovingSharers, [contents])
  await tx.query(sql.lockKeptOf, [messages])
  await tx.query(sql.forgetKept, [messages, contents])
}
