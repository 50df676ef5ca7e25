/** The admin API of a daemon: socket, port, TLS, logins, tokens across restarts, reload, stop. */
import { existsSync, linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openDirectClient } from '../../src/cli/queue-client/direct-client.ts'
import { askForLoginCode, openDaemonClient } from '../../src/cli/queue-client/api-client.ts'
import { hashOf } from '../../src/admin/secrets.ts'
import { configFrom } from '../../src/config/load.ts'
import { prepareFiles } from '../../src/daemon/preparation.ts'
import { startDaemon, type Daemon } from '../../src/daemon/daemon.ts'
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { AUTHORITY, CERTIFICATE, KEY } from '../support/certificates.ts'
import { ask, conversation, requestBytes, type RawResponse, type RequestParts } from '../support/raw-http.ts'
import { portBelowEphemeral } from '../support/ports.ts'

let home: string
let port: number
let daemon: Daemon | undefined
let notes: string[]

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'deferd-admin-'))
  port = await portBelowEphemeral()
  notes = []
})
afterEach(async () => {
  await daemon?.stop()
  daemon = undefined
  rmSync(home, { recursive: true })
})

const queue = () => join(home, 'queue')
const socket = () => join(queue(), 'admin.sock')
const settings = (more: object = {}) => configFrom({ queue_directory: queue(), smtpd_listen: '127.0.0.1:0', ...more }, 'relay.example')

async function start(more: object = {}): Promise<Daemon> {
  const events = new Events(() => systemClock.now())
  events.listen((event) => {
    if (event.kind === 'note') notes.push(`${event.level}: ${event.text}`)
  })
  daemon = await startDaemon({ loaded: settings(more), events })
  return daemon
}

const listening = (more: object = {}) => ({ admin_listen: `127.0.0.1:${port}`, ...more })
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
const whoami = (at: number | string, fields: Readonly<Record<string, string>>) => ask(at, { target: '/api/v1/whoami', fields })

interface TokenFacts {
  readonly name: string
  readonly role?: 'viewer' | 'admin'
  readonly duration?: number
}

async function addToken({ name, role = 'viewer', duration }: TokenFacts): Promise<string> {
  const client = (await openDaemonClient(queue())) ?? (await openDirectClient(settings().config, systemClock))
  const text = await client.addToken({ name, role, content: false, destinations: null, duration: duration ?? null, who: 'root' })
  await client.close()
  return text
}

async function removeToken(name: string): Promise<void> {
  const client = (await openDaemonClient(queue())) ?? (await openDirectClient(settings().config, systemClock))
  await client.removeToken({ name, who: 'root' })
  await client.close()
}

describe('the socket', () => {
  test('is there without configuration, for the owner only, and is removed at the stop', async () => {
    const { page } = await start()
    expect(page).toBe(null)
    expect((statSync(socket()).mode & 0o777).toString(8)).toBe('600')
    expect((await whoami(socket(), {})).status).toBe(401)
    expect((await ask(socket(), { target: '/login' })).status).toBe(200)
    await daemon?.stop()
    expect(existsSync(socket())).toBe(false)
  })

  test('replaces a socket file that a killed daemon left', async () => {
    await start()
    await daemon?.stop()
    const killed = createServer()
    await new Promise<void>((resolve) => void killed.listen(join(home, 'killed'), resolve))
    linkSync(join(home, 'killed'), socket())
    await new Promise((resolve) => void killed.close(resolve))
    await expect(ask(socket(), { target: '/login' })).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await start()
    expect((await ask(socket(), { target: '/login' })).status).toBe(200)
  })
})

