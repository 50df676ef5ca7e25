/** The columns of a message, as arrays for a statement that inserts many messages. */
import type { Message } from '../../../mail/message.ts'
import { COLUMN_LIST, columnsBut } from '../../stored-message.ts'
import { int8s, booleans, texts } from '../session/arrays.ts'

export const WRITTEN = columnsBut().join(', ')

/** End of a statement that inserts messages with the returned rows `new`: those with texts of the header are to be indexed. */
export const MARK_NEW = 'insert into unindexed (message) select id from new where from_header is not null on conflict do nothing'

const TYPES = { integer: 'bigint', text: 'text', flag: 'boolean' } as const

/** Placeholders of the parameters that `messageArrays` returns. The parameters of the statement begin with them. */
export const WRITTEN_ARRAYS = COLUMN_LIST.map(({ type }, n) => `$${n + 1}::${TYPES[type]}[]`).join(', ')

/** Placeholders of further parameters of the statement, which are arrays of these types. */
export const furtherArrays = (...types: readonly string[]): string =>
  types.map((type, n) => `$${COLUMN_LIST.length + n + 1}::${type}[]`).join(', ')

export const messageArrays = (messages: readonly Message[]): readonly Buffer[] =>
  COLUMN_LIST.map(({ member, type }) => {
    const values = messages.map((message) => message[member] ?? null)
    switch (type) {
      case 'integer':
        return int8s(values as (number | null)[])
      case 'text':
        return texts(values as (string | null)[])
      case 'flag':
        return booleans(values as (boolean | null)[])
    }
  })
