/** The DNS client against a name server of the test, over UDP and TCP. */
import { createSocket, type Socket } from 'node:dgram'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { AUTHENTIC_DATA, decode, encode, streamEncode, TRUNCATED_RESPONSE, type Answer, type Packet } from 'dns-packet'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DnsClient, dnsServer } from '../../src/system/dns/dns-client.ts'
import { secureLookup } from '../../src/system/secure-answer.ts'
import { SystemNet } from '../../src/system/system-net.ts'

type Reply = Partial<Packet> & { readonly rcodeNumber?: number }

/** Opens a port for UDP that is free for TCP too. */
async function socketsOfOnePort(): Promise<{ readonly udp: Socket; readonly tcp: Server; readonly port: number }> {
  for (;;) {
    const tcp = createServer()
    await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
    const { port } = tcp.address() as AddressInfo
    const udp = createSocket('udp4')
    const isOpen = await new Promise<boolean>((resolve) => {
      udp.once('error', () => resolve(false))
      udp.bind(port, '127.0.0.1', () => resolve(true))
    })
    if (isOpen) return { udp, tcp, port }
    udp.close()
    tcp.close()
  }
}

/** Serves replies by name, `tcp:NAME` over TCP; returns the address and the questions. */
async function serve(
  replies: Readonly<Record<string, Reply | readonly Buffer[]>>,
  work: (server: string, asked: string[]) => Promise<void>,
): Promise<void> {
  const asked: string[] = []
  const packetsFor = (bytes: Buffer, over: 'udp' | 'tcp'): readonly Packet[] => {
    const { id, questions, flag_ad } = decode(bytes)
    const [question] = questions ?? []
    asked.push(`${over} ${question?.type} ${question?.name} ad=${flag_ad}`)
    const reply = replies[over === 'tcp' ? `tcp:${question?.name}` : (question?.name ?? '')]
    if (reply === undefined || Array.isArray(reply)) return []
    const { rcodeNumber = 0, flags = 0, ...more } = reply as Reply
    return [{ type: 'response', id: id ?? 0, questions: questions ?? [], ...more, flags: flags | rcodeNumber }]
  }
  const { udp, tcp, port } = await socketsOfOnePort()
  udp.on('message', (bytes, from) => {
    for (const packet of packetsFor(bytes, 'udp')) udp.send(encode(packet), from.port, from.address)
  })
  tcp.on('connection', (socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      for (const packet of packetsFor(bytes.subarray(2), 'tcp')) {
        // The answer comes in two pieces.
        const stream = streamEncode(packet)
        socket.write(stream.subarray(0, 5))
        setImmediate(() => socket.write(stream.subarray(5)))
      }
    })
  })
  try {
    await work(`127.0.0.1:${port}`, asked)
  } finally {
    udp.close()
    tcp.close()
  }
}

const mx: Answer = { type: 'MX', name: 'far.example', ttl: 60, data: { preference: 10, exchange: 'mx.far.example' } }
const tlsaData = { usage: 3, selector: 1, matchingType: 1, certificate: Buffer.alloc(32, 7) }
const tlsa: Answer = { type: 'TLSA', name: '_25._tcp.mx.far.example', ttl: 60, data: tlsaData }

