import { once } from 'node:events'
import type { Socket } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { SMTPConnection as ServerConnection } from 'smtp-server/lib/smtp-connection.js'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { describe, expect, test } from 'vitest'
import { MINUTE, SECOND } from '../../../src/system/clock.ts'
import { TimeDriver } from '../../../src/testkit/virtual/time-driver.ts'
import { MemoryNet, type DialOutcome, type RemoteHosts } from '../../../src/testkit/virtual/memory-net.ts'
import { BEGINNING, VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'
import { eventLoopTurn } from '../../../src/system/event-loop.ts'

const HERE = { address: '127.0.0.1', port: 2525 }

function setUp(outcome: DialOutcome = { kind: 'closed', code: 'ECONNREFUSED' }) {
  const clock = new VirtualClock()
  const remote: RemoteHosts = {
    lookupMx: (domain) => ({ kind: 'found', records: [{ preference: 10, exchange: `mx.${domain}` }] }),
    lookupAddresses: () => ({ kind: 'none', nxdomain: false }),
    dial: () => outcome,
  }
  const net = new MemoryNet(clock, remote)
  return { clock, net, driver: new TimeDriver(clock, { net }) }
}

async function connected() {
  const world = setUp()
  const accepted: Socket[] = []
  await world.net.listen(HERE, (socket) => accepted.push(socket))
  const client = await world.net.dial({ ...HERE, timeout: SECOND })
  const [server] = accepted
  if (server === undefined) throw new Error('no connection was accepted')
  return { ...world, client, server }
}

const codeOf = async (socket: Socket): Promise<unknown> => {
  const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
  return error.code
}

const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await eventLoopTurn()
}

/** smtp-server without its pause of 100 ms of real time before the greeting. */
class PromptServer extends SMTPServer {
  override connect(socket: Socket, options: object) {
    const connection = new ServerConnection(this, socket, options)
    this.connections.add(connection)
    // oxlint-disable-next-line no-underscore-dangle -- the library's own name
    Object.assign(connection, { init: () => connection._setListeners(() => connection.connectionReady()) })
    connection.init()
  }
}

describe('a connection in memory', () => {
  test('knows its two ends', async () => {
    const { client, server } = await connected()
    expect([client.remoteAddress, client.remotePort, client.readyState]).toEqual(['127.0.0.1', 2525, 'open'])
    expect([server.localPort, server.remotePort]).toEqual([2525, client.localPort])
    expect(client.address()).toEqual({ address: '127.0.0.1', family: 'IPv4', port: client.localPort })
  })

  test('carries bytes in order, both ways, without time passing', async () => {
    const { client, server, clock } = await connected()
    server.on('data', (bytes: Buffer) => server.write(bytes.toString().toUpperCase()))
    const heard: string[] = []
    client.on('data', (bytes: Buffer) => heard.push(bytes.toString()))
    for (const word of ['one ', 'two ', 'three']) client.write(word)
    await turns(2)
    expect(heard.join('')).toBe('ONE TWO THREE')
    expect(clock.now()).toBe(BEGINNING)
    expect([client.bytesWritten, client.bytesRead]).toEqual([13, 13])
  })

  test('ends with FIN: sent data is read, then both ends close', async () => {
    const { client, server } = await connected()
    const closed = Promise.all([once(client, 'close'), once(server, 'close')])
    let heard = ''
    client.on('data', (bytes: Buffer) => (heard += bytes.toString()))
    server.resume()
    server.end('goodbye')
    expect(await closed).toEqual([[false], [false]])
    expect(heard).toBe('goodbye')
    expect(client.readyState).toBe('closed')
  })

  test('what was written before destroy() still arrives, then FIN', async () => {
    const { client, server } = await connected()
    let heard = ''
    client.on('data', (bytes: Buffer) => (heard += bytes.toString()))
    server.write('221 bye')
    server.destroy()
    await once(client, 'end')
    expect(heard).toBe('221 bye')
  })

  test('ends with RST: the other end gets ECONNRESET', async () => {
    const { client, server } = await connected()
    const code = codeOf(client)
    const closing = new Promise((resolve) => client.once('close', resolve))
    server.resetAndDestroy()
    expect(await code).toBe('ECONNRESET')
    expect(await closing).toBe(true)
  })

  test('sends RST for bytes to a closed end', async () => {
    const { client, server } = await connected()
    server.destroy()
    const code = codeOf(client)
    client.write('anybody there?')
    expect(await code).toBe('ECONNRESET')
  })

  test('applies backpressure while data is not read', async () => {
    const { client, server } = await connected()
    const chunk = Buffer.alloc(16_384)
    while (client.write(chunk));
    await turns(5)
    expect(client.writableNeedDrain).toBe(true)
    server.resume()
    await once(client, 'drain')
    expect(client.writableNeedDrain).toBe(false)
  })

  test('keeps what was written, even when the writer uses its buffer again', async () => {
    const { client, server } = await connected()
    const buffer = Buffer.from('first')
    client.write(buffer, () => buffer.fill('x'))
    await turns(2)
    expect((server.read() as Buffer).toString()).toBe('first')
  })

  test('has an idle timeout on the virtual clock', async () => {
    const { client, server, driver, clock } = await connected()
    const rang: number[] = []
    client.setTimeout(MINUTE, () => rang.push(clock.now() - BEGINNING))
    clock.after(50 * SECOND, () => void server.write('still here'))
    client.resume()
    await driver.runUntil(BEGINNING + 10 * MINUTE)
    expect(rang).toEqual([110 * SECOND])
  })

  test('stops the idle timeout on request, and when closed', async () => {
    const { client, server, clock } = await connected()
    client.setTimeout(MINUTE, () => expect.unreachable())
    client.setTimeout(0)
    server.setTimeout(MINUTE)
    server.destroy()
    await turns(2)
    expect(clock.pending).toBe(0)
  })
})

