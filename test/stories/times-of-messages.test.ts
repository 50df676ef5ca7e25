/**
 * Times that clients name for their messages: no attempt before, given up at, and what counts from the release. FUTURERELEASE is RFC 4865.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { describe, expect, test } from 'vitest'
import { queueIdOf } from '../../src/mail/message.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import type { WorldOptions } from '../../src/testkit/options/world-options.ts'
import { BOTH_KEYS } from '../support/dkim/dkim-keys.ts'
import { dialogue } from '../support/world-dialogue.ts'

const HELD = { smtpd_future_release_limit: '7d' } as const

const worldOf = (config: WorldOptions['config'] = {}, more: Omit<WorldOptions, 'config'> = {}): Promise<World> =>
  createWorld({ config: { ...HELD, ...config }, ...more })

const attemptsAt = (world: World, address: string): readonly number[] => world.attempts(address).map(({ at }) => at)

describe.each(['memory', 'file'] as const)('with a queue in %s', (kind) => {
  test('scheduled × restart, crash: the first attempt is made at the time to the millisecond, also after a restart and a crash', async () => {
    const store = kind === 'memory' ? kind : { directory: mkdtempSync(join(tmpdir(), 'deferd-times-')) }
    await using world = await worldOf({}, { store })
    await world.submit({ to: 'ann@far.example', notBefore: '1h' })
    await world.advance('10m')
    await world.restart()
    await world.advance('10m')
    await world.crash({ downFor: '1m' })
    await world.advance('39m')
    await world.advance('59999ms')
    expect(attemptsAt(world, 'ann@far.example')).toEqual([])
    await world.advance('1ms')
    expect(attemptsAt(world, 'ann@far.example')).toEqual([3600])
    expect(world.mailbox('ann@far.example').mails()).toHaveLength(1)
  })
})

test('scheduled × flush, release, requeue: no bulk order sends it, and a release by its id does', async () => {
  await using world = await worldOf()
  const id = await world.submit({ to: 'ann@far.example', notBefore: '2h' })
  expect(await world.operate('flush')).toMatchObject({ matched: 0, changed: 0, scheduled: 1 })
  expect(await world.operate('flush', [id])).toMatchObject({ changed: 0, scheduled: 1 })
  expect(await world.operate('release')).toMatchObject({ changed: 0 })
  await world.operate('requeue')
  await world.advance('1h')
  expect(attemptsAt(world, 'ann@far.example')).toEqual([])
  const listed = await world.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })
  expect(
    await world.operate(
      'release',
      listed.map(({ message }) => queueIdOf(message)),
    ),
  ).toMatchObject({ changed: 1 })
  await world.advance(0)
  expect(attemptsAt(world, 'ann@far.example')).toEqual([3600])
})

test('scheduled × calendar: a flush by [schedule] passes it over', async () => {
  await using world = await worldOf({ schedule: { often: { at: '*/10 * * * *', do: 'flush', destinations: '*' } } })
  await world.submit({ to: 'ann@far.example', notBefore: '1h' })
  await world.advance('59m')
  expect(attemptsAt(world, 'ann@far.example')).toEqual([])
  await world.advance('1m')
  expect(attemptsAt(world, 'ann@far.example')).toEqual([3600])
})

test('scheduled × hold: a hold wins over the time; overdue mail is due at once on release', async () => {
  await using world = await worldOf()
  const id = await world.submit({ to: 'ann@far.example', notBefore: '1h' })
  await world.operate('hold', [id])
  await world.advance('2h')
  expect(attemptsAt(world, 'ann@far.example')).toEqual([])
  await world.operate('release', [id])
  await world.advance(0)
  expect(attemptsAt(world, 'ann@far.example')).toEqual([7200])
})

test('scheduled × expiry, delay warning: both count from the release, and a notice names the request', async () => {
  await using world = await worldOf({ maximal_queue_lifetime: '2d', delay_warning_time: '4h' })
  world.destination('gone.example').isDownFor('10d')
  await world.submit({ to: 'eve@gone.example', notBefore: '3d' })
  await world.advance('3d')
  expect(world.mailbox('app@us.example').notices()).toEqual([])
  await world.advance('4h')
  expect(world.mailbox('app@us.example').notices()).toEqual([])
  // The warning follows the first failed attempt after 4 hours.
  await world.advance('4000s')
  expect(
    world
      .mailbox('app@us.example')
      .notices()
      .map(({ action }) => action),
  ).toEqual(['delayed'])
  await world.advance('44h')
  const notices = world.mailbox('app@us.example').notices()
  expect(notices.map(({ action }) => action)).toEqual(['delayed', 'failed'])
  expect(attemptsAt(world, 'eve@gone.example').at(-1)).toBe(5 * 86_400)
  const text = String(world.mailbox('app@us.example').mails().at(-1)?.content)
  expect(text).toMatch(/Arrival-Date: Thu, 01 Jan 2026 00:00:00 \+0000[^]*Future-Release-Request: for;259200\r\n/)
})

