/** `deferd oauth test` and `deferd check --connect` before an authority and a mail server on ports: each missing permission is named. */
import { chmodSync, rmSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { OauthSite, personTable, USER, type SiteOptions } from '../../support/oauth-site.ts'
import { makeCertificate } from '../../../src/testkit/remote/certificate-maker.ts'

let site: OauthSite | undefined
afterEach(async () => {
  const leaked = site?.leaked()
  await site?.close()
  site = undefined
  expect(leaked ?? []).toEqual([])
})

const open = async (options: SiteOptions = {}): Promise<OauthSite> => (site = await OauthSite.open(options))
const rule = (reply: string): string => `[rule.auth]\nat = "auth"\nreply = "${reply}"\n`
const client = (facts: object) => ({ authority: { clients: { app: { secret: 'the-secret-of-the-application', ...facts } } } })

test('a login that works: the token is shown by its claims, and no mail is sent', async () => {
  const own = await open()
  const { code, out } = await own.run(['oauth', 'test', 'm365'])
  expect(code).toBe(0)
  expect(out).toMatch(/^oauth\.m365 {2}microsoft, client_credentials, login app@contoso\.example$/m)
  expect(out).toMatch(/^ {2}audience {4}https:\/\/outlook\.office365\.com$/m)
  expect(out).toMatch(/^ {2}roles {7}SMTP\.SendAsApp$/m)
  expect(out).toMatch(/^ {2}tenant {6}contoso\.example$/m)
  expect(out).toMatch(/^ {2}object id {3}[0-9a-f-]{36}$/m)
  expect(out).toMatch(/^ok {6}\[127\.0\.0\.1\]:\d+: .*: TLS, logged in as app@contoso\.example$/m)
  expect(own.authority.requests()).toHaveLength(1)
})

interface Case {
  readonly options: SiteOptions
  readonly kind: string
  readonly code: number
  readonly text: RegExp
}

const CASES: Readonly<Record<string, Case>> = {
  'no consent of an administrator': {
    options: client({ roles: [] }),
    kind: 'consent',
    code: 77,
    text: /no role SMTP\.SendAsApp: add this application permission of Office 365 Exchange Online .*grant consent/,
  },
  'a token for Graph': {
    options: { script: '[authority.graph]\nfails = "wrong_audience"\n' },
    kind: 'audience',
    code: 78,
    text: /for Microsoft Graph, .*set scope = "https:\/\/outlook\.office365\.com\/\.default"/,
  },
  'no service principal in Exchange': {
    options: client({ servicePrincipal: false }),
    kind: 'registration',
    code: 77,
    text: /535 5\.7\.3 .* run New-ServicePrincipal -AppId app -ObjectId [0-9a-f-]{36}, then Add-MailboxPermission -Identity app@contoso\.example -User [0-9a-f-]{36} -AccessRights FullAccess/,
  },
  'no right to the mailbox': {
    options: { script: rule('430 4.2.0 STOREDRV; mailbox logon failure') },
    kind: 'mailbox',
    code: 77,
    text: /cannot be opened: .*Add-MailboxPermission -Identity app@contoso\.example/,
  },
  'SMTP AUTH off for the tenant': {
    options: { script: rule('535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the Tenant.') },
    kind: 'smtp-auth-off',
    code: 77,
    text: /disabled for the Tenant\. SMTP AUTH is off for the tenant or the mailbox/,
  },
  'a wrong secret': {
    options: { script: '[authority.wrong]\nfails = "invalid_client"\n' },
    kind: 'credentials',
    code: 78,
    text: /AADSTS7000215\): write the value of the client secret, not its id/,
  },
  'an expired secret': {
    options: { script: '[authority.wrong]\nfails = "expired_secret"\n' },
    kind: 'credentials',
    code: 78,
    text: /AADSTS7000222\): the client secret has expired: create a new one/,
  },
  'an unknown application': {
    options: { script: '[authority.wrong]\nfails = "unauthorized_client"\n' },
    kind: 'credentials',
    code: 78,
    text: /AADSTS700016\): no application with this client_id/,
  },
  'no consent, as the authority says it': {
    options: { script: '[authority.wrong]\nfails = "no_consent"\n' },
    kind: 'consent',
    code: 77,
    text: /AADSTS65001\): let an administrator grant consent for SMTP\.SendAsApp/,
  },
  'an authority that is away': {
    options: { script: '[authority.away]\nfails = "unavailable"\n' },
    kind: 'unreachable',
    code: 75,
    text: /temporarily_unavailable: it is asked again/,
  },
  'a server without AUTH': {
    options: { script: '[rule.ehlo]\nat = "ehlo"\nextensions = ["STARTTLS"]\n' },
    kind: 'no-login',
    code: 69,
    text: /AUTH is not offered: correct the port/,
  },
}

test.each(Object.entries(CASES))('%s is named, with what to do', async (_name, { options, kind, code, text }) => {
  const own = await open(options)
  const asked = await own.run(['oauth', 'test', 'm365'])
  expect(asked.out).toMatch(text)
  expect(asked.code).toBe(code)
  const found = await own.json('oauth', 'test', 'm365')
  const hops = found['hops'] as readonly { readonly fault: { readonly kind: string } | null }[]
  const faults = [...(found['faults'] as readonly { readonly kind: string }[]), ...hops.flatMap((hop) => hop.fault ?? [])]
  expect(found['ok']).toBe(false)
  expect(faults.map((one) => one.kind)[0]).toBe(kind)
})

