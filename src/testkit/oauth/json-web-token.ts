/** JSON Web Tokens (RFC 7519) in compact form: signed with Ed25519 (RFC 8037), verified with the algorithms of client assertions. Pure. */
import { constants, sign, verify, type KeyObject } from 'node:crypto'

export type Claims = Readonly<Record<string, unknown>>

export interface ReadToken {
  readonly header: Claims
  readonly claims: Claims
  /** The octets that are signed. */
  readonly signed: Buffer
  readonly signature: Buffer
}

const encode = (part: Claims): string => Buffer.from(JSON.stringify(part)).toString('base64url')

/** Signs claims with an Ed25519 key. */
export function signToken(header: Claims, claims: Claims, key: KeyObject): string {
  const signed = `${encode({ typ: 'JWT', alg: 'EdDSA', ...header })}.${encode(claims)}`
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
}

/** Reads a token without verifying it. Null for a text that is no token. */
export function readToken(text: string): ReadToken | null {
  const [head = '', body = '', signature = '', ...more] = text.split('.')
  const header = decode(head)
  const claims = decode(body)
  if (header === null || claims === null || more.length > 0) return null
  return { header, claims, signed: Buffer.from(`${head}.${body}`), signature: Buffer.from(signature, 'base64url') }
}

/** True when `key` made the signature, with an algorithm of the list. */
export function isSignedBy({ header, signed, signature }: ReadToken, key: KeyObject, algorithms: readonly Algorithm[]): boolean {
  const algorithm = algorithms.find((name) => name === header['alg'])
  if (algorithm === undefined || key.asymmetricKeyType !== (algorithm === 'EdDSA' ? 'ed25519' : 'rsa')) return false
  switch (algorithm) {
    case 'EdDSA':
      return verify(null, signed, key, signature)
    case 'RS256':
      return verify('sha256', signed, key, signature)
    case 'PS256':
      return verify('sha256', signed, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }, signature)
  }
}

export type Algorithm = 'EdDSA' | 'RS256' | 'PS256'

function decode(part: string): Claims | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Claims) : null
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}
