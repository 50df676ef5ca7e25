/** `deferd oauth login`: a person logs in by a device code, and mail leaves with the token. */
import { statSync } from 'node:fs'
import { afterEach, expect, test, vi } from 'vitest'
import { OauthSite, personTable, USER, type SiteOptions } from '../../support/oauth-site.ts'
import type { Ran } from '../../support/operator.ts'

let site: OauthSite | undefined
afterEach(async () => {
  const leaked = site?.leaked()
  await site?.close()
  site = undefined
  expect(leaked ?? []).toEqual([])
})

async function open({ authority = {}, ...options }: SiteOptions = {}): Promise<OauthSite> {
  site = await OauthSite.open({ authority: { deviceInterval: '50ms', ...authority }, ...options })
  site.configure(personTable(site))
  return site
}

const never = new Promise<void>(() => undefined)

/** Runs the command, with what the person does when the code is shown. */
async function login(own: OauthSite, person: (code: string) => void, ...more: readonly string[]): Promise<Ran & { readonly code: number }> {
  const before = own.authority.deviceLogins().length
  const running = own.run(['oauth', 'login', 'm365', ...more], { interrupted: never })
  const begun = await vi.waitUntil(() => own.authority.deviceLogins()[before], { timeout: 20_000, interval: 10 })
  person(begun.userCode)
  return running
}

const approve = (own: OauthSite, user = USER) => login(own, (code) => own.authority.approve(code, user))

test('the code and the page are shown; the token is written with mode 0600, and mail leaves with it', async () => {
  const own = await open({ authority: { rotates: 'strict' } })
  const { code, out, err } = await approve(own)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toMatch(
    /^Open {8}https:\S+\nand enter {3}[A-Z0-9-]+\n(?:or open {5}https:\S+\n)?within 15m, and log in as the user whose mailbox sends\.\n/,
  )
  expect(out).toContain(
    `Logged in as ${USER}; the refresh token is in ${own.path('refresh')}.\nNo daemon runs here. Try it before the start: `,
  )
  expect(out).toContain(`deferd oauth test m365 --config ${own.path('deferd.toml')}\n`)
  expect(statSync(own.path('refresh')).mode & 0o777).toBe(0o600)
  const send = await own.startRelay()
  expect(await send()).toBe('delivered')
})

test('a running relay without a token takes the new one at once', async () => {
  const own = await open()
  const send = await own.startRelay()
  expect(await send()).toBe('deferred')
  expect(own.printed).toMatch(/no refresh token[^"]*: run deferd oauth login m365/)
  expect((await approve(own)).out).toMatch(/\nThe daemon has read it\. Try it: deferd oauth test m365/)
  expect((await own.run(['oauth', 'test', 'm365'])).code).toBe(0)
  // A second login replaces the first one, also in the relay.
  const first = own.read('refresh')
  expect((await approve(own)).code).toBe(0)
  expect(own.read('refresh')).not.toBe(first)
  expect((await own.run(['oauth', 'test', 'm365'])).code).toBe(0)
})

test('--user refuses the login of another person, and the file stays', async () => {
  const own = await open()
  own.write('refresh', 'before\n')
  const { code, err } = await login(own, (entered) => own.authority.approve(entered, 'boss@contoso.example'), '--user', USER)
  expect(err).toBe(
    `deferd: the login is that of boss@contoso.example, not of ${USER}: nothing was written; repeat the command, and choose the other account\n`,
  )
  expect(code).toBe(65)
  expect(own.read('refresh')).toBe('before\n')
})

test('a declined login ends with 77, an expired code with 75, an interrupted command with 130', async () => {
  const own = await open({ authority: { deviceLifetime: '1s' } })
  const declined = await login(own, (code) => own.authority.deny(code))
  expect(declined).toMatchObject({
    code: 77,
    err: expect.stringMatching(/oauth\.m365: the login was declined: repeat the command/) as string,
  })
  const expired = await login(own, () => undefined)
  expect(expired).toMatchObject({
    code: 75,
    err: expect.stringMatching(/the code has expired before a login: repeat the command/) as string,
  })
  const interrupted = await own.run(['oauth', 'login', 'm365'])
  expect(interrupted).toMatchObject({ code: 130, err: 'deferd: oauth.m365: the login was interrupted\n' })
})

test('an authority that refuses or is away ends with what to do', async () => {
  const own = await open()
  own.authority.fails('unauthorized_client', { first: 1 })
  expect(await own.run(['oauth', 'login', 'm365'], { interrupted: never })).toMatchObject({
    code: 78,
    err: expect.stringMatching(
      /the authority gives no code: unauthorized_client \(AADSTS700016\): no application with this client_id/,
    ) as string,
  })
  own.authority.isDown()
  expect(await own.run(['oauth', 'login', 'm365'], { interrupted: never })).toMatchObject({
    code: 69,
    err: expect.stringMatching(/no code from the authority: .*; check the network, then repeat/) as string,
  })
})

test.each([
  [
    'client credentials',
    ['provider = "microsoft"', 'grant = "client_credentials"', 'client_id = "app"'],
    /needs no login of a person: deferd oauth test/,
  ],
  [
    'Google',
    ['provider = "google"', 'grant = "refresh_token"', 'client_id = "public"'],
    /Google gives no access to mail by a device code: obtain/,
  ],
  [
    'an authority without a device endpoint',
    ['provider = "other"', 'grant = "refresh_token"', 'client_id = "public"', 'scope = "smtp"'],
    /the table has no device_url: write the device authorization endpoint/,
  ],
])('%s: a login is refused with 78 before anything is asked', async (_name, members, text) => {
  const own = await open()
  const secret = `client_secret_file = "${own.path('secret')}"`
  own.configure(
    members.includes('grant = "refresh_token"')
      ? [...members, secret, `refresh_token_file = "${own.path('refresh')}"`]
      : [...members, secret],
  )
  const { code, err } = await own.run(['oauth', 'login', 'm365'], { interrupted: never })
  expect(err).toMatch(text)
  expect(code).toBe(78)
  expect(own.authority.requests()).toEqual([])
})

test('a file that cannot be written is refused before the person logs in', async () => {
  const own = await open()
  own.write('deferd.toml', own.read('deferd.toml').replace(own.path('refresh'), own.path('gone/refresh')))
  expect(await own.run(['oauth', 'login', 'm365'], { interrupted: never })).toMatchObject({
    code: 73,
    err: expect.stringMatching(
      /refresh_token_file: cannot write \S+gone\/refresh: .*: create the folder, or run the command as its owner/,
    ) as string,
  })
  expect(own.authority.deviceLogins()).toEqual([])
})
