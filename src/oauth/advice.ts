/** Sentences for the operator about a token that an authority did not give. Pure. */
import { secretVariable, type OauthTable } from '../config/values/tables/oauth-table.ts'
import type { TokenFailure } from './token-answer.ts'

/** Error of a request to a daemon whose configuration has no such table. */
export const UNKNOWN_TABLE = 'unknown_table'

const RELOAD = 'and reload'

const secretOf = ({ name, clientSecretFile }: OauthTable): string => clientSecretFile || secretVariable(name)

/** The way to renew the refresh token of a table. `deferd oauth login` reloads the daemon. */
export const loginAdvice = ({ name, deviceUrl, refreshTokenFile }: Pick<OauthTable, 'name' | 'deviceUrl' | 'refreshTokenFile'>): string =>
  deviceUrl === '' ? `write a refresh token to ${refreshTokenFile}, ${RELOAD}` : `run deferd oauth login ${name}`

const noConsent = (table: OauthTable): string =>
  table.grant === 'client_credentials'
    ? 'let an administrator grant consent for SMTP.SendAsApp to the application'
    : `the application has no consent for SMTP.Send: ${loginAdvice(table)}, and accept, or let an administrator grant it`

const conditionalAccess = (table: OauthTable): string =>
  `Conditional Access wants another factor, or forbids this login: let an administrator except the application, then ${loginAdvice(table)}`

/** Advice for errors of Microsoft, by their AADSTS number (learn.microsoft.com, "Microsoft Entra authentication and authorization error codes"). */
const OF_MICROSOFT: Readonly<Record<string, (table: OauthTable) => string>> = {
  AADSTS7000215: (table) => `write the value of the client secret, not its id, to ${secretOf(table)}, ${RELOAD}`,
  AADSTS7000222: (table) => `the client secret has expired: create a new one, write it to ${secretOf(table)}, ${RELOAD}`,
  AADSTS700016: () => `no application with this client_id is in the tenant: correct client_id or tenant, ${RELOAD}`,
  AADSTS90002: () => `this tenant does not exist: correct tenant, ${RELOAD}`,
  AADSTS900023: () => `this tenant does not exist: correct tenant, ${RELOAD}`,
  AADSTS700027: ({ clientCertificateFile }) =>
    `add the certificate of ${clientCertificateFile} to the application, or use another one, ${RELOAD}`,
  AADSTS1002012: () => `client credentials need the scope https://outlook.office365.com/.default: correct scope, ${RELOAD}`,
  AADSTS700024: () => 'the clock of this machine differs from that of the authority: correct it (timedatectl)',
  AADSTS65001: noConsent,
  AADSTS65004: noConsent,
  AADSTS90094: noConsent,
  AADSTS500011: () => `the tenant does not know the resource of scope: correct scope, or use a tenant with Exchange Online, ${RELOAD}`,
  AADSTS50076: conditionalAccess,
  AADSTS50079: conditionalAccess,
  AADSTS53003: conditionalAccess,
  AADSTS7000218: () => `the application wants a client secret: set client_secret_file, or allow public client flows, ${RELOAD}`,
}

/** Advice for error codes (RFC 6749 §5.2). */
const OF_CODE: Readonly<Record<string, (table: OauthTable) => string>> = {
  no_refresh_token: loginAdvice,
  [UNKNOWN_TABLE]: () => 'reload the daemon, so that it reads its configuration again',
  invalid_client: ({ grant, serviceAccountFile }) =>
    grant === 'service_account'
      ? `there is no such service account: create a key of an existing one, write it to ${serviceAccountFile}, ${RELOAD}`
      : `correct client_id or the secret of the application, ${RELOAD}`,
  invalid_grant: (table) =>
    table.grant === 'refresh_token'
      ? `the login has ended: ${loginAdvice(table)}`
      : `the authority does not accept the key of the account or the clock of this machine: check both, ${RELOAD}`,
  unauthorized_client: ({ grant }) =>
    grant === 'service_account'
      ? 'allow the client id of the service account for the scope, under domain-wide delegation of the Google Admin console'
      : `allow the application this grant, ${RELOAD}`,
  invalid_scope: () => `correct scope, ${RELOAD}`,
  unsupported_grant_type: () => `correct grant or token_url, ${RELOAD}`,
}

/** The sentence of a failure that says what to do. */
export function adviceFor(table: OauthTable, failure: TokenFailure): string {
  if (failure.kind === 'temporary') {
    return table.grant === 'command' ? 'try the command by hand' : `it is asked again; if this lasts, check the network and token_url`
  }
  const [number = ''] = /AADSTS\d+/.exec(failure.why) ?? []
  const advice = OF_MICROSOFT[number] ?? OF_CODE[failure.error]
  return advice === undefined ? `correct [oauth.${table.name}], ${RELOAD}` : advice(table)
}
