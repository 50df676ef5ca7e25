/** Admission of requests to the admin server: origin of the request, credentials, roles, failures, trusted proxies. */
import { screenPath } from '../../src/admin/account-routes.ts'
import { afterEach, describe, expect, test } from 'vitest'
import { CLIENT_ROLES, type Role } from '../../src/http/requests/requester.ts'
import { route, type Answer } from '../../src/http/route-table.ts'
import { hours, minutes, seconds } from '../../src/system/clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import type { RawResponse } from '../support/raw-http.ts'
import { SampleServer, type WebServerOptions } from '../support/web-server.ts'

const DONE: Answer = { kind: 'json', status: 200, value: {} }
const NEEDED: readonly Role[] = ['anyone', 'known', 'viewer', 'operator', 'sender', 'admin', 'local']
const ROUTES = NEEDED.flatMap((role) => [
  route({ method: 'GET', path: `/${role}`, role, handler: () => DONE }),
  route({ method: 'POST', path: `/${role}`, role, handler: () => DONE }),
])

let server: SampleServer
afterEach(() => server.close())

async function open(options: WebServerOptions = {}): Promise<SampleServer> {
  server = await SampleServer.open({ routes: ROUTES, ...options })
  return server
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

function advance(clock: VirtualClock, time: number): void {
  const end = clock.monotonic() + time
  clock.after(time, () => undefined)
  while (clock.monotonic() < end) clock.runNext()
}

const problemOf = ({ status, body }: RawResponse) => [status, (JSON.parse(body) as { type: string }).type]

describe('requests of other sites', () => {
  const OWN = 'own'
  // Sec-Fetch-Site, Origin, and whether the request is admitted with a cookie, with a token, and to a route for anyone.
  test.each([
    ['same-origin', undefined, true, true, true],
    ['same-origin', OWN, true, true, true],
    ['same-origin', 'http://evil.example', true, true, true],
    ['same-site', OWN, false, false, false],
    ['cross-site', OWN, false, false, false],
    ['cross-site', undefined, false, false, false],
    ['none', undefined, false, false, false],
    ['', undefined, false, false, false],
    ['Same-Origin', undefined, false, false, false],
    ['same-origin, cross-site', undefined, false, false, false],
    [undefined, OWN, true, true, true],
    [undefined, 'http://evil.example', false, false, false],
    [undefined, 'null', false, false, false],
    [undefined, '', false, false, false],
    [undefined, 'https', false, false, false],
    [undefined, 'port', false, false, false],
    [undefined, undefined, false, true, true],
  ])('Sec-Fetch-Site %j and Origin %j: cookie %s, token %s, anyone %s', async (site, origin, withCookie, withToken, forAnyone) => {
    await open()
    const own = `http://127.0.0.1:${server.port}`
    const origins: Readonly<Record<string, string>> = { own, https: own.replace('http', 'https'), port: 'http://127.0.0.1:1' }
    const fields = {
      ...(site === undefined ? {} : { 'Sec-Fetch-Site': site }),
      ...(origin === undefined ? {} : { Origin: origins[origin] ?? origin }),
    }
    const statusOf = async (target: string, credential: Readonly<Record<string, string>>) =>
      (await server.ask({ method: 'POST', target, fields: { ...fields, ...credential } })).status
    const expected = (admitted: boolean) => (admitted ? 200 : 403)
    const cookie = { Cookie: await server.cookie() }
    expect(await statusOf('/known', cookie)).toBe(expected(withCookie))
    expect(await statusOf('/known', bearer(server.token()))).toBe(expected(withToken))
    expect(await statusOf('/anyone', {})).toBe(expected(forAnyone))
    expect((await server.ask({ target: '/known', fields: { ...fields, ...cookie } })).status).toBe(200)
  })

  test('a refused request of another site says so', async () => {
    await open()
    const fields = { Cookie: await server.cookie(), 'Sec-Fetch-Site': 'cross-site' }
    expect(problemOf(await server.ask({ method: 'POST', target: '/admin', fields }))).toEqual([403, '/problems/cross-site'])
  })
})

describe('roles', () => {
  const GRANTED: Readonly<Record<string, readonly Role[]>> = {
    viewer: ['anyone', 'known', 'viewer'],
    operator: ['anyone', 'known', 'viewer', 'operator'],
    sender: ['anyone', 'known', 'sender'],
    admin: ['anyone', 'known', 'viewer', 'operator', 'sender', 'admin'],
  }

  test.each(CLIENT_ROLES)('a %s may do what its role includes', async (role) => {
    await open()
    const credentials = [bearer(server.token({ role })), { Cookie: await server.cookie({ role }) }]
    for (const fields of credentials)
      for (const needed of NEEDED) {
        const { status } = await server.ask({ target: `/${needed}`, fields })
        expect([needed, status]).toEqual([needed, GRANTED[role]?.includes(needed) === true ? 200 : 403])
      }
  })

  test('without credentials only routes for anyone answer, and the refusal names the scheme', async () => {
    await open()
    for (const needed of NEEDED) expect((await server.ask({ target: `/${needed}` })).status).toBe(needed === 'anyone' ? 200 : 401)
    const refused = await server.ask({ target: '/viewer' })
    expect([...problemOf(refused), refused.headers.get('www-authenticate')]).toEqual([
      401,
      '/problems/unauthenticated',
      'Bearer realm="deferd"',
    ])
  })

  test('a person without a session is led to the login, wherever the page is', async () => {
    await open({ routes: [...ROUTES, route({ method: 'GET', path: '/a/:b/c', role: 'viewer', handler: () => DONE })] })
    const fields = { Accept: 'text/html,*/*;q=0.8' }
    for (const [target, location] of [
      ['/viewer?x=1', 'login?back=viewer%3Fx%3D1'],
      ['/a/b/c', '../../login?back=a%2Fb%2Fc'],
    ] as const) {
      const { status, headers } = await server.ask({ target, fields })
      expect([status, headers.get('location')]).toEqual([303, location])
    }
    expect((await server.ask({ target: '/api/v1/whoami', fields })).status).toBe(401)
    expect((await server.ask({ method: 'POST', target: '/viewer', fields: { ...fields, 'Sec-Fetch-Site': 'same-origin' } })).status).toBe(
      401,
    )
  })
})

test('the login leads back to a screen, and to nothing else', () => {
  for (const screen of ['messages', 'messages?queue=hold&sender=%3C%3E', 'destinations/far.example', 'operations/new?operation=hold'])
    expect(screenPath(screen)).toBe(screen)
  for (const other of [
    '',
    null,
    undefined,
    '/x',
    '//evil.example',
    'https://evil.example',
    'javascript:x',
    'a/../../x',
    'a\\b',
    'login?back=x',
    'logout',
    'a b',
  ])
    expect(screenPath(other)).toBe('')
})

describe('tokens', () => {
  test('whoami names the client and its rights', async () => {
    await open()
    const token = server.token({ name: 'ci', role: 'operator', content: true, destinations: '*.example' })
    const { status, body, headers } = await server.ask({ target: '/api/v1/whoami', fields: bearer(token) })
    expect([status, JSON.parse(body), headers.get('cache-control')]).toEqual([
      200,
      { name: 'token:ci', role: 'operator', content: true, destinations: '*.example', address: '127.0.0.1' },
      'no-store',
    ])
  })

  test('an expired token and a removed one are refused at once', async () => {
    const clock = new VirtualClock()
    await open({ clock })
    const token = server.token({ expiresAt: clock.now() + minutes(1) })
    const status = async () => (await server.ask({ target: '/viewer', fields: bearer(token) })).status
    expect(await status()).toBe(200)
    advance(clock, minutes(1) - 1)
    expect(await status()).toBe(200)
    advance(clock, 1)
    expect(await status()).toBe(401)
    const other = server.token()
    expect((await server.ask({ target: '/viewer', fields: bearer(other) })).status).toBe(200)
    server.tokens.clear()
    expect((await server.ask({ target: '/viewer', fields: bearer(other) })).status).toBe(401)
  })

  test('a use is recorded to the hour', async () => {
    const clock = new VirtualClock()
    await open({ clock })
    const token = server.token()
    await server.ask({ target: '/viewer', fields: bearer(token) })
    advance(clock, minutes(90))
    await server.ask({ target: '/viewer', fields: bearer(token) })
    expect(server.used).toEqual([`ci ${clock.now() - minutes(90)}`, `ci ${clock.now() - minutes(30)}`])
  })

  test.each([
    ['another scheme', (token: string) => `Basic ${token}`],
    ['no token', () => 'Bearer '],
    ['a cut token', (token: string) => `Bearer ${token.slice(0, -1)}`],
    ['a changed checksum', (token: string) => `Bearer ${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`],
    ['a token with a blank', (token: string) => `Bearer ${token} x`],
  ])('%s is no credential', async (_, field) => {
    await open()
    expect((await server.ask({ target: '/viewer', fields: { Authorization: field(server.token()) } })).status).toBe(401)
  })
})

describe('failures', () => {
  test('after ten wrong tokens or codes within a minute, the address waits; its sessions go on', async () => {
    const clock = new VirtualClock()
    await open({ clock })
    const cookie = await server.cookie()
    const token = server.token()
    for (let i = 0; i < 5; i++) {
      expect((await server.ask({ target: '/viewer', fields: bearer('dfd_wrong') })).status).toBe(401)
      expect((await server.logIn('wrong')).status).toBe(403)
      advance(clock, seconds(2))
    }
    const refused = await server.ask({ target: '/viewer', fields: bearer(token) })
    expect([...problemOf(refused), refused.headers.get('retry-after')]).toEqual([429, '/problems/too-many-failures', '50'])
    expect((await server.logIn(server.code())).status).toBe(429)
    expect((await server.ask({ target: '/viewer', fields: { Cookie: cookie } })).status).toBe(200)
    expect((await server.ask({ target: '/anyone' })).status).toBe(200)
    advance(clock, seconds(50))
    expect((await server.ask({ target: '/viewer', fields: bearer(token) })).status).toBe(200)
  })

  test('another address is not affected', async () => {
    await open({ proxies: ['127.0.0.1'] })
    const from = (address: string) => ({ 'X-Forwarded-For': address })
    for (let i = 0; i < 10; i++) await server.ask({ target: '/viewer', fields: { ...bearer('dfd_wrong'), ...from('192.0.2.1') } })
    const token = bearer(server.token())
    expect((await server.ask({ target: '/viewer', fields: { ...token, ...from('192.0.2.1') } })).status).toBe(429)
    expect((await server.ask({ target: '/viewer', fields: { ...token, ...from('192.0.2.2') } })).status).toBe(200)
  })

  test('requests without credentials and ended sessions are no failures', async () => {
    await open()
    for (let i = 0; i < 20; i++) {
      expect((await server.ask({ target: '/viewer' })).status).toBe(401)
      expect((await server.ask({ target: '/viewer', fields: { Cookie: `deferd-${server.port}=ended` } })).status).toBe(401)
    }
    expect((await server.ask({ target: '/viewer', fields: bearer(server.token()) })).status).toBe(200)
  })
})

describe('proxies', () => {
  const whoami = async (fields: Readonly<Record<string, string>>) =>
    JSON.parse((await server.ask({ target: '/api/v1/whoami', fields })).body) as { name: string; address: string }

  test('X-Forwarded fields of other addresses are ignored', async () => {
    await open()
    const fields = { Cookie: await server.cookie(), 'X-Forwarded-For': '192.0.2.9', 'X-Forwarded-User': 'root' }
    expect(await whoami(fields)).toMatchObject({ name: 'page:alice', address: '127.0.0.1' })
  })

  test.each([
    ['192.0.2.9', '192.0.2.9'],
    ['10.0.0.1, 192.0.2.9', '192.0.2.9'],
    ['192.0.2.9, 10.0.0.2, 127.0.0.1', '192.0.2.9'],
    ['::ffff:192.0.2.9', '192.0.2.9'],
    ['[2001:DB8::1]', '2001:db8::1'],
    ['192.0.2.9, unknown', '127.0.0.1'],
    ['<script>', '127.0.0.1'],
    ['', '127.0.0.1'],
  ])('a trusted proxy names the client: X-Forwarded-For %j is %s', async (forwarded, address) => {
    await open({ proxies: ['127.0.0.1', '10.0.0.0/24'] })
    const fields = { ...bearer(server.token()), 'X-Forwarded-For': forwarded }
    expect(await whoami(fields)).toMatchObject({ name: 'token:ci', address })
  })

  test('a user whom a trusted proxy names gives the session its name, not its rights', async () => {
    await open({ proxies: ['127.0.0.1'] })
    const fields = { 'X-Forwarded-User': 'bob@example.com' }
    expect((await server.ask({ target: '/viewer', fields })).status).toBe(401)
    expect(await whoami({ ...fields, Cookie: await server.cookie({ role: 'viewer' }) })).toMatchObject({
      name: 'page:bob@example.com',
      role: 'viewer',
    })
    const wild = await server.ask({ target: '/viewer', fields: { 'X-Forwarded-User': 'a (b)' } })
    expect(problemOf(wild)).toEqual([400, '/problems/malformed'])
  })

  test('behind a proxy with TLS the origin is of https, and the cookie is Secure', async () => {
    await open({ proxies: ['127.0.0.1'], hosts: ['mail.example'] })
    const outer = { 'X-Forwarded-Proto': 'https', Origin: 'https://mail.example' }
    const fields = { ...outer, 'Content-Type': 'application/x-www-form-urlencoded' }
    const { status, headers } = await server.ask({
      method: 'POST',
      target: '/login',
      host: 'mail.example',
      fields,
      body: `code=${server.code()}`,
    })
    expect([status, headers.get('set-cookie')]).toEqual([
      303,
      expect.stringMatching(/^deferd-443=\w{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/),
    ])
    const wrong = { ...outer, Origin: 'http://mail.example' }
    expect((await server.ask({ method: 'POST', target: '/anyone', host: 'mail.example', fields: wrong })).status).toBe(403)
  })
})

describe('sessions', () => {
  test('a code works once, within 60 seconds, as it was typed', async () => {
    const clock = new VirtualClock()
    await open({ clock })
    const code = server.code()
    const { status, headers } = await server.logIn(code)
    expect([status, headers.get('location'), headers.get('set-cookie')]).toEqual([
      303,
      './',
      expect.stringMatching(new RegExp(String.raw`^deferd-${server.port}=\w{43}; Path=/; HttpOnly; SameSite=Strict$`)),
    ])
    const again = await server.logIn(code)
    expect([again.status, again.headers.has('set-cookie'), again.body]).toEqual([403, false, expect.stringContaining('was used already')])
    const typed = server.code()
    expect((await server.logIn(`${typed.slice(0, 5).toUpperCase()}-${typed.slice(5)}%20`)).status).toBe(303)
    const early = server.code()
    advance(clock, seconds(60) - 1)
    expect((await server.logIn(early)).status).toBe(303)
    const late = server.code()
    advance(clock, seconds(60))
    expect((await server.logIn(late)).status).toBe(403)
  })

  test('a session ends after 12 idle hours, and not before', async () => {
    const clock = new VirtualClock()
    await open({ clock })
    const fields = { Cookie: await server.cookie() }
    const status = async () => (await server.ask({ target: '/viewer', fields })).status
    for (let i = 0; i < 3; i++) {
      advance(clock, hours(12) - 1)
      expect(await status()).toBe(200)
    }
    advance(clock, hours(12))
    expect(await status()).toBe(401)
  })

  test('the eleventh session ends the one that is idle longest', async () => {
    await open()
    const cookies: string[] = []
    for (let i = 0; i < 10; i++) cookies.push(await server.cookie())
    const status = async (i: number) => (await server.ask({ target: '/viewer', fields: { Cookie: cookies[i] ?? '' } })).status
    expect(await status(0)).toBe(200)
    cookies.push(await server.cookie())
    expect(await Promise.all([0, 1, 2, 10].map(status))).toEqual([200, 401, 200, 200])
  })

  test('a logout ends all sessions of the user', async () => {
    await open()
    const [one, two, other] = [await server.cookie(), await server.cookie(), await server.cookie({ user: 'bob' })]
    const left = await server.ask({ method: 'POST', target: '/logout', fields: { Cookie: one, 'Sec-Fetch-Site': 'same-origin' } })
    expect([left.status, left.headers.get('location'), left.headers.get('set-cookie')]).toEqual([
      303,
      'login',
      `deferd-${server.port}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict`,
    ])
    const statuses = [one, two, other].map(async (Cookie) => (await server.ask({ target: '/viewer', fields: { Cookie } })).status)
    expect(await Promise.all(statuses)).toEqual([401, 401, 200])
  })

  test('a cookie of another port or of a foreign name is no session', async () => {
    await open()
    const id = (await server.cookie()).split('=')[1] ?? ''
    for (const Cookie of [`deferd-1=${id}`, `deferd=${id}`, id, `x="deferd-${server.port}=${id}"`, `deferd-${server.port}=${id}x`])
      expect((await server.ask({ target: '/viewer', fields: { Cookie } })).status).toBe(401)
    expect((await server.ask({ target: '/viewer', fields: { Cookie: `a=b; deferd-${server.port}=${id}; c=d` } })).status).toBe(200)
  })
})

test('without TLS beyond loopback, only this machine and the proxies may connect', async () => {
  await open({ needsProxy: true, proxies: ['192.0.2.1'] })
  expect((await server.ask({ target: '/anyone' })).status).toBe(200)
})
