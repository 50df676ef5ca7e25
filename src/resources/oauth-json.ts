/** An `[oauth.NAME]` table, its tokens and their tests in JSON, without secrets. Paths of files are shown. */
import { z } from 'zod'
import type { OauthTable } from '../config/values/tables/oauth-table.ts'
import type { TokenState } from '../oauth/access-tokens.ts'
import type { TokenClaims } from '../oauth/token-claims.ts'
import { SECOND, type Duration, type WallTime } from '../system/clock.ts'
import { textOrNull, type Json } from './members.ts'

export const loginTokenMembers = {
  user: textOrNull.describe('null where one token serves all users'),
  left: z.int().nullable().describe('seconds until the end of the token; null without one'),
  problem: textOrNull.describe('why the last request failed, and what to do'),
  failing: z.boolean().describe('the authority refuses, or no token can be used'),
}

const unlessEmpty = (text: string): string | null => (text === '' ? null : text)

/** A token of a running daemon for the logins at next hops. */
export const loginTokenJson = ({ user, left, problem, failedSince }: TokenState): Json<z.ZodObject<typeof loginTokenMembers>> => ({
  user: unlessEmpty(user),
  left: left === null ? null : Math.floor(left / SECOND),
  problem,
  failing: failedSince !== null,
})

export const oauthSettingsJson = (table: OauthTable) => ({
  token_url: unlessEmpty(table.tokenUrl),
  device_url: unlessEmpty(table.deviceUrl),
  scope: unlessEmpty(table.scope),
  audience: unlessEmpty(table.audience),
  client_id: unlessEmpty(table.clientId),
  client_secret_file: unlessEmpty(table.clientSecretFile),
  client_certificate_file: unlessEmpty(table.clientCertificateFile),
  refresh_token_file: unlessEmpty(table.refreshTokenFile),
  service_account_file: unlessEmpty(table.serviceAccountFile),
  ca_file: unlessEmpty(table.caFile),
  command: unlessEmpty(table.command),
})

const oauthShape = z.object({
  name: z.string(),
  provider: z.string(),
  grant: z.string(),
  used_by: z.array(z.string()).describe('parameters and logins'),
  tokens: z.array(z.object(loginTokenMembers)).nullable().describe('null when no daemon runs'),
})

export const oauthTablesShape = z.object({ tables: z.array(oauthShape) }).meta({ id: 'OauthTables' })

export type OauthJson = Json<typeof oauthShape>
export type OauthTablesJson = Json<typeof oauthTablesShape>

/** `tokens` are the tokens of the running daemon; null when no daemon runs. */
export const oauthJson = (
  { name, provider, grant }: OauthTable,
  usedBy: readonly string[],
  tokens: readonly TokenState[] | null,
): OauthJson => ({
  name,
  provider,
  grant,
  used_by: usedBy,
  tokens: tokens?.filter((one) => one.name === name).map(loginTokenJson) ?? null,
})

const secondsOrNull = (at: WallTime | null | undefined): number | null => (at === null || at === undefined ? null : at / SECOND)

/** Claims of a token. All members but `lifetime` are null for an opaque token. */
export const claimsJson = (claims: TokenClaims | null, lifetime: Duration) => ({
  lifetime: Math.floor(lifetime / SECOND),
  opaque: claims === null,
  issuer: claims?.issuer ?? null,
  audience: claims?.audience ?? null,
  roles: claims?.roles ?? null,
  scopes: claims?.scopes ?? null,
  tenant: claims?.tenant ?? null,
  app_id: claims?.application ?? null,
  object_id: claims?.object ?? null,
  user: claims?.user ?? null,
  issue_time: secondsOrNull(claims?.issuedAt),
  expire_time: secondsOrNull(claims?.expiresAt),
})
