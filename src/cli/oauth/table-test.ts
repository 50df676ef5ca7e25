/** Tests a login with an access token of an `[oauth.NAME]` table: requests the token, reads its claims, and logs in at next hops with it. */
import { clockOf } from '../../system/queue-clock.ts'
import { formatNextHop, type NextHop } from '../../config/values/next-hop.ts'
import { tryNextHop, type Trial } from '../../delivery/smtp/next-hop-trial.ts'
import type { DeliverySecrets } from '../../delivery/smtp/smtp-agent.ts'
import { SaslCredentials } from '../../delivery/tls/sasl-credentials.ts'
import { loginRefusal } from '../../mail/login-refusal.ts'
import type { OauthClient } from '../../oauth/oauth-client.ts'
import { tokenClaims, type TokenClaims } from '../../oauth/token-claims.ts'
import { loginFault, requestFault, tokenFaults, type Fault } from '../../oauth/token-review.ts'
import type { TokenSource } from '../../oauth/token-source.ts'
import type { Duration } from '../../system/clock.ts'
import { obtainToken, type TokenDeps } from './obtained-token.ts'

interface TestedLogin {
  readonly client: OauthClient
  /** Null when only the token is tested. */
  readonly user: string | null
  readonly hops: readonly NextHop[]
}

interface HopTest {
  readonly hop: string
  /** Result of the login, with the hosts of the next hop. */
  readonly text: string
  /** Null when the login works. */
  readonly fault: Fault | null
}

export interface LoginTest {
  readonly user: string | null
  readonly token: { readonly claims: TokenClaims | null; readonly lifetime: Duration } | null
  /** Faults of the request, or of the token. */
  readonly faults: readonly Fault[]
  readonly hops: readonly HopTest[]
}

export interface LoginTestDeps extends TokenDeps {
  readonly secrets: DeliverySecrets
}

export async function testLogin({ client, user, hops }: TestedLogin, deps: LoginTestDeps): Promise<LoginTest> {
  const { table } = client
  const answer = await obtainToken(client, user ?? '', deps)
  if (answer.kind !== 'token') return { user, token: null, faults: [requestFault(table, answer)], hops: [] }
  const claims = tokenClaims(answer.token)
  const now = deps.shell.clock.now()
  const faults = claims === null ? [] : tokenFaults(table, { claims, user, now })
  const tests: HopTest[] = []
  for (const hop of user === null ? [] : hops) {
    for (const trial of await logInAt(hop, { user: user ?? '', token: answer.token, table: table.name }, deps)) {
      tests.push({ hop: formatNextHop(hop, 0), text: trial.text, fault: faultOf(trial, { client, user: user ?? '', claims, faults }) })
    }
  }
  return { user, token: { claims, lifetime: answer.lifetime }, faults, hops: tests }
}

interface Presented {
  readonly user: string
  readonly token: string
  readonly table: string
}

function logInAt(
  hop: NextHop,
  { user, token, table }: Presented,
  { shell, config, net, secrets }: LoginTestDeps,
): Promise<readonly Trial[]> {
  // A new token that a server refuses is not replaced.
  const source: TokenSource = { get: () => Promise.resolve(token), replacement: () => Promise.resolve(null) }
  const credentials = new SaslCredentials('', config, () => source).withToken(user, table)
  return tryNextHop(hop, { config, secrets, net, clock: clockOf(null, shell.clock), credentials })
}

interface Shown extends Pick<LoginTest, 'faults'> {
  readonly client: OauthClient
  readonly user: string
  readonly claims: TokenClaims | null
}

function faultOf({ ok, text, user: loggedIn, status }: Trial, { client, user, claims, faults }: Shown): Fault | null {
  if (ok && loggedIn !== null) return null
  if (ok) return { kind: 'no-login', text: `${text}: correct the port (587), or smtp_tls_security_level = "encrypt"` }
  if (status === null) return { kind: 'server', text }
  return loginFault(client.table, { user, claims, faults, refusal: loginRefusal(status), reason: status.reason })
}

/** The fault that keeps mail from leaving; null when the login works. The answer of a server outweighs faults found in the token. */
export function decisiveFault({ token, faults, hops }: LoginTest): Fault | null {
  const [first = null] = faults
  if (token === null || hops.length === 0) return first
  const refused = hops.find(({ fault }) => fault !== null)?.fault ?? null
  return refused === null || refused.kind === 'server' || refused.kind === 'no-login' ? refused : (first ?? refused)
}