describe('the local token', () => {
  const token = () => join(queue(), 'local.token')
  const operator = { 'Deferd-Operator': encodeURIComponent('ann (root)') }
  const local = (text = readFileSync(token(), 'utf8')) => ({ ...bearer(text), ...operator })

  test('is for the owner only, new at each start, and removed at the stop', async () => {
    await start()
    expect((statSync(token()).mode & 0o777).toString(8)).toBe('600')
    const former = local()
    expect(JSON.parse((await whoami(socket(), former)).body)).toMatchObject({ name: 'ann (root)', role: 'local', address: 'local' })
    // A client that names no operator, such as curl.
    expect(JSON.parse((await whoami(socket(), bearer(readFileSync(token(), 'utf8')))).body)).toMatchObject({ name: 'local' })
    const badlyEncoded = { ...bearer(readFileSync(token(), 'utf8')), 'Deferd-Operator': '100%' }
    expect(JSON.parse((await whoami(socket(), badlyEncoded)).body)).toMatchObject({ name: '100%' })
    await daemon?.stop()
    expect(existsSync(token())).toBe(false)
    writeFileSync(token(), 'dfd-local_stale', { mode: 0o666 })
    await start()
    expect((statSync(token()).mode & 0o777).toString(8)).toBe('600')
    expect((await whoami(socket(), former)).status).toBe(401)
    expect((await whoami(socket(), local())).status).toBe(200)
  })

  test('is written again when a command finds another one or none', async () => {
    await start()
    rmSync(token())
    const refused = await whoami(socket(), local('dfd-local_none'))
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="deferd local"'])
    expect((await whoami(socket(), local())).status).toBe(200)
    writeFileSync(token(), 'dfd-local_stale')
    expect((await whoami(socket(), local())).status).toBe(401)
    expect((await whoami(socket(), local())).status).toBe(200)
  })

  test('a proxy on the socket without it is refused, also when it claims to be an operator', async () => {
    await start(listening())
    for (const fields of [operator, { ...operator, 'X-Forwarded-User': 'root' }, { ...operator, ...bearer('dfd-local_guess') }]) {
      expect((await whoami(socket(), fields)).status).toBe(401)
      expect((await ask(socket(), { method: 'DELETE', target: '/api/v1/tokens/x', fields })).status).toBe(401)
    }
    expect((await whoami(port, local())).status).toBe(401)
  })

  test('a full disk keeps no daemon from starting, and is logged', async () => {
    mkdirSync(join(queue(), 'local.token.new', 'in-the-way'), { recursive: true })
    await start()
    expect(notes).toContainEqual(expect.stringMatching(/^warning: admin: cannot write .*local\.token, without which commands /))
    rmSync(join(queue(), 'local.token.new'), { recursive: true })
    await whoami(socket(), local('dfd-local_none'))
    expect((await whoami(socket(), local())).status).toBe(200)
  })

  test('wrong ones are refused after ten, the right one never is', async () => {
    await start()
    for (let i = 0; i < 10; i++) expect((await whoami(socket(), local(`dfd-local_${i}`))).status).toBe(401)
    expect((await whoami(socket(), local('dfd-local_11'))).status).toBe(429)
    expect((await whoami(socket(), local())).status).toBe(200)
  })
})

describe('tokens', () => {
  test('work at once, across restarts and while the daemon is stopped, until they are removed', async () => {
    await start(listening())
    const first = await addToken({ name: 'first' })
    expect(JSON.parse((await whoami(port, bearer(first))).body)).toEqual({
      name: 'token:first',
      role: 'viewer',
      content: false,
      destinations: null,
      address: '127.0.0.1',
    })
    await expect(addToken({ name: 'first' })).rejects.toMatchObject({ exitCode: 65, message: expect.stringContaining('already') })
    await daemon?.stop()
    const second = await addToken({ name: 'second', role: 'admin' })
    await start(listening())
    expect((await whoami(port, bearer(first))).status).toBe(200)
    expect(JSON.parse((await whoami(socket(), bearer(second))).body)).toMatchObject({ role: 'admin', content: true, address: 'local' })
    await removeToken('first')
    expect((await whoami(port, bearer(first))).status).toBe(401)
    await expect(removeToken('first')).rejects.toMatchObject({ exitCode: 65 })
    await daemon?.stop()
    await removeToken('second')
    await start(listening())
    expect((await whoami(port, bearer(second))).status).toBe(401)
  })

  test('the address of a wrong token is logged', async () => {
    await start(listening())
    const refused = await whoami(port, { ...bearer('dfd_wrong'), 'X-Request-Id': 'ci-4711' })
    expect([refused.headers.get('x-request-id'), JSON.parse(refused.body)]).toMatchObject(['ci-4711', { request_id: 'ci-4711' }])
    expect(notes).toContain(
      'warning: admin: request refused (401): GET /api/v1/whoami from 127.0.0.1 (request ci-4711): the token is unknown or has expired',
    )
    await ask(port, { target: '/api/v1/whoami?secret=1', host: 'evil.example' })
    expect(notes.at(-1)).toMatch(
      /^warning: admin: request refused \(421\): GET \/api\/v1\/whoami from 127\.0\.0\.1 \(request [\w-]{36}\): /,
    )
  })
})

