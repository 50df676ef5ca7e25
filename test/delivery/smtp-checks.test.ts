/** The SMTP client by the book: acceptance checks 57–79 and 96, each by its number. Design §2 decides 65. */
import { describe, expect, test } from 'vitest'
import { MINUTE, SECOND } from '../../src/mail/clock.ts'
import type { FarScript } from '../support/far-server.ts'
import { DeliveryWorld, type WorldOptions } from '../support/delivery-world.ts'

const ANN = 'ann@example.net'
const BOB = 'bob@example.net'

/** A domain with exchangers of preference 10, 20, … at 192.0.2.1, 192.0.2.2, …; `null` refuses connections. */
function exchangers(scripts: readonly (FarScript | null)[], options: WorldOptions = {}): DeliveryWorld {
  const world = new DeliveryWorld(options)
  world.mx('example.net', ...scripts.map((_, i) => [10 * (i + 1), `mx${i + 1}.example.net`] as const))
  scripts.forEach((script, i) => {
    if (script === null) world.addresses(`mx${i + 1}.example.net`, `192.0.2.${i + 1}`)
    else world.host(`mx${i + 1}.example.net`, `192.0.2.${i + 1}`, script)
  })
  return world
}

const noFeature = '250 far.example'

describe('hosts', () => {
  test('57: the first exchanger refuses, the second accepts: delivered, and one line says why', async () => {
    const world = exchangers([null, {}])
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'delivered', status: '2.0.0', reason: '250 2.0.0 Ok: queued as FAR1' })
    expect(result).toMatchObject({ feedback: 'positive', relay: 'mx2.example.net[192.0.2.2]:25' })
    expect(world.notes).toEqual([expect.stringMatching(/: connect to mx1\.example\.net\[192\.0\.2\.1\]:25: Connection refused$/)])
  })

  test('58: 550 at RCPT by the first: bounced, the second is never asked', async () => {
    const world = exchangers([{ rcpt: '550 5.1.1 no such user' }, {}])
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({
      outcome: 'bounced',
      status: '5.1.1',
      reason: 'host mx1.example.net[192.0.2.1] said: 550 5.1.1 no such user (in reply to RCPT TO command)',
      reply: '550 5.1.1 no such user',
      remoteMta: 'mx1.example.net',
      stage: 'rcpt',
    })
    expect(world.dialled).toEqual(['192.0.2.1'])
    expect(result.feedback).toBe('positive')
  })

  test('59: 450 at RCPT by the first, 250 by the second: delivered in the same attempt', async () => {
    const world = exchangers([{ rcpt: '450 4.2.0 greylisted' }, {}])
    const result = await world.deliver({ to: [ANN] })
    expect(result.of().outcome).toBe('delivered')
    expect(world.sessions.map(({ host }) => host)).toEqual(['mx1.example.net', 'mx2.example.net'])
  })

  test('60: four exchangers that answer 450 at RCPT: exactly two sessions', async () => {
    const world = exchangers([1, 2, 3, 4].map(() => ({ rcpt: '450 4.2.0 later' })))
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.2.0' })
    expect(world.sessions).toHaveLength(2)
    expect(result.feedback).toBe('positive')
  })

  test('61: seven addresses that refuse: exactly five connects', async () => {
    const world = new DeliveryWorld()
    world.mx('example.net', [10, 'mx.example.net']).addresses('mx.example.net', ...[1, 2, 3, 4, 5, 6, 7].map((n) => `192.0.2.${n}`))
    const result = await world.deliver({ to: [ANN] })
    expect(world.dialled).toHaveLength(5)
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.4.1', stage: 'connect' })
    expect(result).toMatchObject({ feedback: 'negative', relay: null, hopStatus: { status: '4.4.1' } })
  })

  test('61: handshakes that fail do not use up sessions', async () => {
    const later = { rcpt: '450 later' }
    const world = exchangers([{ greeting: '421 busy' }, null, later, later, later])
    await world.deliver({ to: [ANN] })
    expect(world.dialled).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'])
  })
})

