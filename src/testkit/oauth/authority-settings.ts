/** Settings of a simulated authorization server: its tenant, its clients, and the lifetimes of what it issues. */
import type { Duration } from '../../system/clock.ts'

export const PROVIDERS = ['microsoft', 'google', 'other'] as const
/** The authorization server that is simulated: its addresses, its texts and the claims of its tokens. */
export type AuthorityProvider = (typeof PROVIDERS)[number]

/** A client (registered application) or a service account. */
export interface AuthorityClient {
  /** Its secret. A client without secret and certificate is a public one, for the login of a person. */
  readonly secret?: string | undefined
  /** Certificate (PEM) of its assertions, with an RSA key. */
  readonly certificate?: string | undefined
  /** Public key (PEM) of a service account, with an RSA key. */
  readonly publicKey?: string | undefined
  /** Application permissions with the consent of an administrator; default SMTP.SendAsApp. Without any, its tokens have no roles. */
  readonly roles?: readonly string[] | undefined
  /** Scopes to which people have consented; default SMTP.Send at Microsoft, https://mail.google.com/ at Google, all elsewhere. */
  readonly scopes?: readonly string[] | undefined
  /** True (default) when New-ServicePrincipal has registered the client in Exchange. */
  readonly servicePrincipal?: boolean | undefined
  /** Mailboxes for which a service account may ask (domain-wide delegation); all when absent. */
  readonly delegates?: readonly string[] | undefined
}

/** A login that a person completed before: its refresh token is valid from the start. */
export interface PreviousLogin {
  readonly client: string
  readonly user: string
  readonly refreshToken: string
}

/**
 * Rotation of refresh tokens. `no`: an answer to a refresh brings none. `yes`: each answer brings a new one, and its predecessor is valid until
 * the new one is used. `strict`: each is valid once. A token that is used after its end revokes the whole login.
 */
export type Rotation = 'no' | 'yes' | 'strict'

export interface AuthoritySettings {
  readonly provider: AuthorityProvider
  /** Origin of its addresses: `https://login.microsoftonline.com`. */
  readonly origin: string
  /** Id or domain of the tenant; empty for providers without tenants. */
  readonly tenant: string
  readonly clients: ReadonlyMap<string, AuthorityClient>
  readonly logins: readonly PreviousLogin[]
  /** Lifetime of access tokens. */
  readonly lifetime: Duration
  readonly rotation: Rotation
  /** Time without use after which a refresh token ends. */
  readonly refreshLifetime: Duration
  /** Lifetime of device codes. */
  readonly deviceLifetime: Duration
  /** Pause between two polls of a device (RFC 8628 §3.2). */
  readonly deviceInterval: Duration
}

/** Resources of Exchange: a token for another one authenticates nothing there. */
export const EXCHANGE = ['https://outlook.office365.com', 'https://outlook.office.com'] as const
export const GRAPH = 'https://graph.microsoft.com'
export const GMAIL_SCOPE = 'https://mail.google.com/'

/** Scopes to which people have consented; null for all. */
export function consentedScopes({ scopes }: AuthorityClient, provider: AuthorityProvider): readonly string[] | null {
  if (scopes !== undefined || provider === 'other') return scopes ?? null
  return [provider === 'microsoft' ? 'SMTP.Send' : GMAIL_SCOPE]
}

/** Paths of the authority. */
export function pathsOf({ provider, tenant }: Pick<AuthoritySettings, 'provider' | 'tenant'>) {
  switch (provider) {
    case 'microsoft':
      return { token: `/${tenant}/oauth2/v2.0/token`, device: `/${tenant}/oauth2/v2.0/devicecode`, page: '/devicelogin' }
    case 'google':
      return { token: '/token', device: '/device/code', page: '/device' }
    case 'other':
      return { token: '/token', device: '/device_authorization', page: '/device' }
  }
}
