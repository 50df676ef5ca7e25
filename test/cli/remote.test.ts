/** `deferd --host URL --token-file FILE`: every command, from another directory, with tokens of three roles. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FileAccess } from '../../src/cli/queue-client/file-access.ts'
import { openDaemonClient } from '../../src/cli/queue-client/api-client.ts'
import { LISTED_COMMANDS, routesOf } from '../../src/cli/remote/command-routes.ts'
import { configFrom } from '../../src/config/load.ts'
import { startDaemon, type Daemon } from '../../src/daemon/daemon.ts'
import { documentedRoutes } from '../../src/api/api-pages.ts'
import { BASE } from '../../src/http/command-protocol.ts'
import { CLIENT_ROLES, type ClientRole } from '../../src/http/requests/requester.ts'
import { matchRoute, type Route } from '../../src/http/route-table.ts'
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { queueIdOf } from '../../src/mail/message.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { commandOf, LINES, SHOWN } from '../support/command-lines.ts'
import { Operator, type Ran, type Terminal } from '../support/operator.ts'
import { ask } from '../support/raw-http.ts'
import { PrefixProxy } from '../support/prefix-proxy.ts'
import { portBelowEphemeral } from '../support/ports.ts'

let home: string
let port: number
let daemon: Daemon
/** Notes the requests of commands. */
let proxy: PrefixProxy
let id: string
const elsewhere = new Operator()
const queueDirectory = () => join(home, 'queue')
const tokenFile = (role: string) => join(home, `${role}.token`)
const url = () => `http://127.0.0.1:${port}`

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'deferd-remote-'))
  port = await portBelowEphemeral()
  const settings = {
    class: { fast: { weight: 10 }, bulk: { weight: 1 } },
    default_class: 'fast',
    queue_directory: queueDirectory(),
    smtpd_listen: '127.0.0.1:0',
    admin_listen: `127.0.0.1:${port}`,
    relayhost: '[127.0.0.1]:1',
    provider: { google: { mx: ['.google.example'] } },
    // Refuse every question.
    dns_servers: ['127.0.0.1:9'],
  }
  daemon = await startDaemon({ loaded: configFrom(settings, 'relay.example'), events: new Events(() => systemClock.now()) })
  proxy = await new PrefixProxy(url(), '/').listen()
  const client = await openDaemonClient(queueDirectory())
  for (const role of CLIENT_ROLES) {
    const rights = { role, content: false, destinations: null, duration: null }
    writeFileSync(tokenFile(role), `${await client?.addToken({ ...rights, name: role, who: 'root' })}\n`)
  }
  const fields = {
    Authorization: `Bearer ${readFileSync(tokenFile('admin'), 'utf8').trim()}`,
    'Content-Type': 'message/rfc822',
  }
  const target = '/api/v1/messages?from=app@us.example&to=ann@far.example'
  expect((await ask(port, { method: 'POST', target, fields, body: 'Subject: hi\r\n\r\nhello\r\n' })).status).toBe(202)
  const reader = openQueueReader(queueDirectory())
  const [listed] = await reader.list(ANY_MESSAGE, { after: 0, limit: 1 })
  id = listed === undefined ? '' : queueIdOf(listed.message)
  await reader.close()
})
afterAll(async () => {
  await proxy.stop()
  await daemon.stop()
  elsewhere.leave()
  rmSync(home, { recursive: true })
})

/** A check of a domain is asked for again until it has ended. */
const clockOf = (command: string | undefined): Terminal => (command === 'check' ? { clock: systemClock } : {})

const remote = (role: string, ...argv: readonly string[]): Promise<Ran> =>
  elsewhere.run(
    [...argv.map((word) => (word === 'ID' ? id : word)), '--host', proxy.url, '--token-file', tokenFile(role)],
    clockOf(argv[0]),
  )

/** Lines that need another role than that of all routes of their command: others are not asked for with these data. */
const OTHER_ROLES: ReadonlyMap<string, ClientRole> = new Map([
  ['queue cat ID', 'admin'],
  ...['operation undo 99', 'operation cancel 99'].map((line) => [line, 'viewer'] as const),
  ...['drain', 'undrain', 'forget'].map((verb) => [`node ${verb} mx1`, 'viewer'] as const),
])

const ROUTES = documentedRoutes()
const routeName = ({ method, path }: Pick<Route, 'method' | 'path'>): string => `${method} ${path.slice(BASE.length)}`

/** The route of a request, such as `GET /messages`. */
function routeAsked(request: string): string {
  const [method = '', path = ''] = request.split(' ')
  const match = matchRoute(ROUTES, method, path)
  return match.kind === 'found' ? routeName(match.route) : request
}

