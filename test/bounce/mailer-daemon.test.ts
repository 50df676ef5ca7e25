/** The loop of MAILER-DAEMON: one notice per message and round, none lost, none twice, never in the way. */
import { describe, expect, test } from 'vitest'
import { HOUR, MINUTE, SECOND } from '../../src/mail/clock.ts'
import { seededRandom } from '../../src/mail/random.ts'
import { recipientId } from '../../src/queue/message.ts'
import { NoticeWorld, type Fate } from '../support/notice-world.ts'
import { operate } from '../support/operate.ts'

const started = (options: ConstructorParameters<typeof NoticeWorld>[0] = {}): NoticeWorld => {
  const world = new NoticeWorld(options)
  world.daemon.start()
  return world
}

describe('a round', () => {
  test('ends when nothing of the message is in delivery any more, and makes one notice', async () => {
    const world = started()
    const message = await world.message(['a@x.example', 'b@y.example', 'c@z.example'])
    world.inDelivery.add(message.id)
    await world.fail(message, 0)
    await world.advance(10 * SECOND)
    await world.fail(message, 1)
    expect(world.told).toEqual([])
    world.inDelivery.delete(message.id)
    world.daemon.atRest(message.id)
    await world.rest()
    expect(world.told).toEqual(['failed: a@x.example b@y.example'])
  })

  test('ends 60 s after its first failure, whatever is still in delivery', async () => {
    const world = started()
    const message = await world.message(['a@x.example', 'b@y.example', 'c@z.example'])
    world.inDelivery.add(message.id)
    await world.fail(message, 0)
    await world.advance(59 * SECOND)
    await world.fail(message, 1)
    expect(world.told).toEqual([])
    await world.advance(SECOND)
    expect(world.told).toEqual(['failed: a@x.example b@y.example'])
    await world.fail(message, 2)
    await world.advance(MINUTE)
    expect(world.told.slice(1)).toEqual(['failed: c@z.example'])
  })

  test('36 · a failure is told at once while another recipient waits for its next attempt', async () => {
    const world = started()
    const message = await world.message(['a@x.example', 'b@y.example'])
    await world.fail(message, 0)
    await world.defer(message, 1, world.clock.now() + HOUR)
    await world.rest()
    expect(world.told).toEqual(['failed: a@x.example'])
    expect(await world.store.debtsOf(message.id)).toBeUndefined()
  })

  test('the message leaves the queue with its last debt', async () => {
    const world = started()
    const message = await world.message(['a@x.example'])
    await world.fail(message)
    await world.rest()
    const kinds = world.history.map(({ kind }) => kind)
    expect(kinds).toEqual(['accepted', 'noticed', 'removed'])
    expect(world.history[1]).toMatchObject({ message, notice: 'failure', to: 'sender' })
    expect(world.sent[0]?.message).toMatchObject({ sender: '', bodyType: '7bit', smtputf8: false })
    expect(world.sent[0]?.recipients).toMatchObject([{ address: 'app@us.example' }])
  })

  test('a debt that nobody hears of is paid and noted', async () => {
    const world = started()
    const message = await world.message(['a@x.example'], { sender: 'double-bounce@relay.example' })
    await world.fail(message)
    await world.rest()
    expect(world.sent).toEqual([])
    expect(world.history.map(({ kind }) => kind)).toEqual(['accepted', 'notice-dropped', 'removed'])
  })
})

