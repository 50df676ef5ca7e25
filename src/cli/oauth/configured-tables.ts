/** The `[oauth.NAME]` tables of a configuration, with their clients, places and logins. */
import type { LoadedConfig } from '../../config/load.ts'
import type { Config } from '../../config/options.ts'
import { secretVariable, type OauthTable } from '../../config/values/tables/oauth-table.ts'
import { readPasswords, readTlsFiles } from '../../daemon/delivery-secrets.ts'
import { tokenCommand } from '../../daemon/token-command.ts'
import type { DeliverySecrets } from '../../delivery/smtp/smtp-agent.ts'
import { readOauthClient, type OauthClient } from '../../oauth/oauth-client.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { maskControls } from '../../presentation/text.ts'
import { CommandError, EX } from '../shell/exit.ts'

/** Throws for an unknown name, and lists the names of the existing tables. */
export function tableNamed(name: string, { oauth }: Config): OauthTable {
  const table = oauth.get(name)
  if (table !== undefined) return table
  const known = oauth.size === 0 ? 'the configuration has none' : `the configuration has ${[...oauth.keys()].join(', ')}`
  throw new CommandError(EX.data, `there is no table [oauth.${maskControls(name)}]: ${known}`)
}

/** Reads the files of a table. Throws for one that cannot be used (78). */
export const clientOf = (table: OauthTable, { oauthSecrets }: Pick<LoadedConfig, 'oauthSecrets'>): OauthClient =>
  configured(() => readOauthClient(table, oauthSecrets.get(secretVariable(table.name)), tokenCommand), `oauth.${table.name}: `)

/** The passwords and the certificates of next hops. Throws for a file that cannot be used (78). */
export const secretsOf = (config: Config): DeliverySecrets =>
  configured(() => ({ passwords: readPasswords(config), tls: readTlsFiles(config) }), '')

function configured<T>(read: () => T, where: string): T {
  try {
    return read()
  } catch (cause) {
    throw new CommandError(EX.config, `${where}${errorMessage(cause)}`, { cause })
  }
}
