/** Clients of the admin API in JSON: their rights, and the tokens of programs without their hashes. */
import { z } from 'zod'
import { TOKEN_ROLES, type AccessToken } from '../store/records/access-token.ts'
import type { WallView } from '../system/wall-view.ts'
import { type Json } from './members.ts'

const rights = { role: z.enum(TOKEN_ROLES), content: z.boolean(), destinations: z.string().nullable() }
const timeOrNull = z.number().nullable()

export const clientShape = z.object({ name: z.string(), ...rights, address: z.string() }).meta({ id: 'Client' })

const accessTokenShape = z.object({
  name: z.string(),
  ...rights,
  added_time: z.number(),
  added_by: z.string(),
  expire_time: timeOrNull,
  last_used_time: timeOrNull.describe('begin of the hour of the last use'),
})

export const accessTokensShape = z.object({ tokens: z.array(accessTokenShape) }).meta({ id: 'Tokens' })

export type AccessTokenJson = Json<typeof accessTokenShape>
export type AccessTokensJson = Json<typeof accessTokensShape>

export const accessTokenJson = (token: AccessToken, wall: WallView): AccessTokenJson => ({
  name: token.name,
  role: token.role,
  content: token.content,
  destinations: token.destinations,
  added_time: wall.seconds(token.addedAt),
  added_by: token.addedBy,
  expire_time: wall.secondsOrNull(token.expiresAt),
  last_used_time: wall.secondsOrNull(token.lastUsedAt),
})