describe('nothing lost, nothing twice', () => {
  test('35 · while the store cannot commit, the debt stands; then there is one notice', async () => {
    const world = started()
    let failures = 5
    world.fate = () => (failures-- > 0 ? 'fails' : 'commits')
    const message = await world.message(['a@x.example'])
    await world.fail(message)
    await world.advance(3 * SECOND)
    expect(world.told).toEqual([])
    expect((await world.store.debtsOf(message.id))?.recipients).toHaveLength(1)
    await world.advance(10 * SECOND)
    expect(world.told).toEqual(['failed: a@x.example'])
    expect(world.withdrawals).toBe(5)
    expect(world.history.filter(({ kind }) => kind === 'note')).toHaveLength(1)
  })

  test('what fails while a warning is being written waits for the end of its round, and is told once', async () => {
    const world = started({ config: ['delay_warning_time=4h'] })
    const message = await world.message(['a@x.example', 'b@y.example', 'c@y.example'])
    for (const position of [0, 1, 2]) await world.defer(message, position, message.arrivedAt + HOUR)
    await world.advance(5 * HOUR)
    const triedAgain = async () => {
      world.inDelivery.add(message.id)
      for (const destination of ['x.example', 'y.example'])
        await world.store.claimDue({ destination, now: world.clock.now(), limit: 10, recipientLimit: 50 })
      await world.fail(message, 0)
      world.fate = () => 'commits'
      return 'commits' as const
    }
    world.fate = triedAgain
    await world.store.oweDelay(message.id, [recipientId(message.id, 0)])
    world.daemon.notice(message.id)
    await world.advance(2 * SECOND)
    expect(world.told).toEqual([])
    await world.fail(message, 1)
    await world.fail(message, 2)
    world.inDelivery.delete(message.id)
    world.daemon.atRest(message.id)
    await world.rest()
    expect(world.told).toEqual(['failed: a@x.example b@y.example c@y.example'])
  })

  test('56 · a crash between outcome and notice: it is made after the restart', async () => {
    const world = new NoticeWorld()
    const message = await world.message(['a@x.example'])
    await world.fail(message)
    await world.rest()
    expect(world.told).toEqual([])
    world.restart()
    await world.rest()
    expect(world.told).toEqual(['failed: a@x.example'])
  })

  test('10,000 crashes around the commits of notices: none lost, none doubled', { timeout: 60_000 }, async () => {
    const fates: readonly Fate[] = ['commits', 'fails', 'dies-before', 'dies-after']
    const draw = seededRandom(56).stream('fate')
    for (let crashes = 0; crashes < 10_000;) {
      const world = started()
      world.fate = () => fates[Math.floor(draw() * fates.length)] ?? 'commits'
      const expected: string[] = []
      for (let n = 0; n < 20; n++) {
        const message = await world.message([`a${n}@x.example`, `b${n}@y.example`])
        await world.fail(message, 0)
        await world.fail(message, 1)
        expected.push(`a${n}@x.example`, `b${n}@y.example`)
      }
      await world.advance(5 * MINUTE)
      const told = world.notices.flatMap(({ recipients }) => recipients.map(({ recipient }) => recipient))
      expect(told.toSorted()).toEqual(expected.toSorted())
      crashes += world.crashes
    }
  })

  test('a message that cannot be reported by reason of a bug does not hold up the others', async () => {
    const world = started()
    world.fate = ({ message }) => {
      if (message === 1) throw new TypeError('a bug')
      return 'commits'
    }
    const bad = await world.message(['a@x.example'])
    const good = await world.message(['b@x.example'])
    await world.fail(bad)
    await world.fail(good)
    await world.rest()
    expect(world.told).toEqual(['failed: b@x.example'])
    expect(world.history.find(({ kind }) => kind === 'note')).toMatchObject({ level: 'error', text: expect.stringContaining('a bug') })
    expect(await world.store.debtsOf(bad.id)).toBeDefined()
  })

  test('and is tried again ever more rarely, in the end only by the next start', async () => {
    const world = started()
    const tries: number[] = []
    world.fate = () => {
      tries.push(world.clock.monotonic() / MINUTE)
      throw new TypeError('a bug')
    }
    const bad = await world.message(['a@x.example'])
    await world.fail(bad)
    await world.advance(48 * HOUR)
    expect(tries).toEqual([0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023])
    expect(world.history.at(-1)).toMatchObject({ level: 'error', text: expect.stringContaining('after the next start') })
    expect(world.clock.pending).toBe(0)
    world.fate = () => 'commits'
    world.restart()
    await world.rest()
    expect(world.told).toEqual(['failed: a@x.example'])
  })

  test('when the trouble has gone meanwhile, the notice is made, once', async () => {
    const world = started()
    let bugs = 2
    world.fate = () => {
      if (bugs-- > 0) throw new TypeError('a bug')
      return 'commits'
    }
    await world.fail(await world.message(['a@x.example']))
    await world.advance(48 * HOUR)
    expect(world.told).toEqual(['failed: a@x.example'])
  })

  test('a stop ends what is in the making and leaves the rest for the next start', async () => {
    const world = started({ pace: { burst: 1, perSecond: 1 } })
    for (const name of ['a', 'b', 'c']) await world.fail(await world.message([`${name}@x.example`]))
    await world.rest()
    await world.daemon.stop()
    await world.advance(MINUTE)
    expect(world.told).toEqual(['failed: a@x.example'])
    world.restart()
    await world.advance(MINUTE)
    expect(world.told.toSorted()).toEqual(['failed: a@x.example', 'failed: b@x.example', 'failed: c@x.example'])
  })
})

