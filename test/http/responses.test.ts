/** Streams, events, bodies and time limits of the admin server. */
import { connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { formBody, jsonBody, streamBody } from '../../src/http/request-body.ts'
import { route, type Route } from '../../src/http/route-table.ts'
import { WebServer } from '../../src/http/web-server.ts'
import { seconds } from '../../src/system/clock.ts'
import { eventLoopTurn } from '../../src/system/event-loop.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { conversation, requestBytes, responsesIn } from '../support/raw-http.ts'
import { SampleServer, type WebServerOptions } from '../support/web-server.ts'

let server: SampleServer
afterEach(() => server.close())

async function open(routes: readonly Route[], options: WebServerOptions = {}): Promise<SampleServer> {
  server = await SampleServer.open({ routes, ...options })
  return server
}

const get = (path: string, handler: Route['handler']): Route => route({ method: 'GET', path, role: 'anyone', handler })

/** A stream route whose sender the test uses. */
function eventsRoute() {
  const sends = new Set<(event: string) => void>()
  const subscribe = (send: (event: string) => void) => {
    sends.add(send)
    return () => void sends.delete(send)
  }
  return { sends, routes: [route({ method: 'GET', path: '/events', role: 'viewer', handler: () => ({ kind: 'events', subscribe }) })] }
}

/** Opens a stream with a new token; resolves when its header has arrived. */
async function openStream(fields: Readonly<Record<string, string>>) {
  const socket = connect({ port: server.port, host: '127.0.0.1' })
  let text = ''
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  socket.setEncoding('latin1').on('data', (data) => {
    text += String(data)
    if (text.includes('\r\n\r\n')) begun.resolve()
  })
  socket.on('error', () => undefined).on('close', () => ended.resolve())
  socket.write(requestBytes({ target: '/events', fields }))
  await begun.promise
  return { socket, text: () => text, ended: ended.promise, response: () => responsesIn(text)[0] }
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

test('a stream of bytes is produced as fast as the client reads, and ends with the client', async () => {
  let [produced, isEnded] = [0, false]
  const block = 'x'.repeat(64 * 1024)
  await open([
    get('/all', () => ({
      kind: 'stream',
      contentType: 'application/x-ndjson',
      chunks: (async function* () {
        try {
          for (; ; produced++) yield block
        } finally {
          isEnded = true
        }
      })(),
    })),
  ])
  const socket = connect({ port: server.port, host: '127.0.0.1' })
  socket.on('error', () => undefined)
  socket.write(requestBytes({ target: '/all' }))
  socket.pause()
  await expect.poll(() => produced).toBeGreaterThan(1)
  let before = -1
  await expect.poll(() => [before, (before = produced)].every((count, _, [first]) => count === first), { interval: 50 }).toBe(true)
  expect(produced).toBeLessThan(500)
  socket.destroy()
  await expect.poll(() => isEnded).toBe(true)
})

test('a stream that fails before its first piece has a status; a later failure cuts the response', async () => {
  const failing = async function* (pieces: number) {
    for (let i = 0; i < pieces; i++) yield 'piece\n'
    await eventLoopTurn()
    await Promise.reject(Object.assign(new Error('the disk is full'), { exitCode: 75 }))
  }
  const stream = (pieces: number) => () => ({ kind: 'stream', contentType: 'text/plain', chunks: failing(pieces) }) as const
  await open([get('/early', stream(0)), get('/late', stream(1))])
  const early = await server.ask({ target: '/early' })
  expect([early.status, early.headers.get('retry-after'), JSON.parse(early.body)]).toMatchObject([
    503,
    '5',
    { type: '/problems/unavailable', title: 'Unavailable', status: 503, detail: 'the disk is full' },
  ])
  const late = await conversation(server.port, requestBytes({ target: '/late' }))
  expect([late.includes('piece'), late.endsWith('0\r\n\r\n')]).toEqual([true, false])
})

test('HEAD starts no stream and no events', async () => {
  const { sends, routes } = eventsRoute()
  await open([...routes, get('/all', () => ({ kind: 'stream', contentType: 'text/plain', chunks: (async function* () {})() }))])
  const fields = bearer(server.token())
  expect((await server.ask({ method: 'HEAD', target: '/events', fields })).headers.get('content-type')).toBe('text/event-stream')
  expect((await server.ask({ method: 'HEAD', target: '/all', fields })).status).toBe(200)
  expect(sends.size).toBe(0)
})

test('events reach the client as they are sent, with a comment every 15 seconds', async () => {
  const clock = new VirtualClock()
  const { sends, routes } = eventsRoute()
  await open(routes, { clock })
  const stream = await openStream(bearer(server.token()))
  for (const send of sends) send('data: {"n":1}\n\n')
  await expect.poll(stream.text).toContain('data: {"n":1}')
  clock.runNext()
  await expect.poll(stream.text).toContain(': keep-alive')
  expect(clock.monotonic()).toBe(seconds(15))
  const headers = stream.response()?.headers
  expect([headers?.get('content-type'), headers?.get('x-accel-buffering'), headers?.get('cache-control')]).toEqual([
    'text/event-stream',
    'no',
    'no-store',
  ])
  stream.socket.destroy()
  await expect.poll(() => sends.size).toBe(0)
})

test('the 51st stream is refused until another one has ended', async () => {
  const { sends, routes } = eventsRoute()
  await open(routes)
  const fields = bearer(server.token())
  const streams = await Promise.all(Array.from({ length: 50 }, () => openStream(fields)))
  const refused = await server.ask({ target: '/events', fields })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10'])
  streams[0]?.socket.destroy()
  await expect.poll(() => sends.size).toBe(49)
  const next = await openStream(fields)
  expect(next.response()?.status).toBe(200)
  for (const { socket } of [...streams, next]) socket.destroy()
})

test('a client that does not read loses events, then its stream', async () => {
  const clock = new VirtualClock()
  const { sends, routes } = eventsRoute()
  await open(routes, { clock })
  const stream = await openStream(bearer(server.token()))
  stream.socket.pause()
  const event = `data: ${'x'.repeat(60_000)}\n\n`
  // The system buffers a few megabytes for both ends of a connection.
  for (let i = 0; i < 1_000; i++) {
    for (const send of sends) send(event)
    await eventLoopTurn()
  }
  expect(sends.size).toBe(1)
  for (let n = 0; n < 3; n++) {
    clock.runNext()
    await eventLoopTurn()
  }
  await expect.poll(() => sends.size).toBe(0)
  stream.socket.destroy()
})

test('a stream ends at the logout at once, and within 15 seconds after its token was removed', async () => {
  const clock = new VirtualClock()
  const { sends, routes } = eventsRoute()
  await open(routes, { clock })
  const Cookie = await server.cookie()
  const ofSession = await openStream({ Cookie })
  const ofToken = await openStream(bearer(server.token()))
  await server.ask({ method: 'POST', target: '/logout', fields: { Cookie, 'Sec-Fetch-Site': 'same-origin' } })
  await ofSession.ended
  expect(sends.size).toBe(1)
  server.tokens.clear()
  clock.runNext()
  await ofToken.ended
  expect(clock.monotonic()).toBe(seconds(15))
})

test('forms and streamed bodies', async () => {
  const sizes: number[] = []
  await open([
    route({
      method: 'POST',
      path: '/form',
      role: 'anyone',
      body: formBody(z.strictObject({ one: z.string(), many: z.array(z.string()) }), 1_000),
      handler: ({ body }) => ({ kind: 'json', status: 200, value: body }),
    }),
    route({
      method: 'POST',
      path: '/bytes',
      role: 'anyone',
      body: streamBody(['message/rfc822'], () => 100_000),
      handler: async ({ body }) => {
        let size = 0
        for await (const chunk of body.bytes) size += chunk.length
        sizes.push(size)
        return { kind: 'json', status: 200, value: { size, type: body.contentType } }
      },
    }),
  ])
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const sent = await server.ask({ method: 'POST', target: '/form', fields: form, body: 'one=a+%26b&many=1&many=2' })
  expect(JSON.parse(sent.body)).toEqual({ one: 'a &b', many: ['1', '2'] })
  expect((await server.ask({ method: 'POST', target: '/form', fields: form, body: 'one=1&one=2&many=1&many=2' })).status).toBe(422)
  expect((await server.ask({ method: 'POST', target: '/form', fields: form, body: '__proto__=1' })).status).toBe(422)
  const mail = { 'Content-Type': 'message/rfc822' }
  expect((await server.ask({ method: 'POST', target: '/bytes', fields: mail, body: 'x'.repeat(100_000) })).status).toBe(200)
  const chunked = requestBytes({ method: 'POST', target: '/bytes', fields: { ...mail, 'Transfer-Encoding': 'chunked' } })
  const text = await conversation(server.port, `${chunked}${`8000\r\n${'x'.repeat(0x8000)}\r\n`.repeat(4)}0\r\n\r\n`)
  expect([responsesIn(text)[0]?.status, sizes]).toEqual([413, [100_000]])
})

test('a request whose header or body arrives too slowly is answered 408, and its connection closed', async () => {
  await open(
    [
      route({
        method: 'POST',
        path: '/bytes',
        role: 'anyone',
        body: streamBody(['message/rfc822'], () => 1_000),
        handler: async ({ body }) => {
          for await (const _ of body.bytes);
          return { kind: 'json', status: 200, value: {} }
        },
      }),
    ],
    { times: { header: 200, request: 400 } },
  )
  const slowly = (head: string) => {
    let timer: NodeJS.Timeout | undefined
    const text = conversation(server.port, head, { written: (socket) => (timer = setInterval(() => socket.write('a'), 50)) })
    return text.finally(() => clearInterval(timer))
  }
  const expecting = requestBytes({
    method: 'POST',
    target: '/bytes',
    fields: { 'Content-Type': 'message/rfc822', 'Content-Length': '900' },
  })
  for (const head of ['GET /bytes HTTP/1.1\r\nX: ', 'GET /bytes', expecting]) {
    const responses = responsesIn(await slowly(head))
    expect(responses.map(({ status, headers }) => [status, headers.get('connection')])).toEqual([[408, 'close']])
  }
})

test('a body that does not arrive in time is refused', async () => {
  const clock = new VirtualClock()
  await open(
    [
      route({
        method: 'POST',
        path: '/json',
        role: 'anyone',
        body: jsonBody(z.object({}), 100),
        handler: () => ({ kind: 'json', status: 200, value: {} }),
      }),
    ],
    { clock },
  )
  const request = requestBytes({ method: 'POST', target: '/json', fields: { 'Content-Type': 'application/json', 'Content-Length': '50' } })
  const asked = conversation(server.port, `${request}{`)
  await expect.poll(() => clock.runNext()).not.toBe(false)
  const [response] = responsesIn(await asked)
  expect([response?.status, clock.monotonic()]).toEqual([408, seconds(30)])
})

test('a client that leaves while its body arrives is no failure, and the server goes on', async () => {
  await open([
    route({
      method: 'POST',
      path: '/json',
      role: 'anyone',
      body: jsonBody(z.object({}), 100),
      handler: () => ({ kind: 'json', status: 200, value: {} }),
    }),
  ])
  const socket = connect({ port: server.port, host: '127.0.0.1' }).on('error', () => undefined)
  await new Promise<void>((resolve) => {
    socket.write(
      requestBytes({ method: 'POST', target: '/json', fields: { 'Content-Type': 'application/json', 'Content-Length': '50' } }),
      () => resolve(),
    )
  })
  socket.destroy()
  expect((await server.ask({ method: 'POST', target: '/json', fields: { 'Content-Type': 'application/json' }, body: '{}' })).status).toBe(
    200,
  )
  expect(server.refused).toEqual([])
})

test('closing ends streams and idle connections at once', async () => {
  const { routes } = eventsRoute()
  await open(routes)
  const stream = await openStream(bearer(server.token()))
  const idle = connect({ port: server.port, host: '127.0.0.1' })
  const ended = new Promise<void>((resolve) => void idle.on('close', () => resolve()))
  await new Promise<void>((resolve) => void idle.on('connect', () => resolve()))
  await server.close()
  await Promise.all([stream.ended, ended])
  expect(stream.text()).toMatch(/0\r\n\r\n$/)
})

test('a server that has closed leaves no timer behind, which would keep the process from ending', async () => {
  const clock = new VirtualClock()
  const web = new WebServer({ listener: (_request, response) => response.end(), clock, certificate: null })
  await web.listen({ address: '127.0.0.1', port: 0 })
  await web.close()
  expect(clock.pending).toBe(0)
})

test('a refusal whose page cannot be made is answered in problem details', async () => {
  const refusalPage = () => {
    throw new Error('the page failed')
  }
  const { port, refused } = await open([], { refusalPage })
  for (let n = 0; n < 2; n++) {
    const fields = { Accept: 'text/html', ...bearer(server.token()) }
    const [answer] = responsesIn(await conversation(port, requestBytes({ target: '/none', fields })))
    expect([answer?.status, answer?.headers.get('content-type')]).toEqual([404, 'application/problem+json'])
  }
  expect(refused.map(({ message }) => message)).toContain('the page failed')
})
