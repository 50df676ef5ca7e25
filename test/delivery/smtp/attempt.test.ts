/** The SMTP client: sessions, replies, hosts and time limits (RFC 5321, Postfix smtp(8)). */
import { describe, expect, test } from 'vitest'
import { MINUTE, SECOND } from '../../../src/system/clock.ts'
import type { ServerScript } from '../../support/scripted-server.ts'
import { SmtpAgentHarness, type WorldOptions } from '../../support/smtp-agent-harness.ts'

const ANN = 'ann@example.net'
const BOB = 'bob@example.net'

/** A domain with exchangers of preference 10, 20, … at 192.0.2.1, 192.0.2.2, …; `null` refuses connections. */
function exchangers(scripts: readonly (ServerScript | null)[], options: WorldOptions = {}): SmtpAgentHarness {
  const world = new SmtpAgentHarness(options)
  world.mx('example.net', ...scripts.map((_, i) => [10 * (i + 1), `mx${i + 1}.example.net`] as const))
  scripts.forEach((script, i) => {
    if (script === null) world.addresses(`mx${i + 1}.example.net`, `192.0.2.${i + 1}`)
    else world.host(`mx${i + 1}.example.net`, `192.0.2.${i + 1}`, script)
  })
  return world
}

const noFeature = '250 far.example'

describe('hosts', () => {
  test('the first MX host refuses the connection, the second accepts: delivered, with one log line for the first', async () => {
    const world = exchangers([null, {}])
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'delivered', status: '2.0.0', reason: '250 2.0.0 Ok: queued as FAR1' })
    expect(result).toMatchObject({ feedback: 'positive', relay: 'mx2.example.net[192.0.2.2]:25' })
    expect(world.notes).toEqual([expect.stringMatching(/: connect to mx1\.example\.net\[192\.0\.2\.1\]:25: Connection refused$/)])
  })

  test('a reply of the first MX host explains more than the second MX host that refuses the connection', async () => {
    const replied = await exchangers([{ greeting: '421 4.7.0 too busy' }, null]).deliver({ to: [ANN] })
    expect(replied.of()).toMatchObject({ outcome: 'deferred', status: '4.7.0', stage: 'greeting' })
    expect(replied).toMatchObject({ feedback: 'negative', siteStatus: { status: '4.7.0' } })
    const silent = await exchangers([null, null]).deliver({ to: [ANN] })
    expect(silent.of()).toMatchObject({ status: '4.4.1', reason: expect.stringContaining('mx2.example.net') as string })
    const later = await exchangers([null, { greeting: '421 4.7.0 too busy' }]).deliver({ to: [ANN] })
    expect(later.of()).toMatchObject({ status: '4.7.0', stage: 'greeting' })
  })

  test('550 at RCPT by the first MX host: bounced, the second is not tried', async () => {
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

  test('450 at RCPT by the first MX host, 250 by the second: delivered in the same attempt', async () => {
    const world = exchangers([{ rcpt: '450 4.2.0 greylisted' }, {}])
    const result = await world.deliver({ to: [ANN] })
    expect(result.of().outcome).toBe('delivered')
    expect(world.sessions.map(({ host }) => host)).toEqual(['mx1.example.net', 'mx2.example.net'])
  })

  test('four MX hosts that reply 450 at RCPT: two sessions (smtp_mx_session_limit)', async () => {
    const world = exchangers([1, 2, 3, 4].map(() => ({ rcpt: '450 4.2.0 later' })))
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.2.0' })
    expect(world.sessions).toHaveLength(2)
    expect(result.feedback).toBe('positive')
  })

  test('seven addresses that refuse: five connects (smtp_mx_address_limit)', async () => {
    const world = new SmtpAgentHarness()
    world.mx('example.net', [10, 'mx.example.net']).addresses('mx.example.net', ...[1, 2, 3, 4, 5, 6, 7].map((n) => `192.0.2.${n}`))
    const result = await world.deliver({ to: [ANN] })
    expect(world.dialled).toHaveLength(5)
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.4.1', stage: 'connect' })
    expect(result).toMatchObject({ feedback: 'negative', relay: null, siteStatus: { status: '4.4.1' } })
  })

  test('failed handshakes do not count as sessions', async () => {
    const later = { rcpt: '450 later' }
    const world = exchangers([{ greeting: '421 busy' }, null, later, later, later])
    await world.deliver({ to: [ANN] })
    expect(world.dialled).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'])
  })
})

