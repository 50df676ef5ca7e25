/** Requests that node:http does not pass on, at every kind of listener: the client reads the whole answer, also when it has sent much more. */
import { EventEmitter, once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openServer } from '../../src/http/open-server.ts'
import { route } from '../../src/http/route-table.ts'
import { SocketForwarder } from '../../src/http/socket-forwarder.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { responsesIn, writeThenRead } from '../support/raw-http.ts'
import { SampleServer } from '../support/web-server.ts'

/** Long, because a loaded machine takes hundreds of milliseconds for three megabytes of each of fifty clients. */
const times = { header: 3_000, request: 6_000 }
const late = new EventEmitter().setMaxListeners(100)
const ROUTES = [
  route({ method: 'GET', path: '/read', role: 'anyone', handler: () => ({ kind: 'json', status: 200, value: 'read' }) }),
  route({
    method: 'GET',
    path: '/later',
    role: 'anyone',
    handler: async () => (await once(late, 'answer'), { kind: 'json', status: 200, value: 'later' }),
  }),
]

const folder = mkdtempSync(join(tmpdir(), 'deferd-unparsed-'))
const paths = { admin: join(folder, 'admin') }
const admin = new SampleServer({ routes: ROUTES, times })
const local = new SampleServer({ routes: ROUTES, times })
const secure = new SampleServer({ routes: ROUTES, times, certificate: { cert: Buffer.from(CERTIFICATE), key: Buffer.from(KEY) } })
const open = openServer(ROUTES, { clock: systemClock, times })
const forwarder = new SocketForwarder(paths.admin, systemClock, times)
const ports = { forwarder: 0, open: 0 }

const listening = (server: Server, at: object) => new Promise<void>((resolve) => void server.listen(at, resolve))

beforeAll(async () => {
  for (const server of [admin, secure]) server.port = (await server.server.listen({ address: '127.0.0.1', port: 0 })).port
  await local.server.listenAt(paths.admin)
  await listening(open.server, { port: 0, host: '127.0.0.1' })
  ports.open = (open.server.address() as AddressInfo).port
  ports.forwarder = await forwarder.listen(0)
})
afterAll(async () => {
  await Promise.all([admin, local, secure, forwarder].map((server) => server.close()))
  await open.connections.close(0)
  rmSync(folder, { recursive: true })
})

const LISTENERS: Readonly<Record<string, () => Socket>> = {
  admin_listen: () => connect(admin.port, '127.0.0.1'),
  'admin_listen with TLS': () => connectTls({ port: secure.port, host: '127.0.0.1', rejectUnauthorized: false }),
  'admin.sock': () => connect(paths.admin),
  'the port of `deferd page`': () => connect(ports.forwarder, '127.0.0.1'),
  http_listen: () => connect(ports.open, '127.0.0.1'),
}

const REST = 'x'.repeat(3_000_000)
const head = (...lines: readonly string[]): string => [...lines, '', ''].join('\r\n')

/** Bytes of a client that sends all before it reads, with the status of the answer. */
const CASES: readonly (readonly [name: string, status: number, bytes: string])[] = [
  ['malformed bytes', 400, `no request\r\n\r\n${REST}`],
  ['bytes of TLS', 400, `\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03${REST}`],
  ['two lengths', 400, head('POST /read HTTP/1.1', 'Host: localhost', 'Content-Length: 5', 'Content-Length: 6') + REST],
  ['a chunk without a size', 400, head('GET /later HTTP/1.1', 'Host: localhost', 'Transfer-Encoding: chunked') + REST],
  ['no field Host', 400, head('POST /read HTTP/1.1', 'Content-Length: 3000000') + REST],
  ['CONNECT', 405, head('CONNECT evil.example:443 HTTP/1.1', 'Host: localhost') + REST],
  ['an unknown expectation', 417, head('POST /read HTTP/1.1', 'Host: localhost', 'Expect: more', 'Content-Length: 3000000') + REST],
  ['a large header', 431, head('GET /read HTTP/1.1', 'Host: localhost', `X: ${REST}`)],
]

describe.each(Object.entries(LISTENERS))('%s', (_, dial) => {
  test.concurrent.each(CASES)('%s is answered %i', async (_name, status, bytes) => {
    const { text, error } = await writeThenRead(dial(), [bytes])
    const [response, ...others] = responsesIn(text)
    expect([response?.status, response?.headers.get('connection'), others, error]).toEqual([status, 'close', [], undefined])
    expect(JSON.parse(response?.body ?? '')).toMatchObject(
      response?.headers.get('content-type') === 'application/json' ? { kind: 'failed' } : { status },
    )
  })

  test.concurrent('a header that does not end is answered 408', async () => {
    const { text, error } = await writeThenRead(dial(), ['GET /read HTTP/1.1\r\nX: '])
    expect([responsesIn(text)[0]?.status, error]).toEqual([408, undefined])
  })

  test.concurrent('a handler that answers after the refusal of its body neither answers twice nor resets the connection', async () => {
    const socket = dial()
    socket.allowHalfOpen = true
    let [text, error]: [string, unknown] = ['', undefined]
    socket.setEncoding('latin1').on('data', (data) => (text += String(data)))
    socket.on('error', (failure) => (error = failure))
    const ended = new Promise((resolve) => void socket.once('end', resolve))
    socket.write(head('GET /later HTTP/1.1', 'Host: localhost', 'Transfer-Encoding: chunked') + 'xx\r\n')
    await ended
    late.emit('answer')
    for (let i = 0; i < 5; i++) {
      await new Promise((resolve) => void setTimeout(resolve, 10))
      socket.write(REST.slice(0, 1_000))
    }
    const closed = new Promise((resolve) => void socket.once('close', resolve))
    socket.end()
    await closed
    expect([responsesIn(text).map(({ status }) => status), error]).toEqual([[400], undefined])
  })
})