test('mail is given up at the time that the client names, with its last attempt then, and 5.4.7', async () => {
  await using world = await worldOf()
  world.destination('busy.example').defers('*', '450 4.2.1 busy')
  await world.submit({ to: 'eve@busy.example', expires: '10m' })
  await world.advance('1h')
  expect(attemptsAt(world, 'eve@busy.example')).toEqual([0, 300, 600])
  const [notice] = world.mailbox('app@us.example').notices()
  expect(notice).toMatchObject({
    action: 'failed',
    recipients: [{ status: '5.4.7', diagnostic: expect.stringContaining('450 4.2.1 busy') as string }],
  })
})

test('scheduled × clock: the wall clock moves an instant, and not a span', async () => {
  await using world = await worldOf()
  await world.submit({ to: 'ann@far.example', notBefore: '4h' })
  await world.submit({ to: 'bob@far.example', notBefore: '2026-01-01T04:00:00Z' })
  await world.advance('1h')
  world.stepClock('1h')
  await world.advance('4h')
  expect(attemptsAt(world, 'ann@far.example')).toEqual([4 * 3600])
  expect(attemptsAt(world, 'bob@far.example')).toEqual([3 * 3600])
})

test.each(['3650d', '-3650d'])(
  'scheduled × clock: a clock set by %s moves no span, and an instant on hold follows it too',
  async (step) => {
    await using world = await worldOf()
    await world.submit({ to: 'ann@far.example', notBefore: '4h' })
    const id = await world.submit({ to: 'bob@far.example', notBefore: '2026-01-01T04:00:00Z' })
    await world.operate('hold', [id])
    await world.advance('1h')
    world.stepClock(step)
    await world.advance('1s')
    await world.restart()
    await world.advance('4h')
    await world.operate('release', [id])
    await world.advance(0)
    expect(attemptsAt(world, 'ann@far.example')).toEqual([4 * 3600])
    expect(attemptsAt(world, 'bob@far.example')).toEqual(step.startsWith('-') ? [] : [5 * 3600 + 1])
  },
)

describe('scheduled × DKIM: a signature', () => {
  const DKIM = {
    dkim: { 'us.example': { keys: BOTH_KEYS, expire: '1d' } },
    maximal_queue_lifetime: '1d',
    bounce_queue_lifetime: '1d',
  } as const
  const BEGINNING = 1_767_225_600

  const fieldOf = (world: World, address: string) => {
    const [mail] = world.mailbox(address).mails()
    const [, t, x] = /; t=(\d+); x=(\d+); /.exec(mail?.header('DKIM-Signature') ?? '') ?? []
    return { t: Number(t) - BEGINNING, x: Number(x) - BEGINNING, verified: mail?.signatures.map(({ verified }) => verified) }
  }

  test('is of the release, also when that is later than its expiry would be', async () => {
    await using world = await worldOf(DKIM)
    await world.submit({ to: 'ann@far.example', notBefore: '3d' })
    await world.advance('3d')
    expect(fieldOf(world, 'ann@far.example')).toEqual({ t: 3 * 86_400, x: 4 * 86_400, verified: [true, true] })
  })

  test('is made again for a message that is sent earlier', async () => {
    await using world = await worldOf(DKIM)
    const id = await world.submit({ to: 'ann@far.example', notBefore: '3d' })
    await world.advance('1h')
    await world.operate('release', [id])
    await world.advance(0)
    expect(fieldOf(world, 'ann@far.example')).toEqual({ t: 3_600, x: 90_000, verified: [true, true] })
  })
})

