/** Connections of clients whose request is refused without a response of node:http: they reset it, or never close it. */
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { requestBytes } from '../support/raw-http.ts'
import { SampleServer } from '../support/web-server.ts'

const CONNECT = 'CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n'
const EXPECTATION = requestBytes({ target: '/api/v1/whoami', fields: { Expect: 'more' } }).replace('Connection: close\r\n', '')

/** Number of open sockets of this process: those of the server and of its clients. */
const sockets = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length

async function serverWithClients() {
  const server = await SampleServer.open({})
  /** A connection that its client does not close, after the answer has begun to arrive. */
  const answered = async (bytes: string) => {
    const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    const answer = new Promise((resolve) => void socket.once('data', resolve))
    socket.write(bytes)
    await answer
    return socket
  }
  return { server, answered }
}

test.each([
  ['CONNECT', CONNECT],
  ['an expectation', EXPECTATION],
  ['malformed bytes', 'no request\r\n\r\n'],
])('%s: the refused connection is closed, whether its client stays or resets', { timeout: 20_000 }, async (_what, bytes) => {
  const failures: unknown[] = []
  const note = (error: unknown): void => void failures.push(error)
  process.on('uncaughtExceptionMonitor', note)
  onTestFinished(() => void process.off('uncaughtExceptionMonitor', note))
  const { server, answered } = await serverWithClients()
  onTestFinished(() => server.close())
  for (let round = 0; round < 10; round++) (await answered(bytes)).resetAndDestroy()
  await expect.poll(sockets).toBe(0)
  await answered(bytes)
  // The client's end is left.
  await expect.poll(sockets).toBe(1)
  expect((await server.ask({ target: '/api/v1/whoami' })).status).toBe(401)
  expect(failures).toEqual([])
})

test('a server closes while a client whose CONNECT was refused stays', { timeout: 20_000 }, async () => {
  const { server, answered } = await serverWithClients()
  await answered(CONNECT)
  await server.close()
})
