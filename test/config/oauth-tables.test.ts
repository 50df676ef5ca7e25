import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configFrom, ConfigError, loadConfig, type LoadedConfig } from '../../src/config/load.ts'
import { configLines } from '../../src/cli/commands/config.ts'

const M365 = { provider: 'microsoft', tenant: 'contoso.example', grant: 'client_credentials', client_id: 'app', client_secret_file: '/s' }
const LOGIN = { ...M365, grant: 'refresh_token', client_secret_file: undefined, refresh_token_file: '/r' }

const given = (table: object): object => Object.fromEntries(Object.entries(table).filter(([, value]) => value !== undefined))
const read = (tables: Readonly<Record<string, object>>, more: object = {}): LoadedConfig =>
  configFrom({ oauth: Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, given(table)])), ...more }, 'relay.example')

function refusals(action: () => unknown): readonly string[] {
  try {
    action()
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ where, text }) => `${where}: ${text}`)
    throw error
  }
  return []
}

describe('an [oauth.NAME] table', () => {
  test('of Microsoft 365 has the endpoints of its tenant and the scope of sending', () => {
    expect(read({ m365: M365 }).config.oauth.get('m365')).toMatchObject({
      provider: 'microsoft',
      grant: 'client_credentials',
      tokenUrl: 'https://login.microsoftonline.com/contoso.example/oauth2/v2.0/token',
      deviceUrl: '',
      scope: 'https://outlook.office365.com/.default',
      clientId: 'app',
      clientSecretFile: '/s',
    })
    expect(read({ m365: LOGIN }).config.oauth.get('m365')).toMatchObject({
      deviceUrl: 'https://login.microsoftonline.com/contoso.example/oauth2/v2.0/devicecode',
      scope: 'https://outlook.office.com/SMTP.Send offline_access',
    })
  })

  test('of another cloud has the device endpoint beside its token endpoint', () => {
    const cloud = { ...LOGIN, tenant: undefined, token_url: 'https://login.partner.microsoftonline.cn/t/oauth2/v2.0/token' }
    expect(read({ cn: cloud }).config.oauth.get('cn')).toMatchObject({
      tokenUrl: 'https://login.partner.microsoftonline.cn/t/oauth2/v2.0/token',
      deviceUrl: 'https://login.partner.microsoftonline.cn/t/oauth2/v2.0/devicecode',
    })
  })

  test('of Google has its token endpoint and the scope of mail', () => {
    const google = { provider: 'google', grant: 'service_account', service_account_file: '/k.json' }
    expect(read({ google }).config.oauth.get('google')).toMatchObject({
      tokenUrl: 'https://oauth2.googleapis.com/token',
      scope: 'https://mail.google.com/',
    })
  })

  test.each(['http://127.0.0.1:8080/t', 'http://localhost/t', 'http://[::1]:1/t', 'https://id.example/t'])(
    'may have the endpoint %s',
    (url) => {
      const other = { provider: 'other', grant: 'client_credentials', client_id: 'app', client_secret_file: '/s', token_url: url }
      expect(read({ other }).config.oauth.get('other')?.tokenUrl).toBe(url)
    },
  )
})

const OTHER = { ...M365, provider: 'other', tenant: undefined, token_url: 'https://id.example/token' }

test.each<[string, object, string]>([
  ['an unknown member', { ...M365, colour: 'red' }, 'oauth.m365.colour: oauth."m365": unknown member colour; a table has provider, grant'],
  ['a secret in the file', { ...M365, client_secret: 'hush' }, 'client_secret_file, or set DEFERD_OAUTH_M365_CLIENT_SECRET'],
  [
    'a member of another type',
    { ...M365, client_id: 7 },
    'oauth.m365.client_id: oauth."m365": client_id: expected the id of the application',
  ],
  ['an empty member', { ...M365, client_secret_file: '' }, 'client_secret_file: expected a text of one line'],
  ['a list', { ...M365, tenant: ['a'] }, 'tenant: expected the id or a domain'],
  ['no provider', { ...M365, provider: undefined }, 'provider is missing; write one of microsoft, google, other, command'],
  ['another provider', { ...M365, provider: 'yahoo' }, 'provider: expected one of microsoft'],
  ['no grant', { ...M365, grant: undefined }, 'grant is missing; write one of client_credentials, refresh_token'],
  ['a grant that the provider has not', { ...M365, grant: 'service_account' }, 'grant: expected one of client_credentials, refresh_token'],
  ['no tenant', { ...M365, tenant: undefined }, 'tenant is missing'],
  ['no client_id', { ...M365, client_id: undefined }, 'client_id is missing; a table with provider = "microsoft" and grant'],
  ['no secret', { ...M365, client_secret_file: undefined }, 'the secret is missing'],
  ['two secrets', { ...M365, client_certificate_file: '/c' }, 'client_secret_file and client_certificate_file: a table has one secret'],
  ['two secrets of a login', { ...LOGIN, client_secret_file: '/s', client_certificate_file: '/c' }, 'a table has one secret'],
  ['no refresh token', { ...LOGIN, refresh_token_file: undefined }, 'refresh_token_file is missing'],
  ['a member of another grant', { ...M365, refresh_token_file: '/r' }, 'refresh_token_file has no meaning with provider = "microsoft" and'],
  ['a tenant of another provider', { ...OTHER, tenant: 'x' }, 'tenant has no meaning'],
  ['no token_url', { ...OTHER, token_url: undefined }, 'token_url is missing'],
  ['a token_url without TLS', { ...OTHER, token_url: 'http://id.example/token' }, 'token_url: expected an https URL'],
  ['a token_url with a password', { ...OTHER, token_url: 'https://a:b@id.example/token' }, 'token_url: expected an https URL'],
  ['a command beside a grant', { provider: 'command', grant: 'refresh_token', command: 'x' }, 'grant: expected one of command'],
  ['no command', { provider: 'command' }, 'command is missing'],
])('%s is refused with its position', (_, table, sentence) => {
  expect(refusals(() => read({ m365: table })).join('\n')).toContain(sentence)
})

