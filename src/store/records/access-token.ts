/** Tokens by which programs use the HTTP interface, as the queue keeps them. */
import type { QueueTime } from '../../system/clock.ts'
import { given, RecordTable, silent, type MethodsOf } from './record-table.ts'

/** Role of a token: what it may do. */
export const TOKEN_ROLES = ['viewer', 'operator', 'sender', 'admin'] as const

export interface AccessToken {
  /** Unique name. */
  readonly name: string
  readonly role: (typeof TOKEN_ROLES)[number]
  /** True when header and body of messages may be read. */
  readonly content: boolean
  /** Pattern of the destinations that the token is limited to; null for all. */
  readonly destinations: string | null
  /** SHA-256 of the secret, in hexadecimal digits. */
  readonly hash: string
  readonly addedAt: QueueTime
  readonly addedBy: string
  /** Time from which the token is refused; null for never. An expired token is kept until it is removed. */
  readonly expiresAt: QueueTime | null
  /** Begin of the hour of the last use; null for a token that was never used. */
  readonly lastUsedAt: QueueTime | null
}

const table = new RecordTable<AccessToken, 'name'>(
  'access_token',
  {
    name: 'text',
    role: 'text',
    content: 'flag',
    destinations: 'text',
    hash: 'text',
    addedAt: 'number',
    addedBy: 'text',
    expiresAt: 'number',
    lastUsedAt: 'number',
  },
  { key: ['name'], unique: ['hash'] },
)

export const ACCESS_TOKENS = {
  /** Adds a token. Returns false, without effect, when the name or the hash is in use. */
  add: table.add(),
  /** Removes the token of a name. Returns false when there is none. */
  remove: table.remove(),
  /** Records a use. `hour` is the begin of an hour; an earlier one than the recorded has no effect. */
  used: given(
    (name: string, hour: QueueTime) => ({ name, lastUsedAt: hour }),
    silent(
      table.change<{ readonly lastUsedAt: QueueTime }>({
        when: {
          sql: '(last_used_at is null or last_used_at < :lastUsedAt)',
          held: (kept, { lastUsedAt }) => kept.lastUsedAt === null || kept.lastUsedAt < lastUsedAt,
        },
      }),
    ),
  ),
  /** All tokens, ordered by name. */
  all: table.all(),
  /** The token with a hash; undefined when there is none. */
  byHash: table.find('hash'),
}

export type TokenRecords = MethodsOf<typeof ACCESS_TOKENS>
