/** Requests for access tokens, by the grant of their table: to the authority, through the shared grants, or to a command. */
import { errorMessage } from '../system/caught-error.ts'
import type { Clock } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import type { Random } from '../system/random.ts'
import { askAuthority, type AskAuthority } from './authority.ts'
import { commandOutput } from './command-output.ts'
import { grantRequest } from './grant-request.ts'
import type { OauthClient } from './oauth-client.ts'
import type { SharedGrants } from './shared-grant.ts'
import { SharedGrantRenewal } from './shared-grant-renewal.ts'
import { tokenAnswer, type TokenAnswer } from './token-answer.ts'

/** Asks for a token of a user in place of `old`, which is null for the first one. A failure is a value. */
export type RequestToken = (client: OauthClient, user: string, old: string | null) => Promise<TokenAnswer>

export interface TokenRequestDeps {
  readonly net: Pick<Net, 'dial' | 'lookupAddresses' | 'lookupHost'>
  readonly clock: Clock
  readonly random: Random
  /** Absent where refresh tokens cannot be kept, so that none is used. */
  readonly grants?: SharedGrants | undefined
}

/** User of the tokens that serve all users of a table. */
export const ANY_USER = ''

/** Number of hexadecimal digits of an id. */
const ID_DIGITS = 32

export function tokenRequests({ net, clock, random, grants }: TokenRequestDeps): RequestToken {
  const draw = random.stream('ids of client assertions')
  const id = (): string => Array.from({ length: ID_DIGITS }, () => Math.floor(draw() * 16).toString(16)).join('')
  // A reload replaces the clients, and so their TLS contexts.
  const authorities = new WeakMap<OauthClient, AskAuthority>()
  const authorityOf = (client: OauthClient): AskAuthority => {
    const asked = authorities.get(client) ?? askAuthority({ net, clock }, client.ca)
    authorities.set(client, asked)
    return asked
  }
  const ask = async (client: OauthClient, user: string, refreshToken?: string): Promise<TokenAnswer> => {
    const form = grantRequest(client, { now: clock.wall.now(), id: id(), user, refreshToken })
    return tokenAnswer(await authorityOf(client)(client.table.tokenUrl, form))
  }
  const renew = grants === undefined ? undefined : sharedRenewals(grants, clock, ask)
  return async (client, user, old) => {
    if (client.runCommand !== null) return runCommand(client.runCommand, user)
    if (client.table.grant !== 'refresh_token') return ask(client, user)
    return renew === undefined ? { kind: 'temporary', why: 'only a daemon uses refresh tokens' } : renew(client, old)
  }
}

/** Renewals by the grants that all nodes share, one for each table. */
function sharedRenewals(
  grants: SharedGrants,
  clock: Clock,
  ask: (client: OauthClient, user: string, refreshToken: string) => Promise<TokenAnswer>,
): (client: OauthClient, old: string | null) => Promise<TokenAnswer> {
  const renewals = new Map<string, SharedGrantRenewal>()
  const clients = new Map<string, OauthClient>()
  return (client, old) => {
    const { name } = client.table
    clients.set(name, client)
    const current = (): OauthClient => clients.get(name) ?? client
    const renewal =
      renewals.get(name) ??
      new SharedGrantRenewal({
        name,
        user: ANY_USER,
        grants,
        clock,
        fileToken: () => current().refreshToken,
        request: (refreshToken) => ask(current(), ANY_USER, refreshToken),
      })
    renewals.set(name, renewal)
    return renewal.token(old)
  }
}

async function runCommand(run: NonNullable<OauthClient['runCommand']>, user: string): Promise<TokenAnswer> {
  try {
    return commandOutput(await run(user))
  } catch (error) {
    return { kind: 'temporary', why: errorMessage(error) }
  }
}
