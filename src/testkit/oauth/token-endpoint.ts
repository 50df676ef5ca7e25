/** The token endpoint of an authorization server (RFC 6749 §3.2) and its device endpoint (RFC 8628 §3.1), from form to answer. */
import { SECOND, type Duration, type WallTime } from '../../system/clock.ts'
import { IssuedTokens, type Grant } from './issued-tokens.ts'
import { consentedScopes, EXCHANGE, GRAPH, pathsOf, type AuthorityClient, type AuthoritySettings } from './authority-settings.ts'
import { ClientCheck } from './client-check.ts'
import { DeviceLogins } from './device-logins.ts'
import { RefreshTokens, type Login } from './refresh-tokens.ts'
import { refusal, type Cause, type JsonAnswer } from './refusal.ts'

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
export const JWT_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

/** Changes of an answer that a script asks for. */
export interface Falsified {
  /** Audience of the token in place of the right one. */
  readonly audience?: string | undefined
  /** Application permissions of the token in place of those with consent. */
  readonly roles?: readonly string[] | undefined
  readonly lifetime?: Duration | undefined
}

interface Asked {
  readonly id: string
  readonly client: AuthorityClient
  readonly form: URLSearchParams
  readonly now: WallTime
  readonly falsified: Falsified
}

type Outcome = JsonAnswer | Cause

type NewText = (kind: 'refresh' | 'device' | 'user') => string

export class TokenEndpoint {
  readonly tokens: IssuedTokens
  readonly logins: RefreshTokens
  readonly devices = new DeviceLogins()
  readonly #settings: AuthoritySettings
  readonly #clients = new ClientCheck()
  readonly #newText: NewText

  constructor(settings: AuthoritySettings, tokens: IssuedTokens, newText: NewText, now: WallTime) {
    this.#settings = settings
    this.tokens = tokens
    this.#newText = newText
    const { rotation, refreshLifetime } = settings
    this.logins = new RefreshTokens(rotation, refreshLifetime, () => newText('refresh'))
    for (const { client, user, refreshToken } of settings.logins) this.begin(client, user, now, refreshToken)
  }

  /** Begins the login of a person. Returns its refresh token. */
  begin(client: string, user: string, now: WallTime, refreshToken?: string): string {
    const { clients, provider } = this.#settings
    const scopes = consentedScopes(clients.get(client) ?? {}, provider) ?? ['smtp']
    const scope = this.#grantedScope(scopes.map((name) => this.#fullScope(name)).join(' '))
    return this.logins.begin({ client, user, scope }, now, refreshToken)
  }

  token(form: URLSearchParams, now: WallTime, falsified: Falsified = {}): JsonAnswer {
    return this.#finished(this.#token(form, now, falsified), now)
  }

  device(form: URLSearchParams, now: WallTime): JsonAnswer {
    return this.#finished(this.#device(form, now), now)
  }

  #finished(outcome: Outcome, now: WallTime): JsonAnswer {
    return typeof outcome === 'string' ? refusal(outcome, this.#settings.provider, now) : outcome
  }

