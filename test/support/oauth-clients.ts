/** Clients of `[oauth.NAME]` tables for tests, without files. */
import { generateKeyPairSync } from 'node:crypto'
import { configFrom } from '../../src/config/load.ts'
import { commandTable, type OauthTable } from '../../src/config/values/tables/oauth-table.ts'
import type { OauthClient, RunTokenCommand } from '../../src/oauth/oauth-client.ts'

/** The table of these members. */
export function oauthTable(members: Readonly<Record<string, unknown>>, name = 'm365'): OauthTable {
  const table = configFrom({ oauth: { [name]: members } }, 'relay.example').config.oauth.get(name)
  if (table === undefined) throw new Error('the table was not read')
  return table
}

const NO_SECRETS = { proof: { kind: 'none' }, refreshToken: null, account: null, ca: null, runCommand: null } as const

export const oauthClient = (table: OauthTable, secrets: Partial<OauthClient> = {}): OauthClient => ({ ...NO_SECRETS, table, ...secrets })

/** The client of smtp_sasl_oauth_token_command, by name. */
export const commandClients = (run: RunTokenCommand): ReadonlyMap<string, OauthClient> =>
  new Map([['command', oauthClient(commandTable('token', ''), { runCommand: run })]])

/** Keys are expensive: one for all tests of a file. */
export const rsaKeys = (): ReturnType<typeof pair> => (keys ??= pair())
const pair = () => generateKeyPairSync('rsa', { modulusLength: 2048 })
let keys: ReturnType<typeof pair> | undefined