/** The role that a line needs, as the routes of its command say; null for one that is possible on the machine only. */
function roleOf(line: string): ClientRole | null {
  const names = routesOf(commandOf(line))
  const roles = ROUTES.filter((one) => names.includes(routeName(one))).map(({ role }) => role)
  const needed = (['admin', 'operator', 'viewer'] as const).find((role) => roles.includes(role)) ?? null
  return OTHER_ROLES.get(line) ?? needed
}

/** Outcomes that are those of the data here. */
const UNKNOWN =
  /^(?:operation (?:undo|cancel) 99|tls (?:show|forget)|destination show|schedule (?:show|run)|suppression (?:show|resume)|quota (?:show|reset)|history resend ID$)/

const sentence = /^deferd: [^\n]+\n$/

/** Routes that commands have used so far. */
const USED = new Set<string>()

describe.each(['viewer', 'operator', 'sender', 'admin'] as const)('%s', (role) => {
  const rights = { viewer: ['viewer'], operator: ['viewer', 'operator'], sender: [], admin: ['viewer', 'operator', 'admin'] }[role]

  test.each(LINES)('%s', async (line) => {
    const needed = roleOf(line)
    proxy.asked.length = 0
    const { code, out, err } = await remote(role, ...line.split(' '))
    const used = new Set(proxy.asked.map((one) => routeAsked(one)))
    for (const one of used) USED.add(`${commandOf(line)}: ${one}`)
    expect([...used].filter((route) => !routesOf(commandOf(line)).includes(route))).toEqual([])
    if (needed === null) {
      expect([code, out]).toEqual([64, ''])
      expect(err).toMatch(/^deferd: [^\n]* is possible on the machine of the relay only, because [^\n]*\n$/)
    } else if (!rights.some((one) => one === needed)) {
      expect([code, out, err]).toEqual([77, '', expect.stringMatching(sentence)])
    } else if (line.startsWith('node ')) {
      expect([code, out, err]).toEqual([69, '', expect.stringMatching(/^deferd: the queue is in a folder and has one daemon: [^\n]+\n$/)])
    } else if (UNKNOWN.test(line) || (role === 'operator' && /^webhook (?:replay|test) app$/.test(line))) {
      expect([code, err]).toEqual([65, expect.stringMatching(sentence)])
    } else if (line.startsWith('check domain')) {
      // The next hop does not answer, and neither do the name servers.
      expect([code, out, err]).toEqual([65, expect.stringMatching(/^example\.com, 20.*\n[^]*\nmail to example\.com now: deferred/), ''])
    } else if (line === 'webhook test app') {
      expect([code, out]).toEqual([75, expect.stringContaining('did not take the event')])
    } else expect([code, err]).toEqual([0, line.startsWith('token add') || line.startsWith('webhook') ? expect.any(String) : ''])
  })
})

/** Routes for which the message has no dialogue here, nothing was begun, or the queue has no nodes. */
const NEED_OTHER_DATA = [
  'queue show: GET /messages/:id/sessions/:session',
  'history resend: GET /operations/:id',
  'history erase: GET /operations/:id',
  'node settings: GET /settings',
  'node drain: POST /nodes/:name/drain',
  'node undrain: POST /nodes/:name/undrain',
  'node forget: DELETE /nodes/:name',
  'operation cancel: DELETE /operations/:id',
  'operation undo: POST /operations/:id/undo',
]

test('each route of a command is used by one of its lines', () => {
  const named = LISTED_COMMANDS.flatMap((words) => routesOf(words).map((one) => `${words}: ${one}`))
  expect(named.filter((one) => !USED.has(one))).toEqual(NEED_OTHER_DATA)
})

test('each command has a line', () => {
  const used = new Set(LINES.map(commandOf))
  expect(LISTED_COMMANDS.filter((words) => !used.has(words) && words !== 'help')).toEqual([])
})

/** The API has figures of some seconds ago, and windows of the destinations with the most mail only. */
const withoutFigures = (line: string, text: string): string =>
  /^(?:status|top)/.test(line)
    ? text
        .replaceAll(/\s+/g, ' ')
        .replace(', 0/5 in flight', '')
        .replaceAll(/\d+[hms](?: \d+[hms])?|\d\d:\d\d:\d\d|\d\.\d\/s/g, 'T')
    : text

