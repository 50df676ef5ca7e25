import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { describe, expect, test } from 'vitest'
import { DAY } from '../../src/system/clock.ts'
import { createWorld, type World, type WorldOptions } from '../../src/testkit/index.ts'

interface AppMail {
  readonly to: string | string[]
  readonly from?: string
  readonly subject?: string
}

/** The app under test: what it does is hand mail to its transport. */
const send = (world: World, { from = 'app@us.example', subject = 'hello', ...mail }: AppMail) =>
  createTransport(world.transport()).sendMail({ from, subject, text: 'hi', ...mail })

/** Milliseconds of work; unlike the time on the wall, it does not depend on what else this machine does. */
function cpuTime(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** A world for the length of a story. */
async function inWorld(options: WorldOptions, story: (world: World) => Promise<void>): Promise<void> {
  const world = await createWorld(options)
  try {
    await story(world)
  } finally {
    await world.close()
  }
}

describe('days of failures', () => {
  test('greylisted, down and rejected', () =>
    inWorld({ seed: 1, config: { maximal_queue_lifetime: '2d', delay_warning_time: '4h' } }, async (world) => {
      world.destination('slow.example').greylists('5m')
      world.destination('gone.example').isDownFor('3d')
      world.destination('picky.example').rejects('bob@picky.example', '550 5.1.1 no such user')
      await send(world, { to: ['ann@slow.example', 'eve@gone.example', 'bob@picky.example'] })
      await world.advance('2d')
      expect(world.attempts('eve@gone.example').at(-1)).toMatchObject({ at: 172_800, outcome: 'expired', stage: 'connect' })
      expect(world.attempts('bob@picky.example')).toMatchObject([
        { at: 0, outcome: 'bounced', status: '5.1.1', reply: '550 5.1.1 no such user', host: 'mx.picky.example', stage: 'rcpt' },
      ])
      expect(world.story('ann@slow.example')).toEqual([
        expect.stringMatching(/^\+0s accepted from app@us\.example, \d+ bytes$/),
        '+0s deferred: mx.slow.example replied 451 4.7.1 Greylisted, please try again later at rcpt',
        '+5m delivered: mx.slow.example replied 250 2.0.0 Ok: queued as 2 at end-of-data',
      ])
      const notices = world.mailbox('app@us.example').notices()
      expect(notices.map(({ action }) => action)).toEqual(['failed', 'delayed', 'failed'])
      expect(notices[1]).toMatchObject({
        at: 16_500,
        recipients: [{ recipient: 'eve@gone.example', action: 'delayed', status: '4.4.1', willRetryUntil: world.now() }],
      })
      expect(notices[2]?.original).toContain('hello')
    }))

  test('a message rejected for five days ends in one delay notice and one bounce', () =>
    inWorld({ config: { maximal_queue_lifetime: '5d', delay_warning_time: '4h' } }, async (world) => {
      world.destination('busy.example').defers('*', '451 4.2.1 come back later')
      await send(world, { to: 'ann@busy.example' })
      const before = process.cpuUsage()
      await world.settle()
      expect(cpuTime(before)).toBeLessThan(4_000)
      expect(world.now() - Date.UTC(2026, 0, 1)).toBe(5 * DAY)
      expect(world.attempts('ann@busy.example').length).toBe(112)
      expect(world.recipient('ann@busy.example').notices).toEqual(['delay', 'failure'])
      expect(world.mailbox('ann@busy.example').mails()).toEqual([])
    }))

  test('settle() does not wait for held mail, and operations change it', () =>
    inWorld({}, async (world) => {
      world.destination('gone.example').isDownFor('1h')
      await send(world, { to: 'ann@gone.example' })
      await world.operate('hold')
      await world.settle()
      expect(world.attempts('ann@gone.example')).toHaveLength(1)
      await world.advance('3d')
      await world.operate('release')
      await world.settle()
      expect(world.story('ann@gone.example')).toEqual([
        expect.stringContaining('accepted'),
        expect.stringContaining('+0s deferred: connect to mx.gone.example'),
        '+0s hold by operator',
        '+3d release by operator',
        expect.stringContaining('+3d delivered'),
      ])
    }))

  test('a reply lost after the end of data makes one duplicate', () =>
    inWorld({}, async (world) => {
      world.destination('lossy.example').dropsAfterDot()
      await send(world, { to: 'ann@lossy.example' })
      await world.settle()
      expect(world.recipient('ann@lossy.example').copies).toEqual([2])
    }))

  test('the second MX host accepts what the first cannot', () =>
    inWorld({}, async (world) => {
      world.destination('two.example').hasExchangers('10 mx1.two.example', '20 mx2.two.example')
      world.rule({ mx: 'mx1.two.example', connect: 'refused' })
      await send(world, { to: 'ann@two.example' })
      await world.settle()
      expect(world.attempts('ann@two.example')).toMatchObject([{ outcome: 'delivered', host: 'mx2.two.example' }])
    }))

  test('the rule set last matches first, and recovers() removes the rules', () =>
    inWorld({}, async (world) => {
      const moody = world.destination('moody.example').failsFirst(5).rejects('bob@*')
      await send(world, { to: ['ann@moody.example', 'bob@moody.example'] })
      await world.advance(0)
      moody.recovers()
      await world.settle()
      expect(world.attempts('ann@moody.example').map(({ at, outcome }) => [at, outcome])).toEqual([
        [0, 'deferred'],
        [300, 'delivered'],
      ])
      expect(world.attempts('bob@moody.example').map(({ outcome }) => outcome)).toEqual(['bounced'])
    }))

  test('each method of a domain makes its rule', () =>
    inWorld({}, async (world) => {
      const verbs = {
        'a.example': world.destination('a.example').isUnreachable(),
        'b.example': world.destination('b.example').mailboxIsFull('u@b.example', { for: '10m' }),
        'c.example': world.destination('c.example').failsInDns('nxdomain'),
        'd.example': world.destination('d.example').throttles('1/1h', { penalty: '1h' }),
        'e.example': world.destination('e.example').allowsConnections(0),
        'f.example': world.destination('f.example').isSlow('20s'),
        'g.example': world.destination('g.example').isDownBetween('1m', '20m'),
        'h.example': world.destination('h.example').fails({ at: 'data', reply: '554 5.7.1 no' }),
      }
      const domains = Object.keys(verbs)
      await send(world, { to: domains.map((domain) => `u@${domain}`) })
      await send(world, { to: 'u@d.example' })
      await world.advance('5m')
      await send(world, { to: 'v@g.example' })
      await world.advance(0)
      const first = Object.fromEntries(domains.map((domain) => [domain, world.attempts(`u@${domain}`).at(0)]))
      expect(first).toMatchObject({
        'a.example': { outcome: 'deferred', stage: 'connect' },
        'b.example': { outcome: 'deferred', status: '4.2.2' },
        'c.example': { outcome: 'bounced', stage: 'dns' },
        'd.example': { outcome: 'delivered' },
        'e.example': { outcome: 'deferred', status: '4.7.0', stage: 'greeting' },
        'f.example': { outcome: 'delivered' },
        'g.example': { outcome: 'delivered' },
        'h.example': { outcome: 'bounced', stage: 'data' },
      })
      expect(world.attempts('u@d.example')[1]).toMatchObject({ outcome: 'deferred', reply: expect.stringContaining('slow down') })
      expect(world.attempts('v@g.example')).toMatchObject([{ outcome: 'deferred', stage: 'connect' }])
    }))
})

describe('a world', () => {
  test('has the same history for the same seed, with a file or without, and another one for another seed', async () => {
    const run = async (seed: number, store?: WorldOptions['store']): Promise<string> => {
      const world = await createWorld({ seed, store, config: { retry_jitter: 0.5 } })
      world.destination('odd.example').fails({ at: 'rcpt', reply: '451 4.3.0 bad luck', probability: '80%' })
      // Its events are sent again after waits at random.
      ;(await world.webhook('app')).isDownFor('10m')
      for (let i = 0; i < 5; i++) await send(world, { to: `u${i}@odd.example` })
      await world.settle()
      await world.close()
      return world.history().hash()
    }
    const first = await run(1)
    expect(await run(1)).toBe(first)
    expect(await run(1, { directory: mkdtempSync(join(tmpdir(), 'deferd-world-')) })).toBe(await run(1, 'sqlite'))
    expect(await run(2)).not.toBe(first)
  })

  test('does not affect a hundred others', async () => {
    const run = async (index: number): Promise<readonly number[]> => {
      const world = await createWorld({ seed: index })
      world.destination('far.example').failsFirst((index % 4) + 1)
      await send(world, { to: 'ann@far.example' })
      await world.settle()
      await world.close()
      return world.recipient('ann@far.example').attemptedAt
    }
    const schedule = [0, 300, 900, 2_100, 4_500]
    const met = await Promise.all([...Array(100).keys()].map(run))
    expect(met).toEqual([...Array(100).keys()].map((index) => schedule.slice(0, (index % 4) + 2)))
  })

  test('starts within milliseconds', async () => {
    await (await createWorld()).close()
    const before = process.cpuUsage()
    const world = await createWorld()
    expect(cpuTime(before)).toBeLessThan(100)
    await world.close()
  })

  test('is released when it is closed, even if it was killed with work in progress', async () => {
    const lived = async (): Promise<WeakRef<object>> => {
      const world = await createWorld()
      world.destination('slow.example').fails({ at: 'mail', stall: true })
      for (let i = 0; i < 5; i++) await send(world, { to: `u${i}@slow.example` })
      await world.advance('10s')
      await world.crash()
      await world.close()
      return new WeakRef(world)
    }
    const over = await Promise.all([...Array(20).keys()].map(lived))
    setFlagsFromString('--expose-gc')
    const collectGarbage = runInNewContext('gc') as () => void
    await expect
      .poll(() => {
        collectGarbage()
        return over.filter((world) => world.deref() !== undefined).length
      })
      .toBeLessThan(3)
  })

  test('keeps its mail over a restart', () =>
    inWorld({ store: { directory: mkdtempSync(join(tmpdir(), 'deferd-world-')) } }, async (world) => {
      world.destination('gone.example').isDownFor('10m')
      await send(world, { to: 'ann@gone.example' })
      await world.advance('1m')
      await world.restart()
      await world.settle()
      expect(world.recipient('ann@gone.example').attemptedAt).toEqual([0, 300, 900])
    }))

  test('has a settable wall clock: dates of mail follow it, waits do not', () =>
    inWorld({ config: { maximal_queue_lifetime: '5d' } }, async (world) => {
      world.destination('gone.example').isDownFor('10m')
      await send(world, { to: 'ann@gone.example' })
      await world.advance('1m')
      world.stepClock('3650d')
      await send(world, { to: 'bob@near.example' })
      await world.settle()
      expect(world.recipient('ann@gone.example').attemptedAt).toEqual([0, 300, 900])
      expect(world.mailbox('bob@near.example').mails()[0]?.content.toString()).toContain(', 30 Dec 2035 00:01:00 ')
    }))

  test('takes a step of the wall clock as a time, also a negative one or seconds, and refuses other text', () =>
    inWorld({}, async (world) => {
      const start = world.now()
      world.stepClock('1h30m')
      world.stepClock(60)
      world.stepClock(-30)
      world.stepClock('-5m')
      expect(world.now() - start).toBe((90 * 60 + 60 - 30 - 5 * 60) * 1000)
      for (const wrong of ['soon', '--5m', '', Number.NaN]) expect(() => world.stepClock(wrong)).toThrow(/such as "5m" or "-5m"/)
      expect(world.history().events.map(({ event }) => event)).toContainEqual({ did: 'set the clock by -300 s', by: -300 })
    }))

  test('advances by 0: what is due now runs, what is due later does not', () =>
    inWorld({}, async (world) => {
      world.destination('slow.example').greylists('5m')
      await send(world, { to: 'ann@slow.example' })
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
      expect(world.now()).toBe(Date.UTC(2026, 0, 1))
      expect(world.attempts('ann@slow.example')).toHaveLength(1)
    }))

  test('accepts mail on a real port too', () =>
    inWorld({}, async (world) => {
      const { address, port } = await world.openPort()
      await createTransport({ host: address, port, ignoreTLS: true }).sendMail({ from: 'a@us.example', to: 'b@them.example', text: 'hi' })
      await world.settle()
      expect(world.mailbox('b@them.example').mails()).toMatchObject([{ from: 'a@us.example', to: ['b@them.example'] }])
    }))

  test('opens real ports of remote hosts, whose rules change', () =>
    inWorld({}, async (world) => {
      const { address, port } = await world.openRemotePort('mx.them.example')
      const mail = { from: 'a@us.example', to: 'b@them.example', text: 'hi' }
      const deliver = () => createTransport({ host: address, port, ignoreTLS: true }).sendMail(mail)
      world.destination('them.example').greylists('5m')
      await expect(deliver()).rejects.toThrow('451 4.7.1 Greylisted')
      await world.advance('5m')
      await deliver()
      world.destination('them.example').recovers()
      world.destination('them.example').rejects('b@them.example')
      await expect(deliver()).rejects.toThrow('550 5.1.1')
      expect(world.mailbox('b@them.example').mails()).toMatchObject([{ from: 'a@us.example', to: ['b@them.example'] }])
      await expect(world.openRemotePort('b@them.example')).rejects.toThrow('openRemotePort expects a domain')
    }))

  test('follows a script as the sink does', () =>
    inWorld({ script: '[rule.full]\nrecipient = "bob@*"\nat = "rcpt"\nreply = "452 4.2.2 full"\nuntil = "2h"' }, async (world) => {
      await send(world, { to: 'bob@any.example' })
      await world.settle()
      expect(
        world
          .attempts('bob@any.example')
          .filter(({ outcome }) => outcome === 'deferred')
          .every(({ at }) => at < 7_200),
      ).toBe(true)
      expect(world.attempts('bob@any.example').at(-1)?.outcome).toBe('delivered')
    }))

  test('refuses a configuration or a script with mistakes', async () => {
    await expect(createWorld({ config: { minimal_backof_time: '5m' } as object })).rejects.toThrow('minimal_backoff_time')
    await expect(createWorld({ script: '[rule.x]\nat = "rctp"\ndrop = "fin"' })).rejects.toThrow('script:2: rule x: at: expected one of')
    const world = await createWorld()
    expect(() => world.rule({ at: 'rcpt' })).toThrow('has no effect')
    expect(() => world.destination('x.example').greylists('soon')).toThrow('expected a time')
    expect(() => world.destination('x.example').hasExchangers('mx1')).toThrow('expected a preference and a host')
    await expect(world.advance('soon')).rejects.toThrow('expected a time such as "5m"')
    await world.close()
  })
})