describe('over SMTP', () => {
  test('the extension is announced with both limits, and refused when it is off', async () => {
    await using world = await worldOf()
    expect(await dialogue(world, ['EHLO x'])).toContain('250 FUTURERELEASE 604800 2026-01-08T00:00:00Z')
    await using off = await createWorld()
    expect((await dialogue(off, ['EHLO x', 'MAIL FROM:<a@us.example> HOLDFOR=5'])).join('\n')).toMatch(
      /^(?![^]*FUTURERELEASE)[^]*555 5\.5\.4 Unsupported option: HOLDFOR=5/,
    )
  })

  test.each([
    ['HOLDFOR=3600', 250],
    ['HOLDFOR=604800', 250],
    ['HOLDFOR=604801', 501],
    ['HOLDFOR=0', 501],
    ['HOLDFOR=05', 501],
    ['HOLDFOR=-1', 501],
    ['HOLDFOR', 501],
    ['HOLDFOR=5 HOLDUNTIL=2026-01-02T00:00:00Z', 501],
    ['HOLDFOR=5 HOLDFOR=5', 501],
    ['HOLDUNTIL=2026-01-02T00:00:00Z', 250],
    ['HOLDUNTIL=2026-01-02t00:00:00z', 250],
    ['HOLDUNTIL=2026-01-02T00:00:00.25+02:00', 250],
    ['HOLDUNTIL=2026-01-02T00:00:00', 501],
    ['HOLDUNTIL=2026-02-30T00:00:00Z', 501],
    ['HOLDUNTIL=1767312000', 501],
    ['HOLDUNTIL=2026-01-08T00:00:01Z', 501],
    ['HOLDUNTIL=2025-12-31T23:59:30Z', 250],
    ['HOLDUNTIL=2025-12-31T23:58:00Z', 501],
  ])('MAIL with %s is answered by %i', async (parameters, code) => {
    await using world = await worldOf()
    const replies = await dialogue(world, ['EHLO x', `MAIL FROM:<a@us.example> ${parameters}`])
    expect(replies.at(-1)).toMatch(new RegExp(`^${code} ${code === 250 ? '2.1.0' : '5.5.4'} `))
  })

  test('the null sender cannot hold its mail, and a stranger needs a login', async () => {
    await using world = await worldOf()
    expect((await dialogue(world, ['EHLO x', 'MAIL FROM:<> HOLDFOR=5'])).at(-1)).toMatch(/^501 5\.5\.4 /)
    await using foreign = await worldOf({ mynetworks: ['192.0.2.0/24'] })
    const replies = await dialogue(foreign, ['EHLO x', 'MAIL FROM:<a@us.example> HOLDFOR=5'])
    expect(replies.join('\n')).not.toContain('FUTURERELEASE')
    expect(replies.at(-1)).toMatch(/^530 5\.7\.0 /)
  })

  test('a message of nodemailer is held', async () => {
    await using world = await worldOf()
    await dialogue(world, [
      'EHLO x',
      'MAIL FROM:<a@us.example> HOLDFOR=60',
      'RCPT TO:<ann@far.example>',
      'DATA',
      'Subject: hi\r\n\r\nhi\r\n.',
    ])
    await createTransport(world.transport()).sendMail({ from: 'a@us.example', to: 'bob@far.example', text: 'hi' })
    await world.advance('60s')
    expect([...attemptsAt(world, 'bob@far.example'), ...attemptsAt(world, 'ann@far.example')]).toEqual([0, 60])
  })
})

describe.each(['memory', 'sqlite'] as const)('the limit of held messages, in %s', (store) => {
  const LIMITED = { smtpd_future_release_message_limit: 2, smtpd_sasl_auth_enable: false } as const
  const FULL = /^552 5\.7\.16 /
  const mail = (more: string) => `MAIL FROM:<a@us.example>${more}`

  test('counts by share, over restarts, until the time of a message or its end', async () => {
    await using world = await worldOf(LIMITED, { store })
    const lastReply = async (...lines: string[]) => (await dialogue(world, ['EHLO x', ...lines])).at(-1)
    const held = (n: number) => lastReply(mail(` HOLDFOR=${n}`), 'RCPT TO:<ann@far.example>', 'DATA', 'Subject: hi\r\n\r\nhi\r\n.')
    expect([await held(100), await held(200)]).toEqual([expect.stringMatching(/^250 /), expect.stringMatching(/^250 /)])
    expect(await lastReply(mail(' HOLDFOR=300'))).toMatch(FULL)
    expect(await lastReply(mail(''))).toMatch(/^250 /)
    expect(await lastReply('MAIL FROM:<a@other.example> HOLDFOR=300')).toMatch(/^250 /)
    await world.restart()
    expect(await lastReply(mail(' HOLDFOR=300'))).toMatch(FULL)
    await world.advance('101s')
    expect(await held(300)).toMatch(/^250 /)
    expect(await lastReply(mail(' HOLDFOR=300'))).toMatch(FULL)
    const [one] = await world.reader.list({ ...ANY_MESSAGE, queue: 'scheduled' }, { after: 0, limit: 1 })
    await world.operate('delete', one === undefined ? [] : [queueIdOf(one.message)])
    await world.advance('2s')
    expect(await lastReply(mail(' HOLDFOR=300'))).toMatch(/^250 /)
  })

  test('clients together do not pass it, whichever way they submit', async () => {
    await using world = await worldOf({ ...LIMITED, smtpd_future_release_message_limit: 5 }, { store })
    const submitted = await Promise.allSettled(
      Array.from({ length: 50 }, (_, n) => world.submit({ to: `u${n}@far.example`, notBefore: '1h', by: n % 2 === 0 ? 'app' : 'other' })),
    )
    expect(submitted.filter(({ status }) => status === 'fulfilled')).toHaveLength(10)
    expect(String(submitted.find(({ status }) => status === 'rejected')?.status)).toBe('rejected')
  })
})
