/** The reason that a server states in a challenge (334) before it refuses an access token (RFC 7628 §3.2.2; XOAUTH2 of Google). Pure. */
import { maskControls } from '../mail/smtp-reply.ts'

/** Members of the JSON object, each of them optional. */
export interface SaslChallenge {
  /** `invalid_token` or `insufficient_scope` (OAUTHBEARER), or a status code of HTTP (XOAUTH2). */
  readonly status?: string | undefined
  readonly schemes?: string | undefined
  readonly scope?: string | undefined
  readonly 'openid-configuration'?: string | undefined
}

const MEMBERS = ['status', 'schemes', 'scope', 'openid-configuration'] as const satisfies readonly (keyof SaslChallenge)[]

/** Maximum number of base64 characters that are decoded. */
const MAX_CHALLENGE = 4_000
/** Maximum number of characters kept of a member. */
const MAX_MEMBER = 200

/**
 * Parses the text of a 334 reply. Undefined unless it is base64 of a JSON object with a known member, within the limit. `conceal` removes the
 * secrets of the login from a member.
 */
export function parseChallenge(text: string, conceal: (text: string) => string): SaslChallenge | undefined {
  if (text.length > MAX_CHALLENGE || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined
  const object = parsed(Buffer.from(text, 'base64').toString())
  const known = MEMBERS.flatMap((name) => {
    const value = object[name]
    const isText = (typeof value === 'string' && value !== '') || typeof value === 'number'
    return isText
      ? [
          [
            name,
            conceal(maskControls(String(value)))
              .slice(0, MAX_MEMBER)
              .toWellFormed(),
          ] as const,
        ]
      : []
  })
  return known.length === 0 ? undefined : Object.fromEntries(known)
}

function parsed(json: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

/** For example ` (challenge: status 401, scope https://mail.google.com/)`; empty without a challenge. */
export const challengeText = (challenge: SaslChallenge | undefined): string =>
  challenge === undefined
    ? ''
    : ` (challenge: ${MEMBERS.flatMap((name) => (challenge[name] === undefined ? [] : [`${name} ${challenge[name]}`])).join(', ')})`

/** Status of a challenge for a token that has ended, is unknown, or lacks a permission. */
const NEEDS_TOKEN: ReadonlySet<string> = new Set(['400', '401', 'invalid_token', 'insufficient_scope'])

/** True when the server asks for another token. A permission that was granted meanwhile is in a new token only. */
export const needsAnotherToken = (challenge: SaslChallenge | undefined): boolean => NEEDS_TOKEN.has(challenge?.status ?? '')
