/** Options of a simulated authorization server, and of the servers that take its tokens. Mistakes throw a TypeError with the valid form. */
import { createPublicKey, X509Certificate } from 'node:crypto'
import { errorMessage } from '../../system/caught-error.ts'
import { shown } from '../../system/shown-value.ts'
import { requireDomain, requireKnownOptions, requireObject } from './argument-checks.ts'
import { FAILURE_NAMES, type AuthorityFailure } from '../oauth/authority-rule.ts'
import {
  PROVIDERS,
  type AuthorityClient,
  type AuthorityProvider,
  type AuthoritySettings,
  type PreviousLogin,
  type Rotation,
} from '../oauth/authority-settings.ts'
import type { ScriptedRequest } from '../oauth/authority-engine.ts'
import type { GuardedMailbox, GuardSettings } from '../oauth/submission-guard.ts'
import { toDuration, type Time } from './time.ts'

/** Failures of requests, in their order (null: none), or a function that names the failure of a request. */
export type AuthorityFailures = readonly (AuthorityFailure | null)[] | ((request: ScriptedRequest) => AuthorityFailure | null | undefined)

/** Options of `world.authority`. */
export interface AuthorityOptions {
  /** Simulated provider; default microsoft. */
  readonly provider?: AuthorityProvider
  /** Name of its host; default login.microsoftonline.com or oauth2.googleapis.com. */
  readonly host?: string
  /** Id or domain of the tenant; default contoso.example. Only for microsoft. */
  readonly tenant?: string
  /** Clients by their id; service accounts by their address. */
  readonly clients: Readonly<Record<string, AuthorityClient>>
  /** Logins of people that were completed before. */
  readonly logins?: readonly PreviousLogin[]
  /** Lifetime of access tokens; default 1h. */
  readonly lifetime?: Time
  /**
   * True: each answer to a refresh brings a new refresh token, and its predecessor is valid until the new one is used. `strict`: each is valid
   * once. Default: an answer to a refresh brings none.
   */
  readonly rotates?: boolean | 'strict'
  /** Time without use after which a refresh token ends; default 90d. */
  readonly refreshLifetime?: Time
  /** Lifetime of device codes; default 15m. */
  readonly deviceLifetime?: Time
  /** Pause between two polls of a device; default 5s. */
  readonly deviceInterval?: Time
  readonly failures?: AuthorityFailures
}

/** Options of `authority.protects`. */
export interface ProtectionOptions {
  /** Mailboxes of the tenant by address; when absent, each address is a mailbox that may send as any sender. */
  readonly mailboxes?: Readonly<Record<string, GuardedMailbox>>
  /** False: SMTP AUTH is switched off for the tenant. */
  readonly smtpAuth?: boolean
  /** Mechanisms that EHLO offers inside TLS; default those of the provider. */
  readonly mechanisms?: readonly string[]
  /** True: a refused token gets a challenge with the reason (334) before 535. Default: as the provider does, Microsoft not. */
  readonly challenges?: boolean
}

const NAMES = [
  'provider',
  'host',
  'tenant',
  'clients',
  'logins',
  'lifetime',
  'rotates',
  'refreshLifetime',
  'deviceLifetime',
  'deviceInterval',
  'failures',
] as const satisfies readonly (keyof AuthorityOptions)[]
const CLIENT = [
  'secret',
  'certificate',
  'publicKey',
  'roles',
  'scopes',
  'servicePrincipal',
  'delegates',
] as const satisfies readonly (keyof AuthorityClient)[]
const MAILBOX = ['fullAccess', 'sendAs', 'smtpAuth'] as const satisfies readonly (keyof GuardedMailbox)[]

const HOSTS: Readonly<Partial<Record<AuthorityProvider, string>>> = {
  microsoft: 'login.microsoftonline.com',
  google: 'oauth2.googleapis.com',
}

const MECHANISMS: Readonly<Record<AuthorityProvider, readonly string[]>> = {
  microsoft: ['LOGIN', 'XOAUTH2'],
  google: ['LOGIN', 'PLAIN', 'XOAUTH2', 'PLAIN-CLIENTTOKEN', 'OAUTHBEARER', 'XOAUTH'],
  other: ['PLAIN', 'OAUTHBEARER', 'XOAUTH2'],
}

