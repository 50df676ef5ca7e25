/** An `[oauth.NAME]` table, its tokens and their tests as JSON, without secrets. Paths of files are shown. */
import type { OauthTable } from '../config/values/oauth-table.ts'
import type { TokenState } from '../oauth/access-tokens.ts'
import type { TokenClaims } from '../oauth/token-claims.ts'
import { SECOND, type Duration, type WallTime } from '../system/clock.ts'
import { epochSeconds } from './text.ts'

const seconds = (at: WallTime | null): number | null => (at === null ? null : epochSeconds(at))
const textOrNull = (text: string): string | null => (text === '' ? null : text)

export const oauthSettingsJson = (table: OauthTable) => ({
  token_url: textOrNull(table.tokenUrl),
  device_url: textOrNull(table.deviceUrl),
  scope: textOrNull(table.scope),
  audience: textOrNull(table.audience),
  client_id: textOrNull(table.clientId),
  client_secret_file: textOrNull(table.clientSecretFile),
  client_certificate_file: textOrNull(table.clientCertificateFile),
  refresh_token_file: textOrNull(table.refreshTokenFile),
  service_account_file: textOrNull(table.serviceAccountFile),
  ca_file: textOrNull(table.caFile),
  command: textOrNull(table.command),
})

/** A token of a running daemon. `user` is null for a token of all users. */
export const tokenStateJson = ({ user, left, problem }: TokenState) => ({
  user: textOrNull(user),
  left: left === null ? null : Math.floor(left / SECOND),
  problem,
})

/** `tokens` are the tokens of the running daemon; null when no daemon runs. */
export const oauthJson = ({ name, provider, grant }: OauthTable, usedBy: readonly string[], tokens: readonly TokenState[] | null) => ({
  name,
  provider,
  grant,
  used_by: usedBy,
  tokens: tokens?.filter((one) => one.name === name).map(tokenStateJson) ?? null,
})

/** Claims of a token. All members but `lifetime` are null for an opaque token. */
export const tokenJson = (claims: TokenClaims | null, lifetime: Duration) => ({
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
  issue_time: seconds(claims?.issuedAt ?? null),
  expire_time: seconds(claims?.expiresAt ?? null),
})
