/** Broken and hostile hosts, and the deadlines that end their sessions. */
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { MINUTE, SECOND } from '../../../src/system/clock.ts'
import { StoreUnavailable } from '../../../src/store/queue-store.ts'
import { CONTENT, SmtpAgentHarness, type WorldOptions } from '../../support/smtp-agent-harness.ts'
import type { ServerScript } from '../../support/scripted-server.ts'

const ANN = 'ann@example.net'

function world(script: ServerScript, options: WorldOptions = {}): SmtpAgentHarness {
  const made = new SmtpAgentHarness(options)
  made.mx('example.net', [10, 'mx.example.net']).host('mx.example.net', '192.0.2.1', script)
  return made
}

const inTurn = '250 far.example'

describe('replies that break grammar or sequence', () => {
  const malformed = ['2', '999 ok', '', '199 wait', '600 ok', '354 go on', 'ok', '250-ok\r\n251 ok']
  const stages = ['greeting', 'ehlo', 'mail', 'rcpt', 'data', 'dot'] as const
  const all = stages.flatMap((stage) => malformed.map((reply) => [stage, reply] as const))

  test.each(all.filter(([stage, reply]) => stage !== 'data' || !reply.startsWith('354')))(
    'at %s %j: deferred 4.5.0, and no further command is sent',
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

  test.each(['354 go\r\n250 2.0.0 thank you', '354 go\r\n354 go'])('%j to DATA: the second reply precedes the content', async (data) => {
    const far = world({ data })
    expect((await far.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.5.0' })
    expect(far.sessions[0]?.contents).toEqual([])
  })

  test('250 during the content is not success', async () => {
    const far = world({ inContent: { after: 1000, act: '250 2.0.0 enough' } })
    const chunks = [1, 2, 3].map(() => Buffer.from('x'.repeat(65_534) + '\r\n'))
    expect((await far.deliver({ to: [ANN], chunks })).of()).toMatchObject({ outcome: 'deferred', status: '4.5.0' })
    expect(far.sessions[0]?.contents).toEqual([])
  })

  test('a greeting of 250 is a protocol error', async () => {
    expect((await world({ greeting: '250 hi' }).deliver({ to: [ANN] })).of().status).toBe('4.5.0')
  })

  test('354 to DATA after all recipients were rejected: an empty message ends it, and the connection is reusable', async () => {
    const far = world({ rcpt: '550 5.1.1 no' })
    expect((await far.deliver({ to: [ANN], keep: true })).of()).toMatchObject({ outcome: 'bounced', status: '5.1.1' })
    expect(far.sessions[0]?.contents).toEqual([''])
    expect((await far.deliver({ to: [ANN], keep: true })).connectionUse).toBe(2)
  })

  test('354 to DATA after the sender was rejected: the connection is dropped without end of data', async () => {
    const far = world({ mail: '550 5.7.1 not you' })
    expect((await far.deliver({ to: [ANN] })).of()).toMatchObject({
      outcome: 'bounced',
      status: '5.7.1',
      reason: 'host mx.example.net[192.0.2.1] said: 550 5.7.1 not you (in reply to MAIL FROM command)',
    })
    expect(far.sessions[0]).toMatchObject({ contents: [], closed: true })
  })

  test('a reply of a megabyte', async () => {
    const far = world({ rcpt: `250 ${'x'.repeat(1_000_000)}` })
    expect((await far.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.5.0' })
  })
})

describe('deadlines', () => {
  test.each<[string, ServerScript, number, string]>([
    ['the greeting', { greeting: null }, 300, 'receiving the initial server greeting'],
    ['EHLO', { ehlo: null }, 300, 'performing the EHLO handshake'],
    ['MAIL', { ehlo: inTurn, mail: null }, 300, 'sending MAIL FROM'],
    ['RCPT', { ehlo: inTurn, rcpt: null }, 300, 'sending RCPT TO'],
    ['DATA', { ehlo: inTurn, data: null }, 120, 'sending DATA command'],
  ])('no reply to %s', async (_what, script, seconds, doing) => {
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

  test('no reply to the connect: 30 s', async () => {
    const far = new SmtpAgentHarness().mx('example.net', [10, 'mx.example.net']).addresses('mx.example.net', '192.0.2.1')
    far.dialOutcome('192.0.2.1', { kind: 'silent' })
    const result = await far.deliver({ to: [ANN] })
    expect(result.took).toBe(30 * SECOND)
    expect(result.of()).toMatchObject({ status: '4.4.1', reason: 'connect to mx.example.net[192.0.2.1]:25: Connection timed out' })
  })

  /** Greets, then sends one byte of a reply every minute. */
  const dripping = (far: SmtpAgentHarness) => (socket: Socket) => {
    const drip = () => {
      if (socket.destroyed) return
      socket.write('2')
      far.clock.after(MINUTE, drip)
    }
    socket.on('error', () => {})
    socket.write('220 far\r\n', drip)
  }

  test('a reply sent byte by byte does not extend the timeout', async () => {
    const far = world({})
    far.dialOutcome('192.0.2.1', { kind: 'open', accept: dripping(far) })
    const result = await far.deliver({ to: [ANN] })
    expect(result.took).toBe(300 * SECOND)
    expect(result.of()).toMatchObject({ status: '4.4.2', stage: 'ehlo' })
  })

  test('a host that is slow at every command cannot extend an attempt without limit', async () => {
    const far = world({})
    const accept = (socket: Socket) => {
      socket.on('error', () => {})
      socket.write('220 far\r\n')
      socket.on('data', () => far.clock.after(290 * SECOND, () => socket.destroyed || socket.write('250 slowly\r\n')))
    }
    far.dialOutcome('192.0.2.1', { kind: 'open', accept })
    const to = Array.from({ length: 50 }, (_, i) => `user${i}@example.net`)
    const result = await far.deliver({ to })
    expect(result.took).toBeGreaterThanOrEqual(30 * MINUTE)
    expect(result.took).toBeLessThan(31 * MINUTE)
    expect([...result.outcomes.values()].every(({ status }) => status.status === '4.4.2')).toBe(true)
  })

  test('content that is not read: 180 s without progress', async () => {
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
    far.dialOutcome('192.0.2.1', { kind: 'open', accept })
    const chunks = Array.from({ length: 64 }, () => Buffer.alloc(65_536, 'x'))
    const result = await far.deliver({ to: [ANN], chunks })
    expect(result.took).toBe(180 * SECOND)
    expect(result.of()).toMatchObject({ status: '4.4.2', stage: 'body' })
  })

  test('name servers that never reply do not hang an attempt, nor an abandoned one', async () => {
    const silent = () => new Promise<never>(() => undefined)
    const lookups = {
      lookupMx: silent,
      lookupAddresses: silent,
      lookupHost: silent,
      lookupNames: silent,
      lookupTxt: silent,
      lookupSecure: silent,
    }
    const net = { ...lookups, dial: silent, listen: silent, ownAddresses: () => [] }
    const far = new SmtpAgentHarness({ agent: { net } })
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

  test('an abandoned attempt ends at once; after the end of data the remote server may have the message', async () => {
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

describe('unreadable content', () => {
  test('missing from the start: nothing is sent, the message is corrupt', async () => {
    const far = world({})
    const result = await far.deliver({ to: [ANN], chunks: [undefined], message: { size: 100 } })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.3.0' })
    expect(result).toMatchObject({ feedback: 'none', unreadable: 'its content is not whole: 0 of 100 bytes' })
    expect(far.sessions[0]?.commands).toEqual(['EHLO relay.us.example', 'QUIT'])
  })

  test('truncated: no end of data after less than the message', async () => {
    const far = world({})
    const result = await far.deliver({ to: [ANN], chunks: [Buffer.from(CONTENT), undefined], message: { size: 1000 } })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.3.0' })
    expect(result.unreadable).toBeDefined()
    expect(far.sessions[0]).toMatchObject({ contents: [], closed: true })
  })

  test('a store that is unavailable does not make the message corrupt', async () => {
    const readChunk = () => Promise.reject(new StoreUnavailable('disk full'))
    const result = await world({}, { agent: { readChunk } }).deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.3.0', unreadChunk: 0 })
    expect(result.unreadable).toBeUndefined()
  })
})

describe('MX records that point at private addresses', () => {
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

  test.each([...inside, ...inside6])('no connection to an MX host at %s', async (address) => {
    const far = new SmtpAgentHarness().mx('example.net', [10, 'mx.example.net']).addresses('mx.example.net', address)
    expect((await far.deliver({ to: [ANN] })).of()).toMatchObject({
      outcome: 'deferred',
      status: '4.4.4',
      reason: expect.stringContaining('see smtp_allow_private_addresses') as string,
    })
    expect(far.dialled).toEqual([])
  })

  test.each(['192.0.2.1', '8.8.8.8', '172.32.0.1', '2001:db8::1', '64:ff9b::808:808'])('an MX host at %s is tried', async (address) => {
    const far = new SmtpAgentHarness().mx('example.net', [10, 'mx.example.net']).addresses('mx.example.net', address)
    await far.deliver({ to: [ANN] })
    expect(far.dialled).toEqual([address])
  })

  test('no connection to a private address literal', async () => {
    const far = new SmtpAgentHarness()
    expect((await far.deliver({ to: ['root@[127.0.0.1]'] })).of()).toMatchObject({ outcome: 'bounced', status: '5.4.4' })
    await far.deliver({ to: ['ann@[192.0.2.1]'] })
    expect(far.dialled).toEqual(['192.0.2.1'])
  })

  test('a configured next hop may have a private address', async () => {
    const far = new SmtpAgentHarness({ config: ['relayhost=[127.0.0.1]:2526'] })
    far.host('far', '127.0.0.1', {}, 2526)
    expect((await far.deliver({ to: [ANN] })).of().outcome).toBe('delivered')
    const open = new SmtpAgentHarness({ config: ['smtp_allow_private_addresses=yes'] })
    open.mx('example.net', [10, 'mx.example.net']).host('mx.example.net', '10.0.0.1')
    expect((await open.deliver({ to: [ANN] })).of().outcome).toBe('delivered')
  })
})

test.each(['a@/run/other.sock', 'a@[/run/other.sock]', 'a@example.net:2525', 'a@[192.0.2.1]:2525', 'a@[bad', 'a@x]y'])(
  '%j selects neither a local socket nor a port',
  async (address) => {
    const far = world({})
    expect((await far.deliver({ to: [address] })).of()).toMatchObject({ outcome: 'bounced', status: '5.1.2' })
    expect(far.dialled).toEqual([])
    expect(far.asked).toEqual([])
  },
)

test('a thousand MX hosts cost a bounded number of lookups and five connections', async () => {
  const far = new SmtpAgentHarness()
  const names = Array.from({ length: 1000 }, (_, i) => `mx${i}.example.net`)
  far.mx('example.net', ...names.map((name) => [10, name] as const))
  names.forEach((name, i) => far.addresses(name, `192.0.2.${i % 250}`, `2001:db8::${i + 1}`))
  await far.deliver({ to: [ANN] })
  expect(far.asked.length).toBeLessThanOrEqual(64)
  expect(far.dialled).toHaveLength(5)
})

test('addresses that would end the angle brackets are not sent', async () => {
  const far = world({})
  const result = await far.deliver({ to: [ANN, 'b@x SIZE=1', 'c@x>\r\nRCPT TO:<d@x', '"e f"@example.net'] })
  expect(result.of('b@x SIZE=1')).toMatchObject({ outcome: 'bounced', status: '5.1.3' })
  expect(result.of('c@x>\r\nRCPT TO:<d@x')).toMatchObject({ outcome: 'bounced', status: '5.1.3' })
  expect(far.sessions[0]?.commands.filter((line) => line.startsWith('RCPT'))).toEqual([`RCPT TO:<${ANN}>`, 'RCPT TO:<"e f"@example.net>'])
})