describe('greeting and EHLO', () => {
  test('a 554 greeting defers', async () => {
    const result = await exchangers([{ greeting: '554 5.7.1 go away' }]).deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({
      outcome: 'deferred',
      status: '4.7.1',
      reason: 'host mx1.example.net[192.0.2.1] refused to talk to me: 554 5.7.1 go away',
    })
    expect(result.feedback).toBe('negative')
  })

  test('a 554 greeting bounces with smtp_skip_5xx_greeting=no', async () => {
    const world = exchangers([{ greeting: '554 go away' }, {}], { config: ['smtp_skip_5xx_greeting=no'] })
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.0.0' })
    expect(result.feedback).toBe('positive')
    expect(world.dialled).toHaveLength(1)
  })

  test('EHLO 502, HELO 250: delivered', async () => {
    const world = exchangers([{ ehlo: '502 what?' }])
    expect((await world.deliver({ to: [ANN] })).of().outcome).toBe('delivered')
    expect(world.sessions[0]?.commands).toContain('HELO relay.us.example')
  })

  test('EHLO 550, HELO 550: bounced, the second MX host is not tried', async () => {
    const world = exchangers([{ ehlo: '550 no', helo: '550 5.7.0 no' }, {}])
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.7.0' })
    expect(world.dialled).toHaveLength(1)
  })

  test('EHLO 421: the next MX host is tried', async () => {
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
  ])('%j at RCPT is %s %s', async (reply, outcome, status) => {
    const result = await exchangers([{ rcpt: reply }]).deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome, status, reply: reply.replaceAll('\r\n', ' ') })
  })

  test('250 to DATA is a protocol error: deferred 4.5.0 and the connection dropped (Postfix bounces 5.5.0)', async () => {
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

  test('no reply to the end of data: deferred 4.4.2 after 600 s, and the remote server may have the message', async () => {
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

  test('no reply to the end of data: delivered by the next MX host', async () => {
    const result = await exchangers([{ dot: null }, {}]).deliver({ to: [ANN] })
    expect(result.of().outcome).toBe('delivered')
    expect(result.possiblySent).toBe(true)
  })

  const big = 'Subject: big\r\n\r\n' + 'x'.repeat(900).concat('\r\n').repeat(200)

  test('a rejection during the content, then the connection closes: bounced with that reply', async () => {
    const world = exchangers([{ inContent: { after: 2000, act: { say: '552 5.3.4 too big', drop: true } } }])
    const result = await world.deliver({ to: [ANN], content: big })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.3.4', reply: '552 5.3.4 too big' })
  })

  test('the connection closes without a reply: deferred 4.4.2', async () => {
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

  test('one 550, one 250, then the connection is lost before the reply to DATA', async () => {
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

  test('a message above the host’s SIZE: bounced 5.3.4 without MAIL', async () => {
    const world = exchangers([{ ehlo: '250-far\r\n250 SIZE 1000' }, {}])
    const result = await world.deliver({ to: [ANN], content: `${'x'.repeat(998)}\r\n`.repeat(5) })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.3.4' })
    expect(world.sessions[0]?.commands).toEqual(['EHLO relay.us.example', 'QUIT'])
    expect(result.feedback).toBe('positive')
  })
})

describe('DNS', () => {
  test('a null MX (RFC 7505): bounced without an address lookup', async () => {
    const world = new SmtpAgentHarness().mx('example.net', [0, ''])
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.1.0', stage: 'dns' })
    expect(world.asked).toEqual(['MX example.net'])
  })

  test('no MX but an address (RFC 5321 §5.1): delivered there', async () => {
    const world = new SmtpAgentHarness().mxAnswer('example.net', { kind: 'none', nxdomain: false })
    world.host('example.net', '192.0.2.7')
    expect(await world.deliver({ to: [ANN] })).toMatchObject({ relay: 'example.net[192.0.2.7]:25', feedback: 'positive' })
  })

  test('NXDOMAIN: bounced 5.4.4', async () => {
    const result = await new SmtpAgentHarness().deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({
      outcome: 'bounced',
      status: '5.4.4',
      reason: 'Host or domain name not found. Name service error for name=example.net type=A: Host not found',
    })
    expect(result.feedback).toBe('positive')
  })

  test('SERVFAIL for MX: deferred 4.4.3; REFUSED: bounced 5.4.3', async () => {
    const soft = new SmtpAgentHarness().mxAnswer('example.net', { kind: 'failed', soft: true, reason: 'ESERVFAIL' })
    const deferred = await soft.deliver({ to: [ANN] })
    expect(deferred.of()).toMatchObject({ outcome: 'deferred', status: '4.4.3' })
    expect(deferred).toMatchObject({ feedback: 'negative', siteStatus: { status: '4.4.3' } })
    const hard = new SmtpAgentHarness().mxAnswer('example.net', { kind: 'failed', soft: false, reason: 'EREFUSED' })
    expect((await hard.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'bounced', status: '5.4.3' })
  })

  test('ignore_mx_lookup_error tries the address of the domain', async () => {
    const world = new SmtpAgentHarness({ config: ['ignore_mx_lookup_error=yes'] })
    world.mxAnswer('example.net', { kind: 'failed', soft: true, reason: 'ESERVFAIL' }).host('example.net', '192.0.2.7')
    expect((await world.deliver({ to: [ANN] })).of().outcome).toBe('delivered')
  })

  test('an MX host without an address is skipped', async () => {
    const world = new SmtpAgentHarness().mx('example.net', [10, 'a.example.net'], [20, 'b.example.net'])
    world.host('b.example.net', '192.0.2.2')
    expect(await world.deliver({ to: [ANN] })).toMatchObject({ relay: 'b.example.net[192.0.2.2]:25' })
  })

  test('the only MX host has no address: bounced 5.4.4, or deferred 4.4.4 with smtp_defer_if_no_mx_address_found', async () => {
    const strict = new SmtpAgentHarness().mx('example.net', [10, 'a.example.net'])
    expect((await strict.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'bounced', status: '5.4.4' })
    const lenient = new SmtpAgentHarness({ config: ['smtp_defer_if_no_mx_address_found=yes'] }).mx('example.net', [10, 'a.example.net'])
    expect((await lenient.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.4.4' })
  })

  const weAre = { config: ['smtpd_listen=192.0.2.20:25'] }

  test('only hosts with a lower preference than the own one are tried', async () => {
    const world = new SmtpAgentHarness(weAre).mx('example.net', [10, 'a.example.net'], [20, 'us.example'], [30, 'c.example.net'])
    world.addresses('a.example.net', '192.0.2.1').addresses('us.example', '192.0.2.20').addresses('c.example.net', '192.0.2.3')
    const result = await world.deliver({ to: [ANN] })
    expect(world.dialled).toEqual(['192.0.2.1'])
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.4.1' })
  })

  test('this host has the lowest preference: 5.4.6; the better hosts have no address: 4.4.4', async () => {
    const best = new SmtpAgentHarness(weAre).mx('example.net', [10, 'us.example']).addresses('us.example', '192.0.2.20')
    expect((await best.deliver({ to: [ANN] })).of()).toMatchObject({
      outcome: 'bounced',
      status: '5.4.6',
      reason: 'mail for example.net loops back to myself',
    })
    const next = new SmtpAgentHarness(weAre)
      .mx('example.net', [10, 'a.example.net'], [20, 'us.example'])
      .addresses('us.example', '192.0.2.20')
    expect((await next.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.4.4' })
  })

  test('a host that greets with the own name: 5.4.6 when it has the lowest preference, else 4.4.6', async () => {
    const mirror = { ehlo: '250 relay.us.example' }
    expect((await exchangers([mirror]).deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'bounced', status: '5.4.6' })
    expect((await exchangers([null, mirror]).deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.4.6' })
  })

  test('a relayhost that does not exist is a local error: deferred 4.3.5', async () => {
    const world = new SmtpAgentHarness({ config: ['relayhost=relay.example'] })
    expect((await world.deliver({ to: [ANN] })).of()).toMatchObject({ outcome: 'deferred', status: '4.3.5' })
  })
})

describe('soft_bounce and SMTPUTF8', () => {
  test('soft_bounce defers a rejected recipient after the second MX host was tried', async () => {
    const world = exchangers([{ rcpt: '550 5.1.1 no' }, { rcpt: '550 5.1.1 no' }], { config: ['soft_bounce=yes'] })
    const result = await world.deliver({ to: [ANN] })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.1.1', softBounce: true })
    expect(world.dialled).toHaveLength(2)
  })

  const utf8 = '250-far\r\n250-PIPELINING\r\n250 SMTPUTF8'

  test('an address in UTF-8 is sent to the MX host that announces SMTPUTF8', async () => {
    const world = exchangers([{ ehlo: noFeature }, { ehlo: utf8 }])
    const result = await world.deliver({ to: ['jürgen@example.net'] })
    expect(result.of().outcome).toBe('delivered')
    expect(world.sessions[0]?.commands).toEqual(['EHLO relay.us.example', 'QUIT'])
    expect(world.sessions[1]?.commands).toContain('MAIL FROM:<app@us.example> SMTPUTF8')
  })

  test('an address in UTF-8 is bounced when no MX host announces SMTPUTF8', async () => {
    const result = await exchangers([{}, {}]).deliver({ to: ['jürgen@example.net'] })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.6.7' })
    expect(result.feedback).toBe('positive')
  })

  test('421 at RCPT, then the connection closes: the reply for that recipient, 4.4.2 for the others, and no site failure', async () => {
    const rcpt = (_line: string, nth: number) => (nth === 0 ? { say: '421 4.7.0 too many', drop: true } : null)
    const result = await exchangers([{ rcpt }]).deliver({ to: [ANN, BOB] })
    expect(result.of(ANN)).toMatchObject({ outcome: 'deferred', status: '4.7.0', reply: '421 4.7.0 too many' })
    expect(result.of(BOB)).toMatchObject({ outcome: 'deferred', status: '4.4.2' })
    expect(result).toMatchObject({ feedback: 'positive', congestion: 'late' })
  })
})

describe('kept connections', () => {
  test('a second delivery within two seconds reuses the connection, after RSET', async () => {
    const world = exchangers([{}])
    await world.deliver({ to: [ANN], keep: true })
    await world.driver.runUntil(world.clock.now() + SECOND)
    const second = await world.deliver({ to: [BOB], keep: true })
    expect(second).toMatchObject({ connectionUse: 2, relay: 'mx1.example.net[192.0.2.1]:25' })
    expect(world.sessions).toHaveLength(1)
    expect(world.sessions[0]?.commands.filter((line) => line === 'RSET')).toHaveLength(1)
    expect(world.sessions[0]?.contents).toHaveLength(2)
  })

  test('an idle connection is closed after two seconds', async () => {
    const world = exchangers([{}])
    await world.deliver({ to: [ANN], keep: true })
    await world.driver.runUntil(world.clock.now() + 3 * SECOND)
    expect(world.sessions[0]).toMatchObject({ closed: true })
    expect(world.sessions[0]?.commands.at(-1)).toBe('QUIT')
  })

  test('a connection older than 300 s is closed, not reused', async () => {
    const world = exchangers([{}])
    for (let used = 0; used <= 300; used++) {
      await world.deliver({ to: [ANN], keep: true })
      await world.driver.runUntil(world.clock.now() + SECOND)
    }
    await world.deliver({ to: [ANN], keep: true })
    expect(world.sessions).toHaveLength(2)
    expect(world.clock.monotonic()).toBeLessThan(6 * MINUTE)
  })

  test.each([
    [1, [2, 2, 2]],
    [2, [3, 3]],
    [0, [6]],
  ])('a connection is used again %d times (smtp_connection_reuse_count_limit); 0 for no limit', async (limit, perConnection) => {
    const world = exchangers([{}], { config: [`smtp_connection_reuse_count_limit=${limit}`] })
    for (let n = 0; n < 6; n++) await world.deliver({ to: [ANN], keep: true })
    expect(world.sessions.map(({ contents }) => contents.length)).toEqual(perConnection)
    expect(world.sessions.map(({ commands }) => commands.at(-1) === 'QUIT')).toEqual(perConnection.map((count) => count === limit + 1))
  })

  test('refused mail counts, and the limit of a destination is its own', async () => {
    const tables = { destination: new Map([['example.net', { smtp_connection_reuse_count_limit: 1 }]]) }
    const world = exchangers([{ rcpt: '550 5.1.1 unknown' }], { tables })
    for (let n = 0; n < 4; n++) await world.deliver({ to: [ANN], keep: true })
    expect(world.sessions).toHaveLength(2)
  })

  test('a kept connection that was closed is replaced silently', async () => {
    const world = exchangers([{ rset: { drop: true } }])
    await world.deliver({ to: [ANN], keep: true })
    const second = await world.deliver({ to: [BOB], keep: true })
    expect(second.of().outcome).toBe('delivered')
    expect(second).toMatchObject({ connectionUse: 1, feedback: 'positive' })
    expect(world.sessions).toHaveLength(2)
  })

  test('a host that replied over a kept connection is not tried again in the same attempt', async () => {
    const world = exchangers([{ rcpt: ['250 ok', '450 4.2.0 later'] }, {}])
    await world.deliver({ to: [ANN], keep: true })
    expect((await world.deliver({ to: [BOB], keep: true })).relay).toBe('mx2.example.net[192.0.2.2]:25')
    expect(world.sessions.map(({ host }) => host)).toEqual(['mx1.example.net', 'mx2.example.net'])
  })

  test('close() ends all connections with QUIT, whether the server closes or not', async () => {
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
