/** The port of `deferd page`: requests are forwarded to a Unix socket, and fields that the socket believes are not. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { streamBody } from '../../src/http/request-body.ts'
import { route } from '../../src/http/route-table.ts'
import { SocketForwarder } from '../../src/http/socket-forwarder.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { ask, conversation, requestBytes, responsesIn } from '../support/raw-http.ts'
import { SampleServer } from '../support/web-server.ts'

let folder: string
let socket: string
let server: SampleServer
let forwarder: SocketForwarder
let port: number
let ended: boolean

const ROUTES = [
  route({
    method: 'GET',
    path: '/client',
    role: 'known',
    handler: ({ requester, client, headers }) => ({
      kind: 'json',
      status: 200,
      value: { ...requester, ...client, own: headers['x-own'] ?? null },
    }),
  }),
  route({
    method: 'POST',
    path: '/bytes',
    role: 'anyone',
    body: streamBody(['message/rfc822'], () => 10_000_000),
    handler: async ({ body }) => {
      let size = 0
      for await (const chunk of body.bytes) size += chunk.length
      return { kind: 'json', status: 200, value: size }
    },
  }),
  route({
    method: 'GET',
    path: '/events',
    role: 'anyone',
    handler: () => ({
      kind: 'events',
      subscribe: (send) => {
        send('data: 1\n\n')
        return () => void (ended = true)
      },
    }),
  }),
]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'deferd-forwarder-'))
  socket = join(folder, 'admin.sock')
  ended = false
  server = new SampleServer({ routes: ROUTES })
  await server.server.listenAt(socket)
  forwarder = new SocketForwarder(socket, systemClock)
  port = await forwarder.listen(0)
})
afterEach(async () => {
  await forwarder.close()
  await server.close()
  rmSync(folder, { recursive: true })
})

test('the socket is for its owner only', () => {
  expect((statSync(socket).mode & 0o777).toString(8)).toBe('600')
})

test('the client cannot name itself', async () => {
  const code = server.code({ role: 'viewer' })
  const form = { 'Content-Type': 'application/x-www-form-urlencoded', Origin: `http://127.0.0.1:${port}` }
  const host = `127.0.0.1:${port}`
  const login = await ask(port, { method: 'POST', target: '/login', host, fields: form, body: `code=${code}` })
  const fields = {
    Cookie: login.headers.get('set-cookie')?.split(';', 1)[0] ?? '',
    'X-Forwarded-User': 'root',
    'X-Forwarded-For': '192.0.2.1',
    'x-forwarded-proto': 'https',
    Forwarded: 'for=192.0.2.1',
    'X-Own': 'kept',
  }
  const { body } = await ask(port, { target: '/client', host, fields })
  expect(JSON.parse(body)).toMatchObject({
    name: 'page:alice',
    role: 'viewer',
    address: '127.0.0.1',
    scheme: 'http',
    host,
    user: null,
    own: 'kept',
  })
  const direct = await ask(socket, { target: '/client', host, fields })
  expect(JSON.parse(direct.body)).toMatchObject({ name: 'page:root', address: '192.0.2.1' })
})

test('hosts and repeated fields are refused as without it', async () => {
  expect((await ask(port, { target: '/client', host: 'evil.example' })).status).toBe(421)
  const repeated = requestBytes({ target: '/client', fields: [['Host', 'localhost']] })
  expect(responsesIn(await conversation(port, repeated))[0]?.status).toBe(400)
  expect((await ask(port, { target: '/client', host: null })).status).toBe(400)
  expect((await ask(port, { target: 'http://evil.example/client' })).status).toBe(421)
})

test('a request cannot hide another one', async () => {
  const hidden = 'GET /client HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-User: root\r\n\r\n'
  for (const fields of ['Content-Length: 6\r\nTransfer-Encoding: chunked', 'Transfer-Encoding: xchunked', 'Content-Length: 5, 5']) {
    const text = await conversation(
      port,
      `POST /bytes HTTP/1.1\r\nHost: localhost\r\nContent-Type: message/rfc822\r\n${fields}\r\n\r\n0\r\n\r\n${hidden}`,
    )
    expect(responsesIn(text).map(({ status }) => status)).toEqual([400])
  }
})

test('bodies pass in both forms, and no response is lost', async () => {
  const fields = { 'Content-Type': 'message/rfc822' }
  for (let i = 1; i <= 50; i++) {
    const { status, body } = await ask(port, { method: 'POST', target: '/bytes', fields, body: 'x'.repeat(i) })
    expect([status, body]).toEqual([200, `${i}\n`])
  }
  expect((await ask(port, { method: 'POST', target: '/bytes', fields, body: 'x'.repeat(3_000_000) })).body).toBe('3000000\n')
  const chunked = requestBytes({ method: 'POST', target: '/bytes', fields: { ...fields, 'Transfer-Encoding': 'chunked' } })
  expect(responsesIn(await conversation(port, `${chunked}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`))[0]?.body).toBe('5\n')
})

test('only a client of HTTP/1.1 gets 100 Continue', async () => {
  const request = requestBytes({
    method: 'POST',
    target: '/bytes',
    fields: { 'Content-Type': 'message/rfc822', Expect: '100-continue' },
    body: 'abc',
  })
  const statuses = async (bytes: string) => responsesIn(await conversation(port, bytes)).map(({ status }) => status)
  expect(await statuses(request)).toEqual([100, 200])
  expect(await statuses(request.replace('HTTP/1.1', 'HTTP/1.0'))).toEqual([200])
})

test('a stream passes at once, and ends with its client', async () => {
  const text = await conversation(port, requestBytes({ target: '/events' }), {
    written: (connection) => connection.on('data', (data) => String(data).includes('data: 1') && connection.destroy()),
  })
  expect(text).toContain('data: 1')
  await expect.poll(() => ended).toBe(true)
})

test('while the daemon does not answer, the client is told', async () => {
  await server.close()
  const { status, body, headers } = await ask(port, { target: '/client' })
  expect([status, body, headers.has('content-security-policy')]).toEqual([502, expect.stringContaining('does not answer'), true])
})