test('all mistakes are refused at once, with their lines, and no value is repeated', () => {
  const folder = mkdtempSync(join(tmpdir(), 'oauth-'))
  const file = join(folder, 'deferd.toml')
  writeFileSync(
    file,
    [
      'smtp_sasl_oauth = "gone"',
      '[oauth.a]',
      'provider = "microsoft"',
      'grant = "client_credentials"',
      'client_id = ["hush"]',
      '[oauth.B]',
      'provider = "command"',
      'command = "x"',
      '[destination."example.net"]',
      'smtp_sasl_oauth = "gone too"',
    ].join('\n'),
  )
  const env = { DEFERD_OAUTH_LOST_CLIENT_SECRET: 'hush' }
  const found = refusals(() => loadConfig({ file, env, overrides: [], uid: 1, calledAs: 'deferd' }))
  const at = (line: number) => `${file}:${line}: `
  expect(found).toEqual([
    expect.stringContaining(`${at(1)}smtp_sasl_oauth: there is no table [oauth.gone]; write one of a, B, or nothing`),
    expect.stringContaining(`${at(2)}oauth."a": tenant is missing`),
    expect.stringContaining(`${at(2)}oauth."a": the secret is missing`),
    expect.stringContaining(`${at(5)}oauth."a": client_id`),
    expect.stringContaining(`${at(6)}oauth."B": expected a name`),
    expect.stringContaining(`${at(10)}destination."example.net": smtp_sasl_oauth: there is no table [oauth.gone too]`),
    expect.stringContaining('environment: DEFERD_OAUTH_LOST_CLIENT_SECRET: no [oauth.NAME] table'),
  ])
  expect(found.join('\n')).not.toContain('hush')
})

describe('a client secret of the environment', () => {
  const load = (table: string, env: Readonly<Record<string, string>>): LoadedConfig => {
    const file = join(mkdtempSync(join(tmpdir(), 'oauth-')), 'deferd.toml')
    writeFileSync(
      file,
      `[oauth.my-app]\nprovider = "google"\ngrant = "refresh_token"\nclient_id = "app"\nrefresh_token_file = "/r"\n${table}`,
    )
    return loadConfig({ file, env, overrides: [], uid: 1, calledAs: 'deferd' })
  }
  const env = { DEFERD_OAUTH_MY_APP_CLIENT_SECRET: 'hush' }

  test('belongs to its table, and deferd config does not print it', () => {
    const loaded = load('', env)
    expect(loaded.oauthSecrets.get('DEFERD_OAUTH_MY_APP_CLIENT_SECRET')).toBe('hush')
    const printed = configLines(loaded, loaded, [], {}).join('')
    expect(printed).toContain('[oauth."my-app"]\nprovider = google')
    expect(printed).not.toContain('hush')
  })

  test('is a second secret beside a file', () => {
    expect(refusals(() => load('client_secret_file = "/s"\n', env)).join()).toContain(
      'client_secret_file and DEFERD_OAUTH_MY_APP_CLIENT_SECRET: a table has one secret',
    )
  })
})

describe('smtp_sasl_oauth_token_command', () => {
  test('stands for a table of a command, and for smtp_sasl_oauth', () => {
    const { config } = read({}, { smtp_sasl_oauth_token_command: 'get-token' })
    expect(config.oauth.get('command')).toMatchObject({ provider: 'command', grant: 'command', command: 'get-token' })
    expect(config.smtp_sasl_oauth).toBe('command')
  })

  test('beside [oauth.command] is refused', () => {
    const command = { provider: 'command', command: 'x' }
    expect(refusals(() => read({ command }, { smtp_sasl_oauth_token_command: 'y' }))).toEqual([
      'smtp_sasl_oauth_token_command: smtp_sasl_oauth_token_command: [oauth.command] exists too; remove one of them',
    ])
  })

  test('leaves smtp_sasl_oauth as it is set', () => {
    const more = { smtp_sasl_oauth_token_command: 'y', smtp_sasl_oauth: 'm365' }
    expect(read({ m365: M365 }, more).config.smtp_sasl_oauth).toBe('m365')
  })
})
