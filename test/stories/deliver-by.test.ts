/** BY (DELIVERBY, RFC 2852): what is announced and refused, what happens at the time, what the next hop and the notices have. */
import { describe, expect, test } from 'vitest'
import { queueIdOf } from '../../src/mail/message.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import type { WorldOptions } from '../../src/testkit/options/world-options.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import { dialogue } from '../support/world-dialogue.ts'

const ON = { smtpd_deliver_by_enable: true, smtpd_future_release_limit: '7d' } as const

const worldOf = (config: WorldOptions['config'] = {}): Promise<World> => createWorld({ config: { ...ON, ...config } })

/** Sends a message with parameters of MAIL and RCPT. Returns the last reply. */
async function send(world: World, to: string, [mail, rcpt = '']: readonly [mail: string, rcpt?: string]): Promise<string | undefined> {
  const lines = ['EHLO x', `MAIL FROM:<a@us.example> ${mail}`, `RCPT TO:<${to}> ${rcpt}`, 'DATA', 'Subject: hi\r\n\r\nhi\r\n.']
  return (
    await dialogue(
      world,
      lines.map((line) => line.trimEnd()),
    )
  ).at(-1)
}

const notices = (world: World) => world.mailbox('a@us.example').notices()
const attemptsAt = (world: World, address: string) => world.attempts(address).map(({ at }) => at)
const offering = (world: World, domain: string, extension = 'DELIVERBY'): void =>
  world.rule({ at: 'ehlo', domain, extensions: ['PIPELINING', 'DSN', extension] })
const isDelivered = (world: World, address: string): boolean => world.mailbox(address).mails().length > 0

/** The commands to hosts that begin with a text and were accepted, without that text. */
const commands = (world: World, text: string): readonly string[] =>
  world.history().events.flatMap((entry) => {
    if (entry.where !== 'remote' || entry.event.event !== 'reply') return []
    const { command = '', reply } = entry.event
    return command.startsWith(text) && reply.startsWith('250') ? [command.slice(text.length)] : []
  })
const mailTo = (world: World) => commands(world, 'MAIL FROM:<a@us.example> ')

describe('at MAIL', () => {
  test('the extension is announced with its minimum, and without one when there is none', async () => {
    await using world = await worldOf()
    expect(await dialogue(world, ['EHLO x'])).toContain('250 DELIVERBY 60')
    await using any = await worldOf({ smtpd_deliver_by_minimum: 0 })
    expect(await dialogue(any, ['EHLO x'])).toContain('250 DELIVERBY')
  })

  test.each([{ smtpd_deliver_by_enable: false }, { smtpd_discard_ehlo_keywords: ['deliverby'] }] as const)(
    'it is neither announced nor accepted with %o',
    async (config) => {
      await using world = await worldOf(config)
      const replies = await dialogue(world, ['EHLO x', 'MAIL FROM:<a@us.example> BY=600;R'])
      expect(replies.join('\n')).not.toContain('DELIVERBY')
      expect(replies.at(-1)).toBe('555 5.5.4 Unsupported option: BY=600;R')
    },
  )

  test('BY is parsed, and refused with the codes of RFC 2852', async () => {
    await using world = await worldOf()
    const answered = async (parameters: string) =>
      (await dialogue(world, ['EHLO x', `MAIL FROM:<a@us.example> ${parameters}`])).at(-1)?.slice(0, 9)
    const cases = [
      ['BY=600;R', '250 2.1.0'],
      ['BY=+600;r', '250 2.1.0'],
      ['BY=600;NT', '250 2.1.0'],
      ['BY=600;RT', '250 2.1.0'],
      ['BY=-5;N', '250 2.1.0'],
      ['BY=0;N', '250 2.1.0'],
      ['BY=999999999;N', '250 2.1.0'],
      ['BY=60;R', '250 2.1.0'],
      ['BY=59;R', '555 5.5.4'],
      ['BY=59;N', '250 2.1.0'],
      ['BY=0;R', '501 5.5.4'],
      ['BY=-60;R', '501 5.5.4'],
      ['BY=1000000000;N', '501 5.5.4'],
      ['BY=600', '501 5.5.4'],
      ['BY', '501 5.5.4'],
      ['BY=600;', '501 5.5.4'],
      ['BY=600;T', '501 5.5.4'],
      ['BY=600;TR', '501 5.5.4'],
      ['BY=600;R BY=600;R', '501 5.5.4'],
      ['BY=6.5;R', '501 5.5.4'],
      ['BY=600;R HOLDFOR=600', '250 2.1.0'],
      ['BY=600;R HOLDFOR=601', '501 5.5.4'],
      ['HOLDUNTIL=2026-01-01T00:10:01Z BY=600;N', '501 5.5.4'],
      ['HOLDFOR=1 BY=-1;N', '501 5.5.4'],
    ] as const
    const replies = await Promise.all(cases.map(async ([parameters]) => [parameters, await answered(parameters)]))
    expect(replies).toEqual(cases)
  })
})

