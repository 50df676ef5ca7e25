/** The real Net port on loopback, with behaviour that only real sockets have. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { Listener } from '../../src/system/net.ts'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { Router } from '../../src/delivery/routing/router.ts'
import { SmtpAgent } from '../../src/delivery/smtp/smtp-agent.ts'
import { seededRandom } from '../../src/system/random.ts'
import { realClock } from '../support/real-clock.ts'
import { SystemNet } from '../../src/system/system-net.ts'
import { SmtpAgentHarness, testConfig } from '../support/smtp-agent-harness.ts'
import { ScriptedServer, type ServerScript } from '../support/scripted-server.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

async function listening(accept: Parameters<SystemNet['listen']>[1]): Promise<Listener> {
  const listener = await new SystemNet().listen({ address: '127.0.0.1', port: 0 }, (socket) => {
    closers.push(() => socket.destroy())
    accept(socket)
  })
  closers.push(() => listener.close())
  return listener
}

/** Delivers content of this many pieces to a script over TCP. */
async function deliver(accept: Parameters<SystemNet['listen']>[1], chunks: readonly Uint8Array[], ...config: string[]) {
  const { port } = await listening(accept)
  const parts = testConfig([`relayhost=[127.0.0.1]:${port}`, ...config])
  const agent = new SmtpAgent({
    config: parts,
    router: new Router(parts, new Map()),
    policies: new DestinationPolicies(parts),
    net: new SystemNet(),
    clock: realClock,
    random: seededRandom(1),
    readChunk: async (_body, index) => chunks[index],
    note: () => {},
    secured: () => {},
  })
  closers.push(() => agent.close())
  const request = new SmtpAgentHarness({ config: [`relayhost=[127.0.0.1]:${port}`] }).request({ to: ['ann@example.net'], chunks })
  const result = await agent.deliver(request, { keepConnection: false, signal: new AbortController().signal })
  if (typeof result === 'string') throw new Error('the agent has no lease that could end')
  return result
}

const outcome = (result: Awaited<ReturnType<typeof deliver>>) => {
  const [first] = result.outcomes.values()
  return { outcome: first?.outcome, ...first?.status }
}
const megabytes = (count: number) => Array.from({ length: count * 16 }, () => Buffer.alloc(65_536, 'xxxxxxxx\r\n'))

describe('over TCP', () => {
  test('three megabytes arrive complete', async () => {
    const far = new ScriptedServer('far')
    const chunks = megabytes(3)
    expect(outcome(await deliver(far.accept, chunks))).toMatchObject({ outcome: 'delivered' })
    expect(Buffer.from(far.sessions[0]?.contents[0] ?? '').length).toBeGreaterThanOrEqual(3 * 1024 * 1024)
  })

  test('and over TLS', async () => {
    const script: ServerScript = { ehlo: '250-far\r\n250-PIPELINING\r\n250 STARTTLS', starttls: '220 go' }
    const far = new ScriptedServer('far', script)
    expect(outcome(await deliver(far.accept, megabytes(1), 'smtp_tls_security_level=encrypt'))).toMatchObject({ outcome: 'delivered' })
    expect(far.sessions[0]?.secure).toBe(true)
  })

  test('and in chunks', async () => {
    const far = new ScriptedServer('far', { ehlo: '250-far\r\n250-PIPELINING\r\n250 CHUNKING' })
    expect(outcome(await deliver(far.accept, megabytes(3)))).toMatchObject({ outcome: 'delivered' })
    expect(far.sessions[0]?.commands.filter((line) => line.startsWith('BDAT'))).toHaveLength(48)
    expect(far.sessions[0]?.contents[0]?.length).toBeGreaterThanOrEqual(3 * 1024 * 1024)
  })

  test.each([
    ['a chunk', megabytes(16)],
    ['the last chunk', [Buffer.concat(megabytes(16))]],
  ])('a 2xx before the last byte of %s was sent is not success', async (_which, chunks) => {
    const result = await deliver(
      (socket) => {
        socket.on('error', () => {})
        socket.write('220 far\r\n')
        socket.on('data', (chunk) => {
          if (!String(chunk).startsWith('BDAT')) return void socket.write('250-ok\r\n250 CHUNKING\r\n')
          socket.pause()
          setTimeout(() => socket.write('250 2.0.0 thank you\r\n'), 200)
        })
      },
      [Buffer.concat(chunks), Buffer.from('end\r\n')].slice(0, chunks.length === 1 ? 1 : 2),
    )
    expect(outcome(result)).toMatchObject({ outcome: 'deferred', status: '4.5.0' })
  })

  test.each([
    ['in the middle', megabytes(16)],
    ['with the last piece under way', [Buffer.concat(megabytes(16))]],
  ])('a 2xx before the last byte was sent is not success: %s', async (_when, chunks) => {
    // Takes nothing after DATA: the content fills the buffers of the system and stays here.
    const result = await deliver((socket) => {
      socket.on('error', () => {})
      socket.write('220 far\r\n')
      socket.on('data', (chunk) => {
        if (!String(chunk).startsWith('DATA')) return void socket.write('250 ok\r\n')
        socket.pause()
        socket.write('354 go\r\n')
        setTimeout(() => socket.write('250 2.0.0 thank you\r\n'), 200)
      })
    }, chunks)
    expect(outcome(result)).toMatchObject({ outcome: 'deferred', status: '4.5.0' })
  })

  test('a connection reset during the content', async () => {
    const far: Parameters<SystemNet['listen']>[1] = (socket) => {
      let seen = 0
      socket.on('error', () => {})
      socket.write('220 far\r\n')
      socket.on('data', (chunk) => {
        seen += chunk.length
        if (seen > 500_000) socket.resetAndDestroy()
        else if (seen < 200) socket.write(String(chunk).startsWith('DATA') ? '354 go\r\n' : '250 ok\r\n')
      })
    }
    expect(outcome(await deliver(far, megabytes(4)))).toMatchObject({ outcome: 'deferred', status: '4.4.2', stage: 'body' })
  })
})