describe('the API', () => {
  test('answers a token, and manages tokens for the role admin', async () => {
    await start(listening())
    const [admin, viewer] = [await addToken({ name: 'root', role: 'admin' }), await addToken({ name: 'eye' })]
    const json = { 'Content-Type': 'application/json' }
    const call = async (method: string, path: string, token: string, body = '') => {
      const response = await ask(port, { method, target: `/api/v1${path}`, fields: { ...bearer(token), ...json }, body })
      return [response.status, JSON.parse(response.body) as Record<string, unknown>] as const
    }
    expect(await call('GET', '/messages', viewer)).toMatchObject([200, { messages: [], next: null }])
    expect((await ask(port, { target: '/api/v1/messages' })).status).toBe(401)
    for (const [method, path] of [
      ['GET', '/tokens'],
      ['POST', '/tokens'],
      ['DELETE', '/tokens/root'],
    ] as const)
      expect((await call(method, path, viewer, method === 'POST' ? '{}' : ''))[0]).toBe(403)
    const [status, added] = await call('POST', '/tokens', admin, '{"name":"new","role":"sender","expires_in":60}')
    expect([status, added]).toEqual([201, { name: 'new', token: expect.stringMatching(/^dfd_/) }])
    expect(JSON.parse((await whoami(port, bearer(String(added['token'])))).body)).toMatchObject({ name: 'token:new', role: 'sender' })
    expect(await call('POST', '/tokens', admin, '{"name":"new","role":"sender"}')).toMatchObject([409, { type: '/problems/token-exists' }])
    expect(await call('POST', '/tokens', admin, '{"name":"a b","role":"root"}')).toMatchObject([
      422,
      { errors: [{ pointer: '/name' }, { pointer: '/role' }] },
    ])
    const [, { tokens }] = await call('GET', '/tokens', admin)
    expect(tokens).toMatchObject([{ name: 'eye' }, { name: 'new', role: 'sender', added_by: 'token:root (127.0.0.1)' }, { name: 'root' }])
    expect(JSON.stringify(tokens)).not.toContain(hashOf(viewer))
    expect(await call('DELETE', '/tokens/new', admin)).toEqual([200, { name: 'new' }])
    expect((await call('DELETE', '/tokens/new', admin))[0]).toBe(404)
    expect((await whoami(port, bearer(String(added['token'])))).status).toBe(401)
  })

  test('no GET changes anything, and all its responses have the policy', async () => {
    await start(listening())
    const fields = bearer(await addToken({ name: 'root', role: 'admin' }))
    await whoami(port, fields)
    const before = await changesOf()
    const { body } = await ask(port, { target: '/api/v1/openapi.json', fields })
    const { paths } = JSON.parse(body) as { readonly paths: Readonly<Record<string, object>> }
    const targets = Object.entries(paths).flatMap(([path, methods]) => ('get' in methods ? [path.replaceAll(/\{\w+\}/g, 'x')] : []))
    expect(targets).toContain('/api/v1/tokens')
    for (const target of ['/', '/login', ...targets.filter((path) => !path.endsWith('/stream'))]) {
      const { status, headers } = await ask(port, { target, fields })
      expect([
        target,
        status < 500,
        headers.get('content-security-policy')?.includes('unsafe-'),
        headers.get('x-content-type-options'),
      ]).toEqual([target, true, false, 'nosniff'])
    }
    expect(await changesOf()).toEqual(before)
  })

  /** Tables of the queue that a request could change. */
  async function changesOf(): Promise<unknown> {
    const reader = openQueueReader(queue())
    try {
      return [
        await reader.counts(),
        await reader.records.audit.after({ after: 0, limit: 100 }),
        await reader.records.tokens.all(),
        await reader.destinationRecords(),
      ]
    } finally {
      await reader.close()
    }
  }
})

