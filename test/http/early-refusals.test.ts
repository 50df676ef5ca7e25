/**
 * Answers that precede the end of their request: the client reads the whole answer, also one that writes everything before it reads; what is
 * discarded has limits.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, createServer as createSocketServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem } from '../../src/http/problem-details.ts'
import { jsonBody, streamBody } from '../../src/http/request-body.ts'
import { route } from '../../src/http/route-table.ts'
import { SocketForwarder } from '../../src/http/socket-forwarder.ts'
import { closeAfter, type DiscardLimits } from '../../src/http/staged-close.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { conversation, requestBytes, responsesIn, writeThenRead } from '../support/raw-http.ts'
import { eventLoopTurn } from '../../src/system/event-loop.ts'
import { SampleServer } from '../support/web-server.ts'

/** Paths of requests that reached a handler. */
let handled: string[] = []

/** A route that reads one piece of its body, and then has no space for more. */
const refusing = (path: string, problem: Problem) =>
  route({
    method: 'POST',
    path,
    role: 'anyone',
    body: streamBody(['text/plain'], () => 100_000_000),
    handler: async ({ body }) => {
      for await (const _ of body.bytes) throw problem
      return { kind: 'json', status: 200, value: null }
    },
  })

const ROUTES = [
  route({
    method: 'GET',
    path: '/read',
    role: 'anyone',
    handler: () => (handled.push('/read'), { kind: 'json', status: 200, value: { status: 200 } }),
  }),
  route({
    method: 'POST',
    path: '/notes',
    role: 'anyone',
    body: jsonBody(z.unknown(), 1_000),
    handler: () => ({ kind: 'json', status: 200, value: null }),
  }),
  route({ method: 'POST', path: '/rights', role: 'admin', handler: () => ({ kind: 'json', status: 200, value: null }) }),
  refusing('/full', new Problem({ ...HTTP_PROBLEMS.unavailable, status: 507 }, 'the disk is full')),
  refusing('/away', new Problem(HTTP_PROBLEMS.unavailable, 'the queue is not available')),
]

const folder = mkdtempSync(join(tmpdir(), 'deferd-early-'))
const path = join(folder, 'socket')
const port = new SampleServer({ routes: ROUTES })
const local = new SampleServer({ routes: ROUTES })
const secure = new SampleServer({ routes: ROUTES, certificate: { cert: Buffer.from(CERTIFICATE), key: Buffer.from(KEY) } })
const forwarder = new SocketForwarder(path, systemClock)
let forwarded = 0
const viewer = port.token({ role: 'viewer' })

beforeAll(async () => {
  for (const server of [local, secure]) for (const [hash, token] of port.tokens) server.tokens.set(hash, token)
  for (const server of [port, secure]) server.port = (await server.server.listen({ address: '127.0.0.1', port: 0 })).port
  await local.server.listenAt(path)
  forwarded = await forwarder.listen(0)
})
afterAll(async () => {
  await Promise.all([port, local, secure, forwarder].map((server) => server.close()))
  rmSync(folder, { recursive: true })
})

const places = {
  TCP: () => connect(port.port, '127.0.0.1'),
  'a Unix socket': () => connect(path),
  TLS: () => connectTls({ port: secure.port, host: '127.0.0.1', rejectUnauthorized: false }),
  'the port of `deferd page`': () => connect(forwarded, '127.0.0.1'),
}

const inPieces = (text: string, size: number): string[] =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size))

const PLAIN = { 'Content-Type': 'text/plain' }
const JSON_TYPE = { 'Content-Type': 'application/json' }

/** Method, path and fields of requests, with the status of their answer. */
const REFUSED: readonly (readonly [status: number, method: string, target: string, fields: Readonly<Record<string, string>>])[] = [
  [200, 'GET', '/read', {}],
  [400, 'POST', '/notes', { Host: 'localhost', ...JSON_TYPE }],
  [401, 'POST', '/rights', { Authorization: 'Bearer x' }],
  [403, 'POST', '/rights', { Authorization: `Bearer ${viewer}` }],
  [404, 'POST', '/nothing', {}],
  [405, 'POST', '/read', {}],
  [413, 'POST', '/notes', JSON_TYPE],
  [415, 'POST', '/notes', PLAIN],
  [417, 'POST', '/notes', { ...JSON_TYPE, Expect: 'more' }],
  [431, 'POST', '/notes', { X: 'x'.repeat(20_000) }],
  [503, 'POST', '/away', PLAIN],
  [507, 'POST', '/full', PLAIN],
]

/** Those that are also sent with a body that no buffer of the system holds. */
const LONG = new Set([401, 413, 431, 507])

