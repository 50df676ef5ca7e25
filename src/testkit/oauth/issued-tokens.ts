/** Access tokens of an authorization server: JWTs with the claims of the provider. */
import { createHmac, createPublicKey, type KeyObject } from 'node:crypto'
import { SECOND, type Duration, type WallTime } from '../../system/clock.ts'
import type { AuthoritySettings } from './authority-settings.ts'
import { isSignedBy, readToken, signToken, type Claims } from './json-web-token.ts'

export interface Grant {
  readonly client: string
  /** Person, or mailbox of a service account; absent for an application. */
  readonly user?: string | undefined
  /** Resource of the token: https://outlook.office365.com. */
  readonly audience: string
  /** Application permissions, for an application; absent when there is a person. */
  readonly roles?: readonly string[] | undefined
  /** Scopes, for a person. */
  readonly scope?: string | undefined
}

type IssuerSettings = Pick<AuthoritySettings, 'provider' | 'origin' | 'tenant'>

/** A stable identifier in the form of a UUID, derived from a name. */
const identifierOf = (name: string): string =>
  createHmac('sha256', 'identifier')
    .update(name)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5')

export class IssuedTokens {
  readonly #settings: IssuerSettings
  readonly #key: KeyObject
  readonly publicKey: KeyObject
  #issued = 0

  constructor(settings: IssuerSettings, key: KeyObject) {
    this.#settings = settings
    this.#key = key
    this.publicKey = createPublicKey(key)
  }

  /** Identifier of the key, in the header of each token. */
  get keyId(): string {
    return identifierOf(this.publicKey.export({ type: 'spki', format: 'pem' }).toString())
  }

  issue(grant: Grant, now: WallTime, lifetime: Duration): string {
    const iat = Math.floor(now / SECOND)
    const times = { iat, nbf: iat, exp: iat + Math.floor(lifetime / SECOND) }
    const ids = { uti: `${++this.#issued}` }
    return signToken({ kid: this.keyId }, { ...this.#claims(grant), ...times, ...ids }, this.#key)
  }

  /** The claims of a token that this authority has issued; null for another token. Its expiry is not checked. */
  verify(text: string): Claims | null {
    const token = readToken(text)
    if (token === null || !isSignedBy(token, this.publicKey, ['EdDSA'])) return null
    return token.claims['iss'] === this.#issuer ? token.claims : null
  }

  get #issuer(): string {
    const { provider, origin, tenant } = this.#settings
    return provider === 'microsoft' ? `https://sts.windows.net/${tenant}/` : provider === 'google' ? 'https://accounts.google.com' : origin
  }

  #claims({ client, user, audience, roles, scope }: Grant): Claims {
    const { provider, tenant } = this.#settings
    if (provider !== 'microsoft')
      return { iss: this.#issuer, aud: audience, azp: client, scope, sub: identifierOf(user ?? client), email: user }
    const app = { iss: this.#issuer, aud: audience, appid: client, tid: tenant, ver: '1.0' }
    if (user !== undefined) return { ...app, oid: identifierOf(user), sub: identifierOf(user), upn: user, scp: scope }
    const oid = identifierOf(`principal of ${client}`)
    return { ...app, appidacr: '1', idtyp: 'app', oid, sub: oid, ...(roles?.length === 0 ? {} : { roles }) }
  }
}
