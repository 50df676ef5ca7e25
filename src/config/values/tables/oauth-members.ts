/** Members of the `[oauth.NAME]` tables: their forms, and which of them a provider and a grant have. */
import { GRANTS, type OauthGrant, type OauthProvider } from './oauth-table.ts'

const ANY_TEXT = /./

export interface OauthMemberForm {
  readonly form: RegExp
  /** Expected form, in words. */
  readonly expected?: string
  readonly about: string
}

/** Form and meaning of each member. */
export const OAUTH_MEMBERS = {
  provider: { form: ANY_TEXT, about: 'microsoft, google, other or command' },
  grant: { form: ANY_TEXT, about: 'client_credentials, refresh_token or service_account; none with provider = "command"' },
  tenant: {
    form: /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i,
    expected: 'the id or a domain of the tenant',
    about: 'id or domain of the tenant of Microsoft 365',
  },
  client_id: { form: /^[\x21-\x7e]+$/, expected: 'the id of the application, without blanks', about: 'id of the registered application' },
  client_secret_file: {
    form: ANY_TEXT,
    about: 'file with the secret of the application; or the variable `DEFERD_OAUTH_NAME_CLIENT_SECRET`',
  },
  client_certificate_file: {
    form: ANY_TEXT,
    about: 'file with the certificate of the application and its RSA key (PEM), in place of a secret',
  },
  refresh_token_file: { form: ANY_TEXT, about: 'file with the refresh token of a login' },
  service_account_file: { form: ANY_TEXT, about: 'file with the key of a service account (JSON)' },
  token_url: { form: ANY_TEXT, about: 'token endpoint, https (http for a loopback host); the one of the provider when absent' },
  device_url: { form: ANY_TEXT, about: 'device authorization endpoint (RFC 8628)' },
  scope: {
    form: /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/,
    expected: 'scopes separated by single blanks',
    about: 'scopes separated by blanks; those of sending mail when absent',
  },
  audience: { form: /^[\x21-\x7e]+$/, about: 'parameter `audience` of the request' },
  ca_file: {
    form: ANY_TEXT,
    about: 'trusted CA certificates (PEM) of the authority; those of the system and of `NODE_EXTRA_CA_CERTS` when absent',
  },
  command: {
    form: ANY_TEXT,
    about: 'shell command that prints a token, and in a second line its lifetime in seconds if known; the user is its last argument',
  },
} as const satisfies Record<string, OauthMemberForm>

export type OauthMember = keyof typeof OAUTH_MEMBERS

export const isOauthMember = (key: string): key is OauthMember => Object.hasOwn(OAUTH_MEMBERS, key)

/** Grants of each provider. */
export const GRANTS_OF: Readonly<Record<OauthProvider, readonly OauthGrant[]>> = {
  microsoft: ['client_credentials', 'refresh_token'],
  google: ['refresh_token', 'service_account'],
  other: GRANTS,
  command: ['command'],
}

/** Required members of a table, and further allowed ones. */
export interface Members {
  readonly required: readonly OauthMember[]
  readonly optional: readonly OauthMember[]
}

const OF_GRANT: Readonly<Record<OauthGrant, Members>> = {
  client_credentials: { required: ['client_id'], optional: ['client_secret_file', 'client_certificate_file'] },
  refresh_token: {
    required: ['client_id', 'refresh_token_file'],
    optional: ['client_secret_file', 'client_certificate_file', 'device_url'],
  },
  service_account: { required: ['service_account_file'], optional: [] },
  command: { required: ['command'], optional: [] },
}

const OF_PROVIDER: Readonly<Record<OauthProvider, Members>> = {
  microsoft: { required: [], optional: ['tenant', 'token_url', 'scope', 'ca_file'] },
  google: { required: [], optional: ['token_url', 'scope', 'ca_file'] },
  other: { required: ['token_url'], optional: ['scope', 'audience', 'ca_file'] },
  command: { required: [], optional: [] },
}

/** Members beside `provider` and `grant`. */
export const membersOf = (provider: OauthProvider, grant: OauthGrant): Members => ({
  required: [...OF_PROVIDER[provider].required, ...OF_GRANT[grant].required],
  optional: [...OF_PROVIDER[provider].optional, ...OF_GRANT[grant].optional],
})