describe('at its time', () => {
  test('R: the last attempt is made then, and the notice has 5.4.7, the reply and the time', async () => {
    await using world = await worldOf()
    world.destination('busy.example').defers('*', '450 4.2.1 busy')
    await send(world, 'eve@busy.example', ['BY=600;R'])
    await world.advance('1h')
    expect(attemptsAt(world, 'eve@busy.example')).toEqual([0, 300, 600])
    expect(notices(world)).toMatchObject([
      { action: 'failed', recipients: [{ status: '5.4.7', diagnostic: expect.stringContaining('450 4.2.1 busy') as string }] },
    ])
    expect(notices(world)[0]?.deliverBy).toBe((notices(world)[0]?.arrival ?? 0) + 600_000)
  })

  test('R at a dead host expires then, and R beyond the lifetime at its end', async () => {
    await using world = await worldOf({ maximal_queue_lifetime: '2h' })
    world.destination('gone.example').isDownFor('10d')
    await send(world, 'eve@gone.example', ['BY=600;R'])
    await world.advance('599s')
    expect(notices(world)).toEqual([])
    await world.advance('1s')
    expect(attemptsAt(world, 'eve@gone.example').at(-1)).toBe(600)
    expect(notices(world)).toMatchObject([{ recipients: [{ status: '5.4.7' }] }])
    await send(world, 'bob@gone.example', ['BY=86400;R'])
    await world.advance('2h')
    expect(notices(world)).toMatchObject([{}, { recipients: [{ recipient: 'bob@gone.example', status: '4.4.1' }] }])
  })

  test.each([
    ['gone.example', '4h'],
    ['busy.example', '0'],
  ])('N: the delay is reported then, and attempts go on (%s, delay_warning_time = %s)', async (domain, ages) => {
    await using world = await worldOf({ delay_warning_time: ages, maximal_queue_lifetime: '1d' })
    world.destination('gone.example').isDownFor('10d')
    world.destination('busy.example').defers('*', '450 4.2.1 busy')
    await send(world, `eve@${domain}`, ['BY=1000;N'])
    await world.advance('999s')
    expect(notices(world)).toEqual([])
    await world.advance('1s')
    // A notice waits for the end of the round of its message.
    await world.advance('1s')
    expect(notices(world)).toMatchObject([{ action: 'delayed', recipients: [{ status: '4.4.7' }] }])
    const before = attemptsAt(world, `eve@${domain}`).length
    await world.advance('1d')
    expect(attemptsAt(world, `eve@${domain}`).length).toBeGreaterThan(before)
    expect(notices(world).map(({ action }) => action)).toEqual(ages === '0' ? ['delayed', 'failed'] : ['delayed', 'delayed', 'failed'])
  })

  test.each(['NOTIFY=FAILURE', 'NOTIFY=NEVER'])('N with %s has no report of the delay', async (notify) => {
    await using world = await worldOf({ maximal_queue_lifetime: '1h' })
    world.destination('gone.example').isDownFor('10d')
    await send(world, 'eve@gone.example', ['BY=600;N', notify])
    await world.advance('30m')
    expect(notices(world)).toEqual([])
  })

  test('N after the release of a held message, and a hold keeps the warning back', async () => {
    await using world = await worldOf({ delay_warning_time: '0' })
    world.destination('gone.example').isDownFor('10d')
    await send(world, 'eve@gone.example', ['BY=3600;N HOLDFOR=3000'])
    await world.advance('3601s')
    expect(notices(world)).toMatchObject([{ action: 'delayed', recipients: [{ status: '4.4.7' }] }])
    await send(world, 'bob@gone.example', ['BY=600;N'])
    await world.operate('hold')
    await world.advance('700s')
    expect(notices(world)).toHaveLength(1)
    await world.operate('release')
    await world.advance('10m')
    expect(notices(world)).toMatchObject([{}, { recipients: [{ recipient: 'bob@gone.example', status: '4.4.7' }] }])
  })

  test('R of a held message: given up then, and the notice has both requests', async () => {
    await using world = await worldOf()
    world.destination('busy.example').defers('*', '450 4.2.1 busy')
    await send(world, 'eve@busy.example', ['BY=1600;R HOLDFOR=1000', 'NOTIFY=FAILURE'])
    await world.advance('2h')
    expect(attemptsAt(world, 'eve@busy.example')).toEqual([1000, 1300, 1600])
    expect(notices(world)).toMatchObject([{ action: 'failed', recipients: [{ status: '5.4.7' }] }])
    const text = world.mailbox('a@us.example').mails()[0]?.content
    expect(text).toMatch(
      /Arrival-Date: .* 00:00:00 \+0000.*\r\nDeliver-By-Date: .* 00:26:40 \+0000.*\r\nFuture-Release-Request: for;1000\r\n/,
    )
  })

  test.each(['3650d', '-3650d'])('a clock set by %s moves neither R nor N', async (step) => {
    await using world = await worldOf({ delay_warning_time: '0' })
    world.destination('busy.example').defers('*', '450 4.2.1 busy')
    await send(world, 'eve@busy.example', ['BY=3600;R'])
    await send(world, 'bob@busy.example', ['BY=3600;N'])
    await world.advance('10m')
    world.stepClock(step)
    await world.advance('2990s')
    expect(notices(world)).toEqual([])
    await world.advance('11s')
    expect(attemptsAt(world, 'eve@busy.example').at(-1)).toBe(3600)
    expect(
      notices(world)
        .map(({ action, recipients }) => `${action} ${recipients[0]?.status}`)
        .toSorted(),
    ).toEqual(['delayed 4.4.7', 'failed 5.4.7'])
  })

  test('a release, a flush, a requeue and a restart change neither the number of warnings nor their time', async () => {
    await using world = await worldOf({ delay_warning_time: '0' })
    world.destination('gone.example').isDownFor('10d')
    await send(world, 'eve@gone.example', ['BY=7200;N HOLDFOR=3600'])
    const [listed] = await world.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })
    if (listed !== undefined) await world.operate('release', [queueIdOf(listed.message)])
    await world.advance('10m')
    await world.operate('flush')
    await world.operate('requeue')
    await world.restart()
    await world.advance('6599s')
    expect(notices(world)).toEqual([])
    await world.advance('2s')
    await world.restart()
    await world.advance('1d')
    expect(notices(world)).toMatchObject([{ action: 'delayed', recipients: [{ status: '4.4.7' }] }])
  })

  test('a restart, a requeue and a crash keep the time', async () => {
    await using world = await worldOf()
    world.destination('busy.example').defers('*', '450 4.2.1 busy')
    await send(world, 'eve@busy.example', ['BY=3600;R'])
    await world.advance('10m')
    await world.restart()
    await world.operate('requeue')
    await world.crash({ downFor: '1m' })
    await world.advance('2h')
    expect(attemptsAt(world, 'eve@busy.example').at(-1)).toBe(3600)
    expect(notices(world)).toMatchObject([{ action: 'failed', recipients: [{ status: '5.4.7' }] }])
  })
})

