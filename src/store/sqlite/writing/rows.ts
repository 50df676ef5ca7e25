/**
 * Rows of the database and their conversion to values. The decoding of an invalid row throws Undecodable; its message is
 * quarantined, and other mail is not affected.
 */
import type { QueueTime } from '../../../system/clock.ts'
import type { NoticeDue, LeasedRecipient, Message, Placement, Recipient, RecipientState } from '../../../mail/message.ts'
import { COLUMN_LIST, departedOfRow, messageOfRow, type MessageColumn, type StoredMessage } from '../../stored-message.ts'
import { lenient, readableStatus, toNotify, toStatus, Undecodable } from '../../stored-values.ts'
import { isSoundMessage, isSoundRecipient } from '../file/checksums.ts'

export interface MessageRow extends StoredMessage<number> {
  readonly shares_content: number
  readonly placement: Placement
  readonly deleted_at: number | null
  readonly why: string | null
  readonly forced_expire: number
  readonly warnings: number
  readonly warn_at: number | null
  readonly envelope_crc: number
  readonly is_sound: 0 | 1
}

/** Columns of a message that settlements and the history need. */
export type DepartingRow = Omit<MessageRow, 'prepended_headers' | 'deleted_at' | 'why' | 'warn_at' | 'envelope_crc' | 'is_sound'>

export interface RecipientRow {
  readonly id: number
  readonly state: RecipientState
  readonly destination: string
  readonly address: string
  readonly notify: string | null
  readonly orcpt: string | null
  readonly band: number
  readonly turn: number | null
  readonly due_at: number
  readonly kept_due_at: number | null
  readonly expires_at: number
  readonly steps: number
  readonly attempts: number
  readonly delivery_starts: number
  readonly settled_at: number | null
  readonly notice_due: NoticeDue | null
  readonly last: string | null
  readonly last_crc: number | null
  readonly envelope_crc: number
  readonly is_sound: 0 | 1
}

/** Columns of a recipient that the history needs. */
export type DepartingRecipientRow = Omit<RecipientRow, 'band' | 'turn' | 'kept_due_at' | 'last_crc' | 'envelope_crc' | 'is_sound'>

/** Columns that no message lacks. */
const REQUIRED: ReadonlySet<string> = new Set(['id', 'created_at', 'arrived_at', 'sender', 'size', 'content_id', 'smtputf8'])

const instant = (value: unknown, column: string): QueueTime => {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  throw new Undecodable(`${column} is not a whole number`)
}

const text = (value: unknown, column: string): string => {
  if (typeof value === 'string') return value
  throw new Undecodable(`${column} is not text`)
}

/** Decodes a message for delivery. Throws Undecodable when a value that a delivery depends on is invalid. */
export function toMessage(row: MessageRow): Message {
  for (const { column, type } of COLUMN_LIST) {
    const value = row[column]
    if (value === null && !REQUIRED.has(column)) continue
    if (type === 'text') text(value, column)
    else instant(value, column)
  }
  if (!isSoundMessage(row)) throw new Undecodable('the envelope does not match its checksum')
  return asMessage(row)
}

/** Throws Undecodable unless the columns of a recipient are those that deferd wrote. */
export function assertSound(row: RecipientRow): void {
  if (!isSoundRecipient(row)) throw new Undecodable(`the envelope or schedule of recipient ${row.id} does not match its checksum`)
}

/** The columns of a message. */
export function fromMessage(message: Message): StoredMessage<number> {
  const row: { [Column in MessageColumn]?: string | number | null } = {}
  for (const { member, column } of COLUMN_LIST) {
    const value = message[member] ?? null
    row[column] = typeof value === 'boolean' ? Number(value) : value
  }
  return row as StoredMessage<number>
}

/** Decodes a message without validation. */
export const asMessage = (row: MessageRow): Message => messageOfRow(row.id, row)

/** Decodes a message for the history. */
export const asDeparted = (row: DepartingRow): Message => departedOfRow(row.id, row)

export function toLeased(row: RecipientRow, warnings: number): LeasedRecipient {
  assertSound(row)
  return {
    id: row.id,
    address: text(row.address, 'address'),
    ...(row.notify === null ? {} : { notify: toNotify(text(row.notify, 'notify')) }),
    ...(row.orcpt === null ? {} : { orcpt: text(row.orcpt, 'orcpt') }),
    dueAt: instant(row.kept_due_at ?? row.due_at, 'due_at'),
    expiresAt: instant(row.expires_at, 'expires_at'),
    steps: instant(row.steps, 'steps'),
    attempts: instant(row.attempts, 'attempts'),
    last: toStatus(row.last),
    warnings,
    flushed: row.kept_due_at !== null,
  }
}

/**
 * Decodes a recipient for history and notices. An outcome that cannot be decoded is replaced, so that it does not hide the
 * recipient.
 */
export function toRecipient(row: DepartingRecipientRow): Recipient {
  return {
    id: row.id,
    address: row.address,
    destination: row.destination,
    state: row.state,
    ...(row.notify === null ? {} : { notify: lenient(() => toNotify(row.notify ?? ''), 'never') }),
    ...(row.orcpt === null ? {} : { orcpt: row.orcpt }),
    dueAt: row.due_at,
    expiresAt: row.expires_at,
    steps: row.steps,
    attempts: row.attempts,
    deliveryStarts: row.delivery_starts,
    last: readableStatus(row.last),
    ...(row.settled_at === null ? {} : { settledAt: row.settled_at }),
    ...(row.notice_due === null ? {} : { noticeDue: row.notice_due }),
  }
}