  #token(form: URLSearchParams, now: WallTime, falsified: Falsified): Outcome {
    const grant = form.get('grant_type')
    if (grant === null) return 'no grant type'
    if (grant === JWT_GRANT) return this.#serviceAccount(form, now, falsified)
    const id = form.get('client_id') ?? ''
    const client = this.#settings.clients.get(id)
    if (client === undefined) return 'unknown client'
    const tokenUrl = `${this.#settings.origin}${pathsOf(this.#settings).token}`
    const wrong = this.#clients.check(id, client, form, { tokenUrl, now, required: grant === 'client_credentials' })
    if (wrong !== null) return wrong
    const asked: Asked = { id, client, form, now, falsified }
    switch (grant) {
      case 'client_credentials':
        return this.#application(asked)
      case 'refresh_token':
        return this.#refresh(asked)
      case DEVICE_GRANT:
        return this.#deviceToken(asked)
      default:
        return 'unknown grant type'
    }
  }

  #application(asked: Asked): Outcome {
    const { id, client, form } = asked
    const scope = form.get('scope') ?? ''
    if (this.#settings.provider !== 'microsoft') {
      return this.#answer({ client: id, user: undefined, audience: form.get('audience') ?? scope, scope }, asked)
    }
    const [, resource] = /^(\S+)\/\.default$/.exec(scope) ?? []
    if (resource === undefined) return 'no default scope'
    if (![...EXCHANGE, GRAPH].includes(resource)) return 'unknown resource'
    const roles = resource === GRAPH ? [] : (client.roles ?? ['SMTP.SendAsApp'])
    return this.#answer({ client: id, audience: resource, roles }, asked)
  }

  #refresh(asked: Asked): Outcome {
    const { id, form, now } = asked
    const use = this.logins.use(form.get('refresh_token') ?? '', id, now)
    if (use.kind !== 'valid') return `${use.kind} login`
    return this.#person(use.login, asked, use.next)
  }

  #deviceToken(asked: Asked): Outcome {
    const { id, form, now } = asked
    const poll = this.devices.poll(form.get('device_code') ?? '', id, now)
    if (poll.kind === 'refused') return poll.cause
    const { scope } = poll.login
    const { user } = poll
    // Microsoft issues a refresh token for offline_access only.
    const lasts = this.#settings.provider !== 'microsoft' || scope.split(' ').includes('offline_access')
    const login = { client: id, user, scope: this.#grantedScope(scope) }
    return this.#person(login, asked, lasts ? this.logins.begin(login, now) : undefined)
  }

  /** The answer with a token of a person. A request may ask for fewer scopes than the login has. */
  #person({ user, scope }: Omit<Login, 'revoked'>, asked: Asked, refreshToken?: string): Outcome {
    const { id, client, form } = asked
    const { provider } = this.#settings
    const wanted = this.#grantedScope(form.get('scope') ?? scope)
    const consented = consentedScopes(client, provider)?.map((name) => this.#fullScope(name))
    const names = wanted.split(' ')
    if (consented !== undefined && !names.every((name) => consented.includes(name) || isGraph(name))) return 'no consent'
    if (provider !== 'microsoft') return this.#answer({ client: id, user, audience: id, scope: wanted }, asked, refreshToken)
    const [first = ''] = names
    const audience = /^(https:\/\/[^/]+)\//.exec(first)?.[1]
    if (audience === undefined) return 'invalid scope'
    const scp = names.map((name) => name.slice(audience.length + 1)).join(' ')
    return this.#answer({ client: id, user, audience, scope: scp }, asked, refreshToken)
  }

  #serviceAccount(form: URLSearchParams, now: WallTime, falsified: Falsified): Outcome {
    const { clients, origin } = this.#settings
    const account = this.#clients.account(clients, form.get('assertion') ?? '', {
      tokenUrl: `${origin}${pathsOf(this.#settings).token}`,
      now,
    })
    if (typeof account === 'string') return account
    const { id, claims } = account
    const client = clients.get(id) ?? {}
    const { sub, scope } = claims
    if (typeof scope !== 'string' || scope === '') return 'invalid scope'
    const user = typeof sub === 'string' ? sub : undefined
    const mayAct = user === undefined || client.delegates === undefined || client.delegates.includes(user)
    const consented = consentedScopes(client, this.#settings.provider)
    if (!mayAct || !scope.split(' ').every((name) => consented?.includes(name) ?? true)) return 'no delegation'
    return this.#answer({ client: id, user, audience: id, scope }, { id, client, form, now, falsified })
  }

  #answer(grant: Grant, { now, falsified }: Asked, refreshToken?: string): JsonAnswer {
    const { lifetime = this.#settings.lifetime, audience = grant.audience, roles = grant.roles } = falsified
    const seconds = Math.floor(lifetime / SECOND)
    const scope = grant.scope === undefined ? {} : { scope: grant.scope }
    return {
      status: 200,
      body: {
        token_type: 'Bearer',
        expires_in: seconds,
        ...(this.#settings.provider === 'microsoft' ? { ext_expires_in: seconds } : {}),
        ...scope,
        access_token: this.tokens.issue({ ...grant, audience, roles }, now, lifetime),
        ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }),
      },
    }
  }

  #device(form: URLSearchParams, now: WallTime): Outcome {
    const { clients, deviceLifetime, deviceInterval, provider, origin } = this.#settings
    const client = form.get('client_id') ?? ''
    const scope = form.get('scope') ?? ''
    if (!clients.has(client)) return 'unknown client'
    if (scope === '') return 'invalid scope'
    const [deviceCode, userCode] = [this.#newText('device'), this.#newText('user')]
    this.devices.begin(deviceCode, { userCode, client, scope }, { endsAt: now + deviceLifetime, interval: deviceInterval })
    const page = `${origin}${pathsOf(this.#settings).page}`
    return {
      status: 200,
      body: {
        device_code: deviceCode,
        user_code: userCode,
        // Google has another name for the member of RFC 8628 §3.2.
        [provider === 'google' ? 'verification_url' : 'verification_uri']: page,
        expires_in: deviceLifetime / SECOND,
        interval: deviceInterval / SECOND,
        ...(provider === 'microsoft'
          ? { message: `To sign in, use a web browser to open the page ${page} and enter the code ${userCode} to authenticate.` }
          : {}),
      },
    }
  }

  /** Scopes that concern tokens for mail: OpenID scopes and offline_access are left out. */
  #grantedScope(scope: string): string {
    return scope
      .split(' ')
      .filter((name) => !['', 'offline_access', 'openid', 'profile', 'email'].includes(name))
      .map((name) => name.replace(`${EXCHANGE[0]}/`, `${EXCHANGE[1]}/`))
      .join(' ')
  }

  #fullScope(name: string): string {
    return this.#settings.provider === 'microsoft' && !name.includes('://') ? `${EXCHANGE[1]}/${name}` : name
  }
}

const isGraph = (scope: string): boolean => scope.startsWith(`${GRAPH}/`)
