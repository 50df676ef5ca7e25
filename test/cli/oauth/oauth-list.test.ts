/** `deferd oauth list` and `deferd oauth show`, beside a running relay and without one; what `deferd check` says about tables. */
import { chmodSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { OauthSite, personTable, USER, type SiteOptions } from '../../support/oauth-site.ts'

let site: OauthSite | undefined
afterEach(async () => {
  const leaked = site?.leaked()
  await site?.close()
  site = undefined
  expect(leaked ?? []).toEqual([])
})

const open = async (options: SiteOptions = {}): Promise<OauthSite> => (site = await OauthSite.open(options))

test('without a relay, tables are listed with what uses them', async () => {
  const own = await open()
  expect(await own.run(['oauth', 'list'])).toMatchObject({
    code: 0,
    err: '',
    out: 'NAME PROVIDER  GRANT              USED BY         TOKEN\nm365 microsoft client_credentials smtp_sasl_oauth -\n',
  })
  expect(await own.json('oauth', 'list')).toEqual({
    name: 'm365',
    provider: 'microsoft',
    grant: 'client_credentials',
    used_by: ['smtp_sasl_oauth'],
    tokens: null,
  })
  own.write('deferd.toml', '')
  expect(await own.run(['oauth', 'list'])).toMatchObject({ code: 0, out: 'The configuration has no [oauth.NAME] tables.\n' })
  expect((await own.run(['oauth', 'list', '--json'])).out).toBe('')
})

test('a running relay says how long its tokens last, and why there is none', async () => {
  const own = await open()
  const send = await own.startRelay()
  expect((await own.run(['oauth', 'list'])).out).toMatch(/ smtp_sasl_oauth none yet\n$/)
  expect(await send()).toBe('delivered')
  expect((await own.run(['oauth', 'list'])).out).toMatch(/ smtp_sasl_oauth for (1h|59m)/)
  expect(await own.json('oauth', 'show', 'm365')).toMatchObject({
    tokens: [{ user: null, left: expect.any(Number) as number, problem: null }],
  })
  // A test gets a token of its own: that of the relay stays.
  expect((await own.run(['oauth', 'test', 'm365'])).code).toBe(0)
  expect(own.authority.requests()).toHaveLength(2)
})

test('a relay without a token says why in the list', async () => {
  const own = await open({ script: '[authority.wrong]\nfails = "expired_secret"\n' })
  const send = await own.startRelay()
  expect(await send()).toBe('deferred')
  expect((await own.run(['oauth', 'list'])).out).toMatch(
    / invalid_client \(AADSTS7000222\): the client secret has expired: create a new one/,
  )
})

test('a refresh token of a running relay is used by the relay alone: tests ask it', async () => {
  const own = await open({ authority: { rotates: 'strict' } })
  own.configure(personTable(own))
  own.write('refresh', own.authority.logIn('public', USER))
  const send = await own.startRelay()
  expect(await send()).toBe('delivered')
  for (const command of [
    ['oauth', 'test', 'm365'],
    ['check', '--connect'],
    ['oauth', 'test', 'm365'],
  ]) {
    const { code, out } = await own.run(command)
    expect(out).toMatch(/logged in as app@contoso\.example/)
    expect(code).toBe(0)
  }
  expect(await send()).toBe('delivered')
  // One of the relay, and one of each command: none was refused for a token that had been replaced.
  expect(own.authority.requests().map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(await own.json('oauth', 'show', 'm365')).toMatchObject({ login: { user: USER, generation: 4 } })
  expect((await own.run(['oauth', 'show', 'm365'])).out).toMatch(/^ {2}login {19}app@contoso\.example, 4 renewals, token ends /m)
})

test('show has the settings, the paths of secrets, and never a secret', async () => {
  const own = await open()
  const text = await own.run(['oauth', 'show', 'm365'])
  expect(text.code).toBe(0)
  expect(text.out).toMatch(/^oauth\.m365\n {2}provider {16}microsoft\n {2}grant {19}client_credentials\n/)
  expect(text.out).toContain(`client_secret_file      ${own.path('secret')}\n`)
  chmodSync(own.path('secret'), 0o644)
  expect((await own.run(['oauth', 'show', 'm365'])).out).toContain(
    `${own.path('secret')}, which is readable by others than its owner: chmod 600 ${own.path('secret')}\n`,
  )
  expect(await own.json('oauth', 'show', 'm365')).toMatchObject({
    token_url: own.authority.tokenUrl,
    scope: 'https://outlook.office365.com/.default',
    client_id: 'app',
    client_secret_file: own.path('secret'),
    client_secret_variable: null,
    refresh_token_file: null,
    files: [
      { member: 'client_secret_file', path: own.path('secret'), problem: expect.stringContaining('readable by others') as string },
      { member: 'ca_file', path: own.path('ca.pem'), problem: null },
    ],
    certificate: null,
    login: null,
  })
  own.configure(['provider = "microsoft"', 'grant = "client_credentials"', 'client_id = "app"'])
  const environment = await own.run(['oauth', 'show', 'm365'], { env: { DEFERD_OAUTH_M365_CLIENT_SECRET: 'in-the-environment' } })
  expect(environment.out).toMatch(/^ {2}client secret {11}in DEFERD_OAUTH_M365_CLIENT_SECRET$/m)
  expect(environment.out).not.toContain('in-the-environment')
})

test('list and show work while logins cannot be read, and say so', async () => {
  const own = await open()
  own.configure(undefined, [])
  own.write('deferd.toml', own.read('deferd.toml').replace(own.path('passwords'), own.path('gone')))
  const { code, out, err } = await own.run(['oauth', 'list'])
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('m365') as string })
  expect(err).toMatch(/^deferd: warning: logins left out: smtp_sasl_password_maps: cannot read /)
})

test('check names a table without a login, a login of another next hop, and a person who has to log in', async () => {
  const own = await open()
  own.write('passwords', `${own.hop} ${USER}:password\n[smtp.example]:587 ${USER}:oauth=spare\n`)
  own.configure(undefined, [
    '[oauth.spare]',
    'provider = "google"',
    'grant = "refresh_token"',
    'client_id = "x"',
    `client_secret_file = "${own.path('secret')}"`,
    `refresh_token_file = "${own.path('none')}"`,
  ])
  const { code, out } = await own.run(['check'])
  expect(out).toMatch(
    /^warning logins +oauth\.m365 is used by no login: write USER:oauth=m365 as a login to smtp_sasl_password_maps, or remove/m,
  )
  expect(out).toMatch(/^warning logins +oauth\.spare: \S+none does not exist: write a refresh token to \S+none, and reload$/m)
  expect(out).toMatch(
    /^warning logins +the login of \[smtp\.example\]:587 .* is for no next hop of the configuration: correct the next hop/m,
  )
  expect(code).toBe(0)
  own.configure(personTable(own))
  own.write('passwords', '')
  expect((await own.run(['check'])).out).toContain(
    `relayhost ${own.hop} has no credentials: add to smtp_sasl_password_maps the line "${own.hop} USER:"`,
  )
  own.write('passwords', `${own.hop} ${USER}:\n`)
  expect((await own.run(['check'])).out).toMatch(/^warning logins +oauth\.m365: \S+refresh does not exist: run deferd oauth login m365$/m)
})
