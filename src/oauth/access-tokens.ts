/** The access tokens of all `[oauth.NAME]` tables, by table and login. They outlive a reload, unless it changes their table. */
import { errorMessage } from '../system/caught-error.ts'
import type { Clock } from '../system/clock.ts'
import { LoginTokens, type LoginState } from './login-tokens.ts'
import { identityOf, type OauthClient } from './oauth-client.ts'
import { UNKNOWN_TABLE } from './advice.ts'
import type { TokenAnswer, TokenFailure } from './token-answer.ts'
import { ANY_USER, tokenRequests, type RequestToken, type TokenRequestDeps } from './token-requests.ts'
import type { TokenSource } from './token-source.ts'

/** Clients by the name of their table. */
export type OauthClients = ReadonlyMap<string, OauthClient>

interface AccessTokensDeps {
  readonly clock: Clock
  readonly request: RequestToken
  /** Called with the outcome of each request, and the state after it. */
  readonly answered?: ((answer: TokenAnswer, state: TokenState) => void) | undefined
}

/** A token, or its absence, for status and metrics. */
export interface TokenState extends LoginState {
  readonly name: string
  /** Empty where the token is not that of a single user. */
  readonly user: string
}

interface Login {
  readonly name: string
  readonly user: string
  readonly tokens: LoginTokens
}

export class AccessTokens {
  readonly #deps: AccessTokensDeps
  #clients: OauthClients
  readonly #logins = new Map<string, Login>()

  /** Tokens that are requested over the network. */
  static open(
    { answered, ...deps }: TokenRequestDeps & Pick<AccessTokensDeps, 'answered'>,
    clients: OauthClients = new Map(),
  ): AccessTokens {
    return new AccessTokens({ clock: deps.clock, request: tokenRequests(deps), answered }, clients)
  }

  constructor(deps: AccessTokensDeps, clients: OauthClients) {
    this.#deps = deps
    this.#clients = clients
  }

  /** The tokens of a table; a table that a reload has removed has none. */
  of(name: string): TokenSource {
    return {
      get: (user) => this.#use(name, user, (tokens) => tokens.get()),
      replacement: (user, refused) => this.#use(name, user, (tokens) => tokens.replacement(refused)),
    }
  }

  async #use<T>(name: string, user: string, action: (tokens: LoginTokens) => Promise<T>): Promise<T> {
    const tokens = this.#login(name, user)
    if (tokens === null) throw new Error(`there is no table [oauth.${name}]: write it, and reload`)
    try {
      return await action(tokens)
    } catch (cause) {
      throw new Error(`oauth.${name}: ${errorMessage(cause)}`, { cause })
    }
  }

  /** Asks the authority for another token at once. Returns the failure, if any. */
  async renew(name: string, user: string): Promise<TokenFailure | null> {
    const tokens = this.#login(name, user)
    if (tokens !== null) return tokens.renew()
    return { kind: 'refused', error: UNKNOWN_TABLE, why: 'the running daemon has no such table' }
  }

  /** Takes the clients of a reload. Tokens of unchanged tables stay, and the next request is made at once with the new secrets. */
  configure(clients: OauthClients): void {
    const old = this.#clients
    this.#clients = clients
    for (const [key, { name, tokens }] of this.#logins) {
      const [before, after] = [old.get(name), clients.get(name)]
      if (before !== undefined && after !== undefined && identityOf(before) === identityOf(after)) tokens.retry()
      else {
        tokens.close()
        this.#logins.delete(key)
      }
    }
  }

  states(): readonly TokenState[] {
    return [...this.#logins.values()].flatMap((login) => stateOf(login) ?? [])
  }

  /** Ends the renewals. */
  close(): void {
    for (const { tokens } of this.#logins.values()) tokens.close()
    this.#logins.clear()
  }

  #login(name: string, user: string): LoginTokens | null {
    const client = this.#clients.get(name)
    if (client === undefined) return null
    const owner = isOfUser(client) ? user : ANY_USER
    const key = JSON.stringify([name, owner])
    const known = this.#logins.get(key)
    if (known !== undefined) return known.tokens
    const login = this.#newLogin(name, owner, client)
    this.#logins.set(key, login)
    return login.tokens
  }

  #newLogin(name: string, user: string, first: OauthClient): Login {
    const { clock, request, answered } = this.#deps
    const client = (): OauthClient => this.#clients.get(name) ?? first
    const tokens: LoginTokens = new LoginTokens({
      clock,
      client,
      request: (old) => request(client(), user, old),
      answered: (answer) => {
        const state = stateOf({ name, user, tokens })
        if (state !== null) answered?.(answer, state)
      },
    })
    return { name, user, tokens }
  }
}

function stateOf({ name, user, tokens }: Login): TokenState | null {
  const { state } = tokens
  return state === null ? null : { name, user, ...state }
}

/** True when the token depends on the user; other grants give one for all users. */
const isOfUser = ({ table: { grant } }: OauthClient): boolean => grant === 'service_account' || grant === 'command'
