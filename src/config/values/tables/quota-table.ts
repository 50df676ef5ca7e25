/** The `[quota.NAME]` tables: how much mail of one key is accepted in a span of time. */
import type { Duration } from '../../../system/clock.ts'
import { SHARE_PARTS, type FieldKey } from '../limit-terms.ts'

/** Origins of a key: those of share_key, and the address of the sender. */
export const QUOTA_KEYS = [...SHARE_PARTS, 'sender'] as const
export type QuotaKey = (typeof QUOTA_KEYS)[number] | FieldKey

/** `refuse` answers 450; `hold` accepts, and holds mail until there is room. */
export const QUOTA_ACTIONS = ['refuse', 'hold'] as const
export type QuotaAction = (typeof QUOTA_ACTIONS)[number]

/** Messages, or recipients as the client gave them. */
export type QuotaMeasure = 'messages' | 'recipients'

export interface QuotaLimit {
  /** As it is written: `1000/1h`, `20000 recipients/1d`. */
  readonly text: string
  readonly measure: QuotaMeasure
  readonly most: number
  readonly span: Duration
}

export interface QuotaTable {
  readonly name: string
  readonly key: QuotaKey
  /** Patterns, one of which the key matches; empty for all keys. */
  readonly match: readonly string[]
  /** Names of classes whose mail is counted; empty for all mail. */
  readonly classes: readonly string[]
  readonly limits: readonly QuotaLimit[]
  readonly action: QuotaAction
  /** Longest time for which mail is held. */
  readonly holdLimit: Duration
  /** Limits of single keys, in lower case, in place of `limits`; empty for none. */
  readonly exceptions: ReadonlyMap<string, readonly QuotaLimit[]>
}

/** Members of the tables and their meanings. */
export const QUOTA_MEMBERS = {
  keys: `whose mail is counted together: ${QUOTA_KEYS.map((name) => `\`${name}\``).join(', ')}, or \`header:NAME\`, the value of a header field`,
  limits:
    'list of limits such as `"1000/1h"` (messages) and `"20000 recipients/1d"`, over 1 minute to 31 days; each of them must have room',
  match: 'patterns with `*`; keys that match none have no limit. All keys when absent',
  classes:
    'list of classes (`[class.NAME]`) whose mail is counted. All mail when absent. Such a quota answers after the content, when the class is known',
  action: '`refuse` answers 450 above a limit; `hold` accepts, and holds the mail until there is room. `refuse` when absent',
  hold_limit: 'longest time for which mail is held, above which it is refused; `1d` when absent',
  exceptions: 'table of keys with limits of their own, or `"none"`: `{ "app@example.com" = ["5000/1h"], "root" = "none" }`',
} as const

export type QuotaMember = keyof typeof QUOTA_MEMBERS

export const isQuotaMember = (key: string): key is QuotaMember => Object.hasOwn(QUOTA_MEMBERS, key)
