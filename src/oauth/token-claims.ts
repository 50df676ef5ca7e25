/**
 * The claims of an access token, as its authority has written them (RFC 9068). The signature is not verified: they tell an operator what a server will
 * find, and decide nothing. Pure.
 */
import { SECOND, type WallTime } from '../system/clock.ts'
import { jsonObject } from './token-answer.ts'

export interface TokenClaims {
  readonly issuer: string | null
  readonly audience: readonly string[]
  /** Application permissions. */
  readonly roles: readonly string[]
  /** Delegated permissions. */
  readonly scopes: readonly string[]
  readonly tenant: string | null
  readonly application: string | null
  /** Object id of the person, or of the enterprise application (service principal) when no person has logged in. */
  readonly object: string | null
  /** Name of the person; null for the token of an application. */
  readonly user: string | null
  /** Times on the clock of the authority; null when absent. */
  readonly issuedAt: WallTime | null
  readonly expiresAt: WallTime | null
}

/** Number of characters of a shown text, and of texts in a shown list. */
const SHOWN_LIMIT = 200
const MOST = 50

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value.slice(0, SHOWN_LIMIT) : null)

const list = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value])
    .map(text)
    .filter((one) => one !== null)
    .slice(0, MOST)

const instant = (value: unknown): WallTime | null => (typeof value === 'number' && value > 0 && value < 8e12 ? value * SECOND : null)

/** The claims of a JWT (RFC 7519); null for an opaque token, which only its authority can read. */
export function tokenClaims(token: string): TokenClaims | null {
  const parts = token.split('.')
  if (parts.length !== 3) return null
  const decoded = (part = ''): Readonly<Record<string, unknown>> => jsonObject(Buffer.from(part, 'base64url').toString('utf8'))
  if (typeof decoded(parts[0])['alg'] !== 'string') return null
  const claims = decoded(parts[1])
  return {
    issuer: text(claims['iss']),
    audience: list(claims['aud']),
    roles: list(claims['roles']),
    scopes: (text(claims['scp']) ?? text(claims['scope']) ?? '').split(' ').filter((one) => one !== ''),
    tenant: text(claims['tid']),
    application: text(claims['appid']) ?? text(claims['azp']) ?? text(claims['client_id']),
    object: text(claims['oid']),
    user: text(claims['upn']) ?? text(claims['preferred_username']) ?? text(claims['unique_name']) ?? text(claims['email']),
    issuedAt: instant(claims['iat']),
    expiresAt: instant(claims['exp']),
  }
}