/** Checks the options. `origin` is the origin of the endpoint URLs; default https and the host. */
export function authoritySettings(options: AuthorityOptions, origin?: string): AuthoritySettings & { readonly host: string } {
  requireKnownOptions('authority', options, NAMES)
  const { provider = 'microsoft', clients, logins = [], rotates = false } = options
  if (!PROVIDERS.includes(provider))
    throw new TypeError(`provider of authority expects one of ${PROVIDERS.join(', ')}, got ${shown(provider)}`)
  const { host = HOSTS[provider] } = options
  if (host === undefined) throw new TypeError(`authority with provider ${shown(provider)} expects a host such as "auth.example"`)
  requireDomain('host of authority', host)
  const { tenant = provider === 'microsoft' ? 'contoso.example' : '' } = options
  if (provider !== 'microsoft' && tenant !== '') throw new TypeError('tenant of authority is valid with provider "microsoft" only')
  if (provider === 'microsoft') requireDomain('tenant of authority', tenant)
  requireClients(clients)
  for (const login of logins) requireLogin(login, clients)
  if (typeof rotates !== 'boolean' && rotates !== 'strict')
    throw new TypeError(`rotates of authority expects true, false or "strict", got ${shown(rotates)}`)
  return {
    provider,
    host: host.toLowerCase(),
    origin: origin ?? `https://${host.toLowerCase()}`,
    tenant,
    clients: new Map(Object.entries(clients)),
    logins,
    lifetime: toDuration(options.lifetime ?? '1h'),
    rotation: rotationOf(rotates),
    refreshLifetime: toDuration(options.refreshLifetime ?? '90d'),
    deviceLifetime: toDuration(options.deviceLifetime ?? '15m'),
    deviceInterval: toDuration(options.deviceInterval ?? '5s'),
  }
}

const rotationOf = (rotates: boolean | 'strict'): Rotation => (rotates === 'strict' ? 'strict' : rotates ? 'yes' : 'no')

/** Checks the options of a server that takes the tokens. */
export function guardSettings(options: ProtectionOptions, provider: AuthorityProvider): GuardSettings {
  requireKnownOptions('protects', options, ['mailboxes', 'smtpAuth', 'mechanisms', 'challenges'])
  const { mailboxes, smtpAuth = true, mechanisms = MECHANISMS[provider], challenges = provider !== 'microsoft' } = options
  for (const [address, mailbox] of Object.entries(mailboxes ?? {})) {
    if (!address.includes('@'))
      throw new TypeError(`mailboxes of protects expects addresses such as "app@contoso.example", got ${shown(address)}`)
    requireKnownOptions(`mailbox ${address} of protects`, mailbox, MAILBOX)
  }
  if (!Array.isArray(mechanisms) || mechanisms.length === 0)
    throw new TypeError(`mechanisms of protects expects a list such as ["XOAUTH2"], got ${shown(mechanisms)}`)
  return {
    mailboxes:
      mailboxes === undefined ? null : new Map(Object.entries(mailboxes).map(([address, mailbox]) => [address.toLowerCase(), mailbox])),
    smtpAuth,
    mechanisms: mechanisms.map((name: string) => name.toUpperCase()),
    challenges,
  }
}

/** Throws for a text that is no name of a failure. */
export function requireFailure(of: string, name: unknown): asserts name is AuthorityFailure {
  if (FAILURE_NAMES.some((one) => one === name)) return
  throw new TypeError(`${of} expects one of ${FAILURE_NAMES.join(', ')}, got ${shown(name)}`)
}

function requireClients(clients: unknown): asserts clients is AuthorityOptions['clients'] {
  requireObject('clients of authority', clients)
  const entries = Object.entries(clients as AuthorityOptions['clients'])
  if (entries.length === 0) throw new TypeError('clients of authority expects at least one client: { "client-id": { secret: "…" } }')
  for (const [id, client] of entries) {
    requireKnownOptions(`client ${id} of authority`, client, CLIENT)
    requirePem(`certificate of client ${id}`, client.certificate, (text) => new X509Certificate(text).publicKey)
    requirePem(`publicKey of client ${id}`, client.publicKey, createPublicKey)
  }
}

function requirePem(
  what: string,
  text: string | undefined,
  read: (text: string) => { readonly asymmetricKeyType?: string | undefined },
): void {
  if (text === undefined) return
  let type: string | undefined
  try {
    type = read(text).asymmetricKeyType
  } catch (cause) {
    throw new TypeError(`${what} expects PEM: ${errorMessage(cause)}`, { cause })
  }
  if (type !== 'rsa') throw new TypeError(`${what} expects an RSA key, got ${type ?? 'another one'}`)
}

function requireLogin(login: PreviousLogin, clients: AuthorityOptions['clients']): void {
  requireKnownOptions('login of authority', login, ['client', 'user', 'refreshToken'])
  if (Object.hasOwn(clients, login.client)) return
  throw new TypeError(`login of authority expects one of the clients ${Object.keys(clients).join(', ')}, got ${shown(login.client)}`)
}