describe('a question', () => {
  test('sets the AD bit and tells the one of the answer', async () => {
    const replies = {
      'far.example': { flags: AUTHENTIC_DATA, answers: [mx] },
      'plain.example': { answers: [{ ...mx, name: 'plain.example' }] },
    }
    await serve(replies, async (server, asked) => {
      const net = new SystemNet({ dnsServers: [server] })
      const records = [{ preference: 10, exchange: 'mx.far.example' }]
      expect(await net.lookupSecure('far.example', 'MX')).toEqual({ kind: 'found', records, secure: true, name: 'far.example' })
      expect(await net.lookupSecure('plain.example', 'MX')).toEqual({ kind: 'found', records, secure: false, name: 'plain.example' })
      expect(asked).toEqual(['udp MX far.example ad=true', 'udp MX plain.example ad=true'])
    })
  })

  test('is repeated over TCP when the answer is truncated', async () => {
    const replies = {
      '_25._tcp.mx.far.example': { flags: TRUNCATED_RESPONSE },
      'tcp:_25._tcp.mx.far.example': { flags: AUTHENTIC_DATA, answers: [tlsa] },
    }
    await serve(replies, async (server, asked) => {
      const found = await new SystemNet({ dnsServers: [server] }).lookupSecure('_25._tcp.mx.far.example', 'TLSA')
      const { certificate: data, ...record } = tlsaData
      expect(found).toEqual({ kind: 'found', records: [{ ...record, data }], secure: true, name: '_25._tcp.mx.far.example' })
      expect(asked.map((line) => line.split(' ')[0])).toEqual(['udp', 'tcp'])
    })
  })

  test.each([
    ['SERVFAIL', 2],
    ['REFUSED', 5],
  ])('%s is a soft failure, after three questions', async (reason, rcodeNumber) => {
    await serve({ 'far.example': { rcodeNumber } }, async (server, asked) => {
      expect(await new SystemNet({ dnsServers: [server] }).lookupSecure('far.example', 'A')).toEqual({ kind: 'failed', soft: true, reason })
      expect(asked).toHaveLength(3)
    })
  })

  test('a closed port is a soft failure', async () => {
    expect(await new DnsClient(['127.0.0.1:9']).ask('far.example', 'A')).toEqual({ failure: 'ECONNREFUSED' })
  })

  test('without servers it fails', async () => {
    expect(await new DnsClient([]).ask('far.example', 'A')).toEqual({ failure: 'no name server is configured' })
  })
})

describe('an answer', () => {
  const reply = (answers: readonly Answer[], rcode = 'NOERROR', authentic = true) => ({ rcode, authentic, answers })
  const alias = (name: string, data: string): Answer => ({ type: 'CNAME', name, ttl: 60, data })

  test('is read through its CNAME records', () => {
    const answers = [
      alias('MX.far.example', 'a.example'),
      alias('a.example', 'b.example'),
      { type: 'A' as const, name: 'b.example', ttl: 1, data: '192.0.2.1' },
    ]
    expect(secureLookup(reply(answers), 'mx.far.example', 'A')).toEqual({
      kind: 'found',
      records: ['192.0.2.1'],
      secure: true,
      name: 'b.example',
    })
    expect(secureLookup(reply(answers), 'mx.far.example', 'CNAME')).toMatchObject({ records: ['a.example'], name: 'mx.far.example' })
  })

  test('with records of other names has none', () => {
    expect(secureLookup(reply([mx]), 'other.example', 'MX')).toEqual({ kind: 'none', nxdomain: false, secure: true })
  })

  test('of a name that does not exist tells its authenticity', () => {
    expect(secureLookup(reply([], 'NXDOMAIN', false), 'far.example', 'MX')).toEqual({ kind: 'none', nxdomain: true, secure: false })
  })

  test('with a loop is a failure', () => {
    const loop = [alias('a.example', 'b.example'), alias('b.example', 'a.example')]
    expect(secureLookup(reply(loop), 'a.example', 'A')).toMatchObject({ kind: 'failed', soft: true })
  })

  test('a null MX has no exchange', () => {
    const nothing: Answer = { type: 'MX', name: 'far.example', ttl: 1, data: { preference: 0, exchange: '.' } }
    expect(secureLookup(reply([nothing]), 'far.example', 'MX')).toMatchObject({ records: [{ preference: 0, exchange: '' }] })
  })

  test('of any octets ends in an outcome', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (octets) => {
        try {
          const { answers = [] } = decode(Buffer.from(octets))
          expect(['found', 'none', 'failed']).toContain(secureLookup(reply(answers), 'far.example', 'TLSA').kind)
        } catch (error) {
          // dns-packet refuses it, and the client then waits for another packet.
          expect(error).toBeInstanceOf(Error)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

test.each([
  ['192.0.2.1', '192.0.2.1', 53],
  ['127.0.0.1:5391', '127.0.0.1', 5391],
  ['::1', '::1', 53],
  ['[::1]:5391', '::1', 5391],
])('the server %s', (text, address, port) => expect(dnsServer(text)).toEqual({ address, port }))
