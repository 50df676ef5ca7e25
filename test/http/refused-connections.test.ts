/** Connections of clients whose request is refused without a response of node:http: they reset it, or never close it. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { connect, type Socket } from 'node:net'
import { expect, test, type TestContext } from 'vitest'
import { requestBytes } from '../support/raw-http.ts'
import { SampleServer } from '../support/web-server.ts'

const CONNECT = 'CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n'
const EXPECTATION = requestBytes({ target: '/api/v1/whoami', fields: { Expect: 'more' } }).replace('Connection: close\r\n', '')

async function serverWithClients({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const server = await SampleServer.open({})
  onTestFinished(() => server.close())
  const accepted: Socket[] = []
  const note = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket }
    if (socket.localPort === server.port) accepted.push(socket)
  }
  subscribe('net.server.socket', note)
  onTestFinished(() => void unsubscribe('net.server.socket', note))
  /** A connection that its client does not close, after the answer has begun to arrive. */
  const answered = async (bytes: string) => {
    const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    const answer = new Promise((resolve) => void socket.once('data', resolve))
    socket.write(bytes)
    await answer
    return socket
  }
  /** Numbers of the connections that the server accepted and that it has open. */
  const counted = () => ({ accepted: accepted.length, open: accepted.filter(({ destroyed }) => !destroyed).length })
  return { server, answered, counted }
}

test.concurrent.for([
  ['CONNECT', CONNECT],
  ['an expectation', EXPECTATION],
  ['malformed bytes', 'no request\r\n\r\n'],
] as const)('%s: the refused connection is closed, whether its client stays or resets', async ([, bytes], context) => {
  const failures: unknown[] = []
  const note = (error: unknown): void => void failures.push(error)
  process.on('uncaughtExceptionMonitor', note)
  context.onTestFinished(() => void process.off('uncaughtExceptionMonitor', note))
  const { server, answered, counted } = await serverWithClients(context)
  for (let round = 0; round < 10; round++) (await answered(bytes)).resetAndDestroy()
  await expect.poll(counted).toEqual({ accepted: 10, open: 0 })
  await answered(bytes)
  await expect.poll(counted).toEqual({ accepted: 11, open: 0 })
  expect((await server.ask({ target: '/api/v1/whoami' })).status).toBe(401)
  expect(failures).toEqual([])
})

test('a server closes while a client whose CONNECT was refused stays', async (context) => {
  const { server, answered } = await serverWithClients(context)
  await answered(CONNECT)
  await server.close()
})
