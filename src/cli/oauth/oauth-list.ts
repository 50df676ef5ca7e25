/** `deferd oauth list` and `deferd oauth show`: the `[oauth.NAME]` tables, without secrets. */
import type { Command } from 'commander'
import type { LoadedConfig } from '../../config/load.ts'
import { secretVariable, type OauthTable } from '../../config/values/tables/oauth-table.ts'
import { readPasswords } from '../../daemon/delivery-secrets.ts'
import { oauthPlaces } from '../../delivery/tls/oauth-uses.ts'
import type { TokenState } from '../../oauth/access-tokens.ts'
import { tokenClaims } from '../../oauth/token-claims.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { SECOND, type WallTime } from '../../system/clock.ts'
import { oauthJson, oauthSettingsJson, type OauthJson, type OauthTablesJson } from '../../resources/oauth-json.ts'
import { epochSeconds, jsonLine, localTime, maskControls, plural, relative, span } from '../../presentation/text.ts'
import { tableHeading, tableRow } from '../render/table.ts'
import { configOf } from '../shell/config-options.ts'
import { displayOf } from '../shell/display.ts'
import type { Shell } from '../shell/shell.ts'
import { tableNamed } from './configured-tables.ts'
import { keptGrant } from './obtained-token.ts'
import { certificateOf, filesOf } from './table-files.ts'

interface Options {
  readonly json?: true
}

interface Surroundings {
  /** Text of smtp_sasl_password_maps; empty when it cannot be read. */
  readonly passwords: string
  /** Tokens of the running daemon; null when none runs, or the user may not ask it. */
  readonly tokens: readonly TokenState[] | null
}

/** Reports what cannot be read on standard error: a list is useful without it. */
async function surroundings(shell: Shell, { config }: LoadedConfig): Promise<Surroundings> {
  const attempt = async <T>(what: string, read: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await read()
    } catch (error) {
      await shell.stderr.write(`deferd: warning: ${what} left out: ${maskControls(errorMessage(error))}\n`)
      return undefined
    }
  }
  const passwords = (await attempt('logins', () => readPasswords(config))) ?? ''
  const live = await attempt('tokens of the daemon', () => shell.liveStatus(config))
  return { passwords, tokens: live?.tokens ?? null }
}

function stateText({ tokens }: OauthJson): string {
  if (tokens === null) return '-'
  if (tokens.length === 0) return 'none yet'
  return tokens
    .map(
      ({ user, left, problem }) =>
        `${user === null ? '' : `${user}: `}${problem ?? (left === null ? 'none' : `for ${span(left * SECOND, 1)}`)}`,
    )
    .join('; ')
}

const HEADINGS = ['NAME', 'PROVIDER', 'GRANT', 'USED BY', 'TOKEN']

async function configuredTables(shell: Shell, loaded: LoadedConfig): Promise<readonly OauthJson[]> {
  const { config } = loaded
  const { passwords, tokens } = await surroundings(shell, loaded)
  return [...config.oauth.values()].map((table) => oauthJson(table, oauthPlaces(table.name, config, passwords), tokens))
}

export async function listTables(shell: Shell, { json }: Options, command: Command): Promise<void> {
  const loaded = await configOf(shell, command)
  const tables = shell.api === null ? await configuredTables(shell, loaded) : (await shell.api.get<OauthTablesJson>('/oauth')).tables
  if (json === true) return shell.stdout.write(tables.map(jsonLine).join(''))
  if (tables.length === 0) return shell.stdout.write('The configuration has no [oauth.NAME] tables.\n')
  const rows = tables.map((one) => [one.name, one.provider, one.grant, one.used_by.join(', ') || 'nothing', stateText(one)])
  const columns = HEADINGS.map((heading, i) => ({ heading, width: Math.max(heading.length, ...rows.map((row) => row[i]?.length ?? 0)) }))
  const display = displayOf(shell)
  return shell.stdout.write(
    [tableHeading(columns, display), ...rows.map((row) => tableRow(row, columns, display))].map((line) => `${line}\n`).join(''),
  )
}

/** State of the refresh token that the queue keeps, without the token itself. */
interface KeptLogin {
  /** User of the last access token; null for an opaque token. */
  readonly user: string | null
  readonly generation: number
  readonly expiresAt: WallTime
}

async function keptLogin(shell: Shell, { config }: LoadedConfig, { name, grant }: OauthTable): Promise<KeptLogin | null> {
  const kept = grant === 'refresh_token' ? await keptGrant(name, { shell, config }) : null
  if (kept === null) return null
  const { accessToken, generation, expiresAt } = kept.grant
  return {
    user: accessToken === null ? null : (tokenClaims(accessToken)?.user ?? null),
    generation,
    expiresAt: kept.clock.wall.of(expiresAt),
  }
}

export async function showTable(shell: Shell, name: string, { json }: Options, command: Command): Promise<void> {
  const loaded = await configOf(shell, command)
  const table = tableNamed(name, loaded.config)
  const { passwords, tokens } = await surroundings(shell, loaded)
  const places = oauthPlaces(name, loaded.config, passwords)
  const login = await keptLogin(shell, loaded, table)
  const certificate = certificateOf(table)
  const environment = loaded.oauthSecrets.has(secretVariable(name)) ? secretVariable(name) : null
  const shown = oauthJson(table, places, tokens)
  if (json === true) {
    await shell.stdout.write(
      jsonLine({
        ...shown,
        ...oauthSettingsJson(table),
        client_secret_variable: environment,
        files: filesOf(table),
        certificate: certificate === null ? null : { subject: certificate.subject, expire_time: epochSeconds(certificate.expiresAt) },
        login: login === null ? null : { user: login.user, generation: login.generation, expire_time: epochSeconds(login.expiresAt) },
      }),
    )
    return
  }
  const { clock } = shell
  const at = (instant: WallTime): string => `${localTime(instant, clock)} (${relative(instant, clock.now())})`
  const problems = new Map(filesOf(table).map(({ member, problem }) => [member, problem]))
  const settings = Object.entries(oauthSettingsJson(table)).flatMap(([member, value]) => {
    const problem = problems.get(member) ?? null
    return value === null ? [] : [[member, problem === null ? value : `${value}, which ${problem}`] as const]
  })
  const facts: readonly (readonly [string, string])[] = [
    ['provider', table.provider],
    ['grant', table.grant],
    ...settings,
    ...(environment === null ? [] : [['client secret', `in ${environment}`] as const]),
    ...(certificate === null ? [] : [['certificate', `${certificate.subject}, ends ${at(certificate.expiresAt)}`] as const]),
    ...(login === null
      ? []
      : [['login', `${login.user ?? 'unknown user'}, ${plural(login.generation, 'renewal')}, token ends ${at(login.expiresAt)}`] as const]),
    ['used by', places.join(', ') || 'nothing'],
    ['token', stateText(shown)],
  ]
  const lines = [`oauth.${name}`, ...facts.map(([label, value]) => `  ${label.padEnd(24)}${value}`)]
  await shell.stdout.write(lines.map((line) => `${maskControls(line)}\n`).join(''))
}
