/**
 * The checks of expiry and notices by their numbers, on the whole queue in virtual time. Postfix's scan grid is not ours: where
 * a check speaks of it, the last attempt falls on the expiry itself. 26 is a matter of the configuration; 27, 28, 37–44, 48, 50, 54 and 55 are in notice.test.ts and dsn.test.ts, 35 and 56 in mailer-daemon.test.ts.
 */
import { describe, expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/mail/clock.ts'
import { QueueWorld, type Reception, type Visit } from '../support/queue-world.ts'

const LIFETIME = 432_000
const FIVE_DAYS = ['maximal_queue_lifetime=5d', 'bounce_queue_lifetime=5d', 'myhostname=relay.example', 'myorigin=relay.example']

const busy: Reception = { kind: 'replies', reply: '450 4.2.1 busy' }
const unknown: Reception = { kind: 'replies', reply: '550 5.1.1 no such user' }
const accepts: Reception = { kind: 'accepts' }

/** What each destination does; mail to the sender gets through. */
const far =
  (receptions: Readonly<Record<string, Reception | ((visit: Visit) => Reception)>>) =>
  (visit: Visit): Reception => {
    const reception = receptions[visit.destination] ?? accepts
    return typeof reception === 'function' ? reception(visit) : reception
  }

const world = (receptions: Parameters<typeof far>[0], config: readonly string[] = []): Promise<QueueWorld> =>
  QueueWorld.create({ config: [...FIVE_DAYS, ...config], far: far(receptions) })

/** Action and recipients of the notices that arrived. */
const told = (one: QueueWorld, address?: string): readonly string[] =>
  one.notices(address).map(({ action, recipients }) => `${action}: ${recipients.map(({ recipient }) => recipient).join(' ')}`)

const seconds = (n: number): number => n * SECOND

describe('expiry', () => {
  test('20 · a failure at age 431,999 s defers, at 432,000 s it expires', async () => {
    const queue = await world({ 'busy.example': busy })
    const id = await queue.accept(['ann@busy.example'])
    await queue.advance(seconds(LIFETIME - 1))
    await queue.order('flush', [id])
    expect(queue.tried('busy.example').at(-1)).toBe(LIFETIME - 1)
    expect(told(queue)).toEqual([])
    await queue.advance(seconds(1))
    expect(queue.tried('busy.example').at(-1)).toBe(LIFETIME)
    expect(told(queue)).toEqual(['failed: ann@busy.example'])
  })

  test('21 · expiry follows the last attempt, which falls on the end of the lifetime', async () => {
    const queue = await world({ 'busy.example': busy })
    await queue.accept(['ann@busy.example'])
    await queue.advance(6 * DAY)
    expect(queue.tried('busy.example').at(-1)).toBe(LIFETIME)
    expect(queue.happened('noticed')).toMatchObject([{ at: seconds(LIFETIME) }])
    const [notice] = queue.notices()
    expect(notice?.recipients).toMatchObject([{ action: 'failed', status: '4.2.1', diagnostic: '450 4.2.1 busy', remoteMta: 'far' }])
  })

  test('22 · a lifetime of 0: one attempt, and the notice at once', async () => {
    const queue = await QueueWorld.create({
      config: ['maximal_queue_lifetime=0', 'myhostname=relay.example'],
      far: far({ 'busy.example': busy }),
    })
    await queue.accept(['ann@busy.example'])
    await queue.rest()
    expect(queue.tried('busy.example')).toEqual([0])
    expect(queue.happened('noticed')).toHaveLength(1)
  })

  test('23 · mail found ten days late is tried once more, and delivered', async () => {
    let down = true
    const queue = await world({ 'down.example': () => (down ? busy : accepts) })
    await queue.accept(['ann@down.example'])
    await queue.rest()
    queue.clock.step(10 * DAY)
    down = false
    await queue.advance(MINUTE)
    expect(queue.arrivals('ann@down.example')).toHaveLength(1)
    expect(told(queue)).toEqual([])
  })

  test('24 · mail from nobody lives for bounce_queue_lifetime, and nobody is told', async () => {
    const queue = await world({ 'busy.example': busy }, ['bounce_queue_lifetime=1d'])
    await queue.accept(['ann@busy.example'], { sender: '' })
    await queue.advance(2 * DAY)
    expect(queue.tried('busy.example').at(-1)).toBe(86_400)
    expect(queue.happened('removed')).toHaveLength(1)
    expect(queue.happened('noticed')).toEqual([])
  })

  test('25 · mail to the postmaster lives as long as other mail', async () => {
    const queue = await world({ 'busy.example': busy }, ['bounce_queue_lifetime=1d'])
    await queue.accept(['postmaster@busy.example'], { sender: 'double-bounce@relay.example' })
    await queue.advance(2 * DAY)
    expect(queue.tried('busy.example').at(-1)).toBeGreaterThan(86_400)
    expect(queue.recipient('postmaster@busy.example')?.state).toBe('waiting')
  })

  test('29 · held for six days: expired by the first attempt after the release; requeued instead: deferred', async () => {
    for (const operation of ['release', 'requeue'] as const) {
      const queue = await world({ 'busy.example': busy })
      const id = await queue.accept(['ann@busy.example'])
      await queue.rest()
      await queue.order('hold', [id])
      await queue.advance(6 * DAY)
      expect(queue.tried('busy.example')).toEqual([0])
      const { changed } = await queue.order(operation, [id])
      expect(changed).toBe(1)
      if (operation === 'requeue') await queue.order('release', 'all')
      await queue.advance(MINUTE)
      expect(queue.tried('busy.example')).toEqual([0, 6 * 86_400])
      expect(told(queue)).toEqual(operation === 'release' ? ['failed: ann@busy.example'] : [])
      if (operation === 'requeue') expect(queue.dueAt('ann@busy.example')).toBe(6 * 86_400 + 300)
    }
  })

  test('30 · of two that are left, only the one that fails is in the notice', async () => {
    const queue = await world({
      'busy.example': busy,
      'late.example': ({ at }) => (at >= seconds(LIFETIME) ? accepts : busy),
    })
    await queue.accept(['ann@busy.example', 'bob@late.example'])
    await queue.advance(6 * DAY)
    expect(queue.arrivals('bob@late.example')).toHaveLength(1)
    expect(told(queue)).toEqual(['failed: ann@busy.example'])
  })

  test('31 · a deferred message that is expired by force goes at its due time, unasked, with the old reason', async () => {
    const queue = await world({ 'busy.example': busy })
    const id = await queue.accept(['ann@busy.example'])
    await queue.advance(10 * SECOND)
    await queue.order('expire', [id])
    await queue.advance(200 * SECOND)
    expect(told(queue)).toEqual([])
    await queue.advance(90 * SECOND)
    expect(queue.tried('busy.example')).toEqual([0])
    const [notice] = queue.notices()
    expect(notice?.recipients).toMatchObject([{ action: 'failed', status: '4.2.1', diagnostic: '450 4.2.1 busy' }])
    expect(notice?.text.replace(/\s+/g, ' ')).toContain('it was given up by the postmaster')
    expect(queue.happened('expired')).toMatchObject([{ forced: true }])
  })

  test('32, 33 · held mail that is expired by force stays until it is released; never tried, it says 4.7.0', async () => {
    const queue = await world({ 'busy.example': busy })
    await queue.relay.wakes.suspend('busy.example', 'operator')
    const id = await queue.accept(['ann@busy.example'])
    await queue.order('hold', [id])
    await queue.order('expire', [id])
    await queue.relay.wakes.resume('busy.example', 'operator')
    await queue.advance(DAY)
    expect(told(queue)).toEqual([])
    await queue.order('release', [id])
    await queue.advance(MINUTE)
    expect(queue.tried('busy.example')).toEqual([])
    expect(queue.notices()[0]?.recipients).toMatchObject([{ status: '4.7.0', diagnostic: 'message is administratively expired' }])
  })
})

describe('notices', () => {
  test('34 · soft_bounce keeps mail that is refused, not mail whose time is over', async () => {
    const queue = await world({ 'busy.example': busy }, ['soft_bounce=yes'])
    await queue.accept(['ann@busy.example'])
    await queue.advance(5 * DAY)
    expect(told(queue)).toEqual(['failed: ann@busy.example'])
  })

  test('36 · 250, 550, 450: one notice for the second at once, the third stays', async () => {
    const queue = await world({ 'no.example': unknown, 'busy.example': busy })
    await queue.accept(['ann@ok.example', 'bob@no.example', 'cat@busy.example'])
    await queue.rest()
    expect(told(queue)).toEqual(['failed: bob@no.example'])
    expect(queue.recipient('cat@busy.example')?.state).toBe('waiting')
    await queue.advance(300 * SECOND)
    expect(queue.tried('ok.example')).toEqual([0])
    expect(queue.tried('no.example')).toEqual([0])
    expect(queue.tried('busy.example')).toEqual([0, 300])
  })

  test('one notice names all that failed in the round, wherever they failed', async () => {
    const queue = await world({
      'a.example': unknown,
      'b.example': { ...unknown, takes: 30 * SECOND },
      'c.example': { ...unknown, takes: 90 * SECOND },
    })
    await queue.accept(['ann@a.example', 'bob@b.example', 'cat@c.example'])
    await queue.advance(2 * MINUTE)
    expect(told(queue)).toEqual(['failed: ann@a.example bob@b.example', 'failed: cat@c.example'])
    expect(queue.happened('noticed').map(({ at }) => at)).toEqual([60 * SECOND, 90 * SECOND])
  })

  test('43, 44 · NOTIFY decides who hears; mail leaves the queue either way', async () => {
    const queue = await world({ 'no.example': unknown })
    await queue.accept([
      { address: 'a@no.example', notify: ['failure'] },
      { address: 'b@no.example', notify: 'never' },
      { address: 'c@no.example' },
      { address: 'd@no.example', notify: ['success'] },
    ])
    await queue.rest()
    expect(told(queue)).toEqual(['failed: a@no.example c@no.example'])
    await queue.accept([{ address: 'e@no.example', notify: 'never' }])
    await queue.rest()
    expect(told(queue)).toHaveLength(1)
    expect(queue.reader.list({}, { after: 0, limit: 9, now: queue.clock.now() })).toEqual([])
  })

  test('45 · success is reported where the next hop takes no reports over', async () => {
    const queue = await world({})
    await queue.accept([{ address: 'ann@ok.example', notify: ['success'] }, 'bob@ok.example'])
    await queue.rest()
    expect(told(queue)).toEqual(['relayed: ann@ok.example'])
  })

  test('46 · an undeliverable notice vanishes; with 2bounce the postmaster gets it', async () => {
    for (const classes of ['', '2bounce']) {
      const queue = await world({ 'no.example': unknown, 'us.example': unknown }, [`notify_classes=${classes}`])
      await queue.accept(['ann@no.example'])
      await queue.rest()
      expect(queue.happened('noticed').map(({ to }) => to)).toEqual(classes === '' ? ['sender'] : ['sender', 'postmaster'])
      expect(queue.arrivals('postmaster@relay.example')).toHaveLength(classes === '' ? 0 : 1)
      // S54: what is dropped is told to the operator.
      const dropped = classes === '' ? [{ why: 'an undeliverable notice is not reported to anybody' }] : []
      expect(queue.happened('notice-dropped')).toMatchObject(dropped)
      expect(queue.reader.list({}, { after: 0, limit: 9, now: queue.clock.now() })).toEqual([])
    }
  })

  test('47 · and when the postmaster cannot be reached either, that is the end', async () => {
    const queue = await world({ 'no.example': unknown, 'us.example': unknown, 'relay.example': unknown }, ['notify_classes=2bounce,bounce'])
    await queue.accept(['ann@no.example'])
    await queue.advance(HOUR)
    // The sender, the copy, the double bounce: each once.
    expect(queue.happened('noticed')).toHaveLength(3)
    const why = 'undeliverable mail from double-bounce@relay.example is discarded'
    expect(queue.happened('notice-dropped')).toMatchObject([{ why }, { why }])
    expect(queue.reader.list({}, { after: 0, limit: 9, now: queue.clock.now() })).toEqual([])
  })

  test('49 · one warning, with the first attempt that fails after its time', async () => {
    const queue = await world({ 'busy.example': busy }, ['delay_warning_time=4h'])
    await queue.accept(['ann@busy.example'])
    await queue.advance(DAY)
    const attempts = queue.tried('busy.example')
    const [warned, ...more] = queue.happened('noticed')
    expect(more).toEqual([])
    expect(warned).toMatchObject({ notice: 'delay', at: seconds(attempts.find((at) => at >= 14_400) ?? 0) })
    expect(queue.notices()[0]?.recipients).toMatchObject([{ action: 'delayed', willRetryUntil: queue.clock.now() - DAY + 5 * DAY }])
  })

  test('50 · none for mail from nobody', async () => {
    const queue = await world({ 'busy.example': busy, 'dead.example': { kind: 'refuses-connections' } }, ['delay_warning_time=1h'])
    await queue.accept(['ann@busy.example', 'bob@dead.example'], { sender: '' })
    await queue.advance(DAY)
    expect(queue.happened('noticed')).toEqual([])
  })

  test('51 · none when the attempt after its time succeeds', async () => {
    const queue = await world({ 'slow.example': ({ at }) => (at >= 4 * HOUR ? accepts : busy) }, ['delay_warning_time=4h'])
    await queue.accept(['ann@slow.example'])
    await queue.advance(DAY)
    expect(queue.arrivals('ann@slow.example')).toHaveLength(1)
    expect(queue.happened('noticed')).toEqual([])
  })

  test('52 · confirm_delay_cleared: who was warned hears of the delivery', async () => {
    const queue = await world({ 'slow.example': ({ at }) => (at >= 6 * HOUR ? accepts : busy) }, [
      'delay_warning_time=4h',
      'confirm_delay_cleared=yes',
    ])
    await queue.accept(['ann@slow.example'])
    await queue.advance(DAY)
    expect(told(queue)).toEqual(['delayed: ann@slow.example', 'relayed: ann@slow.example'])
  })

  test('53 · when the message expires as its warning falls due, only the failure is told', async () => {
    const queue = await world({ 'busy.example': busy }, ['delay_warning_time=5d'])
    await queue.accept(['ann@busy.example'])
    await queue.advance(6 * DAY)
    expect(told(queue)).toEqual(['failed: ann@busy.example'])
  })

  test('warnings come as often as delay_warning_time says', async () => {
    const queue = await world({ 'busy.example': busy }, ['delay_warning_time=4h,24h'])
    await queue.accept(['ann@busy.example'])
    await queue.advance(6 * DAY)
    expect(told(queue)).toEqual(['delayed: ann@busy.example', 'delayed: ann@busy.example', 'failed: ann@busy.example'])
  })

  test('mail behind a suspended destination is warned of at the time itself', async () => {
    const queue = await world({}, ['delay_warning_time=4h'])
    await queue.relay.wakes.suspend('quiet.example', 'operator')
    await queue.accept(['ann@quiet.example'])
    await queue.advance(DAY)
    expect(queue.tried('quiet.example')).toEqual([])
    expect(queue.happened('noticed')).toMatchObject([{ notice: 'delay', at: 4 * HOUR }])
  })

  test('mail behind a dead destination is warned of at the time itself', async () => {
    const queue = await world({ 'dead.example': { kind: 'refuses-connections' } }, ['delay_warning_time=4h'])
    for (let n = 0; n < 20; n++) await queue.accept([`user${n}@dead.example`])
    await queue.advance(DAY)
    const warned = queue.happened('noticed')
    expect(warned).toHaveLength(20)
    expect(new Set(warned.map(({ message }) => message.id)).size).toBe(20)
    expect(warned.filter(({ at }) => at === 4 * HOUR).length).toBeGreaterThanOrEqual(18)
  })
})

describe('a storm of undeliverable mail', () => {
  /** How long mail to a healthy destination takes while a storm of this size is on. */
  async function latencies(storm: number): Promise<readonly number[]> {
    const slow: Reception = { kind: 'accepts', takes: 100 }
    const queue = await world({ 'no.example': unknown, 'us.example': slow, 'ok.example': slow })
    for (let n = 0; n < storm; n++) await queue.accept([`user${n}@no.example`])
    const sent: number[] = []
    for (let n = 0; n < 20; n++) {
      sent.push(queue.clock.now())
      await queue.accept([`ann${n}@ok.example`])
      await queue.advance(SECOND)
    }
    await queue.advance(HOUR)
    expect(queue.notices()).toHaveLength(storm)
    const began = queue.clock.now() - HOUR - 20 * SECOND
    return sent.map((at, n) => (queue.arrivals(`ann${n}@ok.example`)[0]?.at ?? Infinity) - (at - began))
  }

  test('does not delay other mail', async () => {
    expect(await latencies(500)).toEqual(await latencies(0))
  })
})