describe('a storm', () => {
  test('of undeliverable messages is worked off at a bounded rate, few at once', async () => {
    const world = new NoticeWorld({ pace: { burst: 50, perSecond: 100 } })
    for (let n = 0; n < 1_050; n++) await world.fail(await world.message([`a${n}@x.example`]))
    world.daemon.start()
    await world.rest()
    expect(world.sent).toHaveLength(50)
    await world.advance(SECOND)
    expect(world.sent).toHaveLength(150)
    await world.advance(9 * SECOND)
    expect(world.sent).toHaveLength(1_050)
    expect(world.mostUnderWay).toBeLessThanOrEqual(8)
    expect(new Set(world.told).size).toBe(1_050)
  })
})

describe('delay warnings', () => {
  const config = ['delay_warning_time=4h,24h']

  test('come at the time itself for mail behind a dead or suspended destination', async () => {
    const world = started({ config })
    world.closed.add('x.example')
    const message = await world.message(['a@x.example'])
    await world.defer(message, 0, world.clock.now() + 30 * HOUR, { warnAt: message.arrivedAt + 4 * HOUR })
    await world.advance(4 * HOUR - 1)
    expect(world.told).toEqual([])
    await world.advance(1)
    expect(world.told).toEqual(['delayed: a@x.example'])
    await world.advance(20 * HOUR - 1)
    expect(world.told).toHaveLength(1)
    await world.advance(1)
    expect(world.told).toEqual(['delayed: a@x.example', 'delayed: a@x.example'])
    await world.advance(20 * HOUR)
    expect(world.told).toHaveLength(2)
  })

  test('49 · come with the first failed attempt elsewhere', async () => {
    const world = started({ config })
    const message = await world.message(['a@x.example'])
    const due = message.arrivedAt + 4 * HOUR + 50 * MINUTE
    await world.defer(message, 0, due, { warnAt: message.arrivedAt + 4 * HOUR })
    await world.advance(4 * HOUR + 50 * MINUTE)
    expect(world.told).toEqual([])
    await world.store.claimDue({ destination: 'x.example', now: world.clock.now(), limit: 1, recipientLimit: 1 })
    await world.defer(message, 0, due + HOUR, { debt: 'delay', warnAt: null })
    await world.rest()
    expect(world.told).toEqual(['delayed: a@x.example'])
    expect((await world.store.nextDeadlines()).warnAt).toBe(message.arrivedAt + 24 * HOUR)
  })

  test('name everybody whose mail is late, not only who waits behind the closed door', async () => {
    const world = started({ config })
    world.closed.add('y.example')
    const message = await world.message(['a@x.example', 'b@y.example', 'c@z.example'])
    await world.defer(message, 0, message.arrivedAt + 5 * HOUR)
    await world.defer(message, 1, message.arrivedAt + 5 * HOUR, { warnAt: message.arrivedAt + 4 * HOUR })
    await world.fail(message, 2)
    await world.advance(4 * HOUR)
    expect(world.told).toEqual(['failed: c@z.example', 'delayed: a@x.example b@y.example'])
  })

  test('name everybody whose mail is late by then, wherever it waits, and nobody else', async () => {
    const world = started({ config })
    const notify = ['failure'] as const
    const to = ['a@x.example', 'b@y.example', { address: 'c@z.example', notify }, 'd@x.example', 'e@y.example']
    const message = await world.message(to)
    const later = message.arrivedAt + 6 * HOUR
    await world.defer(message, 0, message.arrivedAt + 5 * HOUR)
    for (const position of [1, 2]) await world.defer(message, position, later)
    await world.fail(message, 3)
    await world.advance(5 * HOUR)
    await world.store.claimDue({ destination: 'x.example', now: world.clock.now(), limit: 1, recipientLimit: 1 })
    await world.defer(message, 0, later, { debt: 'delay', warnAt: null })
    await world.rest()
    // c does not want to hear of delays, d has failed, e was never tried and is in delivery.
    expect(world.told).toEqual(['failed: d@x.example', 'delayed: a@x.example b@y.example'])
  })

  test('come once for each age, though attempts end before and after it', async () => {
    const world = started({ config })
    const message = await world.message(['a@x.example', 'b@y.example'])
    await world.advance(4 * HOUR)
    await world.defer(message, 0, message.arrivedAt + 30 * HOUR, { debt: 'delay', warnAt: null })
    await world.advance(2 * MINUTE)
    await world.defer(message, 1, message.arrivedAt + 30 * HOUR, { debt: 'delay', warnAt: null })
    await world.rest()
    expect(world.told).toEqual(['delayed: a@x.example'])
    expect(await world.store.debtsOf(message.id)).toBeUndefined()
    expect((await world.store.nextDeadlines()).warnAt).toBe(message.arrivedAt + 24 * HOUR)
    world.closed.add('x.example')
    await world.advance(20 * HOUR)
    expect(world.told.slice(1)).toEqual(['delayed: a@x.example b@y.example'])
  })

  test('are not made for who does not want them, nor for mail from nobody', async () => {
    const world = started({ config })
    world.closed.add('x.example')
    const quiet = await world.message([{ address: 'a@x.example', notify: ['failure'] }])
    const nobody = await world.message(['b@x.example'], { sender: '' })
    for (const message of [quiet, nobody]) {
      await world.defer(message, 0, message.arrivedAt + 30 * HOUR, { warnAt: message.arrivedAt + 4 * HOUR })
    }
    await world.advance(30 * HOUR)
    expect(world.told).toEqual([])
    expect((await world.store.nextDeadlines()).warnAt).toBeNull()
  })

  test('never speak of held mail', async () => {
    const world = started({ config })
    world.closed.add('x.example')
    const message = await world.message(['a@x.example'])
    await world.defer(message, 0, message.arrivedAt + 30 * HOUR, { warnAt: message.arrivedAt + 4 * HOUR })
    await operate(world.store, message.id, { kind: 'hold' })
    await world.advance(30 * HOUR)
    expect(world.told).toEqual([])
  })

  test('that were missed while nobody was at work are made up for once', async () => {
    const world = new NoticeWorld({ config })
    world.closed.add('x.example')
    const message = await world.message(['a@x.example'])
    await world.defer(message, 0, message.arrivedAt + 40 * HOUR, { warnAt: message.arrivedAt + 4 * HOUR })
    await world.advance(30 * HOUR)
    world.restart()
    await world.advance(10 * HOUR)
    expect(world.told).toEqual(['delayed: a@x.example'])
  })

  test('of new mail that waits from the start come at their time', async () => {
    const world = started({ config })
    world.closed.add('x.example')
    const message = await world.message(['a@x.example'])
    await world.store.giveBack([message.id * 131_072])
    world.daemon.waits(message)
    await world.advance(4 * HOUR)
    expect(world.told).toEqual(['delayed: a@x.example'])
  })
})
