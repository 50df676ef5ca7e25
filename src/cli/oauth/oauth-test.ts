/** `deferd oauth test`: a token request and a login with the token, with what to do when one of them fails. */
import { InvalidArgumentError, type Command } from 'commander'
import { formatNextHop, parseNextHop, type NextHop } from '../../config/values/next-hop.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { OauthTable } from '../../config/values/tables/oauth-table.ts'
import { oauthLogins } from '../../delivery/tls/oauth-uses.ts'
import type { Fault } from '../../oauth/token-review.ts'
import { claimsJson } from '../../resources/oauth-json.ts'
import { jsonLine, localTime, maskControls, span } from '../../presentation/text.ts'
import { configOf } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { clientOf, secretsOf, tableNamed } from './configured-tables.ts'
import { decisiveFault, testLogin, type LoginTest } from './table-test.ts'

export interface TestOptions {
  readonly hop?: NextHop
  readonly json?: true
}

export function hopArgument(text: string): NextHop {
  const hop = parseNextHop(text, { port: 587, origin: 'relayhost', mx: true })
  if (hop === undefined) throw new InvalidArgumentError('Expected a next hop such as [smtp.office365.com]:587.')
  return hop
}

const EXIT: Readonly<Record<Fault['kind'], number>> = {
  unreachable: EX.temporary,
  credentials: EX.config,
  consent: EX.notPermitted,
  'login-ended': EX.config,
  audience: EX.config,
  permission: EX.notPermitted,
  tenant: EX.config,
  user: EX.config,
  clock: EX.config,
  registration: EX.notPermitted,
  mailbox: EX.notPermitted,
  'smtp-auth-off': EX.notPermitted,
  refused: EX.notPermitted,
  'no-login': EX.unavailable,
  server: EX.unavailable,
}

/** Logins to test: the logins that use the table in the configuration, or the login of the options. */
function testedLogins(
  table: OauthTable,
  { config }: LoadedConfig,
  passwords: string,
  { user, hop }: { readonly user: string | undefined; readonly hop?: NextHop },
): readonly { readonly user: string | null; readonly hops: readonly NextHop[] }[] {
  const logins = oauthLogins(config, passwords).filter((login) => login.table === table.name)
  const users = user === undefined ? [...new Set(logins.map((login) => login.user))] : [user]
  const hopsOf = (name: string): readonly NextHop[] => {
    if (hop !== undefined) return [hop]
    const own = logins.filter((login) => login.user === name)
    return [...new Map((own.length > 0 ? own : logins).map((login) => [formatNextHop(login.hop, 0), login.hop])).values()]
  }
  if (users.length > 0) return users.map((name) => ({ user: name, hops: hopsOf(name) }))
  if (table.grant !== 'service_account' && hop === undefined) return [{ user: null, hops: [] }]
  throw new CommandError(
    EX.usage,
    `no login of smtp_sasl_password_maps uses [oauth.${table.name}]: name a mailbox, as in deferd oauth test ${table.name} USER`,
  )
}

/** A call of the command. `end` sets its exit code. */
interface TestCall {
  readonly name: string
  /** User of the login; undefined for all of the configuration. */
  readonly user: string | undefined
  readonly options: TestOptions
  readonly end: (code: number) => void
}

export async function testTable(shell: Shell, { name, user, options, end }: TestCall, command: Command): Promise<void> {
  const loaded = await configOf(shell, command)
  const table = tableNamed(name, loaded.config)
  const [client, secrets] = [clientOf(table, loaded), secretsOf(loaded.config)]
  const logins = testedLogins(table, loaded, secrets.passwords ?? '', { ...options, user })
  const { SystemNet } = await import('../../system/system-net.ts')
  const net = new SystemNet({ dnsServers: loaded.config.dns_servers })
  let code = 0
  for (const login of logins) {
    const test = await testLogin({ client, ...login }, { shell, config: loaded.config, net, secrets })
    const fault = decisiveFault(test)
    if (code === 0 && fault !== null) code = EXIT[fault.kind]
    await shell.stdout.write(options.json === true ? jsonLine(testJson(table, test)) : testText(table, test, shell))
  }
  end(code)
}

const testJson = ({ name }: OauthTable, test: LoginTest) => ({
  name,
  user: test.user,
  ok: decisiveFault(test) === null,
  token: test.token === null ? null : claimsJson(test.token.claims, test.token.lifetime),
  faults: test.faults,
  hops: test.hops.map(({ hop, text, fault }) => ({ hop, ok: fault === null, text, fault })),
})

function testText({ name, provider, grant }: OauthTable, test: LoginTest, { clock }: Shell): string {
  const facts = tokenFacts(test, clock).map(([label, value]) => `  ${label.padEnd(12)}${value}`)
  const isServed = test.token !== null && test.hops.length > 0 && decisiveFault(test) === null
  const findings = [
    // Warnings when a server has accepted the token despite its faults.
    ...test.faults.map(({ text }) => `${(isServed ? 'warning' : 'error').padEnd(8)}token: ${text}`),
    ...test.hops.map(({ hop, text, fault }) => (fault === null ? `ok      ${hop}: ${text}` : `error   ${hop}: ${fault.text}`)),
    ...(test.token !== null && test.hops.length === 0 ? [NO_HOP] : []),
  ]
  const login = test.user === null ? '' : `, login ${test.user}`
  return [`oauth.${name}  ${provider}, ${grant}${login}`, ...facts, ...findings].map((line) => `${maskControls(line)}\n`).join('')
}

const NO_HOP = 'warning no next hop uses this table, so that no login was tried: name one with --hop, and a mailbox as USER'

function tokenFacts({ token }: LoginTest, clock: Shell['clock']): readonly (readonly [string, string])[] {
  if (token === null) return []
  const { claims, lifetime } = token
  const first = ['token', `for ${span(Math.max(0, lifetime))}`] as const
  if (claims === null) return [first, ['claims', 'none can be read: the token is opaque']]
  const rest: readonly (readonly [string, string | null])[] = [
    ['audience', claims.audience.join(', ')],
    ['roles', claims.roles.join(', ')],
    ['scopes', claims.scopes.join(' ')],
    ['tenant', claims.tenant],
    ['app id', claims.application],
    ['object id', claims.object],
    ['user', claims.user],
    ['expires', claims.expiresAt === null ? null : localTime(claims.expiresAt, clock)],
  ]
  return [first, ...rest.flatMap(([label, value]) => (value === null || value === '' ? [] : [[label, value] as const]))]
}
