/**
 * Expiry and notices of the whole queue in virtual time, as in Postfix qmgr(8) and bounce(8). In deferd, the last attempt falls on
 * the expiry itself. test/bounce has tests of single notices and of MAILER-DAEMON.
 */
import { describe, expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/system/clock.ts'
import { type Behaviour, type ModelledDelivery } from '../support/modelled-remote.ts'
import { QueueWorld } from '../support/queue-world.ts'
import type { WorldConfig } from '../../src/testkit/options/world-options.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'

const LIFETIME = 432_000
const FIVE_DAYS = { maximal_queue_lifetime: '5d', bounce_queue_lifetime: '5d', myhostname: 'relay.example', myorigin: 'relay.example' }

const busy: Behaviour = { kind: 'replies', reply: '450 4.2.1 busy' }
const unknown: Behaviour = { kind: 'replies', reply: '550 5.1.1 no such user' }
const accepts: Behaviour = { kind: 'accepts' }

/** Behaviour of each destination; mail to the sender is accepted. */
const far =
  (behaviours: Readonly<Record<string, Behaviour | ((visit: ModelledDelivery) => Behaviour)>>) =>
  (visit: ModelledDelivery): Behaviour => {
    const reception = behaviours[visit.destination] ?? accepts
    return typeof reception === 'function' ? reception(visit) : reception
  }

const world = (behaviours: Parameters<typeof far>[0], config: WorldConfig = {}): Promise<QueueWorld> =>
  QueueWorld.create({ config: { ...FIVE_DAYS, ...config }, remote: far(behaviours) })

/** Action and recipients of the notices that arrived. */
const told = (one: QueueWorld, address?: string): readonly string[] =>
  one.notices(address).map(({ action, recipients }) => `${action}: ${recipients.map(({ recipient }) => recipient).join(' ')}`)

const seconds = (n: number): number => n * SECOND

describe('expiry', () => {
  test('a failure at age 431,999 s defers, at 432,000 s it expires', async () => {
    const queue = await world({ 'busy.example': busy })
    const id = await queue.accept(['ann@busy.example'])
    await queue.advance(seconds(LIFETIME - 1))
    await queue.operate('flush', [id])
    expect(queue.tried('busy.example').at(-1)).toBe(LIFETIME - 1)
    expect(told(queue)).toEqual([])
    await queue.advance(seconds(1))
    expect(queue.tried('busy.example').at(-1)).toBe(LIFETIME)
    expect(told(queue)).toEqual(['failed: ann@busy.example'])
  })

  test('expiry follows the last attempt, which is at the end of the lifetime', async () => {
    const queue = await world({ 'busy.example': busy })
    await queue.accept(['ann@busy.example'])
    await queue.advance(6 * DAY)
    expect(queue.tried('busy.example').at(-1)).toBe(LIFETIME)
    expect(queue.happened('notice-sent')).toMatchObject([{ at: seconds(LIFETIME) }])
    const [notice] = queue.notices()
    expect(notice?.recipients).toMatchObject([{ action: 'failed', status: '4.2.1', diagnostic: '450 4.2.1 busy', remoteMta: 'far' }])
  })

  test('a lifetime of 0: one attempt, and the notice at once', async () => {
    const queue = await QueueWorld.create({
      config: { maximal_queue_lifetime: '0', myhostname: 'relay.example' },
      remote: far({ 'busy.example': busy }),
    })
    await queue.accept(['ann@busy.example'])
    await queue.rest()
    expect(queue.tried('busy.example')).toEqual([0])
    expect(queue.happened('notice-sent')).toHaveLength(1)
  })

  test('mail found ten days late is tried once more, and delivered', async () => {
    let down = true
    const queue = await world({ 'down.example': () => (down ? busy : accepts) })
    await queue.accept(['ann@down.example'])
    await queue.rest()
    down = false
    await queue.crash(10 * DAY)
    await queue.advance(MINUTE)
    expect(queue.arrivals('ann@down.example')).toHaveLength(1)
    expect(told(queue)).toEqual([])
  })

  test('mail from the null sender has bounce_queue_lifetime, and gets no notice', async () => {
    const queue = await world({ 'busy.example': busy }, { bounce_queue_lifetime: '1d' })
    await queue.accept(['ann@busy.example'], { sender: '' })
    await queue.advance(2 * DAY)
    expect(queue.tried('busy.example').at(-1)).toBe(86_400)
    expect(queue.happened('removed')).toHaveLength(1)
    expect(queue.happened('notice-sent')).toEqual([])
  })

  test('double-bounce mail to the postmaster has maximal_queue_lifetime', async () => {
    const queue = await world({ 'busy.example': busy }, { bounce_queue_lifetime: '1d' })
    await queue.accept(['postmaster@busy.example'], { sender: 'double-bounce@relay.example' })
    await queue.advance(2 * DAY)
    expect(queue.tried('busy.example').at(-1)).toBeGreaterThan(86_400)
    expect((await queue.recipient('postmaster@busy.example'))?.state).toBe('waiting')
  })

  test('held for six days: expired by the first attempt after the release; requeued instead: deferred', async () => {
    for (const operation of ['release', 'requeue'] as const) {
      const queue = await world({ 'busy.example': busy })
      const id = await queue.accept(['ann@busy.example'])
      await queue.rest()
      await queue.operate('hold', [id])
      await queue.advance(6 * DAY)
      expect(queue.tried('busy.example')).toEqual([0])
      const { changed } = await queue.operate(operation, [id])
      expect(changed).toBe(1)
      if (operation === 'requeue') await queue.operate('release', 'all')
      await queue.advance(MINUTE)
      expect(queue.tried('busy.example')).toEqual([0, 6 * 86_400])
      expect(told(queue)).toEqual(operation === 'release' ? ['failed: ann@busy.example'] : [])
      if (operation === 'requeue') expect(await queue.dueAt('ann@busy.example')).toBe(6 * 86_400 + 300)
    }
  })

  test('of two recipients left, only the one that fails is in the notice', async () => {
    const queue = await world({
      'busy.example': busy,
      'late.example': ({ at }) => (at >= seconds(LIFETIME) ? accepts : busy),
    })
    await queue.accept(['ann@busy.example', 'bob@late.example'])
    await queue.advance(6 * DAY)
    expect(queue.arrivals('bob@late.example')).toHaveLength(1)
    expect(told(queue)).toEqual(['failed: ann@busy.example'])
  })

  test('a force-expired deferred message expires at its due time, without an attempt, with the earlier reason', async () => {
    const queue = await world({ 'busy.example': busy })
    const id = await queue.accept(['ann@busy.example'])
    await queue.advance(10 * SECOND)
    await queue.operate('expire', [id])
    await queue.advance(200 * SECOND)
    expect(told(queue)).toEqual([])
    await queue.advance(90 * SECOND)
    expect(queue.tried('busy.example')).toEqual([0])
    const [notice] = queue.notices()
    expect(notice?.recipients).toMatchObject([{ action: 'failed', status: '4.2.1', diagnostic: '450 4.2.1 busy' }])
    expect(notice?.text.replace(/\s+/g, ' ')).toContain('the postmaster ended the attempts')
    expect(queue.happened('expired')).toMatchObject([{ forced: true }])
  })

  test('force-expired held mail stays until it is released; without an attempt its status is 4.7.0', async () => {
    const queue = await world({ 'busy.example': busy })
    await queue.relay.schedulerControl.suspend('busy.example', { by: 'operator', until: null, reason: null })
    const id = await queue.accept(['ann@busy.example'])
    await queue.operate('hold', [id])
    await queue.operate('expire', [id])
    await queue.relay.schedulerControl.resume('busy.example', 'operator')
    await queue.advance(DAY)
    expect(told(queue)).toEqual([])
    await queue.operate('release', [id])
    await queue.advance(MINUTE)
    expect(queue.tried('busy.example')).toEqual([])
    expect(queue.notices()[0]?.recipients).toMatchObject([{ status: '4.7.0', diagnostic: 'message is administratively expired' }])
  })
})

describe('notices', () => {
  test('soft_bounce defers rejected mail, not expired mail', async () => {
    const queue = await world({ 'busy.example': busy }, { soft_bounce: 'yes' })
    await queue.accept(['ann@busy.example'])
    await queue.advance(5 * DAY)
    expect(told(queue)).toEqual(['failed: ann@busy.example'])
  })

  test('250, 550, 450: one notice for the second at once, the third stays', async () => {
    const queue = await world({ 'no.example': unknown, 'busy.example': busy })
    await queue.accept(['ann@ok.example', 'bob@no.example', 'cat@busy.example'])
    await queue.rest()
    expect(told(queue)).toEqual(['failed: bob@no.example'])
    expect((await queue.recipient('cat@busy.example'))?.state).toBe('waiting')
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
    expect(queue.happened('notice-sent').map(({ at }) => at)).toEqual([60 * SECOND, 90 * SECOND])
  })

  test('NOTIFY decides about notices; mail leaves the queue either way', async () => {
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
    expect(await queue.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })).toEqual([])
  })

  test('success is reported when the next hop does not announce DSN', async () => {
    const queue = await world({})
    await queue.accept([{ address: 'ann@ok.example', notify: ['success'] }, 'bob@ok.example'])
    await queue.rest()
    expect(told(queue)).toEqual(['relayed: ann@ok.example'])
  })

  test('an undeliverable notice is discarded; with 2bounce the postmaster gets it', async () => {
    for (const classes of ['', '2bounce']) {
      const queue = await world({ 'no.example': unknown, 'us.example': unknown }, { notify_classes: classes })
      await queue.accept(['ann@no.example'])
      await queue.rest()
      expect(queue.happened('notice-sent').map(({ to }) => to)).toEqual(classes === '' ? ['sender'] : ['sender', 'postmaster'])
      expect(queue.arrivals('postmaster@relay.example')).toHaveLength(classes === '' ? 0 : 1)
      // A dropped notice is reported in the log.
      const dropped = classes === '' ? [{ why: 'an undeliverable notice is not reported to anybody' }] : []
      expect(queue.happened('notice-dropped')).toMatchObject(dropped)
      expect(await queue.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })).toEqual([])
    }
  })

  test('an undeliverable double bounce is discarded', async () => {
    const queue = await world(
      { 'no.example': unknown, 'us.example': unknown, 'relay.example': unknown },
      { notify_classes: '2bounce,bounce' },
    )
    await queue.accept(['ann@no.example'])
    await queue.advance(HOUR)
    // The sender, the copy, the double bounce: each once.
    expect(queue.happened('notice-sent')).toHaveLength(3)
    const why = 'undeliverable mail from double-bounce@relay.example is discarded'
    expect(queue.happened('notice-dropped')).toMatchObject([{ why }, { why }])
    expect(await queue.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })).toEqual([])
  })

  test('one delay notice, with the first attempt that fails after its time', async () => {
    const queue = await world({ 'busy.example': busy }, { delay_warning_time: '4h' })
    await queue.accept(['ann@busy.example'])
    await queue.advance(DAY)
    const attempts = queue.tried('busy.example')
    const [warned, ...more] = queue.happened('notice-sent')
    expect(more).toEqual([])
    expect(warned).toMatchObject({ notice: 'delay', at: seconds(attempts.find((at) => at >= 14_400) ?? 0) })
    expect(queue.notices()[0]?.recipients).toMatchObject([{ action: 'delayed', willRetryUntil: queue.clock.now() - DAY + 5 * DAY }])
  })

  test('no delay notice for the null sender', async () => {
    const queue = await world({ 'busy.example': busy, 'dead.example': { kind: 'refuses-connections' } }, { delay_warning_time: '1h' })
    await queue.accept(['ann@busy.example', 'bob@dead.example'], { sender: '' })
    await queue.advance(DAY)
    expect(queue.happened('notice-sent')).toEqual([])
  })

  test('no delay notice when the attempt after its time succeeds', async () => {
    const queue = await world({ 'slow.example': ({ at }) => (at >= 4 * HOUR ? accepts : busy) }, { delay_warning_time: '4h' })
    await queue.accept(['ann@slow.example'])
    await queue.advance(DAY)
    expect(queue.arrivals('ann@slow.example')).toHaveLength(1)
    expect(queue.happened('notice-sent')).toEqual([])
  })

  test('confirm_delay_cleared: a warned sender gets a notice of the delivery', async () => {
    const queue = await world(
      { 'slow.example': ({ at }) => (at >= 6 * HOUR ? accepts : busy) },
      {
        delay_warning_time: '4h',
        confirm_delay_cleared: 'yes',
      },
    )
    await queue.accept(['ann@slow.example'])
    await queue.advance(DAY)
    expect(told(queue)).toEqual(['delayed: ann@slow.example', 'relayed: ann@slow.example'])
  })

  test('a message that expires when its delay notice is due gets the failure notice only', async () => {
    const queue = await world({ 'busy.example': busy }, { delay_warning_time: '5d' })
    await queue.accept(['ann@busy.example'])
    await queue.advance(6 * DAY)
    expect(told(queue)).toEqual(['failed: ann@busy.example'])
  })

  test('delay notices are sent at each age in delay_warning_time', async () => {
    const queue = await world({ 'busy.example': busy }, { delay_warning_time: '4h,24h' })
    await queue.accept(['ann@busy.example'])
    await queue.advance(6 * DAY)
    expect(told(queue)).toEqual(['delayed: ann@busy.example', 'delayed: ann@busy.example', 'failed: ann@busy.example'])
  })

  test('a delay notice for a suspended destination is sent at the time itself', async () => {
    const queue = await world({}, { delay_warning_time: '4h' })
    await queue.relay.schedulerControl.suspend('quiet.example', { by: 'operator', until: null, reason: null })
    await queue.accept(['ann@quiet.example'])
    await queue.advance(DAY)
    expect(queue.tried('quiet.example')).toEqual([])
    expect(queue.happened('notice-sent')).toMatchObject([{ notice: 'delay', at: 4 * HOUR }])
  })

  test('a delay notice for a dead destination is sent at the time itself', async () => {
    const queue = await world({ 'dead.example': { kind: 'refuses-connections' } }, { delay_warning_time: '4h' })
    for (let n = 0; n < 20; n++) await queue.accept([`user${n}@dead.example`])
    await queue.advance(DAY)
    const warned = queue.happened('notice-sent')
    expect(warned).toHaveLength(20)
    expect(new Set(warned.map(({ message }) => message.id)).size).toBe(20)
    expect(warned.filter(({ at }) => at === 4 * HOUR).length).toBeGreaterThanOrEqual(18)
  })
})

describe('many undeliverable messages', () => {
  /** Delivery time at a healthy destination during a burst of this size. */
  async function latencies(storm: number): Promise<readonly number[]> {
    const slow: Behaviour = { kind: 'accepts', takes: 100 }
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

  test('do not delay other mail', async () => {
    expect(await latencies(500)).toEqual(await latencies(0))
  })
})
