/** Tokens by which programs use the HTTP interface, as the queue keeps them. */
import type { QueueTime } from '../system/clock.ts'

/** Role of a token: what it may do. */
export type TokenRole = 'viewer' | 'operator' | 'sender' | 'admin'

export const TOKEN_ROLES = ['viewer', 'operator', 'sender', 'admin'] as const satisfies readonly TokenRole[]

export interface AccessToken {
  /** Unique name. */
  readonly name: string
  readonly role: TokenRole
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

/** Methods of QueueStore for tokens. */
export interface TokenStore {
  /** Adds a token. Returns false, without effect, when the name or the hash is in use. */
  addToken(token: AccessToken): Promise<boolean>
  /** Removes a token. Returns false when there is none of the name. */
  removeToken(name: string): Promise<boolean>
  /** Records a use. `hour` is the begin of an hour; an earlier one than the recorded has no effect. */
  tokenUsed(name: string, hour: QueueTime): Promise<void>
}

/** Methods of QueueReader for tokens. */
export interface TokenReader {
  /** All tokens, ordered by name. */
  tokens(): Promise<readonly AccessToken[]>
  /** The token with this hash; undefined when there is none. */
  tokenByHash(hash: string): Promise<AccessToken | undefined>
}
