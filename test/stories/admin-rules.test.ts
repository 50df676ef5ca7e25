/** Rules that hold for every route of a daemon: host, credentials, role, origin, header fields, and requests that change nothing. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { documentedRoutes } from '../../src/api/api-pages.ts'
import { openDaemonClient } from '../../src/cli/queue-client/api-client.ts'
import type { QueueView } from '../../src/queries/queue-view.ts'
import type { Causes } from '../../src/queries/counts/causes.ts'
import type { Senders } from '../../src/queries/counts/senders.ts'
import type { Now } from '../../src/queries/now.ts'
import type { Route } from '../../src/http/route-table.ts'
import { WEB_HEADERS } from '../../src/http/web-headers.ts'
import { Page } from '../../src/page/web-page.ts'
import { newSigningSecret } from '../../src/subscriptions/new-secret.ts'
import { seededRandom } from '../../src/system/random.ts'
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { AnswerCheck, type Members } from '../support/api-server.ts'
import { DEAD_HOST, PageDaemon } from '../support/page-daemon.ts'
import { conversation, requestBytes, responsesIn, type RawResponse, type RequestParts } from '../support/raw-http.ts'

const page = new Page({
  view: {} as QueueView,
  now: {} as Now,
  causes: {} as Causes,
  senders: {} as Senders,
})
const PROGRAM = join(import.meta.dirname, '../../bin/deferd.js')

/** All routes of a daemon, besides those of the login, and of the pages of problems. */
const ROUTES: readonly Route[] = [...page.routes, ...documentedRoutes()]
const GETS = ROUTES.filter(({ method }) => method === 'GET')
const CHANGES = ROUTES.filter(({ method }) => method !== 'GET')

let daemon: PageDaemon
let port: number
let admin: string
let viewer: string
/** A queue id, and the id of an operation. */
let message: string
let operation: string
/** The id of a dialogue of the message. */
let session: string

beforeAll(async () => {
  daemon = await PageDaemon.start({
    provider: { app: { mx: ['.app.example'] } },
    schedule: { app: { at: '0 0 1 1 *', do: 'flush', destinations: '*' } },
    // Refuse every question.
    dns_servers: ['127.0.0.1:9'],
  })
  port = Number(new URL(daemon.url).port)
  const client = await openDaemonClient(daemon.queueDirectory)
  const secret = newSigningSecret(seededRandom(1))
  const hook = { to: 'https://app.example/hook', types: ['schedule.failed'], destinations: [], senders: [], allowPrivate: false }
  await client?.addSubscription({ ...hook, format: 'deferd', batch: 1, name: 'app', secret, who: 'root' })
  await client?.addToken({ name: 'app', role: 'viewer', content: false, destinations: null, duration: null, who: 'root' })
  await client?.addSuppression({ scope: '*', address: 'ann@gone.example', reason: 'manual', text: null, duration: null }, 'root')
  await client?.close()
  await daemon.send([{ from: 'news@shop.example', to: 'ann@far.example' }])
  admin = await daemon.cookie('admin')
  viewer = await daemon.cookie('viewer')
  const found = await ask({ target: '/api/v1/messages', fields: { Cookie: admin } })
  message = (JSON.parse(found.body) as { readonly messages: readonly { readonly queue_id: string }[] }).messages[0]?.queue_id ?? ''
  session = await vi.waitFor(async () => {
    const { body } = await ask({ target: `/api/v1/messages/${message}`, fields: { Cookie: admin } })
    const [attempt] = (JSON.parse(body) as { readonly history: readonly { readonly session: string | null }[] }).history
    if (typeof attempt?.session !== 'string') throw new Error('no attempt has a dialogue yet')
    return attempt.session
  })
  const body = JSON.stringify({ operation: 'hold', selection: { kind: 'ids', ids: [message] } })
  const held = await ask({
    method: 'POST',
    target: '/api/v1/operations',
    fields: { ...asAdmin(), 'Content-Type': 'application/json' },
    body,
  })
  operation = String((JSON.parse(held.body) as { readonly id: number }).id)
  await ask({
    method: 'POST',
    target: '/api/v1/domain-checks',
    fields: { ...asAdmin(), 'Content-Type': 'application/json' },
    body: JSON.stringify({ domain: 'app.example' }),
  })
  await vi.waitFor(
    async () => {
      const { body: check } = await ask({ target: '/api/v1/domain-checks/app.example', fields: { Cookie: admin } })
      if ((JSON.parse(check) as { readonly state: string }).state !== 'done') throw new Error('the check goes on')
    },
    { timeout: 30_000 },
  )
})
afterAll(() => daemon.close())

