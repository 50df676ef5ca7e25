/**
 * Rows of the database and their conversion to values. The decoding of an invalid row throws Undecodable; its message is
 * quarantined, and other mail is not affected.
 */
import type { QueueTime } from '../../system/clock.ts'
import type { Ret } from '../../mail/envelope.ts'
import type { NoticeDue, LeasedRecipient, Message, Placement, Recipient, RecipientState } from '../../mail/message.ts'
import { lenient, readableStatus, toNotify, toStatus, Undecodable } from '../stored-values.ts'
import { isSoundMessage, isSoundRecipient } from './file/checksums.ts'

export interface MessageRow {
  readonly id: number
  readonly created_at: number
  readonly arrived_at: number
  readonly sender: string
  readonly size: number
  readonly content_id: number
  readonly prepended_headers: string | null
  readonly shares_content: number
  readonly ret: Ret | null
  readonly envid: string | null
  readonly smtputf8: number
  readonly body_type: '7bit' | '8bitmime' | null
  readonly message_id: string | null
  readonly client: string | null
  readonly sasl_username: string | null
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
export type DepartingRecipientRow = Omit<RecipientRow, 'kept_due_at' | 'last_crc' | 'envelope_crc' | 'is_sound'>

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
  for (const column of ['created_at', 'arrived_at', 'size', 'content_id'] as const) instant(row[column], column)
  text(row.sender, 'sender')
  for (const column of ['prepended_headers', 'envid', 'message_id', 'client', 'sasl_username'] as const)
    if (row[column] !== null) text(row[column], column)
  if (!isSoundMessage(row)) throw new Undecodable('the envelope does not match its checksum')
  return asMessage(row)
}

/** Throws Undecodable unless the columns of a recipient are those that deferd wrote. */
export function assertSound(row: RecipientRow): void {
  if (!isSoundRecipient(row)) throw new Undecodable(`the envelope or schedule of recipient ${row.id} does not match its checksum`)
}

/** The columns of a message that are written once. */
export const fromMessage = (message: Message) => ({
  id: message.id,
  created_at: message.createdAt,
  arrived_at: message.arrivedAt,
  sender: message.sender,
  size: message.size,
  content_id: message.contentId,
  prepended_headers: message.prependedHeaders ?? null,
  ret: message.ret ?? null,
  envid: message.envid ?? null,
  smtputf8: message.smtputf8 ? 1 : 0,
  body_type: message.bodyType ?? null,
  message_id: message.messageId ?? null,
  client: message.client ?? null,
  sasl_username: message.saslUsername ?? null,
})

/** Decodes a message without validation. */
export const asMessage = (row: MessageRow): Message =>
  row.prepended_headers === null ? asDeparted(row) : { ...asDeparted(row), prependedHeaders: row.prepended_headers }

/** Decodes a message for the history, without the prepended header fields, which belong to the deleted content. */
export const asDeparted = (row: DepartingRow): Message => ({
  id: row.id,
  createdAt: row.created_at,
  arrivedAt: row.arrived_at,
  sender: row.sender,
  size: row.size,
  contentId: row.content_id,
  smtputf8: row.smtputf8 === 1,
  ...(row.ret === null ? {} : { ret: row.ret }),
  ...(row.envid === null ? {} : { envid: row.envid }),
  ...(row.body_type === null ? {} : { bodyType: row.body_type }),
  ...(row.message_id === null ? {} : { messageId: row.message_id }),
  ...(row.client === null ? {} : { client: row.client }),
  ...(row.sasl_username === null ? {} : { saslUsername: row.sasl_username }),
})

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
