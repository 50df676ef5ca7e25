/** Searches and operations: few work at once, and no client keeps a slot by the way in which it sends or reads. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { jsonBody } from '../../src/http/request-body.ts'
import { route, type Answer, type Route, type SlotKind } from '../../src/http/route-table.ts'
import { seconds } from '../../src/system/clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { requestBytes, type RequestParts } from '../support/raw-http.ts'
import { SampleServer } from '../support/web-server.ts'

let server: SampleServer
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await server.close()
})

const DONE: Answer = { kind: 'json', status: 200, value: {} }

/** Work that ends when the test says so, or with its client. */
class Work {
  readonly running = new Set<() => void>()

  readonly route = (path: string, slots: SlotKind): Route => route({ method: 'GET', path, role: 'anyone', slots, handler: this.#handler })

  end(): void {
    for (const end of this.running) end()
  }

  readonly #handler: Route['handler'] = ({ signal }) =>
    new Promise((resolve) => {
      const end = () => {
        this.running.delete(end)
        resolve(DONE)
      }
      signal.addEventListener('abort', end)
      this.running.add(end)
    })
}

/** Sends requests without reading their answers. */
function send(count: number, parts: RequestParts): readonly Socket[] {
  const opened = Array.from({ length: count }, () => connect({ port: server.port, host: '127.0.0.1' }).on('error', () => undefined))
  for (const socket of opened) socket.pause().write(requestBytes(parts))
  sockets.push(...opened)
  return opened
}

test('four searches run at once; the fifth runs when one has ended, and is refused after two seconds', async () => {
  const clock = new VirtualClock()
  const work = new Work()
  server = await SampleServer.open({ routes: [work.route('/search', 'searches')], clock })
  const opened = send(4, { target: '/search' })
  await expect.poll(() => work.running.size).toBe(4)
  const refused = server.ask({ target: '/search' })
  await expect.poll(() => clock.runNext()).not.toBe(false)
  expect([(await refused).status, (await refused).headers.get('retry-after'), clock.monotonic()]).toEqual([503, '2', seconds(2)])
  await expect.poll(() => clock.pending).toBe(0)
  const fifth = server.ask({ target: '/search' })
  await expect.poll(() => clock.pending).toBe(1)
  opened[0]?.destroy()
  await expect.poll(() => clock.pending).toBe(0)
  await expect.poll(() => work.running.size).toBe(4)
  work.end()
  expect((await fifth).status).toBe(200)
})

test('a client that leaves while its search waits for a slot leaves the queue', async () => {
  const clock = new VirtualClock()
  const work = new Work()
  server = await SampleServer.open({ routes: [work.route('/search', 'searches')], clock })
  send(4, { target: '/search' })
  await expect.poll(() => work.running.size).toBe(4)
  const [waiting] = send(1, { target: '/search' })
  await expect.poll(() => clock.pending).toBe(1)
  waiting?.destroy()
  await expect.poll(() => clock.pending).toBe(0)
  work.end()
  const next = server.ask({ target: '/search' })
  await expect.poll(() => work.running.size).toBe(1)
  work.end()
  expect((await next).status).toBe(200)
  expect(server.refused.map(({ kind }) => kind.slug)).toEqual([])
})

test('operations do not wait for searches', async () => {
  const work = new Work()
  const operation = route({ method: 'GET', path: '/operation', role: 'anyone', slots: 'operations', handler: () => DONE })
  server = await SampleServer.open({ routes: [work.route('/search', 'searches'), operation] })
  send(8, { target: '/search' })
  await expect.poll(() => work.running.size).toBe(4)
  expect((await server.ask({ target: '/operation' })).status).toBe(200)
})

test('no slot is held while an answer is sent', async () => {
  const produced = [0, 0, 0, 0, 0, 0, 0, 0]
  let begun = 0
  const listing = async function* (n: number) {
    for (; ; produced[n]!++) yield 'x'.repeat(1024 * 1024)
  }
  const search = (path: string, handler: Route['handler']): Route =>
    route({ method: 'GET', path, role: 'anyone', slots: 'searches', handler })
  server = await SampleServer.open({
    routes: [
      search('/stream', () => ({ kind: 'stream', contentType: 'text/plain', chunks: listing(begun++) })),
      search('/large', () => ({ kind: 'text', status: 200, contentType: 'text/plain', text: 'x'.repeat(32 * 1024 * 1024) })),
      search('/small', () => DONE),
    ],
  })
  send(8, { target: '/stream' })
  await expect.poll(() => Math.min(...produced)).toBeGreaterThan(0)
  let before: readonly number[] = []
  await expect
    .poll(() => [before, (before = [...produced])].every((one) => String(one) === String(produced)), { interval: 100, timeout: 20_000 })
    .toBe(true)
  send(8, { target: '/large' })
  expect((await server.ask({ target: '/small' })).status).toBe(200)
})

test('no slot is held while a body arrives', async () => {
  const body = jsonBody(z.object({}), 100)
  server = await SampleServer.open({
    routes: [route({ method: 'POST', path: '/operation', role: 'anyone', slots: 'operations', body, handler: () => DONE })],
  })
  const fields = { 'Content-Type': 'application/json' }
  const waiting = { ...fields, 'Content-Length': '50', Expect: '100-continue' }
  const opened = send(8, { method: 'POST', target: '/operation', fields: waiting })
  // The server asks for the body.
  await Promise.all(opened.map((socket) => once(socket.resume(), 'data')))
  expect((await server.ask({ method: 'POST', target: '/operation', fields, body: '{}' })).status).toBe(200)
})
