/** Memory of the bodies that are collected: all clients together have a limit, and each has half of it. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { BodyRoom, LARGEST_COLLECTED, RequestRoom } from '../../src/http/body-room.ts'
import { jsonBody, streamBody } from '../../src/http/request-body.ts'
import { route } from '../../src/http/route-table.ts'
import { seconds } from '../../src/system/clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { conversation, requestBytes, responsesIn } from '../support/raw-http.ts'
import { SampleServer } from '../support/web-server.ts'

const MIB = 1024 * 1024

let server: SampleServer | undefined
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await server?.close()
  server = undefined
})

const open = new AbortController().signal

/** States of requests for room, by name. */
class Requests {
  readonly states = new Map<string, string>()
  readonly clock = new VirtualClock()
  readonly #room = new BodyRoom(this.clock)

  ask(request: string, client: string, mib: number, signal = open): RequestRoom {
    const room = new RequestRoom(this.#room, { name: client, signal })
    this.states.set(request, 'waits')
    room.take(mib * MIB).then(
      () => this.states.set(request, 'has room'),
      (error: unknown) => this.states.set(request, String(error)),
    )
    return room
  }

  async seen(): Promise<Readonly<Record<string, string>>> {
    await new Promise((resolve) => setImmediate(resolve))
    return Object.fromEntries(this.states)
  }
}

test('one client has half of the room, and waits for its own bodies, not for those of others', async () => {
  const requests = new Requests()
  const first = requests.ask('a1', 'a', 20)
  requests.ask('a2', 'a', 20)
  requests.ask('b', 'b', 30)
  expect(await requests.seen()).toEqual({ a1: 'has room', a2: 'waits', b: 'has room' })
  first.release()
  expect(await requests.seen()).toEqual({ a1: 'has room', a2: 'has room', b: 'has room' })
})

test('all clients together have a limit, and a large body is not passed by smaller ones', async () => {
  const requests = new Requests()
  const rooms = ['a', 'b'].map((client) => requests.ask(client, client, 25))
  requests.ask('large', 'c', 20)
  requests.ask('small', 'd', 1)
  expect(await requests.seen()).toEqual({ a: 'has room', b: 'has room', large: 'waits', small: 'waits' })
  rooms[0]?.release()
  rooms[0]?.release()
  expect(await requests.seen()).toMatchObject({ large: 'has room', small: 'has room' })
})

test('a body waits for ten seconds, and one whose client leaves makes place for the next', async () => {
  const requests = new Requests()
  const leaving = new AbortController()
  for (const client of ['a', 'b']) requests.ask(client, client, 30)
  requests.ask('left', 'c', 20, leaving.signal)
  requests.ask('late', 'd', 4)
  leaving.abort()
  expect(await requests.seen()).toMatchObject({ left: 'Error: the client has disconnected', late: 'has room' })
  requests.ask('refused', 'd', 20)
  requests.clock.runNext()
  const { refused } = await requests.seen()
  expect(refused).toBe('Problem: 64 MiB of request bodies are under way: repeat the request later, or send a stream')
  expect([requests.clock.monotonic(), requests.clock.pending]).toEqual([seconds(10), 0])
})

test('room that is granted after its request has failed is given back', async () => {
  const requests = new Requests()
  const first = requests.ask('a1', 'a', 30)
  requests.ask('a2', 'a', 30).release()
  first.release()
  requests.ask('a3', 'a', 32)
  expect(await requests.seen()).toEqual({ a1: 'has room', a2: 'has room', a3: 'has room' })
})

const JSON_TYPE = { 'Content-Type': 'application/json' }

async function sample(): Promise<SampleServer> {
  const handler = ({ body }: { readonly body: unknown }) => ({ kind: 'json', status: 200, value: JSON.stringify(body).length }) as const
  const any = z.object({}).loose()
  const stream = streamBody(['message/rfc822', 'application/json'], () => Number.MAX_SAFE_INTEGER)
  server = await SampleServer.open({
    routes: [
      route({ method: 'POST', path: '/json', role: 'anyone', body: jsonBody(any, 64 * MIB), handler }),
      route({
        method: 'POST',
        path: '/mail',
        role: 'anyone',
        body: stream,
        handler: async ({ body }) => handler({ body: (await body.collected()).length }),
      }),
    ],
  })
  return server
}

/** Begins a body and leaves it there. */
async function begin(port: number, length: number): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' }).on('error', () => undefined)
  sockets.push(socket)
  const fields = { ...JSON_TYPE, 'Content-Length': String(length), Expect: '100-continue' }
  socket.write(requestBytes({ method: 'POST', target: '/json', fields }))
  await once(socket, 'data')
  socket.write('{"x":"')
}

test('slow bodies take the room of their client, and small bodies need none', async () => {
  const one = await sample()
  const ask = (body: string) => one.ask({ method: 'POST', target: '/json', fields: JSON_TYPE, body })
  const body = (size: number) => `{"x":"${'x'.repeat(size)}"}`
  for (let n = 0; n < 2; n++) await begin(one.port, 15 * MIB)
  const large = ask(body(4 * MIB))
  expect((await ask(body(60 * 1024))).status).toBe(200)
  sockets[0]?.destroy()
  expect((await large).status).toBe(200)
})

test('a body beyond the room of a client is refused, whatever the limit of the resource', async () => {
  const { port } = await sample()
  const tooLong = { method: 'POST', fields: { ...JSON_TYPE, 'Content-Length': String(LARGEST_COLLECTED + 1) } }
  for (const [target, hint] of [
    ['/json', ''],
    ['/mail', ', and more as message/rfc822'],
  ] as const) {
    const [refused] = responsesIn(await conversation(port, requestBytes({ ...tooLong, target })))
    expect([refused?.status, JSON.parse(refused?.body ?? '')]).toMatchObject([
      413,
      { detail: `request body too large: the limit is ${LARGEST_COLLECTED} bytes${hint}` },
    ])
  }
  const head = requestBytes({ method: 'POST', target: '/mail', fields: { ...JSON_TYPE, 'Transfer-Encoding': 'chunked' } })
  const chunk = `100000\r\n${'x'.repeat(MIB)}\r\n`
  const [chunked] = responsesIn(await conversation(port, `${head}${chunk.repeat(33)}0\r\n\r\n`))
  expect(chunked?.status).toBe(413)
})