test.each(Object.entries(places))('over %s, every refusal of a large request arrives whole, and no write fails', async (place, open) => {
  const isForwarded = place.startsWith('the port')
  const exchanges = REFUSED.flatMap(([status, method, target, fields], index) =>
    (LONG.has(status) ? [500_000, 5_000_000] : [500_000]).map(async (bytes) => {
      const request = requestBytes({ method, target, fields, body: 'x'.repeat(bytes) })
      // A client of HTTP/1.1 that keeps its connection is answered like one that does not.
      const text = index % 2 === 0 ? request : request.replace('Connection: close\r\n', '')
      const slowly = bytes < 1e6 && index % 3 === 0
      const received = await writeThenRead(open(), slowly ? inPieces(text, 50_000) : [text], slowly ? 5 : 0)
      const [response] = responsesIn(received.text)
      const isRefusal = (JSON.parse(response?.body ?? '{}') as { status?: number }).status === status
      // The command may have received all before its answer begins.
      const isClosed = response?.headers.get('connection') === 'close' || isForwarded
      return [status, response?.status, isRefusal, isClosed, received.error]
    }),
  )
  const expected = REFUSED.flatMap(([status]) =>
    Array.from({ length: LONG.has(status) ? 2 : 1 }, () => [status, status, true, true, undefined]),
  )
  expect(await Promise.all(exchanges)).toEqual(expected)
})

test('a refused CONNECT with bytes behind it is answered', async () => {
  const head = 'CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const { text, error } = await writeThenRead(places.TCP(), [head + 'x'.repeat(3_000_000)], 0)
  expect([responsesIn(text)[0]?.status, error]).toEqual([405, undefined])
})

test('a connection is kept when the whole request has arrived, whatever its handler read of it', async () => {
  const request = requestBytes({ method: 'POST', target: '/full', fields: PLAIN, body: 'x'.repeat(20_000) })
  const socket = places.TCP()
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.setEncoding('latin1').on('data', (data) => (text += String(data)))
  const answers = () => responsesIn(text).map(({ status, headers }) => [status, headers.get('connection')])
  for (const n of [1, 2, 3]) {
    socket.write(request.replace('Connection: close\r\n', ''))
    await expect.poll(answers).toEqual(Array.from({ length: n }, () => [507, 'keep-alive']))
  }
})

test('no request is taken from what is discarded', async () => {
  handled = []
  const hidden = requestBytes({ target: '/read' })
  const refused = requestBytes({ method: 'POST', target: '/nothing', fields: { 'Content-Length': '300000' } })
  const { text } = await writeThenRead(places.TCP(), [refused, 'x'.repeat(200_000), 'x'.repeat(100_000) + hidden, hidden], 20)
  expect([responsesIn(text).map(({ status }) => status), handled]).toEqual([[404], []])
})

/** A server that answers at once, and a client that has sent the header of an endless request; counts the bytes that it could send. */
async function discarding(limits: Partial<DiscardLimits>) {
  const clock = new VirtualClock()
  const server = createServer((_request, response) => {
    closeAfter(response, clock, { silence: 60_000, time: 60_000, bytes: 1e9, ...limits })
    response.end('no')
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const accepted = new Promise<Socket>((resolve) => void server.once('connection', resolve))
  onTestFinished(() => server.closeAllConnections())
  onTestFinished(() => void server.close())
  const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true })
  const closed = accepted.then((of) => new Promise((resolve) => void of.once('close', resolve)))
  const answered = new Promise((resolve) => void socket.once('end', resolve))
  socket.on('error', () => undefined)
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n')
  socket.resume()
  await answered
  return { clock, socket, closed }
}

test('a client that sends without end is cut off after a number of bytes', async () => {
  const { socket, closed } = await discarding({ bytes: 3_000_000 })
  const block = Buffer.alloc(100_000)
  const send = (): void => void socket.write(block, (error) => (error == null ? send() : undefined))
  send()
  await closed
  // The buffers of the system hold up to 12 MB.
  expect(socket.bytesWritten).toBeLessThan(30_000_000)
})

test('a client that sends slowly is cut off after a time', async () => {
  const { clock, socket, closed } = await discarding({})
  socket.write('x')
  clock.jumpTo(clock.now() + 60_000)
  await pause(50)
  expect(socket.destroyed).toBe(false)
  clock.jumpTo(clock.now() + 1)
  const timer = setInterval(() => void socket.write('x'), 5)
  onTestFinished(() => clearInterval(timer))
  await closed
})

test('a client that sends nothing more and stays is closed', async () => {
  const { closed } = await discarding({ silence: 50 })
  await closed
})

test('a client is not cut off for a silence in which the relay itself stood still', async () => {
  const { socket, closed } = await discarding({ silence: 400 })
  let isClosed = false
  void closed.then(() => (isClosed = true))
  await eventLoopTurn()
  await eventLoopTurn()
  socket.write('x')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
  for (let turn = 0; turn < 3; turn++) await eventLoopTurn()
  expect(isClosed).toBe(false)
  await closed
})

test('the raw client of the tests reads an answer after its own write has failed', async () => {
  const server = createSocketServer((socket) => void socket.on('error', () => undefined).write('answer', () => socket.destroy()))
  onTestFinished(() => void server.close())
  const own = join(folder, 'closing')
  await new Promise<void>((resolve) => void server.listen(own, resolve))
  expect(await conversation(own, 'x'.repeat(5_000_000))).toBe('answer')
})