const asAdmin = () => ({ Cookie: admin, 'Sec-Fetch-Site': 'same-origin' })

/** Asks for a response. Of a stream, it is the first event. */
async function ask(parts: RequestParts): Promise<RawResponse> {
  const text = await conversation(port, requestBytes({ host: `127.0.0.1:${port}`, ...parts }), {
    written: (socket) => socket.on('data', (data) => String(data).includes('\nevent: ') && socket.destroy()),
  })
  const [response] = responsesIn(text)
  if (response === undefined) throw new Error('no response')
  return response
}

/** The path of a route, with names that exist. */
const targetOf = ({ path }: Route): string =>
  path.replace(/:\w+/g, (_, at: number) => {
    if (path.slice(0, at).endsWith('/messages/')) return message
    if (path.slice(0, at).endsWith('/sessions/')) return session
    if (/\/(?:domain-checks|deliverability)\/$/.test(path.slice(0, at))) return 'app.example'
    if (path.slice(0, at).endsWith('/suppressions/')) return 'ann@far.example'
    if (/\/(?:providers|schedules|subscriptions|tokens|webhooks)\/$/.test(path.slice(0, at))) return 'app'
    return path.slice(0, at).endsWith('/operations/') ? operation : encodeURIComponent(`smtp:${DEAD_HOST}`)
  })

/** All rows of the queue, besides the clock of the queue, the counts over time and the index of mail, which the daemon changes by itself. */
function rows(): Readonly<Record<string, unknown>> {
  const db = new Database(join(daemon.queueDirectory, 'queue.db'), { readonly: true })
  try {
    const tables = db.prepare<[], string>("select name from sqlite_master where type = 'table'").pluck().all()
    const kept = tables.filter((name) => !/^(?:sqlite_.*|search_.*|unindexed|meta|traffic|series|series_delta|backlog)$/.test(name))
    return Object.fromEntries(kept.map((name) => [name, db.prepare(`select * from ${name} order by 1`).all()]))
  } finally {
    db.close()
  }
}

const nameOf = ({ method, path }: Route): string => `${method} ${path}`

const typeOf = ({ body }: RawResponse): unknown => (JSON.parse(body) as { readonly type: string }).type

test('there are screens, files and resources, and routes that change something', () => {
  expect(GETS.length).toBeGreaterThan(30)
  expect(CHANGES.length).toBeGreaterThan(10)
})

test('every route is refused under another host, before anything else', async () => {
  for (const route of ROUTES) {
    const refused = await ask({ method: route.method, target: targetOf(route), host: 'evil.example', fields: asAdmin() })
    expect([refused.status, typeOf(refused)], nameOf(route)).toEqual([421, '/problems/wrong-host'])
    expect(refused.body, nameOf(route)).not.toContain(message)
  }
})

test('every route but the files of the page needs credentials, and says which', async () => {
  for (const route of ROUTES.filter(({ path }) => !path.startsWith('/static/'))) {
    const refused = await ask({ method: route.method, target: targetOf(route) })
    expect([refused.status, typeOf(refused), refused.headers.get('www-authenticate')], nameOf(route)).toEqual([
      401,
      '/problems/unauthenticated',
      'Bearer realm="deferd"',
    ])
    expect(refused.body, nameOf(route)).not.toContain(message)
  }
})

