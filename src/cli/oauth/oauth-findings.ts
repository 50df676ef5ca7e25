/** Findings of `deferd check` about `[oauth.NAME]` tables. */
import type { Config } from '../../config/options.ts'
import { formatNextHop } from '../../config/values/next-hop.ts'
import { oauthLogins, type OauthLogin } from '../../delivery/tls/oauth-uses.ts'
import { span } from '../../presentation/text.ts'
import { DAY, type WallTime } from '../../system/clock.ts'
import { error, ok, warning, type Finding } from '../shell/check-finding.ts'
import { certificateOf } from './table-files.ts'
import { decisiveFault, testLogin, type LoginTest, type LoginTestDeps } from './table-test.ts'

const WARNED_VALIDITY = 30 * DAY

/** A finding for each certificate by which an application proves itself. One that cannot be read is reported by the preparation. */
export function* oauthCertificates({ oauth }: Config, now: WallTime): Generator<Finding> {
  for (const table of oauth.values()) {
    const certificate = certificateOf(table)
    if (certificate === null) continue
    const what = `oauth.${table.name}`
    const text = `${table.clientCertificateFile} (${certificate.subject})`
    const left = certificate.expiresAt - now
    const renew = 'add a new one to the application, write it to the file, then reload'
    if (left <= 0) yield warning(what, `${text} ended ${span(-left)} ago: ${renew}`)
    else
      yield left < WARNED_VALIDITY ? warning(what, `${text} ends in ${span(left)}: ${renew}`) : ok(what, `${text} holds for ${span(left)}`)
  }
}

/** Requests a token for each login with one, and logs in. Returns the next hops whose own login was tried. */
export async function* oauthFindings(deps: LoginTestDeps): AsyncGenerator<Finding, ReadonlySet<string>> {
  const tried = new Set<string>()
  const logins = oauthLogins(deps.config, deps.secrets.passwords ?? '')
  for (const same of Map.groupBy(logins, ({ table, user }) => JSON.stringify([table, user])).values()) {
    const [first] = same
    const client = first === undefined ? undefined : deps.secrets.oauth?.get(first.table)
    if (first === undefined || client === undefined) continue
    const hops = same.map(({ hop }) => hop)
    yield* findingsOf(first, await testLogin({ client, user: first.user, hops }, deps))
    for (const { hop, isOfSender } of same) if (!isOfSender) tried.add(formatNextHop(hop, 0))
  }
  return tried
}

function* findingsOf({ table, user }: OauthLogin, test: LoginTest): Generator<Finding> {
  const what = `oauth.${table}`
  const { token, faults, hops } = test
  if (token !== null) {
    const { claims, lifetime } = token
    const rights = claims === null ? ['opaque'] : [...claims.audience, ...claims.roles, ...claims.scopes]
    yield ok(what, `${user}: token for ${span(lifetime)}: ${rights.join(', ')}`)
  }
  const report = decisiveFault(test) === null ? warning : error
  for (const { text } of faults) yield report(what, `${user}: ${text}`)
  for (const { hop, text, fault } of hops) yield fault === null ? ok(what, text) : error(what, `${hop}: ${fault.text}`)
}
