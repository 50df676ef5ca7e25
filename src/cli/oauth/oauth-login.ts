/** `deferd oauth login`: the login of a person by a device code, whose refresh token is written to `refresh_token_file`. */
import { sharedPlace } from '../../config/values/queue-place.ts'
import { clockOf } from '../../system/queue-clock.ts'
import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import type { Config } from '../../config/options.ts'
import type { OauthTable } from '../../config/values/tables/oauth-table.ts'
import { askAuthority } from '../../oauth/authority.ts'
import { deviceLogin, type DeviceCode, type Login, type LoginFailure } from '../../oauth/device-login.ts'
import { writeRefreshToken } from '../../oauth/refresh-token-file.ts'
import { tokenClaims } from '../../oauth/token-claims.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { maskControls, span } from '../../presentation/text.ts'
import { configFlags, configOf } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { clientOf, tableNamed } from './configured-tables.ts'

export interface LoginOptions {
  readonly user?: string
}

const EXIT: Readonly<Record<LoginFailure['reason'], number>> = {
  denied: EX.notPermitted,
  expired: EX.temporary,
  refused: EX.config,
  unreachable: EX.unavailable,
  'no-refresh-token': EX.config,
  // As a shell reports SIGINT (128 + 2).
  stopped: 130,
}

/** Throws for a table without a login by device code (78), with what to do instead. */
function assertDeviceLogin({ name, provider, grant, deviceUrl }: OauthTable): void {
  if (grant !== 'refresh_token') {
    const remedy = `deferd oauth test ${name} tries it`
    throw new CommandError(EX.config, `oauth.${name}: its grant ${grant} needs no login of a person: ${remedy}`)
  }
  if (deviceUrl !== '') return
  throw new CommandError(
    EX.config,
    provider === 'google'
      ? `oauth.${name}: Google gives no access to mail by a device code: obtain a refresh token with the scope https://mail.google.com/ in a browser (developers.google.com/oauthplayground) and write it to refresh_token_file, or use grant = "service_account"`
      : `oauth.${name}: the table has no device_url: write the device authorization endpoint of the authority (RFC 8628), or write a refresh token to refresh_token_file by other means`,
  )
}

/** Throws when the token could not be written after the login (73). */
function assertWritable(path: string): void {
  try {
    accessSync(dirname(path), constants.W_OK | constants.X_OK)
  } catch (cause) {
    const text = `refresh_token_file: cannot write ${path}: ${errorMessage(cause)}: create the folder, or run the command as its owner`
    throw new CommandError(EX.cannotCreate, text, { cause })
  }
}

function codeText({ userCode, verificationUri, completeUri, lifetime }: DeviceCode): string {
  const direct = completeUri === null ? [] : [`or open     ${completeUri}`]
  return [
    `Open        ${verificationUri}`,
    `and enter   ${userCode}`,
    ...direct,
    `within ${span(lifetime)}, and log in as the user whose mailbox sends.`,
  ]
    .map((line) => `${maskControls(line)}\n`)
    .join('')
}

export async function logIn(shell: Shell, name: string, { user }: LoginOptions, command: Command): Promise<void> {
  const loaded = await configOf(shell, command)
  const { config } = loaded
  const table = tableNamed(name, config)
  assertDeviceLogin(table)
  assertWritable(table.refreshTokenFile)
  // A file with a damaged token is replaced.
  const client = clientOf({ ...table, refreshTokenFile: '' }, loaded)
  const { SystemNet } = await import('../../system/system-net.ts')
  const net = new SystemNet({ dnsServers: config.dns_servers })
  const clock = clockOf(null, shell.clock)
  const stop = new AbortController()
  const abort = (): void => stop.abort()
  void shell.untilStopped(abort).then(abort)
  const draw = shell.random.stream('ids of device logins')
  const result = await deviceLogin(client, {
    ask: askAuthority({ net, clock }, client.ca),
    clock,
    id: () => Array.from({ length: 32 }, () => Math.floor(draw() * 16).toString(16)).join(''),
    show: (code) => shell.stdout.write(codeText(code)),
    signal: stop.signal,
  })
  if (result.kind === 'failed') throw new CommandError(EXIT[result.reason], `oauth.${name}: ${result.why}`)
  const person = personOf(result, user)
  await store(table, result, config)
  await shell.stdout.write(maskControls(`Logged in${person}; the refresh token is in ${table.refreshTokenFile}.`) + '\n')
  const next = await reloadText(shell, config)
  await shell.stdout.write(`${next}: ${shell.program} oauth test ${name}${configFlags(command)}\n`)
}

/** The person of the token, for a sentence. Throws when it is not the wanted one. */
function personOf({ token }: Login, wanted: string | undefined): string {
  const person = tokenClaims(token)?.user ?? null
  if (person === null) return ''
  if (wanted !== undefined && wanted.toLowerCase() !== person.toLowerCase()) {
    const text = `the login is that of ${person}, not of ${wanted}: nothing was written; repeat the command, and choose the other account`
    throw new CommandError(EX.data, maskControls(text))
  }
  return ` as ${person}`
}

async function store({ refreshTokenFile: path }: OauthTable, { refreshToken }: Login, config: Config): Promise<void> {
  const { uid, gid } = statSync(config.queue_directory, { throwIfNoEntry: false }) ?? {}
  try {
    await writeRefreshToken(path, refreshToken, uid === undefined || gid === undefined ? null : { uid, gid })
  } catch (cause) {
    throw new CommandError(
      EX.cannotCreate,
      `refresh_token_file: cannot write ${path}: ${errorMessage(cause)}; correct that, and repeat the command`,
      { cause },
    )
  }
}

/** Lets a running daemon use the new token. */
async function reloadText(shell: Shell, config: Config): Promise<string> {
  const others = sharedPlace(config) === null ? '' : ' Copy the file to the other nodes and reload them.'
  try {
    const isRunning = await shell.readFilesAgain(config)
    return isRunning ? `The daemon has read it.${others} Try it` : `No daemon runs here.${others} Try it before the start`
  } catch (error) {
    return `The daemon has not read it (${maskControls(errorMessage(error))}): reload it, as with systemctl reload deferd.${others} Then try it`
  }
}
