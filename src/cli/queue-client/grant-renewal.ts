/** A token request by the refresh token of a queue, in the process of a command. */
import type { Config } from '../../config/options.ts'
import type { OauthClient } from '../../oauth/oauth-client.ts'
import type { SharedGrants } from '../../oauth/shared-grant.ts'
import type { TokenFailure } from '../../oauth/token-answer.ts'
import { ANY_USER, tokenRequests } from '../../oauth/token-requests.ts'
import type { Clock } from '../../system/clock.ts'
import { SystemNet } from '../../system/system-net.ts'
import { systemRandom } from '../../system/system-random.ts'

interface Deps {
  readonly grants: SharedGrants
  readonly clock: Clock
  readonly config: Pick<Config, 'dns_servers'>
}

/** Asks the authority even while the kept token can be used. Returns the failure, if any. */
export async function renewGrant(client: OauthClient, { grants, clock, config }: Deps): Promise<TokenFailure | null> {
  const kept = await grants.read(client.table.name, ANY_USER)
  const request = tokenRequests({ net: new SystemNet({ dnsServers: config.dns_servers }), clock, random: systemRandom, grants })
  const answer = await request(client, ANY_USER, kept?.accessToken ?? null)
  return answer.kind === 'token' ? null : answer
}
