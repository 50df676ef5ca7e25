/** Tokens of programs: their rights and their last use. */
import type { AccessToken, TokenRecords } from '../store/records/access-token.ts'
import { HOUR, type Clock } from '../system/clock.ts'
import { hashOf, isToken } from './secrets.ts'

export interface TokenDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly reader: Pick<TokenRecords, 'byHash'>
  readonly store: Pick<TokenRecords, 'used'>
}

/** The token with this text; null when it is unknown, removed or expired. Its use is recorded to the hour. */
export async function tokenWith(text: string, { clock, reader, store }: TokenDeps): Promise<AccessToken | null> {
  if (!isToken(text)) return null
  const token = await reader.byHash(hashOf(text))
  const now = clock.now()
  if (token === undefined || (token.expiresAt !== null && now >= token.expiresAt)) return null
  const hour = Math.floor(now / HOUR) * HOUR
  if (token.lastUsedAt === null || token.lastUsedAt < hour) await store.used(token.name, hour)
  return token
}