describe('the Net port', () => {
  test('a refused connection is reported', async () => {
    const listener = await listening(() => {})
    const { address, port } = listener
    await listener.close()
    await expect(new SystemNet().dial({ address, port, timeout: 1000 })).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  test('a port in use is reported', async () => {
    const { address, port } = await listening(() => {})
    await expect(new SystemNet().listen({ address, port }, () => {})).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })

  test('after close no connection is accepted, and open ones stay', async () => {
    const listener = await listening((socket) => socket.pipe(socket))
    const { address, port } = listener
    const inside = connect(port, address)
    await new Promise((resolve) => inside.once('connect', resolve))
    await listener.close()
    await expect(new SystemNet().dial({ address, port, timeout: 1000 })).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    const echo = new Promise((resolve) => inside.once('data', resolve))
    inside.write('x')
    expect(String(await echo)).toBe('x')
    inside.destroy()
  })

  test('localhost is not looked up in DNS', async () => {
    expect(await new SystemNet({ dnsServers: ['127.0.0.1:9'] }).lookupAddresses('localhost', 4)).toEqual({
      kind: 'found',
      records: ['127.0.0.1'],
    })
  })
})

/** A name server with one answer for everything. */
async function nameServer(rcode: number, records: readonly Buffer[] = [], change = (answer: Buffer) => answer): Promise<SystemNet> {
  const server: UdpSocket = createSocket('udp4')
  server.on('message', (query, from) => {
    const question = query.subarray(12, query.indexOf(0, 12) + 5)
    const header = Buffer.from(query.subarray(0, 12))
    header.writeUInt16BE(0x8180 | rcode, 2)
    header.writeUInt16BE(records.length, 6)
    header.writeUInt32BE(0, 8)
    const answers = records.map((data) => {
      const answer = Buffer.from([0xc0, 12, 0, 0, 0, 1, 0, 0, 0, 60, 0, data.length])
      query.copy(answer, 2, 12 + question.length - 4, 12 + question.length - 2)
      return change(Buffer.concat([answer, data]))
    })
    server.send(Buffer.concat([header, question, ...answers]), from.port, from.address)
  })
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve))
  closers.push(() => server.close())
  return new SystemNet({ dnsServers: [`127.0.0.1:${server.address().port}`] })
}

describe('DNS', () => {
  test('MX records, and a null MX', async () => {
    const mx = await nameServer(0, [Buffer.from([0, 10, 2, 0x6d, 0x78, 1, 0x61, 0])])
    expect(await mx.lookupMx('example.net')).toEqual({ kind: 'found', records: [{ preference: 10, exchange: 'mx.a' }] })
    const none = await nameServer(0, [Buffer.from([0, 0, 0])])
    expect(await none.lookupMx('example.net')).toEqual({ kind: 'found', records: [{ preference: 0, exchange: '' }] })
  })

  test('addresses', async () => {
    const net = await nameServer(0, [Buffer.from([192, 0, 2, 1])])
    expect(await net.lookupAddresses('mx.example.net', 4)).toEqual({ kind: 'found', records: ['192.0.2.1'] })
  })

  test.each([
    ['NXDOMAIN', 3, { kind: 'none', nxdomain: true }],
    ['no data', 0, { kind: 'none', nxdomain: false }],
    ['SERVFAIL', 2, { kind: 'failed', soft: true, reason: 'ESERVFAIL' }],
    ['REFUSED', 5, { kind: 'failed', soft: true, reason: 'EREFUSED' }],
    ['NOTIMP', 4, { kind: 'failed', soft: true, reason: 'ENOTIMP' }],
    ['FORMERR', 1, { kind: 'failed', soft: true, reason: 'EFORMERR' }],
  ])('%s', async (_what, rcode, expected) => {
    expect(await (await nameServer(rcode)).lookupMx('example.net')).toEqual(expected)
  })

  /** A CNAME in place of the queried record: the offset of the name in the question, or another name. */
  const alias =
    (...target: number[]) =>
    (answer: Buffer) => {
      answer.writeUInt16BE(5, 2)
      return Buffer.concat([answer.subarray(0, 10), Buffer.from([0, target.length, ...target])])
    }

  test.each([
    ['an alias of itself', alias(0xc0, 12)],
    ['an alias of an absent name', alias(1, 0x61, 0)],
  ])('%s has no address', async (_what, change) => {
    const net = await nameServer(0, [Buffer.alloc(4)], change)
    expect(await net.lookupAddresses('mx.example.net', 4)).toEqual({ kind: 'none', nxdomain: false })
  })

  test('an invalid DNS response is a temporary failure', async () => {
    const net = await nameServer(0, [Buffer.alloc(4)], (answer) => answer.subarray(0, 7))
    expect(await net.lookupAddresses('mx.example.net', 4)).toMatchObject({ kind: 'failed', soft: true })
  })
})
