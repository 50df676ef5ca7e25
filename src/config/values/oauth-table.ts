/** The `[oauth.NAME]` tables: how access tokens for next hops are obtained (RFC 6749). */

export const PROVIDERS = ['microsoft', 'google', 'other', 'command'] as const
export const GRANTS = ['client_credentials', 'refresh_token', 'service_account'] as const

/** Kind of an authorization server; `command` for a shell command instead. */
export type OauthProvider = (typeof PROVIDERS)[number]
/** Grant by which tokens are requested (RFC 6749 §1.3, RFC 7523). */
export type OauthGrant = (typeof GRANTS)[number] | 'command'

/** An `[oauth.NAME]` table, without the contents of its files. A text is empty where the table has none. */
export interface OauthTable {
  readonly name: string
  readonly provider: OauthProvider
  readonly grant: OauthGrant
  readonly tokenUrl: string
  /** Device authorization endpoint (RFC 8628). */
  readonly deviceUrl: string
  readonly scope: string
  readonly audience: string
  readonly clientId: string
  readonly clientSecretFile: string
  readonly clientCertificateFile: string
  readonly refreshTokenFile: string
  readonly serviceAccountFile: string
  /** Trusted CA certificates (PEM) of the authority; those of the system when empty. */
  readonly caFile: string
  /** Shell command that prints a token. */
  readonly command: string
  /** Position of the table. */
  readonly where: string
}

/** Name of the table for which smtp_sasl_oauth_token_command stands. */
export const COMMAND_TABLE = 'command'

/** Variable of the environment with the client secret of a table. */
export const secretVariable = (name: string): string => `DEFERD_OAUTH_${name.toUpperCase().replaceAll('-', '_')}_CLIENT_SECRET`

/** The table for which smtp_sasl_oauth_token_command stands. */
export const commandTable = (command: string, where: string): OauthTable => ({
  name: COMMAND_TABLE,
  provider: 'command',
  grant: 'command',
  tokenUrl: '',
  deviceUrl: '',
  scope: '',
  audience: '',
  clientId: '',
  clientSecretFile: '',
  clientCertificateFile: '',
  refreshTokenFile: '',
  serviceAccountFile: '',
  caFile: '',
  command,
  where,
})