describe('logins', () => {
  const logIn = (code: string): Promise<RawResponse> => {
    const fields = { 'Content-Type': 'application/x-www-form-urlencoded', Origin: 'http://localhost' }
    return ask(socket(), { method: 'POST', target: '/login', fields, body: `code=${code}` })
  }

  test('a code of a command begins a session, which a restart ends', async () => {
    await start()
    const code = await askForLoginCode(queue(), { user: 'alice', role: 'operator', content: true })
    expect(code).toEqual({ code: expect.stringMatching(/^[0-9a-z]{26}$/), lifetime: 60_000, url: null })
    const Cookie = (await logIn(code?.code ?? '')).headers.get('set-cookie')?.split(';', 1)[0] ?? ''
    expect(JSON.parse((await whoami(socket(), { Cookie })).body)).toMatchObject({ name: 'page:alice', role: 'operator', content: true })
    expect((await logIn(code?.code ?? '')).status).toBe(403)
    expect(notes).toContain('warning: admin: login refused: wrong or expired code from local')
    await daemon?.stop()
    await start()
    expect((await whoami(socket(), { Cookie })).status).toBe(401)
    expect(await askForLoginCode(join(home, 'none'), { user: 'alice', role: 'viewer', content: false })).toBe(null)
  })
})

describe('the port', () => {
  test('a reload opens, moves and closes it; sessions and streams of the socket go on', async () => {
    await start()
    const token = await addToken({ name: 'ci' })
    await daemon?.reload(settings(listening()))
    expect(daemon?.page).toBe(`http://127.0.0.1:${port}/`)
    expect((await whoami(port, bearer(token))).status).toBe(200)
    const other = await portBelowEphemeral()
    await daemon?.reload(settings({ admin_listen: `127.0.0.1:${other}` }))
    await expect(whoami(port, bearer(token))).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    expect((await whoami(other, bearer(token))).status).toBe(200)
    await daemon?.reload(settings())
    await expect(whoami(other, bearer(token))).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    expect((await whoami(socket(), bearer(token))).status).toBe(200)
  })

  test('a port in use refuses the start and the reload, with the sentence', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => void taken.listen(port, '127.0.0.1', resolve))
    const refusal = {
      exitCode: 69,
      message: expect.stringContaining(`admin_listen: cannot listen on 127.0.0.1:${port}: another process has this port`),
    }
    await expect(start(listening())).rejects.toMatchObject(refusal)
    await start()
    await expect(daemon?.reload(settings(listening()))).rejects.toMatchObject(refusal)
    expect((await ask(socket(), { target: '/login' })).status).toBe(200)
    await new Promise((resolve) => void taken.close(resolve))
  })

  test('hosts and proxies change with a reload', async () => {
    await start(listening())
    const get = (fields: Readonly<Record<string, string>> = {}) => ask(port, { target: '/login', host: 'relay.example', fields })
    expect((await get()).status).toBe(421)
    await daemon?.reload(settings(listening({ admin_hosts: ['Relay.Example'] })))
    expect((await get()).status).toBe(200)
  })
})