describe('at the next hop', () => {
  test('the rest of the time is passed on, negative for N', async () => {
    await using world = await worldOf()
    offering(world, 'far.example', 'DELIVERBY 100')
    world.destination('far.example').failsFirst(3)
    await send(world, 'ann@far.example', ['BY=3600;R'])
    await send(world, 'bob@far.example', ['BY=10;NT'])
    await world.advance('1h')
    const rest = (name: string, by: number, mode: string) => attemptsAt(world, `${name}@far.example`).map((at) => `BY=${by - at};${mode}`)
    const expected = [...rest('ann', 3600, 'R'), ...rest('bob', 10, 'NT')]
    expect(mailTo(world).toSorted()).toEqual(expected.toSorted())
    expect(expected.join(' ')).toContain('BY=-')
  })

  test('R is delivered in time by a host without DELIVERBY, or with a longer minimum', async () => {
    await using world = await worldOf()
    offering(world, 'slow.example', 'DELIVERBY 3600')
    await send(world, 'ann@plain.example', ['BY=600;R'])
    await send(world, 'bob@slow.example', ['BY=600;R'])
    await world.advance('1m')
    expect(isDelivered(world, 'ann@plain.example') && isDelivered(world, 'bob@slow.example')).toBe(true)
    expect(mailTo(world).join(' ')).not.toContain('BY=')
    expect(notices(world)).toEqual([])
  })

  test('smtp_deliver_by_required returns R at such hosts, and asks no other exchanger', async () => {
    await using world = await worldOf({ smtp_deliver_by_required: true })
    offering(world, 'slow.example', 'DELIVERBY 3600')
    world.destination('plain.example').hasExchangers('10 mx1.plain.example', '20 mx2.plain.example')
    await send(world, 'ann@plain.example', ['BY=600;R'])
    await send(world, 'bob@slow.example', ['BY=600;R'])
    await send(world, 'eve@plain.example', ['BY=600;N'])
    await send(world, 'joe@slow.example', ['BY=7200;R'])
    await world.advance('1m')
    expect(notices(world).filter(({ action }) => action === 'failed')).toMatchObject([
      { recipients: [{ status: '5.3.3', diagnostic: expect.stringContaining('does not offer DELIVERBY') as string }] },
      { recipients: [{ status: '5.3.3', diagnostic: expect.stringContaining('takes at least 3600 s by DELIVERBY') as string }] },
    ])
    expect(world.attempts('ann@plain.example')).toHaveLength(1)
    expect(isDelivered(world, 'eve@plain.example') && isDelivered(world, 'joe@slow.example')).toBe(true)
  })

  test('smtp_deliver_by_required leaves the end of R to its expiry', async () => {
    await using world = await worldOf({ smtp_deliver_by_required: true })
    offering(world, 'far.example')
    world.destination('far.example').defers('*', '450 4.2.1 busy')
    await send(world, 'ann@far.example', ['BY=600;R'])
    await world.advance('1h')
    expect(notices(world)).toMatchObject([{ action: 'failed', recipients: [{ status: '5.4.7' }] }])
  })

  test('N ends at a host without DELIVERBY: the relay is reported, and DELAY asked of the host', async () => {
    await using world = await worldOf()
    await send(world, 'ann@far.example', ['BY=600;N'])
    await send(world, 'bob@far.example', ['BY=600;N', 'NOTIFY=SUCCESS'])
    await send(world, 'eve@far.example', ['BY=600;N', 'NOTIFY=NEVER'])
    await send(world, 'joe@far.example', ['BY=600;R'])
    await world.advance('1m')
    expect(notices(world).map(({ action, recipients }) => [action, recipients[0]?.recipient])).toEqual([
      ['relayed', 'ann@far.example'],
      ['relayed', 'bob@far.example'],
    ])
    expect(notices(world)[0]?.deliverBy).toBeGreaterThan(0)
    expect(['ann', 'bob', 'eve', 'joe'].map((name) => commands(world, `RCPT TO:<${name}@far.example>`)[0])).toEqual([
      ' NOTIFY=FAILURE,DELAY',
      ' NOTIFY=SUCCESS,DELAY',
      ' NOTIFY=NEVER',
      '',
    ])
  })

  test('T reports the relay to any host, and N to a host with DELIVERBY reports nothing', async () => {
    await using world = await worldOf()
    offering(world, 'far.example')
    await send(world, 'ann@far.example', ['BY=600;RT'])
    await send(world, 'bob@far.example', ['BY=600;NT', 'NOTIFY=FAILURE'])
    await send(world, 'eve@far.example', ['BY=600;NT', 'NOTIFY=NEVER'])
    await send(world, 'joe@far.example', ['BY=600;N'])
    await world.advance('1m')
    expect(notices(world).map(({ action, recipients }) => [action, recipients[0]?.recipient])).toEqual([
      ['relayed', 'ann@far.example'],
      ['relayed', 'bob@far.example'],
    ])
  })
})

test('the details of a message have the time and the mode', async () => {
  await using world = await worldOf()
  world.destination('busy.example').defers('*', '450 4.2.1 busy')
  await send(world, 'eve@busy.example', ['BY=600;RT'])
  await world.advance('1s')
  const [listed] = await world.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })
  const arrived = listed?.message.arrivedAt ?? 0
  expect(listed?.message.expires).toBe(arrived + 600_000)
})
