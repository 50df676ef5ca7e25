/** An access token for a command. A refresh token is used only in the place that keeps its successor: the queue, or the file before there is a queue. */
import type { Clock } from '../../system/clock.ts'
import { clockOf } from '../../system/queue-clock.ts'
import type { Config } from '../../config/options.ts'
import type { OauthClient } from '../../oauth/oauth-client.ts'
import { writeRefreshToken } from '../../oauth/refresh-token-file.ts'
import type { SharedGrant, SharedGrants } from '../../oauth/shared-grant.ts'
import type { TokenAnswer } from '../../oauth/token-answer.ts'
import { ANY_USER, tokenRequests } from '../../oauth/token-requests.ts'
import { NoSuchQueue } from '../../store/errors.ts'
import type { Net } from '../../system/net.ts'
import type { QueueClient } from '../shell/queue-client.ts'
import { withReader, type Shell } from '../shell/shell.ts'

export interface TokenDeps {
  readonly shell: Pick<Shell, 'clock' | 'random' | 'openQueueClient' | 'openReader'>
  readonly config: Config
  readonly net: Net
}

/** A refresh token that a queue keeps, with the clock of the queue. */
interface KeptGrant {
  readonly grant: SharedGrant
  readonly clock: Clock
}

/** Asks for a new token of a user. A failure is a value. */
export async function obtainToken(client: OauthClient, user: string, deps: TokenDeps): Promise<TokenAnswer> {
  const { shell, config, net } = deps
  const { random } = shell
  const clock = clockOf(null, shell.clock)
  if (client.table.grant !== 'refresh_token') return tokenRequests({ net, clock, random })(client, user, null)
  const queue = await openedQueue(deps)
  if (queue === null) return tokenRequests({ net, clock, random, grants: fileGrants(client) })(client, user, null)
  try {
    const failure = await queue.renewGrant(client)
    if (failure !== null) return failure
  } finally {
    await queue.close()
  }
  return tokenOf(await keptGrant(client.table.name, { shell, config }))
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
export async function keptGrant(name: string, { shell, config }: Pick<TokenDeps, 'shell' | 'config'>): Promise<KeptGrant | null> {
  try {
    return await withReader(shell, config, async ({ reader, clock }) => {
      const grant = (await reader.records.grants.all()).find((one) => one.name === name && one.user === ANY_USER)
      return grant === undefined ? null : { grant, clock }
    })
  } catch (error) {
    if (error instanceof NoSuchQueue) return null
    throw error
  }
}

function tokenOf(kept: KeptGrant | null): TokenAnswer {
  if (kept?.grant.accessToken == null) return { kind: 'temporary', why: 'the queue has no token any more' }
  return { kind: 'token', token: kept.grant.accessToken, lifetime: kept.grant.expiresAt - kept.clock.now() }
}

/** Grants before the first start: a new refresh token replaces the one in the file. */
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
