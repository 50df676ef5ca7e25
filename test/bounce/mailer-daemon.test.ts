/** The loop of MAILER-DAEMON: one notice per message and round, none lost, none sent twice, and no delay of other mail. */
import { describe, expect, test } from 'vitest'
import { HOUR, MINUTE, SECOND } from '../../src/system/clock.ts'
import { recipientId } from '../../src/mail/message.ts'
import { noticesSurviveCrashes } from '../support/notice-crashes.ts'
import { MailerDaemonHarness } from '../support/mailer-daemon-harness.ts'
import { operate } from '../support/operate.ts'

const started = (options: ConstructorParameters<typeof MailerDaemonHarness>[0] = {}): MailerDaemonHarness => {
  const world = new MailerDaemonHarness(options)
  world.daemon.start(world)
  return world
}

describe('a round', () => {
  test('ends when no recipient of the message is in delivery, and makes one notice', async () => {
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

  test('a failure is reported at once while another recipient is deferred', async () => {
    const world = started()
    const message = await world.message(['a@x.example', 'b@y.example'])
    await world.fail(message, 0)
    await world.defer(message, 1, world.clock.now() + HOUR)
    await world.rest()
    expect(world.told).toEqual(['failed: a@x.example'])
    expect(await world.store.noticesDueOf(message.id)).toBeUndefined()
  })

  test('the message leaves the queue with its last notice', async () => {
    const world = started()
    const message = await world.message(['a@x.example'])
    await world.fail(message)
    await world.rest()
    const kinds = world.history.map(({ kind }) => kind)
    expect(kinds).toEqual(['accepted', 'notice-sent', 'removed'])
    expect(world.history[1]).toMatchObject({ message, notice: 'failure', to: 'sender' })
    expect(world.sent[0]?.message).toMatchObject({ sender: '', bodyType: '7bit', smtputf8: false })
    expect(world.sent[0]?.recipients).toMatchObject([{ address: 'app@us.example' }])
  })

  test('a notice without an addressee is cleared and logged', async () => {
    const world = started()
    const message = await world.message(['a@x.example'], { sender: 'double-bounce@relay.example' })
    await world.fail(message)
    await world.rest()
    expect(world.sent).toEqual([])
    expect(world.history.map(({ kind }) => kind)).toEqual(['accepted', 'notice-dropped', 'removed'])
    expect(world.history[1]).toMatchObject({ why: 'it is mail to the postmaster' })
  })
})

describe('no notice lost or sent twice', () => {
  test('while the store cannot commit, the notice stays due; then there is one notice', async () => {
    const world = started()
    world.fails = true
    const message = await world.message(['a@x.example'])
    await world.fail(message)
    await world.advance(4 * SECOND)
    expect(world.told).toEqual([])
    expect((await world.store.noticesDueOf(message.id))?.recipients).toHaveLength(1)
    world.fails = false
    await world.advance(10 * SECOND)
    expect(world.told).toEqual(['failed: a@x.example'])
    expect(world.withdrawals).toBe(5)
    expect(world.history.filter(({ kind }) => kind === 'store-unavailable')).toHaveLength(1)
  })

  test('a stop while the store cannot commit leaves the notice to the next start, and reports no bug', async () => {
    const world = started()
    world.fails = true
    await world.fail(await world.message(['a@x.example']))
    await world.advance(2 * SECOND)
    const stopped = world.stop()
    await world.advance(SECOND)
    await stopped
    world.fails = false
    await world.advance(HOUR)
    expect(world.told).toEqual([])
    expect(world.history.filter(({ kind }) => kind === 'note')).toEqual([])
    world.restart()
    await world.rest()
    expect(world.told).toEqual(['failed: a@x.example'])
  })

  test('a failure during the writing of a delay notice waits for the end of its round, and is reported once', async () => {
    const world = started({ config: ['delay_warning_time=4h'] })
    const message = await world.message(['a@x.example', 'b@y.example', 'c@y.example'])
    for (const position of [0, 1, 2]) await world.defer(message, position, message.arrivedAt + HOUR)
    await world.advance(5 * HOUR)
    const triedAgain = async () => {
      world.inDelivery.add(message.id)
      for (const destination of ['x.example', 'y.example'])
        await world.store.claimDue({ destination, now: world.clock.now(), bands: [{ band: 0, limit: 10 }], recipientLimit: 50 })
      await world.fail(message, 0)
      world.fate = () => 'commits'
      return 'commits' as const
    }
    world.fate = triedAgain
    await world.store.markDelayNoticeDue(message.id, [recipientId(message.id, 0)])
    world.daemon.noticeDue(message.id)
    await world.advance(2 * SECOND)
    expect(world.told).toEqual([])
    await world.fail(message, 1)
    await world.fail(message, 2)
    world.inDelivery.delete(message.id)
    world.daemon.atRest(message.id)
    await world.rest()
    expect(world.told).toEqual(['failed: a@x.example b@y.example c@y.example'])
  })

  test('a notice due at a crash is made after the restart', async () => {
    const world = new MailerDaemonHarness()
    const message = await world.message(['a@x.example'])
    await world.fail(message)
    await world.rest()
    expect(world.told).toEqual([])
    world.restart()
    await world.rest()
    expect(world.told).toEqual(['failed: a@x.example'])
  })

  // 10,000 in test/long.
  test('1,000 crashes around the commits of notices: none lost, none doubled', () => noticesSurviveCrashes(1_000))

  test('a notice that fails with an internal error does not delay the others', async () => {
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
    expect(await world.store.noticesDueOf(bad.id)).toBeDefined()
  })

  test('is retried with exponential backoff, at last only after a restart', async () => {
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

  test('is made once when the cause has been removed', async () => {
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

  test('a stop finishes the current notice and leaves the rest for the next start', async () => {
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

describe('many undeliverable messages', () => {
  test('notices are made at a bounded rate, few in parallel', async () => {
    const world = new MailerDaemonHarness({ pace: { burst: 50, perSecond: 100 } })
    for (let n = 0; n < 1_050; n++) await world.fail(await world.message([`a${n}@x.example`]))
    world.daemon.start(world)
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

  test('are sent at the time itself for mail at a dead or suspended destination', async () => {
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

  test('are sent with the first failed attempt at other destinations', async () => {
    const world = started({ config })
    const message = await world.message(['a@x.example'])
    const due = message.arrivedAt + 4 * HOUR + 50 * MINUTE
    await world.defer(message, 0, due, { warnAt: message.arrivedAt + 4 * HOUR })
    await world.advance(4 * HOUR + 50 * MINUTE)
    expect(world.told).toEqual([])
    await world.store.claimDue({ destination: 'x.example', now: world.clock.now(), bands: [{ band: 0, limit: 1 }], recipientLimit: 1 })
    await world.defer(message, 0, due + HOUR, { noticeDue: 'delay', warnAt: null })
    await world.rest()
    expect(world.told).toEqual(['delayed: a@x.example'])
    expect((await world.store.nextDeadlines()).warnAt).toBe(message.arrivedAt + 24 * HOUR)
  })

  test('name all delayed recipients, not only those at the closed destination', async () => {
    const world = started({ config })
    world.closed.add('y.example')
    const message = await world.message(['a@x.example', 'b@y.example', 'c@z.example'])
    await world.defer(message, 0, message.arrivedAt + 5 * HOUR)
    await world.defer(message, 1, message.arrivedAt + 5 * HOUR, { warnAt: message.arrivedAt + 4 * HOUR })
    await world.fail(message, 2)
    await world.advance(4 * HOUR)
    expect(world.told).toEqual(['failed: c@z.example', 'delayed: a@x.example b@y.example'])
  })

  test('name the recipients delayed by then at any destination, and no others', async () => {
    const world = started({ config })
    const notify = ['failure'] as const
    const to = ['a@x.example', 'b@y.example', { address: 'c@z.example', notify }, 'd@x.example', 'e@y.example']
    const message = await world.message(to)
    const later = message.arrivedAt + 6 * HOUR
    await world.defer(message, 0, message.arrivedAt + 5 * HOUR)
    for (const position of [1, 2]) await world.defer(message, position, later)
    await world.fail(message, 3)
    await world.advance(5 * HOUR)
    await world.store.claimDue({ destination: 'x.example', now: world.clock.now(), bands: [{ band: 0, limit: 1 }], recipientLimit: 1 })
    await world.defer(message, 0, later, { noticeDue: 'delay', warnAt: null })
    await world.rest()
    // c has no DELAY in NOTIFY, d has failed, and e was never attempted and is in delivery.
    expect(world.told).toEqual(['failed: d@x.example', 'delayed: a@x.example b@y.example'])
  })

  test('are sent once for each age, though attempts end before and after it', async () => {
    const world = started({ config })
    const message = await world.message(['a@x.example', 'b@y.example'])
    await world.advance(4 * HOUR)
    await world.defer(message, 0, message.arrivedAt + 30 * HOUR, { noticeDue: 'delay', warnAt: null })
    await world.advance(2 * MINUTE)
    await world.defer(message, 1, message.arrivedAt + 30 * HOUR, { noticeDue: 'delay', warnAt: null })
    await world.rest()
    expect(world.told).toEqual(['delayed: a@x.example'])
    expect(await world.store.noticesDueOf(message.id)).toBeUndefined()
    expect((await world.store.nextDeadlines()).warnAt).toBe(message.arrivedAt + 24 * HOUR)
    world.closed.add('x.example')
    await world.advance(20 * HOUR)
    expect(world.told.slice(1)).toEqual(['delayed: a@x.example b@y.example'])
  })

  test('are not made for NOTIFY without DELAY, nor for the null sender', async () => {
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

  test('never name held mail', async () => {
    const world = started({ config })
    world.closed.add('x.example')
    const message = await world.message(['a@x.example'])
    await world.defer(message, 0, message.arrivedAt + 30 * HOUR, { warnAt: message.arrivedAt + 4 * HOUR })
    await operate(world.store, message.id, { kind: 'hold' })
    await world.advance(30 * HOUR)
    expect(world.told).toEqual([])
  })

  test('missed while the daemon was down are sent once', async () => {
    const world = new MailerDaemonHarness({ config })
    world.closed.add('x.example')
    const message = await world.message(['a@x.example'])
    await world.defer(message, 0, message.arrivedAt + 40 * HOUR, { warnAt: message.arrivedAt + 4 * HOUR })
    await world.advance(30 * HOUR)
    world.restart()
    await world.advance(10 * HOUR)
    expect(world.told).toEqual(['delayed: a@x.example'])
  })

  test('of mail that waits from its arrival are sent at their time', async () => {
    const world = started({ config })
    world.closed.add('x.example')
    const message = await world.message(['a@x.example'])
    await world.store.giveBack([recipientId(message.id, 0)], world.store.leaseTerms().owner)
    world.daemon.waits(message)
    await world.advance(4 * HOUR)
    expect(world.told).toEqual(['delayed: a@x.example'])
  })
})
