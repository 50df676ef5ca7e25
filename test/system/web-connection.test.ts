/** Connections to web servers: which address, which error, and until when. */
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { connectToServer, startTls, type WebServer } from '../../src/system/web-connection.ts'
import { MINUTE, SECOND } from '../../src/system/clock.ts'
import type { Lookup } from '../../src/system/net.ts'
import { MemoryNet, type DialOutcome } from '../../src/testkit/virtual/memory-net.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { postReport } from '../../src/tls-reports/report-post.ts'

type Answers = Readonly<Partial<Record<4 | 6, Lookup<string> | Promise<Lookup<string>>>>>

const found = (...records: readonly string[]): Lookup<string> => ({ kind: 'found', records })
const SERVFAIL: Lookup<string> = { kind: 'failed', soft: true, reason: 'SERVFAIL' }

function world(answers: Answers, dial: (address: string) => DialOutcome = () => ({ kind: 'silent' })) {
  const clock = new VirtualClock()
  const dialled: string[] = []
  const net = new MemoryNet(clock, {
    lookupMx: () => ({ kind: 'none', nxdomain: true }),
    lookupAddresses: (_, family) => answers[family] ?? { kind: 'none', nxdomain: false },
    dial: ({ address }) => {
      dialled.push(address)
      return dial(address)
    },
  })
  const server: WebServer = {
    host: 'web.example',
    port: 443,
    names: 'dns',
    allowPrivate: false,
    remedy: 'see x',
    end: clock.monotonic() + MINUTE,
  }
  /** The result, and the seconds until it. */
  const timed = async (work: Promise<unknown>): Promise<readonly [unknown, number]> => {
    const from = clock.monotonic()
    const ended = work.then(
      (value) => [value, (clock.monotonic() - from) / SECOND] as const,
      (error: unknown) => [error instanceof Error ? error.message : error, (clock.monotonic() - from) / SECOND] as const,
    )
    await new TimeDriver(clock, { net }).runUntil(clock.now() + 10 * MINUTE)
    return ended
  }
  return { clock, net, dialled, server, timed }
}

describe('a connection', () => {
  test.each<[string, Answers, string]>([
    ['no records', {}, 'web.example has no address'],
    ['a failed look-up', { 4: SERVFAIL }, 'the look-up of web.example failed: SERVFAIL'],
    ['private addresses', { 4: found('10.0.0.1'), 6: found('fd00::1') }, 'web.example has the private address 10.0.0.1: see x'],
  ])('%s', async (_, answers, reason) => {
    const { net, clock, server, dialled, timed } = world(answers)
    expect(await timed(connectToServer(server, { net, clock }))).toEqual([reason, 0])
    expect(dialled).toEqual([])
  })

  test('is made to the first address that takes it, of those that are public', async () => {
    const answers = { 4: found('10.0.0.1', '192.0.2.1', '192.0.2.2'), 6: found('2001:db8::1') }
    const sockets: Socket[] = []
    const { net, clock, server, dialled, timed } = world(answers, (address) =>
      address === '2001:db8::1'
        ? { kind: 'open', accept: (socket) => sockets.push(socket) }
        : address === '192.0.2.1'
          ? { kind: 'silent' }
          : { kind: 'closed', code: 'ECONNREFUSED' },
    )
    expect((await timed(connectToServer(server, { net, clock })))[1]).toBe(10)
    expect(dialled).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::1'])
    expect(sockets).toHaveLength(1)
  })

  test('is tried until its end', async () => {
    const { net, clock, server, dialled, timed } = world({ 4: found('192.0.2.1', '192.0.2.2', '192.0.2.3') })
    const end = clock.monotonic() + 15 * SECOND
    const [reason, seconds] = await timed(connectToServer({ ...server, end }, { net, clock }))
    expect([seconds, dialled.length]).toEqual([15, 2])
    expect(reason).toMatch(/^cannot connect to web\.example\[192\.0\.2\.2\]: .*ETIMEDOUT/)
  })

  test('has its TLS handshake until its end, and is closed after it', async () => {
    const ended: string[] = []
    const accept = (socket: Socket): void =>
      void socket
        .resume()
        .on('error', ({ message }) => ended.push(message))
        .on('end', () => ended.push('end'))
    const { net, clock, server, timed } = world({ 4: found('192.0.2.1') }, () => ({ kind: 'open', accept }))
    const opening = connectToServer(server, { net, clock }).then((socket) => startTls(socket, server, clock))
    expect(await timed(opening)).toEqual(['no TLS with web.example: no handshake in time', 60])
    expect(ended).toHaveLength(1)
  })
})

describe('a report that is posted', () => {
  test.each<[string, Answers, DialOutcome, RegExp, number]>([
    ['the look-up fails', { 6: SERVFAIL }, { kind: 'silent' }, /^the look-up of web\.example failed: SERVFAIL$/, 0],
    ['the look-up never ends', { 4: new Promise(() => undefined) }, { kind: 'silent' }, /^no answer within 60 s$/, 60],
    ['no address answers', { 4: found('192.0.2.1', '192.0.2.2') }, { kind: 'silent' }, /^cannot connect to .*ETIMEDOUT/, 20],
    ['the server is silent', { 4: found('192.0.2.1') }, { kind: 'open', after: 9_000, accept: () => undefined }, /60 s|in time/, 60],
  ])('%s', async (_, answers, outcome, reason, seconds) => {
    const { net, clock, timed } = world(answers, () => outcome)
    expect(await timed(postReport('https://web.example/x', Buffer.from('x'), { net, clock, allowPrivate: false }))).toEqual([
      expect.stringMatching(reason),
      seconds,
    ])
  })
})