describe('the output is that of the machine of the relay', () => {
  beforeAll(async () => {
    for (const line of [
      'webhook add ledger https://ledger.example/hook --types recipient.*',
      'access add sender app@example.com REJECT too many bounces --for 2h',
      'suppression add eve@far.example --scope us.example --reason complaint --for 30d',
      'destination suspend away.example --for 2h --reason maintenance',
    ])
      expect(await remote('admin', ...line.split(' '))).toMatchObject({ code: 0 })
    const fields = {
      Authorization: `Bearer ${readFileSync(tokenFile('admin'), 'utf8').trim()}`,
      'Content-Type': 'message/rfc822',
    }
    for (const to of ['to=bob@far.example&to=eve@other.example', 'to=gone@far.example']) {
      const target = `/api/v1/messages?from=app@us.example&${to}`
      const answer = await ask(port, { method: 'POST', target, fields, body: 'Subject: hi\r\n\r\nhello\r\n' })
      if (to.startsWith('to=gone')) {
        const { queue_id: gone } = JSON.parse(answer.body) as { readonly queue_id: string }
        expect((await remote('admin', 'queue', 'delete', gone, '--now')).code).toBe(0)
      }
    }
  })

  test.each(SHOWN)('%s', async (line) => {
    const argv = line.split(' ').map((word) => (word === 'ID' ? id : word))
    const place = { clock: systemClock, columns: 80 }
    const here = () =>
      elsewhere.run(argv, {
        ...place,
        env: { DEFERD_QUEUE_DIRECTORY: queueDirectory() },
        access: { openReader: (config) => new FileAccess(config, systemClock).openReader() },
      })
    const there = () => elsewhere.run([...argv, '--host', url(), '--token-file', tokenFile('admin')], place)
    // Times that pass between the two, and figures that the API keeps for some seconds, differ for a moment.
    await expect
      .poll(
        async () => {
          const [one, other] = [await here(), await there()]
          return withoutFigures(line, one.out) === withoutFigures(line, other.out) && one.code === other.code && one.err === other.err
            ? 'equal'
            : { here: one, there: other }
        },
        { timeout: 60_000, interval: 200 },
      )
      .toBe('equal')
  })
})

test('a change is made by the name of the token', async () => {
  await remote('operator', 'queue', 'hold', 'ID')
  expect(JSON.parse((await remote('viewer', 'audit', '--limit', '1', '--json')).out)).toMatchObject({
    action: 'hold',
    who: 'token:operator (127.0.0.1)',
  })
  expect((await remote('viewer', 'queue', 'list', '--queue', 'hold', '--json')).out).toContain(id)
  expect(await elsewhere.run(['--host', url(), '--token-file', tokenFile('operator'), 'queue', 'release', id])).toMatchObject({
    code: 0,
    out: '1 message released\n',
  })
})

describe('what cannot work is said in one sentence', () => {
  const failing = async (host: string, file: string | null, argv = ['queue', 'list']): Promise<Ran> =>
    elsewhere.run(['--host', host, ...(file === null ? [] : ['--token-file', file]), ...argv])

  test.each([
    ['http://relay.example.com:2580', 64, 'cross the network in clear'],
    ['relay.example.com', 64, 'expected a URL'],
    ['https://user@relay.example.com', 64, 'expected a URL'],
    ['https://127.0.0.1:1', 69, 'cannot reach https://127.0.0.1:1'],
    ['http://[::1]:1', 69, 'cannot reach http://[::1]:1'],
  ])('%s', async (host, code, text) => {
    const ran = await failing(host, tokenFile('viewer'))
    expect([ran.code, ran.out, ran.err]).toEqual([code, '', expect.stringMatching(sentence)])
    expect(ran.err).toContain(text)
  })

  test('a token file that is missing, empty or not named, and a token that is unknown', async () => {
    expect(await failing(url(), null)).toMatchObject({ code: 64, err: expect.stringContaining('--token-file') as string })
    expect(await failing(url(), join(home, 'none'))).toMatchObject({ code: 78, err: expect.stringMatching(sentence) as string })
    const file = join(home, 'other.token')
    writeFileSync(file, '')
    expect(await failing(url(), file)).toMatchObject({ code: 78, err: expect.stringMatching(sentence) as string })
    writeFileSync(file, 'dfd_unknown')
    expect(await failing(url(), file)).toMatchObject({
      code: 77,
      err: `deferd: ${url()} does not accept the token: the token is unknown or has expired\n`,
    })
  })

  test('a path that is not that of the API, and a port without TLS', async () => {
    expect(await failing(`${url()}/prefix`, tokenFile('viewer'))).toMatchObject({
      code: 69,
      err: expect.stringMatching(sentence) as string,
    })
    const tls = await failing(`https://127.0.0.1:${port}`, tokenFile('viewer'))
    expect([tls.code, tls.err]).toEqual([69, expect.stringMatching(/^deferd: no TLS connection to https:[^\n]+\n$/)])
  })
})

test('a dry run without --json would show messages of this machine', async () => {
  const { code, out, err } = await remote('operator', 'queue', 'hold', '--all', '--dry-run')
  expect([code, out, err]).toEqual([64, '', expect.stringMatching(sentence)])
})

test('a certificate of an unknown authority is refused', async () => {
  const server = createServer({ cert: CERTIFICATE, key: KEY })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const host = `https://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  const { code, err } = await elsewhere.run(['--host', host, '--token-file', tokenFile('viewer'), 'status'])
  server.close()
  expect([code, err]).toEqual([69, expect.stringMatching(/^deferd: no TLS connection to [^\n]+NODE_EXTRA_CA_CERTS\n$/)])
})
