/** The end of a server: requests that run get their responses, and no client holds it up. */
import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test, type TestContext } from 'vitest'
import { openServer } from '../../src/http/open-server.ts'
import { route } from '../../src/http/route-table.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { responsesIn } from '../support/raw-http.ts'
import { SampleServer } from '../support/web-server.ts'

const GRACE = 2_000
const asking = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

async function closable({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const clock = new VirtualClock()
  const { promise: allowed, resolve: allow } = Promise.withResolvers<void>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const routes = [
    route({ method: 'GET', path: '/read', role: 'local', handler: () => ({ kind: 'json', status: 200, value: 'read' }) }),
    route({
      method: 'GET',
      path: '/later',
      role: 'local',
      handler: async () => (begin(), await allowed, { kind: 'json', status: 200, value: 'later' }),
    }),
  ]
  const { server, connections } = openServer(routes, { clock, times: { header: 60_000, request: 60_000 } })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => connections.close(0))
  const { port } = server.address() as AddressInfo
  /** A connection that its client does not close. */
  const connected = async (bytes: string): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    socket.write(bytes)
    return socket
  }
  /** Waits until the bytes of all connections before have been read, since they are read in order. */
  const settled = async (): Promise<void> => void (await once(await connected(asking('/read')), 'data'))
  const pass = async (): Promise<void> => {
    await expect.poll(() => clock.nextAt()).toBe(clock.now() + GRACE)
    clock.runNext()
  }
  return { connections, connected, settled, allow, begun, pass }
}

test('a server that refuses connections answers the requests that run, however long they take', async (context) => {
  const { connections, connected, settled, allow, begun, pass } = await closable(context)
  const running = await connected(asking('/later'))
  const late = await connected(asking('/read').slice(0, 20))
  await begun
  await settled()
  const refused = connections.refuse(GRACE)
  late.write(asking('/read').slice(20) + asking('/read'))
  const lateAnswers = responsesIn(await text(late.setEncoding('latin1')))
  expect(lateAnswers).toMatchObject([{ status: 200, body: '"read"\n' }])
  expect(lateAnswers[0]?.headers.get('connection')).toBe('close')
  await pass()
  await refused
  await expect(connected('')).rejects.toThrow('ECONNREFUSED')
  const answer = text(running.setEncoding('latin1'))
  allow()
  expect(await answer).toContain('"later"')
})

test('its close disconnects the clients that are left, after the grace', async (context) => {
  const { connections, connected, begun, pass } = await closable(context)
  const silent = await connected('')
  const running = await connected(asking('/later'))
  await begun
  const refused = connections.refuse(GRACE)
  await pass()
  await refused
  const closed = connections.close(GRACE)
  await pass()
  await closed
  for (const socket of [silent, running]) expect(await text(socket)).toBe('')
})

test('a malformed request that arrives then is refused, and its connection closed', async (context) => {
  const { connections, connected, settled } = await closable(context)
  const socket = await connected('no')
  await settled()
  const refused = connections.refuse(0)
  const answer = text(socket.setEncoding('latin1'))
  socket.write(' request\r\n\r\n')
  expect(responsesIn(await answer)).toMatchObject([{ status: 400 }])
  await refused
})

test.concurrent.each(['', 'GET / HTTP/1.1\r\nHo', '\u0016\u0003\u0001'])(
  'a server with TLS closes while a client stays that has sent %j',
  async (bytes) => {
    const server = await SampleServer.open({ certificate: { cert: Buffer.from(CERTIFICATE), key: Buffer.from(KEY) } })
    const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => undefined)
    await once(socket, 'connect')
    socket.write(bytes, 'latin1')
    await server.close()
    socket.destroy()
  },
)
