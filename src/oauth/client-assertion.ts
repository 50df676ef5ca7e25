/** JWTs that prove a client (RFC 7523 §2.2) or stand for a mailbox (§2.1). Pure, apart from the salt of PS256. */
import { constants, sign, type KeyObject } from 'node:crypto'
import { MINUTE, SECOND, type Duration, type WallTime } from '../system/clock.ts'
import type { ServiceAccount } from './oauth-client.ts'

/** Validity of an assertion, which is used at once. Microsoft recommends 5 to 10 minutes, Google accepts up to an hour. */
const VALIDITY: Duration = 5 * MINUTE

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const secondsAt = (instant: WallTime): number => Math.floor(instant / SECOND)

function jwt(header: { readonly alg: 'PS256' | 'RS256' } & Readonly<Record<string, string>>, claims: object, key: KeyObject): string {
  const signed = `${encoded(header)}.${encoded(claims)}`
  const padding =
    header.alg === 'PS256'
      ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
      : { padding: constants.RSA_PKCS1_PADDING }
  return `${signed}.${sign('sha256', Buffer.from(signed), { key, ...padding }).toString('base64url')}`
}

interface ClientProofFacts {
  readonly clientId: string
  readonly tokenUrl: string
  readonly key: KeyObject
  readonly thumbprint: string
  /** Wall clock time. */
  readonly now: WallTime
  /** Unique `jti`. */
  readonly id: string
}

/** Proof of a client by its certificate, as Microsoft wants it: PS256 with `x5t#S256`. */
export function clientAssertion({ clientId, tokenUrl, key, thumbprint, now, id }: ClientProofFacts): string {
  const times = { nbf: secondsAt(now), iat: secondsAt(now), exp: secondsAt(now + VALIDITY) }
  const claims = { aud: tokenUrl, iss: clientId, sub: clientId, jti: id, ...times }
  return jwt({ alg: 'PS256', typ: 'JWT', 'x5t#S256': thumbprint }, claims, key)
}

interface MailboxFacts {
  readonly account: ServiceAccount
  /** Mailbox for which the account acts (domain-wide delegation). */
  readonly user: string
  readonly scope: string
  readonly tokenUrl: string
  readonly now: WallTime
}

/** Assertion of a service account for a mailbox, as Google wants it: RS256. */
export function mailboxAssertion({ account: { email, keyId, key }, user, scope, tokenUrl, now }: MailboxFacts): string {
  const claims = { iss: email, sub: user, scope, aud: tokenUrl, iat: secondsAt(now), exp: secondsAt(now + VALIDITY) }
  return jwt({ alg: 'RS256', typ: 'JWT', ...(keyId === '' ? {} : { kid: keyId }) }, claims, key)
}
