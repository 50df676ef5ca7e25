/**
 * CRC-32 checksums of row columns, computed when deferd writes the row. A row whose columns were changed in any other way is not
 * delivered. The columns of the schedule, which SQL statements update, have a sum that SQLite computes
 * (migrations/0001_queue.sql).
 */
import { crc32 } from '../../../system/crc32.ts'

export interface MessageEnvelope {
  readonly id: number
  readonly created_at: number
  readonly arrived_at: number
  readonly sender: string
  readonly size: number
  readonly content_id: number
  readonly prepended_headers: string | null
  readonly ret: string | null
  readonly envid: string | null
  readonly smtputf8: number
  readonly body_type: string | null
  readonly message_id: string | null
  readonly client: string | null
  readonly sasl_username: string | null
}

export interface RecipientEnvelope {
  readonly id: number
  readonly destination: string
  readonly address: string
  readonly notify: string | null
  readonly orcpt: string | null
}

/**
 * Checksum of a message's columns. Line feeds separate the columns, because only the last column, the prepended header fields,
 * may contain one.
 */
export const messageCrc = (row: MessageEnvelope): number =>
  crc32(
    `${row.id} ${row.created_at} ${row.arrived_at} ${row.size} ${row.content_id} ${row.smtputf8} ${row.body_type} ${row.ret}\n${row.sender}\n${row.envid}\n${row.message_id}\n${row.client}\n${row.sasl_username}\n${row.prepended_headers}`,
  )

export const recipientCrc = (row: RecipientEnvelope): number =>
  crc32(`${row.id}\n${row.destination}\n${row.address}\n${row.notify}\n${row.orcpt}`)

/** Checksum of a stored outcome; null when there is none. */
export const outcomeCrc = (last: string | null): number | null => (last === null ? null : crc32(last))

/** Checksums as they are stored; `is_sound` compares the sum of the schedule with the columns. */
interface Stored {
  readonly envelope_crc: number
  readonly is_sound: 0 | 1
}

export type StoredMessage = MessageEnvelope & Stored

export type StoredRecipient = RecipientEnvelope & Stored & { readonly last: string | null; readonly last_crc: number | null }

/** Whether the columns of a message are those that deferd wrote. */
export const isSoundMessage = (row: StoredMessage): boolean => row.is_sound === 1 && messageCrc(row) === row.envelope_crc

/** Whether the columns of a recipient are those that deferd wrote. */
export const isSoundRecipient = (row: StoredRecipient): boolean =>
  row.is_sound === 1 && recipientCrc(row) === row.envelope_crc && outcomeCrc(row.last) === row.last_crc
