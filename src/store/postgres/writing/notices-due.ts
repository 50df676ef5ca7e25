/**
 * Due notices. A recipient is marked with the outcome that requires a DSN (RFC 3461). The transaction that queues the DSN clears the
 * mark, so that no notice is lost or sent twice. The owner of a message's home shard sends its notices.
 */
import { messageOf, type DestinationName, type MessageId, type OwnerId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import type { Shard } from '../../membership/shards.ts'
import type { MessageWithNoticesDue, RecipientsElsewhere, Report } from '../../recorded-outcomes.ts'
import { int8s } from '../session/arrays.ts'
import type { Statements } from '../session/database-connection.ts'
import { removeUnkept } from './departures.ts'
import type { Intake } from './enqueue.ts'
import { lock } from './operate.ts'
import * as sql from './operation-queries.ts'
import { toMessage, toRecipient, type MessageRow, type RecipientRow } from './rows.ts'
import { sent, type Send, type Transaction } from './write-transaction.ts'

const OUTDATED = { removed: false, entered: false }

export class NoticesDue {
  readonly #owner: OwnerId
  readonly #intake: Intake
  readonly #reading: Statements

  constructor(owner: OwnerId, intake: Intake, reading: Statements) {
    this.#owner = owner
    this.#intake = intake
    this.#reading = reading
  }

  postponeWarning: Send<'postponeWarning'> = (tx, calls) =>
    sent(
      Promise.all(
        calls.map(async ([message, warnAt]) =>
          tx.told(await tx.query<{ shard: Shard }>(sql.postponeWarning, [this.#owner, message, warnAt])),
        ),
      ),
    )

  markDelayNoticeDue: Send<'markDelayNoticeDue'> = (tx, calls) => {
    const ids = calls.flatMap(([message, recipients]) => recipients.filter((id) => messageOf(id) === message))
    return sent(tx.query(sql.markDelayNoticeDue, [int8s(ids)]).then(() => calls.map(() => undefined)))
  }

  report: Send<'report'> = (tx, calls) => ({ answers: Promise.all(calls.map(([report]) => this.#report(tx, report))), isLast: false })

  async messagesWithNoticesDue(after: MessageId, limit: number): Promise<readonly MessageWithNoticesDue[]> {
    const found = await this.#reading.query<{ id: MessageId }>(sql.messagesWithNoticesDue, [this.#owner, (after + 1) * 131_072, limit])
    return this.#told(
      found.map(({ id }) => id),
      'owing',
    )
  }

  async noticesDueOf(message: MessageId): Promise<MessageWithNoticesDue | undefined> {
    const [found] = await this.#told([message], 'owing')
    return found
  }

  /** Messages whose warning time has passed, with their live recipients. */
  async claimWarnings(now: QueueTime, limit: number): Promise<readonly MessageWithNoticesDue[]> {
    const found = await this.#reading.query<{ id: MessageId }>(sql.dueWarnings, [this.#owner, now, limit])
    return this.#told(
      found.map(({ id }) => id),
      'live',
    )
  }

  async #report(tx: Transaction, { message, noticesSettled, late, notices, warnings, warnAt, events, keepUntil }: Report) {
    const held = (await lock(tx, [message])).get(message)
    if (held === undefined || (noticesSettled.length === 0 && warnings <= held.row.warnings)) return OUTDATED
    const recipients = new Map(held.recipients.map((one) => [one.id, one]))
    const isCurrent =
      noticesSettled.every(({ recipient, noticeDue }) => recipients.get(recipient)?.notice_due === noticeDue) &&
      late.every((id) => recipients.get(id)?.settled_at === null)
    if (!isCurrent) return OUTDATED
    await Promise.all([
      tx.query(sql.clearNoticesDue, [int8s(noticesSettled.map(({ recipient }) => recipient))]),
      tx.query(sql.setWarnings, [message, warnings, warnAt]),
      notices.length === 0 ? undefined : this.#intake.enter(tx, notices),
    ])
    tx.events.note(events)
    const kept = new Map(keepUntil === undefined ? [] : [[message, keepUntil]])
    return { removed: (await removeUnkept(tx, this.#owner, [message], kept)).length > 0, entered: true }
  }

  async #told(messages: readonly MessageId[], wanted: 'owing' | 'live'): Promise<readonly MessageWithNoticesDue[]> {
    if (messages.length === 0) return []
    const ids = int8s(messages)
    const [rows, recipients, others] = await Promise.all([
      this.#reading.query<MessageRow>(sql.messagesById, [ids]),
      this.#reading.query<RecipientRow>(sql.recipientsToReport, [ids]),
      this.#reading.query<ElsewhereRow>(sql.recipientsElsewhere, [this.#owner, ids]),
    ])
    const byId = new Map(rows.map((row) => [row.message, row]))
    return messages.flatMap((id) => {
      const row = byId.get(id)
      const chosen = chosenOf(
        recipients.filter((one) => messageOf(one.id) === id),
        wanted,
      )
      if (row === undefined || chosen.length === 0) return []
      const elsewhere = elsewhereOf(others.filter(({ message }) => message === id))
      return [
        {
          message: toMessage(row),
          warnings: row.warnings,
          recipients: chosen.map(toRecipient),
          ...(elsewhere === undefined ? {} : { elsewhere }),
        },
      ]
    })
  }
}

/** Recipients with a notice due and, for a delay notice, the other live ones, because it lists all delayed recipients. */
function chosenOf(recipients: readonly RecipientRow[], wanted: 'owing' | 'live'): readonly RecipientRow[] {
  if (wanted === 'live') return recipients.filter(({ settled_at: at }) => at === null)
  const owing = recipients.filter(({ notice_due: kind }) => kind !== null)
  return owing.some(({ notice_due: kind }) => kind === 'delay') ? recipients : owing
}

interface ElsewhereRow {
  readonly message: MessageId
  readonly destination: DestinationName
  readonly leased: boolean
  readonly closed: boolean
}

function elsewhereOf(rows: readonly ElsewhereRow[]): RecipientsElsewhere | undefined {
  if (rows.length === 0) return undefined
  const closed = rows.filter((one) => one.closed).map(({ destination }) => destination)
  return { leased: rows.some(({ leased }) => leased), closed: [...new Set(closed)].toSorted() }
}
