/** Hosts that are broken or mean (reliability S57, S72–S80), and the deadlines that end what they drag out. */
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { MINUTE, SECOND } from '../../src/mail/clock.ts'
import type { Net } from '../../src/delivery/net.ts'
import { StoreUnavailable } from '../../src/queue/store.ts'
import { CONTENT, DeliveryWorld, type WorldOptions } from '../support/delivery-world.ts'
import type { FarScript } from '../support/far-server.ts'

const ANN = 'ann@example.net'

function world(script: FarScript, options: WorldOptions = {}): DeliveryWorld {
  const made = new DeliveryWorld(options)
  made.mx('example.net', [10, 'mx.example.net']).host('mx.example.net', '192.0.2.1', script)
  return made
}

const inTurn = '250 far.example'

describe('S79: replies that break grammar or sequence', () => {
  const nonsense = ['2', '999 ok', '', '199 wait', '600 ok', '354 go on', 'ok', '250-ok\r\n251 ok']
  const stages = ['greeting', 'ehlo', 'mail', 'rcpt', 'data', 'dot'] as const
  const all = stages.flatMap((stage) => nonsense.map((reply) => [stage, reply] as const))

  test.each(all.filter(([stage, reply]) => stage !== 'data' || !reply.startsWith('354')))(
    'at %s %j: deferred 4.5.0, and nothing more is said',
    async (stage, reply) => {
      for (const ehlo of [inTurn, '250-far.example\r\n250 PIPELINING']) {
        const far = world({ ehlo, [stage]: reply })
        const result = await far.deliver({ to: [ANN] })
        expect(result.of()).toMatchObject({
          outcome: 'deferred',
          status: '4.5.0',
          reason: expect.stringMatching(/^Protocol error: /) as string,
        })
        expect(far.sessions).toMatchObject([{ closed: true }])
        expect(far.sessions[0]?.commands).not.toContain('QUIT')
        expect(result.feedback).toBe('negative')
      }
    },
  )

  test.each(['354 go\r\n250 2.0.0 thank you', '354 go\r\n354 go'])('%j to DATA: the second comes before the content', async (data) => {
    const far = world({ data })
    expect((await far.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.5.0' })
    expect(far.sessions[0]?.contents).toEqual([])
  })

  test('250 in the middle of the content is no success', async () => {
    const far = world({ inContent: { after: 1000, act: '250 2.0.0 enough' } })
    const chunks = [1, 2, 3].map(() => Buffer.from('x'.repeat(65_534) + '\r\n'))
    expect((await far.deliver({ to: [ANN], chunks })).of()).toMatchObject({ outcome: 'deferred', status: '4.5.0' })
    expect(far.sessions[0]?.contents).toEqual([])
  })

  test('a greeting of 250 is none', async () => {
    expect((await world({ greeting: '250 hi' }).deliver({ to: [ANN] })).of().status).toBe('4.5.0')
  })

  test('DATA taken although everybody was refused: an empty message ends it, and the connection can be used again', async () => {
    const far = world({ rcpt: '550 5.1.1 no' })
    expect((await far.deliver({ to: [ANN], keep: true })).of()).toMatchObject({ outcome: 'bounced', status: '5.1.1' })
    expect(far.sessions[0]?.contents).toEqual([''])
    expect((await far.deliver({ to: [ANN], keep: true })).connectionUse).toBe(2)
  })

  test('DATA taken although the sender was refused: the connection is dropped without a dot', async () => {
    const far = world({ mail: '550 5.7.1 not you' })
    expect((await far.deliver({ to: [ANN] })).of()).toMatchObject({
      outcome: 'bounced',
      status: '5.7.1',
      reason: 'host mx.example.net[192.0.2.1] said: 550 5.7.1 not you (in reply to MAIL FROM command)',
    })
    expect(far.sessions[0]).toMatchObject({ contents: [], closed: true })
  })

  test('S57: a reply of a megabyte', async () => {
    const far = world({ rcpt: `250 ${'x'.repeat(1_000_000)}` })
    expect((await far.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.5.0' })
  })
})

describe('deadlines', () => {
  test.each<[string, FarScript, number, string]>([
    ['the greeting', { greeting: null }, 300, 'receiving the initial server greeting'],
    ['EHLO', { ehlo: null }, 300, 'performing the EHLO handshake'],
    ['MAIL', { ehlo: inTurn, mail: null }, 300, 'sending MAIL FROM'],
    ['RCPT', { ehlo: inTurn, rcpt: null }, 300, 'sending RCPT TO'],
    ['DATA', { ehlo: inTurn, data: null }, 120, 'sending DATA command'],
  ])('no answer to %s', async (_what, script, seconds, doing) => {
    const far = world(script)
    const result = await far.deliver({ to: [ANN] })
    expect(result.took).toBe(seconds * SECOND)
    expect(result.of()).toMatchObject({
      outcome: 'deferred',
      status: '4.4.2',
      reason: `conversation with mx.example.net[192.0.2.1] timed out while ${doing}`,
    })
    expect(result.feedback).toBe('negative')
    expect(result.possiblySent).toBeUndefined()
  })

  test('nobody answers the call: 30 s', async () => {
    const far = new DeliveryWorld().mx('example.net', [10, 'mx.example.net']).addresses('mx.example.net', '192.0.2.1')
    far.door('192.0.2.1', { kind: 'silent' })
    const result = await far.deliver({ to: [ANN] })
    expect(result.took).toBe(30 * SECOND)
    expect(result.of()).toMatchObject({ status: '4.4.1', reason: 'connect to mx.example.net[192.0.2.1]:25: Connection timed out' })
  })

  /** Greets, then says one more byte of a reply every minute. */
  const dripping = (far: DeliveryWorld) => (socket: Socket) => {
    const drip = () => {
      if (socket.destroyed) return
      socket.write('2')
      far.clock.after(MINUTE, drip)
    }
    socket.on('error', () => {})
    socket.write('220 far\r\n', drip)
  }

  test('S72: a reply that comes drop by drop is no progress', async () => {
    const far = world({})
    far.door('192.0.2.1', { kind: 'open', accept: dripping(far) })
    const result = await far.deliver({ to: [ANN] })
    expect(result.took).toBe(300 * SECOND)
    expect(result.of()).toMatchObject({ status: '4.4.2', stage: 'ehlo' })
  })

  test('S72: a host that is slow at every step does not hold an attempt for ever', async () => {
    const far = world({})
    const accept = (socket: Socket) => {
      socket.on('error', () => {})
      socket.write('220 far\r\n')
      socket.on('data', () => far.clock.after(290 * SECOND, () => socket.destroyed || socket.write('250 slowly\r\n')))
    }
    far.door('192.0.2.1', { kind: 'open', accept })
    const to = Array.from({ length: 50 }, (_, i) => `user${i}@example.net`)
    const result = await far.deliver({ to })
    expect(result.took).toBeGreaterThanOrEqual(30 * MINUTE)
    expect(result.took).toBeLessThan(31 * MINUTE)
    expect([...result.outcomes.values()].every(({ status }) => status === '4.4.2')).toBe(true)
  })

  test('content that nobody takes: 180 s without progress', async () => {
    const far = world({})
    const accept = (socket: Socket) => {
      socket.on('error', () => {})
      socket.write('220 far\r\n')
      socket.on('data', (chunk) => {
        const line = String(chunk)
        socket.write(line.startsWith('DATA') ? '354 go\r\n' : '250 ok\r\n')
        if (line.startsWith('DATA')) socket.pause()
      })
    }
    far.door('192.0.2.1', { kind: 'open', accept })
    const chunks = Array.from({ length: 64 }, () => Buffer.alloc(65_536, 'x'))
    const result = await far.deliver({ to: [ANN], chunks })
    expect(result.took).toBe(180 * SECOND)
    expect(result.of()).toMatchObject({ status: '4.4.2', stage: 'body' })
  })

  test('S76: name servers that never answer do not hold an attempt for ever, nor one that is abandoned', async () => {
    const silent = () => new Promise<never>(() => undefined)
    const net: Net = { dial: silent, lookupMx: silent, lookupAddresses: silent, listen: silent }
    const far = new DeliveryWorld({ agent: { net } })
    const result = await far.deliver({ to: [ANN] })
    // smtp_attempt_time_limit, and a little for the size of the message.
    expect(Math.round(result.took / SECOND)).toBe(30 * 60)
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.4.3', stage: 'dns' })
    expect(result.feedback).toBe('negative')
    const stop = new AbortController()
    far.clock.after(5 * SECOND, () => stop.abort())
    const abandoned = await far.deliver({ to: [ANN], signal: stop.signal })
    expect(abandoned.took).toBe(5 * SECOND)
    expect(abandoned.of()).toMatchObject({ outcome: 'deferred', status: '4.3.2', stage: 'dns' })
    expect(abandoned.feedback).toBe('none')
    expect(far.clock.pending).toBe(0)
  })

  test('an abandoned attempt ends at once; after the dot the far side may have it', async () => {
    for (const [script, possiblySent] of [
      [{ greeting: null }, undefined],
      [{ dot: null }, true],
    ] as const) {
      const far = world(script)
      const stop = new AbortController()
      far.clock.after(5 * SECOND, () => stop.abort())
      const result = await far.deliver({ to: [ANN], signal: stop.signal })
      expect(result.took).toBe(5 * SECOND)
      expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.3.2' })
      expect(result).toMatchObject({ feedback: 'none' })
      expect(result.possiblySent).toBe(possiblySent)
    }
  })
})

describe('S80: content that cannot be read', () => {
  test('missing from the start: nothing is sent, the message is to be set aside', async () => {
    const far = world({})
    const result = await far.deliver({ to: [ANN], chunks: [undefined], message: { size: 100 } })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.3.0' })
    expect(result).toMatchObject({ feedback: 'none', unreadable: 'its content is not whole: 0 of 100 bytes' })
    expect(far.sessions[0]?.commands).toEqual(['EHLO relay.us.example', 'QUIT'])
  })

  test('broken off in the middle: never a dot after less than the message', async () => {
    const far = world({})
    const result = await far.deliver({ to: [ANN], chunks: [Buffer.from(CONTENT), undefined], message: { size: 1000 } })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.3.0' })
    expect(result.unreadable).toBeDefined()
    expect(far.sessions[0]).toMatchObject({ contents: [], closed: true })
  })

  test('a store that cannot answer now sets nothing aside', async () => {
    const readBody = () => Promise.reject(new StoreUnavailable('disk full'))
    const result = await world({}, { agent: { readBody } }).deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.3.0' })
    expect(result.unreadable).toBeUndefined()
  })
})

describe('S73: DNS that leads inside', () => {
  const inside = [
    '127.0.0.1',
    '10.1.2.3',
    '169.254.169.254',
    '0.0.0.0',
    '100.64.0.1',
    '172.31.0.1',
    '192.168.1.1',
    '224.0.0.1',
    '255.255.255.255',
  ]
  const inside6 = [
    '::1',
    '::',
    '::ffff:127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b::a9fe:a9fe',
    'fe80::1',
    'fd00:ec2::254',
    'ff02::1',
    '2002:7f00:1::',
  ]

  test.each([...inside, ...inside6])('an exchanger at %s is not called', async (address) => {
    const far = new DeliveryWorld().mx('example.net', [10, 'mx.example.net']).addresses('mx.example.net', address)
    expect((await far.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'bounced', status: '5.4.4' })
    expect(far.dialled).toEqual([])
  })

  test.each(['192.0.2.1', '8.8.8.8', '172.32.0.1', '2001:db8::1', '64:ff9b::808:808'])('one at %s is', async (address) => {
    const far = new DeliveryWorld().mx('example.net', [10, 'mx.example.net']).addresses('mx.example.net', address)
    await far.deliver({ to: [ANN] })
    expect(far.dialled).toEqual([address])
  })

  test('nor is an address that a sender chose', async () => {
    const far = new DeliveryWorld()
    expect((await far.deliver({ to: ['root@[127.0.0.1]'] })).of()).toMatchObject({ outcome: 'bounced', status: '5.4.4' })
    await far.deliver({ to: ['ann@[192.0.2.1]'] })
    expect(far.dialled).toEqual(['192.0.2.1'])
  })

  test('configuration may lead anywhere', async () => {
    const far = new DeliveryWorld({ config: ['relayhost=[127.0.0.1]:2526'] })
    far.host('far', '127.0.0.1', {}, 2526)
    expect((await far.deliver({ to: [ANN] })).of().outcome).toBe('delivered')
    const open = new DeliveryWorld({ config: ['smtp_allow_private_addresses=yes'] })
    open.mx('example.net', [10, 'mx.example.net']).host('mx.example.net', '10.0.0.1')
    expect((await open.deliver({ to: [ANN] })).of().outcome).toBe('delivered')
  })
})

test.each(['a@/run/other.sock', 'a@[/run/other.sock]', 'a@example.net:2525', 'a@[192.0.2.1]:2525', 'a@[bad', 'a@x]y'])(
  '%j chooses neither a socket of this machine nor a port',
  async (address) => {
    const far = world({})
    expect((await far.deliver({ to: [address] })).of()).toMatchObject({ outcome: 'bounced', status: '5.1.2' })
    expect(far.dialled).toEqual([])
    expect(far.asked).toEqual([])
  },
)

test('S75: a thousand exchangers cost ten questions and five calls', async () => {
  const far = new DeliveryWorld()
  const names = Array.from({ length: 1000 }, (_, i) => `mx${i}.example.net`)
  far.mx('example.net', ...names.map((name) => [10, name] as const))
  names.forEach((name, i) => far.addresses(name, `192.0.2.${i % 250}`, `2001:db8::${i + 1}`))
  await far.deliver({ to: [ANN] })
  expect(far.asked.length).toBeLessThanOrEqual(10)
  expect(far.dialled).toHaveLength(5)
})

test('addresses that would break out of their brackets are never sent', async () => {
  const far = world({})
  const result = await far.deliver({ to: [ANN, 'b@x SIZE=1', 'c@x>\r\nRCPT TO:<d@x', '"e f"@example.net'] })
  expect(result.of('b@x SIZE=1')).toMatchObject({ outcome: 'bounced', status: '5.1.3' })
  expect(result.of('c@x>\r\nRCPT TO:<d@x')).toMatchObject({ outcome: 'bounced', status: '5.1.3' })
  expect(far.sessions[0]?.commands.filter((line) => line.startsWith('RCPT'))).toEqual([`RCPT TO:<${ANN}>`, 'RCPT TO:<"e f"@example.net>'])
})
