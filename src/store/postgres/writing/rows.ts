/** Rows of the tables in PostgreSQL, and their conversion to values. */
import {
  type LeasedRecipient,
  type Message,
  type NoticeDue,
  type Placement,
  type Recipient,
  type RecipientState,
} from '../../../mail/message.ts'
import type { Shard } from '../../membership/shards.ts'
import { columnsBut, messageOfRow, type StoredMessage } from '../../stored-message.ts'
import type { AttemptRecord } from '../../recorded-outcomes.ts'
import { lenient, readableStatus, toNotify, toStatus, UNREADABLE } from '../../stored-values.ts'

/** Columns of a message, except the content. */
export const MESSAGE_COLUMNS = `message.id as message, ${columnsBut('id')
  .map((column) => `message.${column}`)
  .join(', ')},
    message.recipients, message.warnings, message.home, message.shares_content, message.forced_expire, message.placement, message.deleted_at,
    message.content is not null and message.content_id = message.id and not message.shares_content as is_inline`

export interface MessageRow extends Omit<StoredMessage<boolean>, 'id'> {
  readonly message: number
  readonly recipients: number
  readonly warnings: number
  readonly home: Shard
  readonly shares_content: boolean
  readonly forced_expire: boolean
  readonly placement: Placement
  readonly deleted_at: number | null
  /** True when the content is in the row, and no other message has it. */
  readonly is_inline: boolean
}

export interface RecipientRow {
  readonly id: number
  readonly state: RecipientState
  readonly band: number
  readonly shard: Shard
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
  readonly leased_by: number | null
  /** Name of the node that leases it, where it was asked for. */
  readonly node_name?: string | null
  readonly settled_at: number | null
  readonly notice_due: NoticeDue | null
  readonly last: string | null
}

/** One attempt as JSON. */
type TriedEntry = readonly [
  at: number,
  relay: string | null,
  outcome: AttemptRecord['outcome'],
  status: string,
  delays: string,
  session_id: string | null,
]

/** A leased recipient with its message and its earlier attempts. */
export type LeasedRow = MessageRow &
  Omit<RecipientRow, 'state' | 'shard' | 'delivery_starts' | 'leased_by' | 'settled_at' | 'notice_due'> & {
    readonly tried: readonly TriedEntry[] | null
    /** Of some messages that are claimed. */
    readonly content?: Uint8Array | null
    readonly content_crc?: number | null
  }

export const toMessage = (row: MessageRow): Message => messageOfRow(row.message, row)

const wishesOf = ({ notify, orcpt }: Pick<RecipientRow, 'notify' | 'orcpt'>): Pick<Recipient, 'notify' | 'orcpt'> => ({
  ...(notify === null ? {} : { notify: lenient(() => toNotify(notify), 'never') }),
  ...(orcpt === null ? {} : { orcpt }),
})

export const toLeased = (row: LeasedRow): LeasedRecipient => ({
  id: row.id,
  address: row.address,
  ...wishesOf(row),
  dueAt: row.kept_due_at ?? row.due_at,
  expiresAt: row.expires_at,
  steps: row.steps,
  attempts: row.attempts,
  last: lenient(() => toStatus(row.last), UNREADABLE),
  warnings: row.warnings,
  flushed: row.kept_due_at !== null,
})

export const toRecipient = (row: RecipientRow): Recipient => ({
  id: row.id,
  address: row.address,
  destination: row.destination,
  state: row.state,
  ...wishesOf(row),
  dueAt: row.due_at,
  expiresAt: row.expires_at,
  steps: row.steps,
  attempts: row.attempts,
  deliveryStarts: row.delivery_starts,
  last: readableStatus(row.last),
  ...(row.settled_at === null ? {} : { settledAt: row.settled_at }),
  ...(row.notice_due === null ? {} : { noticeDue: row.notice_due }),
  ...(row.node_name === null || row.node_name === undefined ? {} : { node: row.node_name }),
})

// --- listings

/** Columns of a message in a listing. */
export type ListedRow = Pick<
  MessageRow,
  | 'message'
  | 'created_at'
  | 'arrived_at'
  | 'sender'
  | 'size'
  | 'content_id'
  | 'message_id'
  | 'placement'
  | 'forced_expire'
  | 'not_before'
  | 'scheduled'
  | 'expires'
  | 'class'
  | 'share'
  | 'hold_request'
>