describe('greeting and EHLO', () => {
  test('62: a 554 greeting is a passing trouble', async () => {
    const result = await exchangers([{ greeting: '554 5.7.1 go away' }]).deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({
      outcome: 'deferred',
      status: '4.7.1',
      reason: 'host mx1.example.net[192.0.2.1] refused to talk to me: 554 5.7.1 go away',
    })
    expect(result.feedback).toBe('negative')
  })

  test('62: and a bounce with smtp_skip_5xx_greeting=no', async () => {
    const world = exchangers([{ greeting: '554 go away' }, {}], { config: ['smtp_skip_5xx_greeting=no'] })
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.0.0' })
    expect(result.feedback).toBe('positive')
    expect(world.dialled).toHaveLength(1)
  })

  test('63: EHLO 502, HELO 250: delivered', async () => {
    const world = exchangers([{ ehlo: '502 what?' }])
    expect((await world.deliver({ to: [ANN] })).of().outcome).toBe('delivered')
    expect(world.sessions[0]?.commands).toContain('HELO relay.us.example')
  })

  test('63: EHLO 550, HELO 550: bounced, the second exchanger is not tried', async () => {
    const world = exchangers([{ ehlo: '550 no', helo: '550 5.7.0 no' }, {}])
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.7.0' })
    expect(world.dialled).toHaveLength(1)
  })

  test('63: EHLO 421: the next exchanger', async () => {
    const world = exchangers([{ ehlo: '421 4.3.2 closing' }, {}])
    expect((await world.deliver({ to: [ANN] })).of().outcome).toBe('delivered')
    expect(world.sessions[0]?.commands).toEqual(['EHLO relay.us.example'])
  })
})

describe('replies', () => {
  test.each([
    ['550 no such user', 'bounced', '5.0.0'],
    ['550 4.1.1 x', 'bounced', '5.0.0'],
    ['451 4.7.1 x', 'deferred', '4.7.1'],
    ['552 5.2.2 full', 'bounced', '5.2.2'],
    ['450 4.2.1', 'deferred', '4.2.1'],
    ['550-5.1.1 no such\r\n550 5.1.1 user', 'bounced', '5.1.1'],
  ])('64: %j at RCPT is %s %s', async (reply, outcome, status) => {
    const result = await exchangers([{ rcpt: reply }]).deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome, status, reply: reply.replaceAll('\r\n', ' ') })
  })

  test('65: DATA answered 250 is nonsense: deferred 4.5.0 and the connection dropped (Postfix bounces 5.5.0)', async () => {
    const world = exchangers([{ data: '250 ok' }])
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({
      outcome: 'deferred',
      status: '4.5.0',
      reason: expect.stringMatching(/^Protocol error: /) as string,
    })
    expect(world.sessions[0]).toMatchObject({ closed: true, contentBytes: 0 })
    expect(world.sessions[0]?.commands).not.toContain('QUIT')
  })

  test('66: no reply to the dot: deferred 4.4.2 after 600 s, and the far side may have it', async () => {
    const world = exchangers([{ dot: null }])
    const result = await world.deliver({ to: [ANN] })
    expect(result.took).toBe(600 * SECOND)
    expect(result.of()).toMatchObject({
      outcome: 'deferred',
      status: '4.4.2',
      reason: 'conversation with mx1.example.net[192.0.2.1] timed out while sending end of data -- message may be sent more than once',
    })
    expect(result).toMatchObject({ feedback: 'negative', possiblySent: true })
  })

  test('66: or delivered by the next exchanger', async () => {
    const result = await exchangers([{ dot: null }, {}]).deliver({ to: [ANN] })
    expect(result.of().outcome).toBe('delivered')
    expect(result.possiblySent).toBe(true)
  })

  const big = 'Subject: big\r\n\r\n' + 'x'.repeat(900).concat('\r\n').repeat(200)

  test('67: the content is refused before its end and the connection closed: bounced with that reply', async () => {
    const world = exchangers([{ inContent: { after: 2000, act: { say: '552 5.3.4 too big', drop: true } } }])
    const result = await world.deliver({ to: [ANN], content: big })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.3.4', reply: '552 5.3.4 too big' })
  })

  test('67: closed without a word: deferred 4.4.2', async () => {
    const world = exchangers([{ inContent: { after: 2000, act: { drop: true } } }])
    const content = [0, 1, 2, 3].map((i) => Buffer.from(i === 0 ? big : 'x'.repeat(65_534) + '\r\n'))
    const result = await world.deliver({ to: [ANN], chunks: content })
    expect(result.of()).toMatchObject({
      outcome: 'deferred',
      status: '4.4.2',
      reason: expect.stringContaining('lost connection with') as string,
    })
    expect(result.feedback).toBe('negative')
    expect(world.sessions[0]?.contents).toEqual([])
  })

  test('68: one 550, one 250, then lost before the reply to DATA', async () => {
    const rcpt = (line: string) => (line.includes('ann') ? '550 5.1.1 no' : '250 ok')
    const world = exchangers([{ rcpt, data: { drop: true } }])
    const result = await world.deliver({ to: [ANN, BOB] })
    expect(result.of(ANN)).toMatchObject({ outcome: 'bounced', status: '5.1.1' })
    expect(result.of(BOB)).toMatchObject({
      outcome: 'deferred',
      status: '4.4.2',
      reason: 'lost connection with mx1.example.net[192.0.2.1] while sending DATA command',
    })
    expect(result.possiblySent).toBeUndefined()
  })

  test('69: a message above the SIZE of the host: bounced 5.3.4 without MAIL', async () => {
    const world = exchangers([{ ehlo: '250-far\r\n250 SIZE 1000' }, {}])
    const result = await world.deliver({ to: [ANN], content: `${'x'.repeat(998)}\r\n`.repeat(5) })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.3.4' })
    expect(world.sessions[0]?.commands).toEqual(['EHLO relay.us.example', 'QUIT'])
    expect(result.feedback).toBe('positive')
  })
})

