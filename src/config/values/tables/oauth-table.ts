/** The `[oauth.NAME]` tables: how access tokens for next hops are obtained (RFC 6749). */

export const PROVIDERS = ['microsoft', 'google', 'other', 'command'] as const
export const GRANTS = ['client_credentials', 'refresh_token', 'service_account'] as const

/** Kind of an authorization server; `command` for a shell command instead. */
export type OauthProvider = (typeof PROVIDERS)[number]
/** Grant by which tokens are requested (RFC 6749 §1.3, RFC 7523). */
export type OauthGrant = (typeof GRANTS)[number] | 'command'

/** The table without the contents of its files. A member that the table does not set is an empty text. */
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
  /** CA certificates (PEM) for the authority; empty for the system's. */
  readonly caFile: string
  /** Shell command that prints a token. */
  readonly command: string
  /** Position of the heading. */
  readonly where: string
}

/** Name of the table that smtp_sasl_oauth_token_command creates. */
export const COMMAND_TABLE = 'command'

/** Environment variable with the client secret of a table. */
export const secretVariable = (name: string): string => `DEFERD_OAUTH_${name.toUpperCase().replaceAll('-', '_')}_CLIENT_SECRET`

/** The table that smtp_sasl_oauth_token_command creates. */
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