describe('TLS', () => {
  const files = () => {
    writeFileSync(join(home, 'cert.pem'), CERTIFICATE)
    writeFileSync(join(home, 'key.pem'), KEY)
    return { admin_tls_cert_file: join(home, 'cert.pem'), admin_tls_key_file: join(home, 'key.pem') }
  }
  const tls = { ca: AUTHORITY, servername: 'mx.example.net' }
  const askTls = (parts: RequestParts) => ask(port, { host: 'mx.example.net', ...parts }, { tls })

  test('the port of a name with a certificate; plain requests get nothing', async () => {
    await start({ admin_listen: `*:${port}`, admin_hosts: ['mx.example.net'], ...files() })
    expect(daemon?.page).toBe(`https://mx.example.net:${port}/`)
    const token = await addToken({ name: 'ci' })
    expect((await askTls({ target: '/api/v1/whoami', fields: bearer(token) })).status).toBe(200)
    expect((await askTls({ target: '/api/v1/whoami', host: 'evil.example', fields: bearer(token) })).status).toBe(421)
    const code = await askForLoginCode(queue(), { user: 'alice', role: 'viewer', content: false })
    const fields = { 'Content-Type': 'application/x-www-form-urlencoded', Origin: `https://mx.example.net:${port}` }
    const login = await askTls({ method: 'POST', target: '/login', host: `mx.example.net:${port}`, fields, body: `code=${code?.code}` })
    expect([login.status, login.headers.get('set-cookie')]).toEqual([303, expect.stringMatching(new RegExp(`^deferd-${port}=.*; Secure$`))])
    const plain = await conversation(port, requestBytes({ target: '/login' })).catch(() => '')
    expect(plain).not.toContain('200')
  })

  test('a reload reads the certificate again, adds TLS and removes it', async () => {
    await start(listening())
    const secured = { ...listening({ admin_hosts: ['mx.example.net'] }), ...files() }
    await daemon?.reload(settings(secured))
    expect((await askTls({ target: '/login' })).status).toBe(200)
    writeFileSync(join(home, 'key.pem'), 'no key')
    await expect(daemon?.reload(settings(secured))).rejects.toThrow(/admin_tls_cert_file: .* are no certificate and its key/)
    expect((await askTls({ target: '/login' })).status).toBe(200)
    files()
    await daemon?.reload(settings(secured))
    expect((await askTls({ target: '/login' })).status).toBe(200)
    await daemon?.reload(settings(listening()))
    expect((await ask(port, { target: '/login' })).status).toBe(200)
  })

  test('a certificate that cannot be used refuses the start, and the check names it', () => {
    const { problems } = prepareFiles(settings(listening({ admin_tls_cert_file: join(home, 'none.pem') }))) as {
      readonly problems?: readonly object[]
    }
    expect(problems).toMatchObject([{ part: 'admin port', text: expect.stringMatching(/^admin_tls_cert_file: cannot read /) }])
  })
})

describe('the reach of the port', () => {
  const protectedBy = { admin_hosts: ['relay.example'], admin_proxies: ['10.0.0.0/8'] }

  test.each(['127.0.0.1:2580', '127.1.2.3:2580', '[::1]:2580', 'localhost:2580'])('%s needs nothing else', (admin_listen) => {
    expect(() => settings({ admin_listen })).not.toThrow()
  })

  test.each(['*:2580', '0.0.0.0:2580', '[::]:2580', '2580', '192.0.2.1:2580', 'relay.example:2580'])(
    '%s needs a name, and TLS or a proxy',
    (admin_listen) => {
      expect(() => settings({ admin_listen })).toThrow(/set admin_tls_cert_file, or admin_proxies/)
      expect(() => settings({ admin_listen, admin_hosts: ['relay.example'] })).toThrow(/set admin_tls_cert_file, or admin_proxies/)
      expect(() => settings({ admin_listen, admin_proxies: ['10.0.0.1'] })).toThrow(/set admin_hosts/)
      expect(() => settings({ admin_listen, admin_tls_cert_file: '/cert.pem' })).toThrow(/set admin_hosts/)
      expect(() => settings({ admin_listen, ...protectedBy })).not.toThrow()
    },
  )

  test.each([
    [{ admin_hosts: ['relay.example:443'] }, /admin_hosts: "relay\.example:443" is not a host/],
    [{ admin_hosts: ['*'] }, /admin_hosts: "\*" is not a host/],
    [{ admin_hosts: ['https://relay.example'] }, /is not a host/],
    [{ admin_proxies: ['proxy.example'] }, /admin_proxies: expected a network/],
    [{ admin_listen: 'nonsense' }, /admin_listen: expected an address and a port/],
    [{ admin_listen: '127.0.0.1:2580', http_listen: '127.0.0.1:2580' }, /admin_listen: http_listen has the same port/],
  ])('%j is refused with a sentence', (given, sentence) => {
    expect(() => settings(given)).toThrow(sentence)
  })
})

test('a stop ends open streams and connections at once', async () => {
  await start(listening())
  const token = await addToken({ name: 'ci' })
  const idle = conversation(port, 'GET /login HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const begun = Promise.withResolvers<void>()
  const stream = conversation(port, requestBytes({ target: '/api/v1/now/stream', fields: bearer(token) }), {
    written: (connection) => connection.once('data', () => begun.resolve()),
  })
  await begun.promise
  await ask(port, { target: '/login' })
  await daemon?.stop()
  expect(await idle).toContain('200 OK')
  expect(await stream).toMatch(/text\/event-stream[^]*0\r\n\r\n$/)
})
