/** Tokens of programs: their rights and their last use. */
import type { AccessToken, TokenReader, TokenStore } from '../store/access-token.ts'
import { HOUR, type Clock } from '../system/clock.ts'
import { hashOf, isToken } from './secrets.ts'

export interface TokenDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly reader: Pick<TokenReader, 'tokenByHash'>
  readonly store: Pick<TokenStore, 'tokenUsed'>
}

/** The token with this text; null when it is unknown, removed or expired. Its use is recorded to the hour. */
export async function tokenWith(text: string, { clock, reader, store }: TokenDeps): Promise<AccessToken | null> {
  if (!isToken(text)) return null
  const token = await reader.tokenByHash(hashOf(text))
  const now = clock.now()
  if (token === undefined || (token.expiresAt !== null && now >= token.expiresAt)) return null
  const hour = Math.floor(now / HOUR) * HOUR
  if (token.lastUsedAt === null || token.lastUsedAt < hour) await store.tokenUsed(token.name, hour)
  return token
}
