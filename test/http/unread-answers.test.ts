/** Clients that do not read their answers. */
import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { expect, test, type TestContext } from 'vitest'
import { openServer } from '../../src/http/open-server.ts'
import type { AuthenticatedClient } from '../../src/http/requests/requester.ts'
import { route, type Answer, type Route } from '../../src/http/route-table.ts'
import { routeListener } from '../../src/http/route-listener.ts'
import { BodyRoom } from '../../src/http/body-room.ts'
import { EventStreams } from '../../src/http/event-streams.ts'
import { newSlots } from '../../src/http/slots.ts'
import { UnreadAnswers } from '../../src/http/unread-answers.ts'
import { WebServer, type WebCertificate } from '../../src/http/web-server.ts'
import { problemAnswer } from '../../src/http/problem-answer.ts'
import { problemOf } from '../../src/http/problem-details.ts'
import { seconds } from '../../src/system/clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'

const TLS = { cert: Buffer.from(CERTIFICATE), key: Buffer.from(KEY) }
const SIZE = 16 * 1024 * 1024
/** Interval at which the servers look. */
const LOOK = seconds(5)

async function* endless(): AsyncGenerator<string> {
  for (;;) yield 'x'.repeat(1024 * 1024)
}

const ANSWERS: Readonly<Record<string, () => Answer>> = {
  whole: () => ({ kind: 'json', status: 200, value: 'x'.repeat(SIZE) }),
  stream: () => ({ kind: 'stream', contentType: 'application/x-ndjson', chunks: endless() }),
  events: () => ({ kind: 'complete-events', chunks: endless() }),
}

/** Routes of all answers, and the number of clients that have not left. */
function sampleRoutes() {
  const open = new Set<string>()
  const routes = Object.entries(ANSWERS).map(([name, answer]): Route =>
    route({
      method: 'GET',
      path: `/${name}`,
      role: 'anyone',
      handler: ({ signal }) => {
        open.add(name)
        signal.addEventListener('abort', () => open.delete(name))
        return answer()
      },
    }),
  )
  return { open, routes }
}

const COMMAND: AuthenticatedClient = { name: 'ann', role: 'local', content: true, destinations: null, address: 'local' }

type Kind = 'http' | 'https' | 'open' | 'local'

async function serve(kind: Kind, { onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const clock = new VirtualClock()
  const { open, routes } = sampleRoutes()
  const port = await (kind === 'open' ? openPort() : webPort(kind === 'https' ? TLS : null))

  async function webPort(certificate: WebCertificate | null): Promise<number> {
    const client = { address: '127.0.0.1', scheme: 'http', host: 'localhost', user: null } as const
    const listener = routeListener({
      routes,
      clock,
      admit: async () => ({ client, requester: kind === 'local' ? COMMAND : null, confirm: async () => true }),
      refusal: ({ error, requestId }) => problemAnswer(problemOf(error), requestId),
      headers: {},
      streams: new EventStreams(clock),
      slots: newSlots(clock),
      bodies: new BodyRoom(clock),
      unread: new UnreadAnswers(clock),
    })
    const web = new WebServer({ listener, clock, certificate })
    onTestFinished(() => web.close())
    return (await web.listen({ address: '127.0.0.1', port: 0 })).port
  }

  async function openPort(): Promise<number> {
    const { server, connections } = openServer(routes, { clock, times: { header: 60_000, request: 60_000 } })
    onTestFinished(() => connections.close(0))
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    return (server.address() as AddressInfo).port
  }

  /** Asks, and reads the begin of the answer only. */
  const asked = async (path: string): Promise<Socket> => {
    const at = { port, host: '127.0.0.1' }
    const socket = kind === 'https' ? connectTls({ ...at, rejectUnauthorized: false }) : connect(at)
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined)
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await once(socket, 'readable')
    return socket
  }
  /** Passes time until the next look of the server, whose timers of other intervals do not count. */
  const look = async (): Promise<void> => {
    const at = clock.monotonic() + LOOK
    while (clock.monotonic() < at && clock.runNext());
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return { open, clock, asked, look }
}

for (const kind of ['http', 'https', 'open'] as const)
  for (const answer of Object.keys(ANSWERS))
    test(`${kind}: a client that does not read its answer (${answer}) is disconnected after 30 seconds`, async (context) => {
      const { open, clock, asked, look } = await serve(kind, context)
      await asked(`/${answer}`)
      while (open.size > 0 && clock.monotonic() < seconds(300)) await look()
      expect(open.size).toBe(0)
      expect(clock.monotonic()).toBeGreaterThanOrEqual(seconds(30))
    })

test('a client that reads slowly is served', async (context) => {
  const { clock, asked, look } = await serve('http', context)
  const socket = await asked('/whole')
  let read = 0
  for (let piece: unknown = socket.read(); read < SIZE; piece = socket.read()) {
    if (!Buffer.isBuffer(piece)) {
      await once(socket, 'readable')
      continue
    }
    read += piece.length
    // The system buffers some megabytes; each of its buffers is emptied within the limit.
    if (clock.monotonic() < (read / SIZE) * seconds(120)) await look()
  }
  expect(clock.monotonic()).toBeGreaterThan(seconds(60))
})

test('a local command that was stopped reads its answer later', async (context) => {
  const { open, clock, asked } = await serve('local', context)
  await asked('/whole')
  expect(clock.pending).toBe(0)
  expect(open.size).toBe(1)
})