describe('dialling', () => {
  test('fails at once without a listener', async () => {
    const { net } = setUp()
    await expect(net.dial({ ...HERE, timeout: SECOND })).rejects.toMatchObject({
      code: 'ECONNREFUSED',
      message: 'connect ECONNREFUSED 127.0.0.1:2525',
    })
  })

  test('fails after its timeout without a reply', async () => {
    const { net, driver, clock } = setUp({ kind: 'silent' })
    const dialling = net.dial({ ...HERE, timeout: 30 * SECOND }).catch((error: unknown) => ({ error, at: clock.now() }))
    await driver.runUntil(BEGINNING + MINUTE)
    expect(await dialling).toMatchObject({ error: { code: 'ETIMEDOUT' }, at: BEGINNING + 30 * SECOND })
  })

  test('takes the configured time', async () => {
    const { net, driver, clock } = setUp({ kind: 'open', accept: () => undefined, after: 3 * SECOND })
    const dialling = net.dial({ ...HERE, timeout: 30 * SECOND }).then(() => clock.now())
    await driver.runUntil(BEGINNING + MINUTE)
    expect(await dialling).toBe(BEGINNING + 3 * SECOND)
  })

  test('reaches a listener, until it closes; a port is taken once', async () => {
    const { net } = setUp()
    const listener = await net.listen(HERE, () => undefined)
    await expect(net.listen(HERE, () => undefined)).rejects.toMatchObject({ code: 'EADDRINUSE' })
    await net.dial({ ...HERE, timeout: SECOND })
    await listener.close()
    await expect(net.dial({ ...HERE, timeout: SECOND })).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  test('a listener at port 0 gets one of its own; one on 0.0.0.0 is reached at any address', async () => {
    const { net } = setUp()
    const any = await net.listen({ address: '0.0.0.0', port: 0 }, () => undefined)
    const other = await net.listen({ address: '0.0.0.0', port: 0 }, () => undefined)
    expect(any.port).not.toBe(other.port)
    await expect(net.dialFrom('192.0.2.9', { address: '10.1.2.3', port: any.port })).resolves.toMatchObject({ localAddress: '192.0.2.9' })
    expect([net.isListening({ address: '10.1.2.3', port: any.port }), net.isListening({ address: '10.1.2.3', port: 26 })]).toEqual([
      true,
      false,
    ])
  })
})

/** The whole of an SMTP session of the two libraries, as a list of what went over the wire. */
async function session(hideStartTls: boolean) {
  const world = setUp()
  const mails: string[] = []
  const server = new PromptServer({
    authOptional: true,
    logger: false,
    hideSTARTTLS: hideStartTls,
    disableReverseLookup: true,
    onData(stream, _session, callback) {
      let text = ''
      stream.on('data', (bytes: Buffer) => (text += bytes.toString()))
      stream.on('end', () => {
        mails.push(text)
        callback(null)
      })
    },
  })
  const wire: string[] = []
  await world.net.listen(HERE, (socket) => {
    socket.on('data', (bytes: Buffer) => wire.push(bytes.toString('latin1')))
    server.connect(socket, {})
  })
  const socket = await world.net.dial({ ...HERE, timeout: SECOND })
  const connection = new SMTPConnection({ connection: socket, logger: false, tls: { rejectUnauthorized: false }, ignoreTLS: hideStartTls })
  await new Promise<void>((resolve, reject) => connection.connect((error?: Error | null) => (error ? reject(error) : resolve())))
  const info = await new Promise<{ response?: string }>((resolve, reject) =>
    connection.send({ from: 'app@us.example', to: ['ann@them.example'] }, 'Subject: hello\r\n\r\nhi\r\n', (error, sent) =>
      error ? reject(error) : resolve(sent),
    ),
  )
  connection.quit()
  await once(socket, 'close')
  return { wire, mails, info, clock: world.clock }
}

test('nodemailer and smtp-server work in memory, without a port and without time', async () => {
  const { wire, mails, info, clock } = await session(true)
  expect(mails).toEqual(['Subject: hello\r\n\r\nhi\r\n'])
  expect(info.response).toMatch(/^250 /)
  expect(wire.join('')).toMatch(/^EHLO .*\r\nMAIL FROM:<app@us.example>.*\r\nRCPT TO:<ann@them.example>\r\nDATA\r\n/)
  expect(clock.now()).toBe(BEGINNING)
})

test('nodemailer and smtp-server use TLS in memory', async () => {
  const { wire, mails } = await session(false)
  expect(wire.join('')).toContain('STARTTLS\r\n')
  expect(wire.join('')).not.toContain('MAIL FROM')
  expect(mails).toEqual(['Subject: hello\r\n\r\nhi\r\n'])
})
