/** Refusals of an authorization server (RFC 6749 §5.2), in the form and with the texts of the provider. Pure. */
import { isoInstant } from '../../mail/mail-date.ts'
import type { WallTime } from '../../system/clock.ts'
import type { AuthorityProvider } from './authority-settings.ts'

export interface JsonAnswer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

interface Text {
  readonly status: number
  readonly error: string
  /** Number of Microsoft's error. */
  readonly aadsts: number
  readonly text: string
  /** Status and text of Google, where they differ. */
  readonly google?: { readonly status?: number; readonly error?: string; readonly text: string }
}

/** Errors by the name of their cause. Texts: learn.microsoft.com "Microsoft Entra authentication and authorization error codes". */
const TEXTS = {
  'invalid client': {
    status: 401,
    error: 'invalid_client',
    aadsts: 7_000_215,
    text: 'Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the client secret ID.',
    google: { text: 'Unauthorized' },
  },
  'expired secret': {
    status: 401,
    error: 'invalid_client',
    aadsts: 7_000_222,
    text: 'The provided client secret keys are expired.',
    google: { text: 'Unauthorized' },
  },
  'no credentials': {
    status: 401,
    error: 'invalid_client',
    aadsts: 7_000_218,
    text: "The request body must contain the following parameter: 'client_assertion' or 'client_secret'.",
    google: { status: 400, error: 'invalid_request', text: 'client_secret is missing.' },
  },
  'unknown client': {
    status: 400,
    error: 'unauthorized_client',
    aadsts: 700_016,
    text: 'Application with this identifier was not found in the directory.',
    google: { status: 401, error: 'invalid_client', text: 'The OAuth client was not found.' },
  },
  'bad signature': {
    status: 401,
    error: 'invalid_client',
    aadsts: 700_027,
    text: 'The certificate with this identifier is not registered, or the signature of the client assertion is not valid.',
    google: { status: 400, error: 'invalid_grant', text: 'Invalid JWT Signature.' },
  },
  'bad audience': {
    status: 401,
    error: 'invalid_client',
    aadsts: 700_023,
    text: 'Client assertion audience claim does not match the token endpoint.',
    google: { status: 400, error: 'invalid_grant', text: 'Invalid JWT: Failed audience check.' },
  },
  'bad time': {
    status: 401,
    error: 'invalid_client',
    aadsts: 700_024,
    text: 'Client assertion is not within its valid time range.',
    google: {
      status: 400,
      error: 'invalid_grant',
      text: 'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.',
    },
  },
  'bad assertion': {
    status: 401,
    error: 'invalid_client',
    aadsts: 50_027,
    text: 'JWT token is invalid or malformed.',
    google: { status: 400, error: 'invalid_grant', text: 'Bad Request' },
  },
  'no delegation': {
    status: 401,
    error: 'unauthorized_client',
    aadsts: 700_016,
    text: 'Client is unauthorized to retrieve access tokens using this method, or client not authorized for any of the scopes requested.',
  },
  'no consent': {
    status: 400,
    error: 'invalid_grant',
    aadsts: 65_001,
    text: 'The user or administrator has not consented to use the application.',
    google: { error: 'invalid_scope', text: 'Some requested scopes were invalid.' },
  },
  'expired login': {
    status: 400,
    error: 'invalid_grant',
    aadsts: 700_082,
    text: 'The refresh token has expired due to inactivity.',
    google: { text: 'Token has been expired or revoked.' },
  },
  'revoked login': {
    status: 400,
    error: 'invalid_grant',
    aadsts: 50_173,
    text: 'The provided grant has expired due to it being revoked, a fresh auth token is needed.',
    google: { text: 'Token has been expired or revoked.' },
  },
  'unknown login': {
    status: 400,
    error: 'invalid_grant',
    aadsts: 9_002_313,
    text: 'Invalid request. Request is malformed or invalid.',
    google: { text: 'Bad Request' },
  },
  'invalid scope': {
    status: 400,
    error: 'invalid_scope',
    aadsts: 70_011,
    text: "The provided value for the input parameter 'scope' is not valid.",
    google: { text: 'Some requested scopes were invalid.' },
  },
  'no default scope': {
    status: 400,
    error: 'invalid_scope',
    aadsts: 1_002_012,
    text: 'Client credential flows must have a scope value with /.default suffixed to the resource identifier (application ID URI).',
  },
  'unknown resource': {
    status: 400,
    error: 'invalid_resource',
    aadsts: 500_011,
    text: 'The resource principal was not found in the tenant.',
  },
  'unknown tenant': {
    status: 400,
    error: 'invalid_request',
    aadsts: 90_002,
    text: 'Tenant not found. Check to make sure you have the correct tenant ID.',
  },
  'no grant type': {
    status: 400,
    error: 'invalid_request',
    aadsts: 900_144,
    text: "The request body must contain the following parameter: 'grant_type'.",
  },
  'unknown grant type': {
    status: 400,
    error: 'unsupported_grant_type',
    aadsts: 70_003,
    text: 'The app returned an unsupported grant type.',
  },
  'login pending': {
    status: 400,
    error: 'authorization_pending',
    aadsts: 70_016,
    text: 'OAuth 2.0 device flow error. Authorization is pending. Continue polling.',
  },
  'too many polls': { status: 400, error: 'slow_down', aadsts: 70_016, text: 'Polls follow each other too fast: wait 5 seconds longer.' },
  'login denied': {
    status: 400,
    error: 'authorization_declined',
    aadsts: 70_018,
    text: 'The person denied the authorization.',
    google: { status: 403, error: 'access_denied', text: 'Forbidden' },
  },
  'code expired': { status: 400, error: 'expired_token', aadsts: 70_020, text: 'The device code has expired.' },
  'unknown code': {
    status: 400,
    error: 'bad_verification_code',
    aadsts: 70_019,
    text: 'Verification code expired.',
    google: { error: 'invalid_grant', text: 'Malformed auth code.' },
  },
} as const satisfies Record<string, Text>

/** Cause of a refusal. */
export type Cause = keyof typeof TEXTS

export function refusal(cause: Cause, provider: AuthorityProvider, now: WallTime): JsonAnswer {
  const text: Text = TEXTS[cause]
  if (provider === 'microsoft') {
    const { status, error, aadsts } = text
    return {
      status,
      body: {
        error,
        error_description: `AADSTS${aadsts}: ${text.text} Trace ID: 00000000-0000-0000-0000-000000000000 Timestamp: ${isoInstant(now)}`,
        error_codes: [aadsts],
        timestamp: isoInstant(now),
        error_uri: `https://login.microsoftonline.com/error?code=${aadsts}`,
      },
    }
  }
  const { status = text.status, error = text.error, text: words = text.text } = text.google ?? {}
  return { status, body: { error: error === 'authorization_declined' ? 'access_denied' : error, error_description: words } }
}
