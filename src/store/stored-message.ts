/** The columns in which both SQL engines store the members of a message. A new member is a row here, and a column of both databases. */
import type { Message } from '../mail/message.ts'

/** A flag is an integer in SQLite, and a boolean in PostgreSQL. */
type ColumnType = 'integer' | 'text' | 'flag'

export const MESSAGE_COLUMNS = {
  id: ['id', 'integer'],
  createdAt: ['created_at', 'integer'],
  arrivedAt: ['arrived_at', 'integer'],
  sender: ['sender', 'text'],
  size: ['size', 'integer'],
  contentId: ['content_id', 'integer'],
  prependedHeaders: ['prepended_headers', 'text'],
  ret: ['ret', 'text'],
  envid: ['envid', 'text'],
  smtputf8: ['smtputf8', 'flag'],
  bodyType: ['body_type', 'text'],
  messageId: ['message_id', 'text'],
  subject: ['subject', 'text'],
  fromHeader: ['from_header', 'text'],
  client: ['client', 'text'],
  saslUsername: ['sasl_username', 'text'],
  notBefore: ['not_before', 'integer'],
  scheduled: ['scheduled', 'flag'],
  holdRequest: ['hold_request', 'text'],
  expires: ['expires', 'integer'],
  deliverBy: ['deliver_by', 'integer'],
  byMode: ['by_mode', 'text'],
  share: ['share', 'text'],
  maxAttempts: ['max_attempts', 'integer'],
  class: ['class', 'text'],
} as const satisfies { readonly [M in keyof Message]-?: readonly [column: string, type: ColumnType] }

type Columns = typeof MESSAGE_COLUMNS
type Member = keyof Columns

/** The columns of a row, with the type that the engine has for a flag. An absent member is null. */
export type StoredMessage<Flag> = {
  readonly [M in Member as Columns[M][0]]:
    | (Columns[M][1] extends 'flag' ? Flag : Exclude<Message[M], undefined>)
    | (undefined extends Message[M] ? null : never)
}

export type MessageColumn = Columns[Member][0]

interface Entry {
  readonly member: Member
  readonly column: MessageColumn
  readonly type: ColumnType
}

export const COLUMN_LIST: readonly Entry[] = (Object.keys(MESSAGE_COLUMNS) as Member[]).map((member) => {
  const [column, type] = MESSAGE_COLUMNS[member]
  return { member, column, type }
})

/** Names of the columns, but for some. */
export const columnsBut = (...omitted: readonly MessageColumn[]): readonly MessageColumn[] =>
  COLUMN_LIST.map(({ column }) => column).filter((column) => !omitted.includes(column))

const DECODED = COLUMN_LIST.filter(({ column }) => column !== 'id')
const DEPARTED = DECODED.filter(({ column }) => column !== 'prepended_headers')

type Row = Partial<StoredMessage<number | boolean>>

/** The message of a row. */
export const messageOfRow = (id: Message['id'], row: Row): Message => decoded(id, row, DECODED)

/** The message of a row for the history, without the prepended header fields, which belong to the deleted content. */
export const departedOfRow = (id: Message['id'], row: Row): Message => decoded(id, row, DEPARTED)

function decoded(id: Message['id'], row: Row, entries: readonly Entry[]): Message {
  const message: { -readonly [M in Member]?: unknown } = { id }
  for (const { member, column, type } of entries) {
    const value = row[column]
    if (value === null || value === undefined) continue
    message[member] = type === 'flag' ? value === 1 || value === true : value
  }
  return message as Message
}
