/** Sentences for the operator about a token that an authority did not give. Pure. */
import { secretVariable, type OauthTable } from '../config/values/oauth-table.ts'
import type { TokenAnswer } from './token-answer.ts'

type Failure = Exclude<TokenAnswer, { readonly kind: 'token' }>

const RELOAD = 'and reload'

const secretOf = ({ name, clientSecretFile }: OauthTable): string => clientSecretFile || secretVariable(name)

const login = ({ name }: OauthTable): string => `run deferd oauth login ${name}, ${RELOAD}`

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
  AADSTS7000218: () => `the application wants a client secret: set client_secret_file, or allow public client flows, ${RELOAD}`,
}

/** Advice for error codes (RFC 6749 §5.2). */
const OF_CODE: Readonly<Record<string, (table: OauthTable) => string>> = {
  no_refresh_token: login,
  invalid_client: () => `correct client_id or the secret of the application, ${RELOAD}`,
  invalid_grant: (table) =>
    table.grant === 'refresh_token'
      ? `the login has ended: ${login(table)}`
      : `the authority does not accept the key of the account or the clock of this machine: check both, ${RELOAD}`,
  unauthorized_client: ({ grant }) =>
    grant === 'service_account'
      ? 'allow the client id of the service account for the scope, under domain-wide delegation of the Google Admin console'
      : `allow the application this grant, ${RELOAD}`,
  invalid_scope: () => `correct scope, ${RELOAD}`,
  unsupported_grant_type: () => `correct grant or token_url, ${RELOAD}`,
}

/** The sentence of a failure that says what to do. */
export function adviceFor(table: OauthTable, failure: Failure): string {
  if (failure.kind === 'temporary') {
    return table.grant === 'command' ? 'try the command by hand' : `it is asked again; if this lasts, check the network and token_url`
  }
  const [number = ''] = /AADSTS\d+/.exec(failure.why) ?? []
  const advice = OF_MICROSOFT[number] ?? OF_CODE[failure.error]
  return advice === undefined ? `correct [oauth.${table.name}], ${RELOAD}` : advice(table)
}
