/** Refresh tokens of an authorization server: rotation, end by disuse, and detection of reuse (RFC 9700 §4.14). */
import type { Duration, WallTime } from '../../system/clock.ts'
import type { Rotation } from './authority-settings.ts'

/** A login of a person. The refresh tokens of the login descend from one another. */
export interface Login {
  readonly client: string
  readonly user: string
  readonly scope: string
  revoked: boolean
}

interface RefreshToken {
  readonly login: Login
  readonly parent: RefreshToken | null
  usedAt: WallTime
  spent: boolean
}

export type Use =
  | { readonly kind: 'valid'; readonly login: Login; /** The successor; absent when the token stays. */ readonly next?: string | undefined }
  | { readonly kind: 'unknown' | 'expired' | 'revoked' }

export class RefreshTokens {
  readonly #rotation: Rotation
  readonly #lifetime: Duration
  readonly #newText: () => string
  readonly #tokens = new Map<string, RefreshToken>()

  constructor(rotation: Rotation, lifetime: Duration, newText: () => string) {
    this.#rotation = rotation
    this.#lifetime = lifetime
    this.#newText = newText
  }

  /** Begins a login. Returns its first token: `text` or a new one. */
  begin(login: Omit<Login, 'revoked'>, now: WallTime, text = this.#newText()): string {
    this.#tokens.set(text, { login: { ...login, revoked: false }, parent: null, usedAt: now, spent: false })
    return text
  }

  use(text: string, client: string, now: WallTime): Use {
    const token = this.#tokens.get(text)
    if (token === undefined || token.login.client !== client) return { kind: 'unknown' }
    // A spent token in use means that two parties have it.
    if (token.spent) token.login.revoked = true
    if (token.login.revoked) return { kind: 'revoked' }
    if (now - token.usedAt > this.#lifetime) return { kind: 'expired' }
    token.usedAt = now
    for (let old = token.parent; old !== null && !old.spent; old = old.parent) old.spent = true
    if (this.#rotation === 'no') return { kind: 'valid', login: token.login }
    if (this.#rotation === 'strict') token.spent = true
    const next = this.#newText()
    this.#tokens.set(next, { login: token.login, parent: token, usedAt: now, spent: false })
    return { kind: 'valid', login: token.login, next }
  }

  /** Ends all logins of a user, as a change of the password does. */
  revoke(user: string): void {
    for (const { login } of this.#tokens.values()) if (login.user === user) login.revoked = true
  }
}
