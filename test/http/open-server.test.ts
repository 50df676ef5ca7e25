import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../../src/system/system-clock.ts'
import { jsonBody } from '../../src/http/request-body.ts'
import { openServer } from '../../src/http/open-server.ts'
import { route } from '../../src/http/route-table.ts'
import { conversation, responsesIn } from '../support/raw-http.ts'

const body = jsonBody(z.strictObject({ text: z.string() }), 100)
const failing = (properties: object) => Object.assign(new Error('the disk is full'), properties)

const ROUTES = [
  route({
    method: 'POST',
    path: '/echo/:name',
    role: 'local',
    body,
    handler: ({ parameters, query, body: { text } }) => ({ kind: 'json', status: 201, value: { ...parameters, text, query: [...query] } }),
  }),
  route({ method: 'GET', path: '/fails', role: 'local', handler: () => Promise.reject(failing({})) }),
  route({
    method: 'GET',
    path: '/slow',
    role: 'local',
    handler: async () => (await pause(20), { kind: 'json', status: 200, value: 'slow' }),
  }),
  route({ method: 'GET', path: '/unavailable', role: 'local', handler: () => Promise.reject(failing({ exitCode: 75 })) }),
  route({
    method: 'GET',
    path: '/lines',
    role: 'local',
    handler: () => ({
      kind: 'lines',
      produce: async (send) => {
        send({ n: 1 })
        send({ n: 2 })
        return Promise.reject(failing({ exitCode: 75 }))
      },
    }),
  }),
]

let server: Server
let base: string
beforeEach(async () => {
  server = openServer(ROUTES, { clock: systemClock, times: { header: 5_000, request: 5_000 } }).server
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(() => new Promise((resolve) => void server.close(resolve)))

const post = (path: string, content: string) =>
  fetch(`${base}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: content })

test('a handler gets the parameters of the path, the query and the body', async () => {
  const response = await post('/echo/a%20b?x=1&x=2', '{"text":"hi"}')
  expect([response.status, response.headers.get('content-type'), response.headers.get('cache-control')]).toEqual([
    201,
    'application/json',
    'no-store',
  ])
  expect(await response.text()).toBe('{"name":"a b","text":"hi","query":[["x","1"],["x","2"]]}\n')
})

test.each([
  ['an unknown path', '/nothing', '{}', 404, 'no such path: /nothing; known: /echo/:name, /fails, /slow, /unavailable, /lines'],
  ['a wrong method', '/fails', '{}', 405, 'method POST not allowed for /fails; allowed: GET, HEAD'],
  ['a body that is not JSON', '/echo/x', '{', 400, /^request refused: the body is not JSON: /],
  ['an unknown member', '/echo/x', '{"text":"","to":1}', 422, /^invalid request: \/to: /],
  [
    'a body above the limit',
    '/echo/x',
    JSON.stringify({ text: 'x'.repeat(5_000_000) }),
    413,
    'request body too large: the limit is 100 bytes',
  ],
])('%s is refused with one sentence', async (_, path, content, status, why) => {
  const response = await post(path, content)
  expect(response.status).toBe(status)
  expect(await response.json()).toEqual({ kind: 'failed', why: typeof why === 'string' ? why : expect.stringMatching(why) })
})

test('an error has the status of its exit code', async () => {
  const [failed, unavailable] = [await fetch(`${base}/fails`), await fetch(`${base}/unavailable`)]
  expect([failed.status, await failed.json()]).toEqual([500, { kind: 'failed', why: 'the disk is full' }])
  expect([unavailable.status, await unavailable.json()]).toEqual([503, { kind: 'failed', why: 'the disk is full' }])
})

test('a client that ends its direction after its requests is answered', async () => {
  const { port } = server.address() as AddressInfo
  const request = 'GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n'
  for (const count of [1, 2]) {
    const text = await conversation(port, request.repeat(count), { written: (socket) => void socket.end() })
    expect(responsesIn(text).map(({ status, body: content }) => [status, content])).toEqual(
      Array.from({ length: count }, () => [200, '"slow"\n']),
    )
  }
})

test('lines that were sent stay, and an error is the last one', async () => {
  const response = await fetch(`${base}/lines`)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/x-ndjson'])
  expect(await response.text()).toBe('{"n":1}\n{"n":2}\n{"failed":{"detail":"the disk is full","exit_code":75}}\n')
})
