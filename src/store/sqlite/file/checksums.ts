/**
 * CRC-32 checksums of row columns, computed when deferd writes the row. A row whose columns were changed in any other way is not
 * delivered. The columns of the schedule, which SQL statements update, have a sum that SQLite computes
 * (migrations/0001_queue.sql).
 */
import { NO_CLASS } from '../../../config/values/mail-classes.ts'
import { crc32 } from '../../../system/crc32.ts'
import type { StoredMessage } from '../../stored-message.ts'

/** The columns of a message that its checksum covers: all but those on which no delivery depends, the mark of the index message_scheduled and texts of the header. */
export type MessageEnvelope = Omit<StoredMessage<number>, 'scheduled' | 'subject' | 'from_header'>

export interface RecipientEnvelope {
  readonly id: number
  readonly destination: string
  readonly address: string
  readonly notify: string | null
  readonly orcpt: string | null
  /** Null in a row that was written before the column was added. */
  readonly band: number | null
  readonly turn: number | null
}

/**
 * Checksum of a message's columns. Line feeds separate the columns, because only the last column, the prepended header fields,
 * may contain one. Mail without times of its own, without BY, a share, a limit of attempts or a class has the sum that it had before there were any.
 */
export const messageCrc = (row: MessageEnvelope): number =>
  crc32(
    `${row.id} ${row.created_at} ${row.arrived_at} ${row.size} ${row.content_id} ${row.smtputf8} ${row.body_type} ${row.ret}\n${row.sender}\n${row.envid}\n${row.message_id}\n${row.client}\n${row.sasl_username}\n${timesOf(row)}${deliverByOf(row)}${shareOf(row)}${limitOf(row)}${classOf(row)}${row.prepended_headers}`,
  )

const timesOf = ({ not_before: notBefore, hold_request: request, expires }: MessageEnvelope): string =>
  (notBefore ?? request ?? expires ?? null) === null ? '' : `${notBefore} ${expires} ${request}\n`

const deliverByOf = ({ deliver_by: at, by_mode: mode }: MessageEnvelope): string => ((at ?? mode ?? null) === null ? '' : `${at} ${mode}\n`)

const shareOf = ({ share }: MessageEnvelope): string => ((share ?? null) === null ? '' : `share ${share}\n`)

const limitOf = ({ max_attempts: limit }: MessageEnvelope): string => ((limit ?? null) === null ? '' : `attempts ${limit}\n`)

const classOf = ({ class: name }: MessageEnvelope): string => ((name ?? null) === null ? '' : `class ${name}\n`)

export const recipientCrc = (row: RecipientEnvelope): number =>
  crc32(`${row.id}\n${row.destination}\n${row.address}\n${row.notify}\n${row.orcpt}${placeOf(row)}`)

const placeOf = ({ band, turn }: RecipientEnvelope): string => ((band ?? NO_CLASS) === NO_CLASS && turn === null ? '' : `\n${band} ${turn}`)

/** Checksum of a stored outcome; null when there is none. */
export const outcomeCrc = (last: string | null): number | null => (last === null ? null : crc32(last))

/** Checksums as they are stored; `is_sound` compares the sum of the schedule with the columns. */
interface Stored {
  readonly envelope_crc: number
  readonly is_sound: 0 | 1
}

export type SummedMessage = MessageEnvelope & Stored

export type StoredRecipient = RecipientEnvelope & Stored & { readonly last: string | null; readonly last_crc: number | null }

/** Whether the columns of a message are those that deferd wrote. */
export const isSoundMessage = (row: SummedMessage): boolean => row.is_sound === 1 && messageCrc(row) === row.envelope_crc

/** Whether the columns of a recipient are those that deferd wrote. */
export const isSoundRecipient = (row: StoredRecipient): boolean =>
  row.is_sound === 1 && recipientCrc(row) === row.envelope_crc && outcomeCrc(row.last) === row.last_crc
