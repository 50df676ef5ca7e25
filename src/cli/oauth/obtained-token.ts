/** An access token for a command. A refresh token is used only in the place that keeps its successor: the queue, or the file before there is a queue. */
import type { Config } from '../../config/options.ts'
import type { OauthClient } from '../../oauth/oauth-client.ts'
import { writeRefreshToken } from '../../oauth/refresh-token-file.ts'
import type { SharedGrant, SharedGrants } from '../../oauth/shared-grant.ts'
import type { TokenAnswer } from '../../oauth/token-answer.ts'
import { ANY_USER, tokenRequests } from '../../oauth/token-requests.ts'
import { NoSuchQueue } from '../../store/errors.ts'
import type { Net } from '../../system/net.ts'
import type { QueueClient } from '../shell/queue-client.ts'
import type { Shell } from '../shell/shell.ts'

export interface TokenDeps {
  readonly shell: Pick<Shell, 'clock' | 'random' | 'openQueueClient' | 'openReader'>
  readonly config: Config
  readonly net: Net
}

/** Asks for a new token of a user. A failure is a value. */
export async function obtainToken(client: OauthClient, user: string, deps: TokenDeps): Promise<TokenAnswer> {
  const { shell, config, net } = deps
  const { clock, random } = shell
  if (client.table.grant !== 'refresh_token') return tokenRequests({ net, clock, random })(client, user, null)
  const queue = await openedQueue(deps)
  if (queue === null) return tokenRequests({ net, clock, random, grants: fileGrants(client) })(client, user, null)
  try {
    const failure = await queue.renewGrant(client)
    if (failure !== null) return failure
  } finally {
    await queue.close()
  }
  return tokenOf(await keptGrant(client.table.name, { shell, config }), clock.now())
}

/** Null when there is no queue yet. */
async function openedQueue({ shell, config }: TokenDeps): Promise<QueueClient | null> {
  try {
    return await shell.openQueueClient(config)
  } catch (error) {
    if (error instanceof NoSuchQueue) return null
    throw error
  }
}

/** The last answer to a refresh that the queue keeps, with wall clock times; null without one, and without a queue. */
export async function keptGrant(name: string, { shell, config }: Pick<TokenDeps, 'shell' | 'config'>): Promise<SharedGrant | null> {
  try {
    const reader = await shell.openReader(config)
    try {
      return (await reader.sharedGrants()).find((grant) => grant.name === name && grant.user === ANY_USER) ?? null
    } finally {
      await reader.close()
    }
  } catch (error) {
    if (error instanceof NoSuchQueue) return null
    throw error
  }
}

function tokenOf(grant: SharedGrant | null, now: number): TokenAnswer {
  if (grant?.accessToken == null) return { kind: 'temporary', why: 'the queue has no token any more' }
  return { kind: 'token', token: grant.accessToken, lifetime: grant.expiresAt - now }
}

/** Grants before the first start: a new refresh token takes the place of that of the file. */
function fileGrants({ table, refreshToken }: OauthClient): SharedGrants {
  let kept: SharedGrant | null = null
  return {
    read: () => Promise.resolve(kept),
    claim: () => Promise.resolve(true),
    replace: async (_name, _user, grant) => {
      if (grant.refreshToken !== refreshToken) await writeRefreshToken(table.refreshTokenFile, grant.refreshToken, null)
      kept = grant
      return true
    },
    release: () => Promise.resolve(),
  }
}
