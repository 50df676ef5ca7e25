/** Authentication of clients: secret (RFC 6749 §2.3.1), signed assertion (RFC 7523), and the assertion of a service account. */
import { createHash, createPublicKey, X509Certificate } from 'node:crypto'
import { MINUTE, SECOND, type WallTime } from '../../system/clock.ts'
import type { AuthorityClient } from './authority-settings.ts'
import { isSignedBy, readToken, type Algorithm, type Claims, type ReadToken } from './json-web-token.ts'
import type { Cause } from './refusal.ts'

export const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

const TOLERATED_SKEW = 5 * MINUTE

/** Longest lifetime of an assertion, for a client and for a service account. */
const LONGEST_LIFETIME = { client: 10 * MINUTE, account: 60 * MINUTE } as const

interface ClientCheckTerms {
  readonly tokenUrl: string
  readonly now: WallTime
}

/** Checks the credentials of clients, and refuses an assertion that was used before. */
export class ClientCheck {
  readonly #used = new Set<string>()

  /** Null when the client with this id may continue. With `required`, a public client is refused, too. */
  check(
    id: string,
    client: AuthorityClient,
    form: URLSearchParams,
    terms: ClientCheckTerms & { readonly required: boolean },
  ): Cause | null {
    const assertion = form.get('client_assertion')
    if (assertion !== null) {
      return form.get('client_assertion_type') === ASSERTION_TYPE ? this.#ofClient(id, client, assertion, terms) : 'bad assertion'
    }
    const secret = form.get('client_secret')
    if (secret !== null) return secret === client.secret ? null : 'invalid client'
    const isPublic = client.secret === undefined && client.certificate === undefined
    return isPublic && !terms.required ? null : 'no credentials'
  }

  /** Checks the assertion of a service account. Returns its mailbox, or the cause of the refusal. */
  account(
    clients: ReadonlyMap<string, AuthorityClient>,
    text: string,
    terms: ClientCheckTerms,
  ): { readonly id: string; readonly claims: Claims } | Cause {
    const token = readToken(text)
    const id = token?.claims['iss']
    if (token === null || typeof id !== 'string') return 'bad assertion'
    const publicKey = clients.get(id)?.publicKey
    if (publicKey === undefined) return 'unknown client'
    if (!isSignedBy(token, createPublicKey(publicKey), ['RS256'])) return 'bad signature'
    return this.#claims(token, terms, LONGEST_LIFETIME.account) ?? { id, claims: token.claims }
  }

  #ofClient(id: string, { certificate }: AuthorityClient, text: string, terms: ClientCheckTerms): Cause | null {
    const token = readToken(text)
    if (token === null) return 'bad assertion'
    if (certificate === undefined || !isOfCertificate(token, new X509Certificate(certificate))) return 'bad signature'
    const { iss, sub, jti } = token.claims
    if (iss !== id || sub !== id || typeof jti !== 'string' || jti === '') return 'bad assertion'
    const wrong = this.#claims(token, terms, LONGEST_LIFETIME.client)
    if (wrong !== null) return wrong
    if (this.#used.has(jti)) return 'bad assertion'
    this.#used.add(jti)
    return null
  }

  #claims({ claims }: ReadToken, { tokenUrl, now }: ClientCheckTerms, longest: number): Cause | null {
    const { aud, exp, nbf, iat } = claims
    if (aud !== tokenUrl) return 'bad audience'
    const begin = nbf ?? iat ?? now / SECOND
    if (typeof exp !== 'number' || typeof begin !== 'number') return 'bad assertion'
    const [from, until] = [begin * SECOND, exp * SECOND]
    return now < from - TOLERATED_SKEW || now >= until || until - from > longest ? 'bad time' : null
  }
}

/** True when the token names the certificate by its thumbprint, and its key signed it: PS256 with SHA-256, or RS256 with SHA-1 as older pages say. */
function isOfCertificate(token: ReadToken, certificate: X509Certificate): boolean {
  const thumbprint = (hash: string): string => createHash(hash).update(certificate.raw).digest('base64url')
  const { 'x5t#S256': sha256, x5t: sha1 } = token.header
  const algorithms: readonly Algorithm[] = sha256 === undefined ? ['RS256'] : ['PS256', 'RS256']
  if (sha256 === undefined ? sha1 !== thumbprint('sha1') : sha256 !== thumbprint('sha256')) return false
  return isSignedBy(token, certificate.publicKey, algorithms)
}