describe('DNS', () => {
  test('70, S74: a null MX takes no mail, and nobody looks for addresses', async () => {
    const world = new DeliveryWorld().mx('example.net', [0, ''])
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.1.0', stage: 'dns' })
    expect(world.asked).toEqual(['MX example.net'])
  })

  test('70: no MX but an address: delivered there', async () => {
    const world = new DeliveryWorld().mxAnswer('example.net', { kind: 'none', nxdomain: false })
    world.host('example.net', '192.0.2.7')
    expect(await world.deliver({ to: [ANN] })).toMatchObject({ relay: 'example.net[192.0.2.7]:25', feedback: 'positive' })
  })

  test('70: NXDOMAIN: bounced 5.4.4', async () => {
    const result = await new DeliveryWorld().deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({
      outcome: 'bounced',
      status: '5.4.4',
      reason: 'Host or domain name not found. Name service error for name=example.net type=A: Host not found',
    })
    expect(result.feedback).toBe('positive')
  })

  test('71, S76: SERVFAIL for MX: deferred 4.4.3; REFUSED: bounced 5.4.3', async () => {
    const soft = new DeliveryWorld().mxAnswer('example.net', { kind: 'failed', soft: true, reason: 'ESERVFAIL' })
    const deferred = await soft.deliver({ to: [ANN] })
    expect(deferred.of()).toMatchObject({ outcome: 'deferred', status: '4.4.3' })
    expect(deferred).toMatchObject({ feedback: 'negative', hopStatus: { status: '4.4.3' } })
    const hard = new DeliveryWorld().mxAnswer('example.net', { kind: 'failed', soft: false, reason: 'EREFUSED' })
    expect((await hard.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'bounced', status: '5.4.3' })
  })

  test('71: ignore_mx_lookup_error tries the address of the domain', async () => {
    const world = new DeliveryWorld({ config: ['ignore_mx_lookup_error=yes'] })
    world.mxAnswer('example.net', { kind: 'failed', soft: true, reason: 'ESERVFAIL' }).host('example.net', '192.0.2.7')
    expect((await world.deliver({ to: [ANN] })).of().outcome).toBe('delivered')
  })

  test('72: an exchanger without address is skipped', async () => {
    const world = new DeliveryWorld().mx('example.net', [10, 'a.example.net'], [20, 'b.example.net'])
    world.host('b.example.net', '192.0.2.2')
    expect(await world.deliver({ to: [ANN] })).toMatchObject({ relay: 'b.example.net[192.0.2.2]:25' })
  })

  test('72: when it is the only one: bounced 5.4.4, or deferred 4.4.4 by smtp_defer_if_no_mx_address_found', async () => {
    const strict = new DeliveryWorld().mx('example.net', [10, 'a.example.net'])
    expect((await strict.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'bounced', status: '5.4.4' })
    const lenient = new DeliveryWorld({ config: ['smtp_defer_if_no_mx_address_found=yes'] }).mx('example.net', [10, 'a.example.net'])
    expect((await lenient.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.4.4' })
  })

  const weAre = { config: ['smtpd_listen=192.0.2.20:25'] }

  test('73: only hosts better than ourselves are tried', async () => {
    const world = new DeliveryWorld(weAre).mx('example.net', [10, 'a.example.net'], [20, 'us.example'], [30, 'c.example.net'])
    world.addresses('a.example.net', '192.0.2.1').addresses('us.example', '192.0.2.20').addresses('c.example.net', '192.0.2.3')
    const result = await world.deliver({ to: [ANN] })
    expect(world.dialled).toEqual(['192.0.2.1'])
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.4.1' })
  })

  test('73, S52: when we are the best: 5.4.6; when the best cannot be found: 4.4.4', async () => {
    const best = new DeliveryWorld(weAre).mx('example.net', [10, 'us.example']).addresses('us.example', '192.0.2.20')
    expect((await best.deliver({ to: [ANN] })).of()).toMatchObject({
      outcome: 'bounced',
      status: '5.4.6',
      reason: 'mail for example.net loops back to myself',
    })
    const next = new DeliveryWorld(weAre).mx('example.net', [10, 'a.example.net'], [20, 'us.example']).addresses('us.example', '192.0.2.20')
    expect((await next.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.4.4' })
  })

  test('73, S52: a host that calls itself by our name: 5.4.6 when it is the best, else 4.4.6', async () => {
    const mirror = { ehlo: '250 relay.us.example' }
    expect((await exchangers([mirror]).deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'bounced', status: '5.4.6' })
    expect((await exchangers([null, mirror]).deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.4.6' })
  })

  test('74: a relayhost that does not exist is our own trouble: deferred 4.3.5', async () => {
    const world = new DeliveryWorld({ config: ['relayhost=relay.example'] })
    expect((await world.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.3.5' })
  })
})

describe('everything soft, everything international', () => {
  test('77: soft_bounce keeps a refused recipient, after the second exchanger was tried', async () => {
    const world = exchangers([{ rcpt: '550 5.1.1 no' }, { rcpt: '550 5.1.1 no' }], { config: ['soft_bounce=yes'] })
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.1.1', softBounce: true })
    expect(world.dialled).toHaveLength(2)
  })

  const utf8 = '250-far\r\n250-PIPELINING\r\n250 SMTPUTF8'

  test('78: an address in UTF-8 goes to the exchanger that knows SMTPUTF8', async () => {
    const world = exchangers([{ ehlo: noFeature }, { ehlo: utf8 }])
    const result = await world.deliver({ to: ['jürgen@example.net'] })
    expect(result.of().outcome).toBe('delivered')
    expect(world.sessions[0]?.commands).toEqual(['EHLO relay.us.example', 'QUIT'])
    expect(world.sessions[1]?.commands).toContain('MAIL FROM:<app@us.example> SMTPUTF8')
  })

  test('78: and comes back when none does', async () => {
    const result = await exchangers([{}, {}]).deliver({ to: ['jürgen@example.net'] })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.6.7' })
    expect(result.feedback).toBe('positive')
  })

  test('79: 421 at RCPT, then the connection closes: its own reply for one, 4.4.2 for the others, and no failure of the site', async () => {
    const rcpt = (_line: string, nth: number) => (nth === 0 ? { say: '421 4.7.0 too many', drop: true } : null)
    const result = await exchangers([{ rcpt }]).deliver({ to: [ANN, BOB] })
    expect(result.of(ANN)).toMatchObject({ outcome: 'deferred', status: '4.7.0', reply: '421 4.7.0 too many' })
    expect(result.of(BOB)).toMatchObject({ outcome: 'deferred', status: '4.4.2' })
    expect(result).toMatchObject({ feedback: 'positive', congestion: 'late' })
  })
})

describe('kept connections', () => {
  test('96: a second delivery within two seconds uses the connection again, after RSET', async () => {
    const world = exchangers([{}])
    await world.deliver({ to: [ANN], keep: true })
    await world.driver.runUntil(world.clock.now() + SECOND)
    const second = await world.deliver({ to: [BOB], keep: true })
    expect(second).toMatchObject({ connectionUse: 2, relay: 'mx1.example.net[192.0.2.1]:25' })
    expect(world.sessions).toHaveLength(1)
    expect(world.sessions[0]?.commands.filter((line) => line === 'RSET')).toHaveLength(1)
    expect(world.sessions[0]?.contents).toHaveLength(2)
  })

  test('96: an idle connection is closed after two seconds', async () => {
    const world = exchangers([{}])
    await world.deliver({ to: [ANN], keep: true })
    await world.driver.runUntil(world.clock.now() + 3 * SECOND)
    expect(world.sessions[0]).toMatchObject({ closed: true })
    expect(world.sessions[0]?.commands.at(-1)).toBe('QUIT')
  })

  test('96: a connection that is older than 300 s is closed instead of being used again', async () => {
    const world = exchangers([{}])
    for (let used = 0; used <= 300; used++) {
      await world.deliver({ to: [ANN], keep: true })
      await world.driver.runUntil(world.clock.now() + SECOND)
    }
    await world.deliver({ to: [ANN], keep: true })
    expect(world.sessions).toHaveLength(2)
    expect(world.clock.monotonic()).toBeLessThan(6 * MINUTE)
  })

  test('a kept connection that is dead is replaced without a word', async () => {
    const world = exchangers([{ rset: { drop: true } }])
    await world.deliver({ to: [ANN], keep: true })
    const second = await world.deliver({ to: [BOB], keep: true })
    expect(second.of().outcome).toBe('delivered')
    expect(second).toMatchObject({ connectionUse: 1, feedback: 'positive' })
    expect(world.sessions).toHaveLength(2)
  })

  test('a host that has had its say over a kept connection is not asked again in the same attempt', async () => {
    const world = exchangers([{ rcpt: ['250 ok', '450 4.2.0 later'] }, {}])
    await world.deliver({ to: [ANN], keep: true })
    expect((await world.deliver({ to: [BOB], keep: true })).relay).toBe('mx2.example.net[192.0.2.2]:25')
    expect(world.sessions.map(({ host }) => host)).toEqual(['mx1.example.net', 'mx2.example.net'])
  })

  test('at the end all connections are closed, with QUIT, whether the far side hangs up or not', async () => {
    const world = exchangers([{ quit: null }])
    await world.deliver({ to: [ANN], keep: true })
    await world.deliver({ to: [BOB] })
    await world.deliver({ to: [ANN], keep: true })
    await world.agent.close()
    await world.driver.rest()
    expect(world.sessions.map(({ closed, commands }) => [closed, commands.at(-1)])).toEqual([
      [true, 'QUIT'],
      [true, 'QUIT'],
    ])
    expect(world.clock.pending).toBe(0)
  })
})
