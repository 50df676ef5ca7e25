/** The end of a session after QUIT, over TCP. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { HOUR, type Clock } from '../../src/system/clock.ts'
import { systemNet } from '../../src/system/system-net.ts'
import { realClock } from '../support/real-clock.ts'
import { startSmtpdOn } from '../support/smtpd-harness.ts'

/** The system's clock without time limits: they end after an hour. */
const clock: Clock = {
  wall: realClock.wall,
  now: () => realClock.now(),
  monotonic: () => realClock.monotonic(),
  after: (delay, action) => realClock.after(delay === 0 ? 0 : HOUR, action),
  alarm: (at, action) => realClock.alarm(at, action),
  zone: (at) => realClock.zone(at),
}

async function openServer() {
  const server = await startSmtpdOn(systemNet, clock, { smtpd_listen: ['127.0.0.1:0'] })
  onTestFinished(() => server.smtpd.close(0))
  const kinds = (): readonly string[] => server.events.map(({ kind }) => kind)
  return { ...server, kinds, port: server.smtpd.listeners[0]?.port ?? 0 }
}

/** Connects without closing its side when the server does, and sends text after the greeting. */
async function openClient(port: number, text: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('latin1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'data')
  socket.write(text)
  return socket
}

async function textOf(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (more: string) => (text += more))
  await once(socket, 'end')
  return text
}

test('the server closes both sides of the connection after its reply', async () => {
  const { port, kinds } = await openServer()
  const client = await openClient(port, 'HELO x\r\n')
  await once(client, 'data')
  client.write('QUIT\r\n')
  expect(await textOf(client)).toBe('221 2.0.0 Bye\r\n')
  await expect.poll(kinds).toEqual(['connected', 'disconnected'])
  expect(client.writable).toBe(true)
})

test('what a client sends after QUIT does not cost it the replies', async () => {
  const { port, kinds } = await openServer()
  const client = await openClient(port, 'EHLO x\r\n')
  await once(client, 'data')
  client.write(`RSET\r\nQUIT\r\n${'NOOP\r\n'.repeat(50_000)}`)
  expect(await textOf(client)).toBe('250 2.0.0 Ok\r\n221 2.0.0 Bye\r\n')
  client.end()
  await expect.poll(kinds).toEqual(['connected', 'disconnected'])
})

test('a client that does not wait for the reply to QUIT has lost nothing', async () => {
  const { port, kinds } = await openServer()
  const client = await openClient(port, 'QUIT\r\n')
  client.resetAndDestroy()
  await expect.poll(kinds).toEqual(['connected', 'disconnected'])
})

test('a closed socket keeps no listener, and so no session', async () => {
  const sockets: Socket[] = []
  const accepted = (message: unknown): void => void sockets.push((message as { readonly socket: Socket }).socket)
  subscribe('net.server.socket', accepted)
  onTestFinished(() => void unsubscribe('net.server.socket', accepted))
  const { port, kinds } = await openServer()
  const quits = await openClient(port, 'QUIT\r\n')
  await textOf(quits)
  const leaves = await openClient(port, 'HELO x\r\n')
  leaves.resetAndDestroy()
  await expect.poll(() => kinds().filter((kind) => kind === 'disconnected').length).toBe(2)
  const listened = sockets.flatMap((socket) => socket.eventNames())
  expect([sockets.length, listened]).toEqual([2, []])
})
