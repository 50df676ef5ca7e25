/** The meaning of an answer of an authority (RFC 6749 §5), also of its device endpoint (RFC 8628 §3.5). Pure. */
import { HOUR, SECOND, type Duration } from '../system/clock.ts'
import type { AuthorityReply } from './authority.ts'

export type TokenAnswer =
  | {
      readonly kind: 'token'
      readonly token: string
      readonly lifetime: Duration
      /** Replaces the refresh token of the request. */
      readonly refreshToken?: string | undefined
    }
  /** A failure that may end without a change of the table: the authority is away, or asks for patience. */
  | { readonly kind: 'temporary'; readonly why: string }
  /** A refusal of the request. `error` is its code (RFC 6749 §5.2); `why` is this code with the AADSTS number, if there is one. */
  | { readonly kind: 'refused'; readonly error: string; readonly why: string }

export type TokenFailure = Exclude<TokenAnswer, { readonly kind: 'token' }>

/** Lifetime of a token whose answer states none, or none that is a number. */
export const DEFAULT_LIFETIME: Duration = 300 * SECOND
/** A longer lifetime is taken for this one: a token is renewed each day, and no timer has a time that it cannot wait for. */
export const LONGEST_LIFETIME: Duration = 24 * HOUR

/** A member in seconds, as a number or its digits, of at most `most`; null for any other value. */
export function secondsOf(value: unknown, most: Duration): Duration | null {
  const isNumber = typeof value === 'number' || (typeof value === 'string' && /^-?\d+(?:\.\d+)?$/.test(value))
  return isNumber ? Math.min(Math.ceil(Number(value) * SECOND), most) : null
}

/** The syntax of an access token in an Authorization field (RFC 6750 §2.1). */
export const isAccessToken = (text: string): boolean => /^[\w.~+/-]+=*$/.test(text)

/** Errors after which the same request may succeed. */
const TEMPORARY: ReadonlySet<string> = new Set(['temporarily_unavailable', 'server_error'])

export function tokenAnswer(reply: AuthorityReply): TokenAnswer {
  if (reply.kind === 'failed') return { kind: 'temporary', why: reply.why }
  const body = jsonObject(reply.body)
  if (reply.status === 200) return tokenOf(body)
  const { error, error_description: description } = body
  const code = typeof error === 'string' && /^[\w.-]{1,60}$/.test(error) ? error : ''
  const why = code === '' ? `status ${reply.status}` : `${code}${aadsts(description)}`
  if (reply.status >= 500 || reply.status === 429 || reply.status === 408 || TEMPORARY.has(code)) return { kind: 'temporary', why }
  // An answer without a code is not one of an authority: a proxy, or another page.
  return code === '' ? { kind: 'temporary', why: `${why} without an error code` } : { kind: 'refused', error: code, why }
}

function tokenOf({
  access_token: token,
  token_type: type = 'Bearer',
  expires_in: given,
  refresh_token: refreshToken,
}: Fields): TokenAnswer {
  const lifetime = secondsOf(given, LONGEST_LIFETIME) ?? DEFAULT_LIFETIME
  if (typeof token !== 'string' || !isAccessToken(token)) return { kind: 'temporary', why: 'status 200 without a token' }
  if (lifetime <= 0) return { kind: 'temporary', why: 'status 200 with a token that has ended (expires_in)' }
  if (String(type).toLowerCase() !== 'bearer') return { kind: 'temporary', why: 'status 200 with a token that is not of the type Bearer' }
  const replaced = typeof refreshToken === 'string' && refreshToken !== '' ? { refreshToken } : {}
  return { kind: 'token', token, lifetime, ...replaced }
}

type Fields = Readonly<Record<string, unknown>>

/** The members of a JSON object; none for any other text. */
export function jsonObject(text: string): Fields {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
  } catch {
    return {}
  }
}

/** The number of Microsoft in a description, in brackets. The rest has ids of the tenant and of the request. */
function aadsts(description: unknown): string {
  const [number = ''] = typeof description === 'string' ? (/\bAADSTS\d{1,9}\b/.exec(description) ?? []) : []
  return number === '' ? '' : ` (${number})`
}