test('another tenant is named: the authority does not know it', async () => {
  const own = await open()
  own.write('deferd.toml', own.read('deferd.toml').replaceAll('contoso.example/oauth2', 'other.example/oauth2'))
  const { code, out } = await own.run(['oauth', 'test', 'm365'])
  expect(out).toMatch(/no access token: .*AADSTS90002\): this tenant does not exist: correct tenant/)
  expect(code).toBe(78)
  expect(own.authority.requests().every(({ answer }) => answer?.includes('access_token') !== true)).toBe(true)
})

test('the JSON of a test has the claims, and no token', async () => {
  const own = await open()
  expect(await own.json('oauth', 'test', 'm365')).toEqual({
    name: 'm365',
    user: USER,
    ok: true,
    token: {
      lifetime: 3600,
      opaque: false,
      issuer: 'https://sts.windows.net/contoso.example/',
      audience: ['https://outlook.office365.com'],
      roles: ['SMTP.SendAsApp'],
      scopes: [],
      tenant: 'contoso.example',
      app_id: 'app',
      object_id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      user: null,
      issue_time: expect.any(Number) as number,
      expire_time: expect.any(Number) as number,
    },
    faults: [],
    hops: [{ hop: own.hop, ok: true, text: expect.stringContaining('logged in as') as string, fault: null }],
  })
})

test('a refresh token is used before the first start too: its successor takes its place in the file, or in the queue', async () => {
  const own = await open({ authority: { rotates: 'strict' } })
  own.configure(personTable(own))
  expect((await own.run(['oauth', 'test', 'm365'])).out).toMatch(/no refresh token: run deferd oauth login m365/)
  const first = own.authority.logIn('public', USER)
  own.write('refresh', `${first}\n`)
  const tested = await own.run(['oauth', 'test', 'm365'])
  expect(tested.out).toMatch(/scopes {6}SMTP\.Send\n[^]*user {8}app@contoso\.example[^]*ok {6}.*logged in as app@contoso\.example/)
  expect(tested.code).toBe(0)
  const second = own.read('refresh').trim()
  expect(second).not.toBe(first)
  await own.operator.own(async () => undefined)
  for (const _ of [1, 2]) expect((await own.run(['oauth', 'test', 'm365'])).code).toBe(0)
  expect(own.read('refresh').trim()).toBe(second)
  const shown = await own.json('oauth', 'show', 'm365')
  expect(shown['login']).toMatchObject({ user: USER, generation: 2 })
  own.authority.revoke(USER)
  expect(await own.run(['oauth', 'test', 'm365'])).toMatchObject({
    code: 78,
    out: expect.stringMatching(/the login has ended: run deferd oauth login m365/) as string,
  })
  for (const token of [first, second]) expect(own.printed).not.toContain(token)
})

test('check --connect has a line for each token and each login, and names what is missing', async () => {
  const own = await open()
  const good = await own.run(['check', '--connect'])
  expect(good.out).toMatch(/^ok {6}oauth\.m365 +app@contoso\.example: token for 1h: https:\/\/outlook\.office365\.com, SMTP\.SendAsApp$/m)
  expect(good.out).toMatch(/^ok {6}oauth\.m365 +.*logged in as app@contoso\.example$/m)
  expect(good.code).toBe(0)
  own.authority.fails('expired_secret')
  const bad = await own.run(['check', '--connect'])
  expect(bad.out).toMatch(/^error {3}oauth\.m365 +app@contoso\.example: no access token: .*AADSTS7000222/m)
  expect(bad.code).toBe(69)
})

test('check warns of a certificate that ends soon, of files that others can read, and refuses a missing one', async () => {
  const own = await open()
  const until = Date.UTC(2026, 10, 30)
  own.write('app.pem', makeCertificate({ seed: 'app', subject: 'app', until }).cert)
  own.configure([
    'provider = "microsoft"',
    'grant = "client_credentials"',
    'client_id = "app"',
    `client_certificate_file = "${own.path('app.pem')}"`,
  ])
  const soon = await own.run(['check'], { clock: own.operator.clock })
  expect(soon.out).toMatch(/^warning oauth\.m365 +\S+app\.pem \(CN=app\) ends in 9d 14h: add a new one/m)
  chmodSync(own.path('app.pem'), 0o644)
  expect((await own.run(['check'])).out).toMatch(/app\.pem is readable by others than its owner: chmod 600/)
  rmSync(own.path('app.pem'))
  const missing = await own.run(['check'])
  expect(missing.out).toMatch(/^error .*client_certificate_file: cannot read /m)
  expect(missing.code).toBe(78)
})

test('an unknown table is refused with those that exist', async () => {
  const own = await open()
  for (const word of ['show', 'test', 'login']) {
    expect(await own.run(['oauth', word, 'other'])).toMatchObject({
      code: 65,
      err: 'deferd: there is no table [oauth.other]: the configuration has m365\n',
    })
  }
})