test('every change is refused to a viewer and to pages of other sites, and nothing is changed', async () => {
  const before = rows()
  for (const route of CHANGES) {
    const { method, body } = route
    const type: Readonly<Record<string, string>> = body === undefined ? {} : { 'Content-Type': body.types[0] ?? '' }
    const statusOf = async (fields: Readonly<Record<string, string>>) =>
      (await ask({ method, target: targetOf(route), fields: { ...type, ...fields } })).status
    // Plans of retry policies change nothing: a viewer may ask for them, and sends no policy here.
    expect(await statusOf({ Cookie: viewer, 'Sec-Fetch-Site': 'same-origin' }), nameOf(route)).toBe(route.role === 'viewer' ? 400 : 403)
    for (const other of [{ 'Sec-Fetch-Site': 'cross-site' }, { Origin: 'http://evil.example' }, {}])
      expect(await statusOf({ Cookie: admin, ...other }), `${nameOf(route)} ${JSON.stringify(other)}`).toBe(403)
  }
  expect(rows()).toEqual(before)
})

/** Queries of screens that need one. */
const QUERIES = new Map([
  ['/operations/new', '?operation=delete&scope=filter&sender=news@shop.example'],
  ['/webhooks/:name/replay', '?events=waiting'],
  ['/suppressions/remove', '?scope=*&address=ann@gone.example'],
  ['/suppressions/resume', '?scope=shop.example'],
  ['/quotas/reset', '?key=app@shop.example&quota=app'],
  ['/history/resend', '?sender=news@shop.example'],
  ['/history/erase', '?sender=news@shop.example'],
])

test('no GET and no HEAD changes anything, and every response has the header fields', async () => {
  const before = rows()
  const statuses = new Map<string, number>()
  for (const route of GETS)
    for (const [method, accept] of [
      ['GET', 'text/html'],
      ['GET', 'application/x-ndjson'],
      ['HEAD', 'text/html'],
    ] as const) {
      const target = `${targetOf(route)}${QUERIES.get(route.path) ?? ''}`
      const { status, headers } = await ask({ method, target, fields: { Cookie: admin, Accept: accept } })
      statuses.set(`${method} ${target}`, status)
      for (const [name, value] of Object.entries(WEB_HEADERS)) expect(headers.get(name), `${method} ${target}: ${name}`).toBe(value)
      expect(headers.get('cache-control'), target).toBe(
        route.path.startsWith('/static/') ? 'public, max-age=31536000, immutable' : 'no-store',
      )
    }
  expect([...statuses].filter(([target, status]) => status !== 200 && !target.endsWith('/search'))).toEqual([])
  expect(rows()).toEqual(before)
  expect(WEB_HEADERS['content-security-policy']).not.toContain('unsafe-')
})

test('every resource of a daemon answers as the OpenAPI document says', async () => {
  const answers = new AnswerCheck(documentedRoutes())
  for (const route of documentedRoutes().filter(({ method, path }) => method === 'GET' && !path.endsWith('/stream'))) {
    const target = targetOf(route)
    const { status, headers, body } = await ask({ target, fields: { Cookie: admin } })
    const type = headers.get('content-type') ?? ''
    const json = (type.endsWith('json') ? JSON.parse(body) : undefined) as Members
    answers.check('GET', target.replace('/api/v1', ''), { status, headers: new Headers({ 'content-type': type }), text: body, json })
  }
})

test('the listing as NDJSON is that of the command, byte for byte', async () => {
  await daemon.send(
    Array.from({ length: 30 }, (_, i) => ({ from: `"<b>${i}</b>"@shop.example`, to: `user${i}@far.example`, subject: `mail ${i}` })),
  )
  const reader = openQueueReader(daemon.queueDirectory)
  try {
    // Attempts at the dead host change the records; the listing is compared when it is at rest.
    await expect.poll(async () => (await reader.counts()).find(({ queue }) => queue === 'active')?.messages ?? 0).toBe(0)
  } finally {
    await reader.close()
  }
  const lines = await ask({ target: '/api/v1/messages', fields: { Cookie: admin, Accept: 'application/x-ndjson' } })
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, 'queue', 'list', '--json'], {
    env: { ...process.env, DEFERD_QUEUE_DIRECTORY: daemon.queueDirectory },
  })
  expect(Buffer.from(lines.body, 'latin1').toString() === stdout).toBe(true)
  expect(lines.body.split('\n')).toHaveLength(32)
})
