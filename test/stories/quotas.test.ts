/** Quotas: refusals at MAIL and RCPT, mail that is held until there is room, and what counts. */
import { describe, expect, test } from 'vitest'
import { loadTemplates } from '../../src/bounce/templates.ts'
import { configFrom } from '../../src/config/load.ts'
import type { RelayConfig } from '../../src/config/relay-config.ts'
import { holdingQuota } from '../../src/mail/message-times.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import type { WorldOptions } from '../../src/testkit/options/world-options.ts'
import { attentionIn } from '../support/attention.ts'
import { closeAtEnd } from '../support/open-worlds.ts'
import { dialogue } from '../support/world-dialogue.ts'

const OK = '250 2.1.0 Ok'
const MUCH = '450 4.7.1 Error: too much mail from app@us.example'
const RECIPIENTS = '450 4.7.1 Error: too many recipients from app@us.example'

type Quota = NonNullable<RelayConfig['quota']>[string]

async function worldOf(app: Partial<Quota>, more: Omit<WorldOptions, 'config'> & { readonly config?: RelayConfig } = {}): Promise<World> {
  const quota = { app: { keys: 'sender', limits: ['2/1h'], ...app } } as NonNullable<RelayConfig['quota']>
  const world = await createWorld({ ...more, config: { quota, ...more.config } })
  closeAtEnd(world)
  return world
}

const mailFrom = (sender: string): string => `MAIL FROM:<${sender}>`
const sent = (sender: string, ...to: readonly string[]) => [
  mailFrom(sender),
  ...(to.length === 0 ? ['ann@far.example'] : to).map((one) => `RCPT TO:<${one}>`),
  'DATA',
  'Subject: hi\r\n\r\nhi\r\n.',
]

/** The reply to the last of these lines. */
async function replyTo(world: World, ...lines: readonly string[]): Promise<string> {
  return (await dialogue(world, ['EHLO app.us.example', ...lines])).at(-1) ?? ''
}

const send = (world: World, sender = 'app@us.example', ...to: readonly string[]): Promise<string> => replyTo(world, ...sent(sender, ...to))

test.each(['refuse', 'hold'] as const)('a quota that is used up needs attention until it has room: %s', async (action) => {
  const world = await worldOf({ action })
  const attention = async () => (await attentionIn(world)).filter(({ kind }) => kind === 'quotas')
  await send(world)
  expect(await attention()).toEqual([])
  for (let n = 0; n < 2; n++) await send(world)
  const why = `mail of app@us.example is ${action === 'hold' ? 'held' : 'refused'}: quota app, 2/1h, is used up`
  expect(await attention()).toMatchObject([{ count: 1, why }])
  expect(await world.quotas('app@us.example')).toMatchObject([{ quota: 'app', limit: '2/1h', isFull: true }])
  expect(await world.quotas('other@us.example')).toEqual([{ quota: 'app', limit: '2/1h', used: 0, isFull: false }])
  const { quotas } = await world.relay.status.all()
  expect(quotas).toMatchObject([{ quota: 'app', key: 'app@us.example', limit: '2/1h', action }])
  await world.restart()
  await world.advance('1s')
  expect(await attention()).toMatchObject([{ count: 1, why }])
  await world.advance('4h')
  expect(await attention()).toEqual([])
  expect((await reports(world)).map(({ type }) => type)).toEqual(['quota.reached', 'quota.cleared'])
})

test('a header field may be the key: its first value counts, and mail without it does not', async () => {
  const world = await worldOf({ keys: 'header:X-Tenant', limits: ['2/1h'], exceptions: { Big: 'none' } })
  const tenant = (...fields: readonly string[]): Promise<string> =>
    replyTo(
      world,
      ...sent('app@us.example').slice(0, -1),
      `${fields.map((one) => `X-Tenant: ${one}\r\n`).join('')}Subject: hi\r\n\r\nhi\r\n.`,
    )
  for (let n = 0; n < 2; n++) expect(await tenant('acme', 'other')).toContain('queued as')
  expect(await tenant(' acme ')).toBe('450 4.7.1 Error: too much mail from acme')
  for (const other of ['other', 'big', 'big', 'big']) expect(await tenant(other)).toContain('queued as')
  for (let n = 0; n < 3; n++) expect(await tenant()).toContain('queued as')
  await world.advance('1s')
  expect(world.received[0]?.content.toString()).toContain('X-Tenant: acme\r\n')
})

test.each(['refuse', 'hold'] as const)('a quota of classes counts their mail alone, after its content: %s', async (action) => {
  const classes = { class: { normal: { weight: 10 }, bulk: { weight: 1 } } }
  const world = await worldOf({ keys: 'client', classes: ['bulk'], action }, { config: classes })
  const bulk = (): Promise<string> =>
    replyTo(world, ...sent('app@us.example').slice(0, -1), 'X-Deferd-Class: bulk\r\nSubject: hi\r\n\r\nhi\r\n.')
  for (let n = 0; n < 2; n++) expect(await bulk()).toContain('queued as')
  const third = await bulk()
  if (action === 'refuse') expect(third).toBe('450 4.7.1 Error: too much mail from 127.0.0.1')
  else expect(third).toContain('queued as')
  for (let n = 0; n < 3; n++) expect(await send(world)).toContain('queued as')
  await world.advance('1s')
  expect(world.received.length).toBe(5)
  await world.advance('2h')
  expect(world.received.length).toBe(action === 'hold' ? 6 : 5)
})

/** Recipients whose mail has arrived, in order. */
const arrived = (world: World): readonly string[] =>
  world.received.flatMap(({ recipients }) => recipients.map((one) => one.replace(/@.*/, '')))

async function reload(world: World, quota: NonNullable<RelayConfig['quota']>): Promise<void> {
  const { config, written } = configFrom({ quota }, world.relay.config.myhostname)
  await world.relay.reload({
    config: { ...world.relay.config, quota: config.quota },
    templates: loadTemplates({ config, written }).templates,
  })
}

const reports = async (world: World) =>
  (await world.events({ types: ['quota.reached', 'quota.cleared'] })).map(({ type, data }) => ({ type, ...data }))

describe.each(['memory', 'sqlite'] as const)('with a queue in %s', (store) => {
  test('mail above a limit gets 450 at MAIL until enough has left the window, and other keys do not', async () => {
    const world = await worldOf({}, { store })
    expect(await send(world)).toMatch(/^250 /)
    await world.advance('30m')
    expect(await send(world, 'App@us.example')).toMatch(/^250 /)
    expect(await replyTo(world, mailFrom('app@us.example'))).toBe(MUCH)
    expect(await replyTo(world, mailFrom('"app"@us.example'))).toBe(MUCH)
    expect(await replyTo(world, mailFrom('other@us.example'))).toBe(OK)
    await world.advance('34m59s')
    expect(await replyTo(world, mailFrom('app@us.example'))).toBe(MUCH)
    await world.advance('1s')
    expect(await send(world)).toMatch(/^250 /)
    expect(await replyTo(world, mailFrom('app@us.example'))).toBe(MUCH)
  })

  test('the count survives a kill', async () => {
    const world = await worldOf({}, { store })
    for (let n = 0; n < 2; n++) await send(world)
    await world.restart()
    expect(await replyTo(world, mailFrom('app@us.example'))).toBe(MUCH)
  })

  test('above hold, mail is accepted and leaves in order when there is room, across a restart', async () => {
    const world = await worldOf({ action: 'hold' }, { store })
    for (let n = 0; n < 6; n++) expect(await send(world, 'app@us.example', `u${n}@far.example`)).toMatch(/^250 /)
    await world.advance(0)
    expect(arrived(world)).toEqual(['u0', 'u1'])
    await world.restart()
    await world.advance('64m59s')
    expect(arrived(world)).toHaveLength(2)
    await world.advance('1s')
    expect(arrived(world)).toHaveLength(4)
    await world.advance('65m')
    expect(arrived(world)).toEqual(['u0', 'u1', 'u2', 'u3', 'u4', 'u5'])
  })
})

test('of 3,000 messages at once, 1,000 leave now and 1,000 with each window, in order', async () => {
  // One delivery at a time, so that the order of their ends is that of their beginnings.
  const world = await worldOf({ action: 'hold', limits: ['1000/1h'] }, { config: { default_destination_concurrency_limit: 1 } })
  for (let n = 0; n < 3_000; n++) await world.submit({ from: 'app@us.example', to: `u${n}@far.example` })
  await world.advance(0)
  const inOrder = (messages: number) => Array.from({ length: messages }, (_, n) => `u${n}`)
  expect(arrived(world)).toEqual(inOrder(1_000))
  expect(await world.quotas('app@us.example')).toMatchObject([{ used: 1_000, isFull: true }])
  expect(await world.reader.counts()).toMatchObject([{ queue: 'scheduled', messages: 2_000 }])
  await world.advance('64m59s')
  expect(arrived(world)).toHaveLength(1_000)
  await world.advance('1s')
  expect(arrived(world)).toEqual(inOrder(2_000))
  await world.advance('64m59s')
  expect(arrived(world)).toHaveLength(2_000)
  await world.advance('1s')
  expect(arrived(world)).toEqual(inOrder(3_000))
})

test('mail of the null sender, mail that was refused, and mail that is not delivered do not count, discarded mail does', async () => {
  const config = { smtpd_recipient_restrictions: ['check_recipient_access inline:{{drop@far.example = DISCARD}}', 'permit'] }
  const world = await worldOf({ limits: ['1/1h'] }, { config })
  for (let n = 0; n < 3; n++) expect(await send(world, '')).toMatch(/^250 /)
  const tooLarge = `${mailFrom('app@us.example')} SIZE=99999999999`
  expect(await replyTo(world, tooLarge)).toMatch(/^552 /)
  expect(await replyTo(world, mailFrom('app@us.example'), 'RCPT TO:<ann@far.example>', 'RSET')).toMatch(/^250 /)
  expect(await send(world, 'app@us.example', 'drop@far.example')).toMatch(/^250 /)
  expect(await replyTo(world, mailFrom('app@us.example'))).toBe(MUCH)
})

test('the recipient above a limit gets 450, and the message goes to the others', async () => {
  const world = await worldOf({ limits: ['3 recipients/1h'] })
  const to = ['a', 'b', 'c', 'd', 'B'].map((one) => `RCPT TO:<${one}@far.example>`)
  const replies = (await dialogue(world, ['HELO x', mailFrom('app@us.example'), ...to, 'DATA', 'hi\r\n.'])).slice(2)
  expect(replies.slice(0, 5).map((one) => one.slice(0, 3))).toEqual(['250', '250', '250', '450', '250'])
  expect(replies[3]).toBe(RECIPIENTS)
  await world.advance(0)
  expect(arrived(world)).toEqual(['a', 'b', 'c'])
  expect(await replyTo(world, mailFrom('app@us.example'), 'RCPT TO:<a@far.example>')).toBe(RECIPIENTS)
})

test('mail that would be held longer than hold_limit is refused', async () => {
  const world = await worldOf({ action: 'hold', hold_limit: '2h', limits: ['1/1h'] })
  expect(await send(world)).toMatch(/^250 /)
  expect(await send(world)).toMatch(/^250 /)
  expect(await replyTo(world, mailFrom('app@us.example'))).toBe(MUCH)
})

test('that mail is refused because a limit would hold it for too long is told, once for the limits of a key', async () => {
  const world = await worldOf({ action: 'hold', hold_limit: '4h', limits: ['2/1h', '3 recipients/1d'] })
  const told = async () => (await attentionIn(world)).filter(({ kind }) => kind === 'quotas')
  for (let n = 0; n < 2; n++) await send(world)
  expect(await told()).toMatchObject([{ count: 1, why: 'mail of app@us.example is held: quota app, 2/1h, is used up' }])
  await send(world)
  expect(await replyTo(world, mailFrom('app@us.example'), 'RCPT TO:<ann@far.example>')).toBe(RECIPIENTS)
  const why = 'mail of app@us.example is refused: quota app, 3 recipients/1d, is used up for longer than hold_limit'
  expect(await told()).toMatchObject([{ count: 1, why }])
})

test('that a limit refuses mail whose room held mail has is told, though less than it is used', async () => {
  const world = await worldOf({ action: 'hold', hold_limit: '4h', limits: ['2/1h', '5 recipients/1d'] })
  const told = async () => (await attentionIn(world)).filter(({ kind }) => kind === 'quotas')
  for (let n = 0; n < 5; n++) expect(await send(world)).toMatch(/^250 /)
  expect(await replyTo(world, mailFrom('app@us.example'), 'RCPT TO:<ann@far.example>')).toBe(RECIPIENTS)
  // Two recipients are used, and three wait for their time.
  const why = 'mail of app@us.example is refused: quota app, 5 recipients/1d, is used up for longer than hold_limit'
  expect(await told()).toMatchObject([{ count: 1, why }])
  const reached = await world.events({ types: ['quota.reached', 'quota.cleared'] })
  await world.advance('3m')
  expect(await told()).toMatchObject([{ count: 1, why }])
  expect(await world.events({ types: ['quota.reached', 'quota.cleared'] })).toEqual(reached)
})

test('exceptions have limits of their own, or none; keys that match no pattern have none', async () => {
  const exceptions = { 'big@us.example': ['3/1h'], 'root@us.example': 'none' }
  const world = await worldOf({ limits: ['1/1h'], match: ['*@us.example'], exceptions })
  const accepted = async (sender: string): Promise<number> => {
    for (let n = 0; ; n++) if (n === 5 || !(await send(world, sender)).startsWith('250 ')) return n
  }
  expect(await accepted('app@us.example')).toBe(1)
  expect(await accepted('Big@us.example')).toBe(3)
  expect(await accepted('root@us.example')).toBe(5)
  expect(await accepted('app@other.example')).toBe(5)
})

test('the tightest of several quotas decides', async () => {
  const config = { quota: { app: { keys: 'sender', limits: ['2/1h'] }, domain: { keys: 'sender_domain', limits: ['3/1h'] } } }
  const world = await worldOf({}, { config })
  expect([await send(world), await send(world)].every((one) => one.startsWith('250 '))).toBe(true)
  expect(await replyTo(world, mailFrom('app@us.example'))).toBe(MUCH)
  expect(await send(world, 'bob@us.example')).toMatch(/^250 /)
  expect(await replyTo(world, mailFrom('eve@us.example'))).toBe('450 4.7.1 Error: too much mail from us.example')
})

test('the parameters of an hour are quotas of senders and logins', async () => {
  const world = await createWorld({ config: { smtpd_sender_hourly_message_limit: 1, smtpd_user_hourly_message_limit: 1 } })
  closeAtEnd(world)
  expect(await send(world)).toMatch(/^250 /)
  expect(await replyTo(world, mailFrom('app@us.example'))).toBe(MUCH)
})

test('events tell of 80 and 100 percent once in each slice, and of the room after it', async () => {
  const world = await worldOf({ limits: ['5/1h'] })
  for (let n = 0; n < 5; n++) await send(world)
  for (let n = 0; n < 3; n++) expect(await replyTo(world, mailFrom('app@us.example'))).toBe(MUCH)
  const use = { quota: 'app', key: 'app@us.example', measure: 'messages', span: 3_600, limit: 5 }
  const reached = [
    { type: 'quota.reached', ...use, used: 4, percent: 80 },
    { type: 'quota.reached', ...use, used: 5, percent: 100 },
  ]
  expect(await reports(world)).toEqual(reached)
  await world.advance('64m')
  expect(await reports(world)).toEqual(reached)
  await world.advance('2m')
  expect(await reports(world)).toEqual([...reached, { type: 'quota.cleared', ...use, used: 0 }])
})

/** The limits for which held mail is said to wait, in order. */
const heldFor = async (world: World): Promise<readonly (string | undefined)[]> =>
  (await world.reader.list({ ...ANY_MESSAGE, queue: 'scheduled' }, { after: 0, limit: 99 })).map(
    ({ message }) => holdingQuota(message.holdRequest ?? '')?.limit,
  )

test('held mail names the limit that holds it, also when it fills another one', async () => {
  const world = await worldOf({ action: 'hold', hold_limit: '6h', limits: ['2/1h', '5 recipients/1d'] })
  for (let n = 0; n < 5; n++) expect(await send(world)).toMatch(/^250 /)
  expect(await heldFor(world)).toEqual(['2/1h', '2/1h', '2/1h'])
})

test('held mail names the limits of a reload, also where its time stays', async () => {
  const world = await worldOf({ action: 'hold', limits: ['1/1h'] })
  for (let n = 0; n < 3; n++) await send(world)
  expect(await heldFor(world)).toEqual(['1/1h', '1/1h'])
  await reload(world, { app: { keys: 'sender', action: 'hold', limits: ['1 recipients/1h'] } })
  await world.advance('1m')
  expect(await heldFor(world)).toEqual(['1 recipients/1h', '1 recipients/1h'])
})

test('held mail names the limit without room, not another one in which mail that waits already keeps its place', async () => {
  const limits = ['30/5m', '4 recipients/1d']
  const world = await worldOf({ action: 'hold', hold_limit: '2d', limits })
  for (let n = 0; n < 7; n++) await send(world)
  const day = limits[1] ?? ''
  expect(await heldFor(world)).toEqual([day, day, day])
  await reload(world, { app: { keys: 'sender', action: 'hold', hold_limit: '2d', limits: ['40/5m', '3 recipients/1d'] } })
  await world.advance('1m')
  expect(await heldFor(world)).toEqual(Array.from({ length: 3 }, () => '3 recipients/1d'))
})

test('mail that waits behind a larger message names the limit that this one waits for', async () => {
  const world = await worldOf({ action: 'hold', hold_limit: '2d', limits: ['30/5m', '10 recipients/1d'] })
  const to = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `u${n}@far.example`)
  for (const count of [6, 8, 1]) expect(await send(world, 'app@us.example', ...to(count))).toMatch(/^250 /)
  expect(await heldFor(world)).toEqual(['10 recipients/1d', '10 recipients/1d'])
})

test('of limits that have room at the same time, the one that is used up until then needs attention', async () => {
  const world = await worldOf({ action: 'hold', hold_limit: '2d', limits: ['3/5m', '4 recipients/1d'] })
  for (let n = 0; n < 6; n++) await send(world)
  expect(await heldFor(world)).toEqual(['3/5m', '4 recipients/1d', '4 recipients/1d'])
  const why = 'mail of app@us.example is held: quota app, 4 recipients/1d, is used up'
  expect((await attentionIn(world)).filter(({ kind }) => kind === 'quotas')).toMatchObject([{ why }])
})

test('a raised limit plans held mail anew, in order', async () => {
  const world = await worldOf({ action: 'hold', limits: ['1/1h'] })
  for (let n = 0; n < 4; n++) await send(world, 'app@us.example', `u${n}@far.example`)
  await world.advance(0)
  expect(arrived(world)).toEqual(['u0'])
  await reload(world, { app: { keys: 'sender', action: 'hold', limits: ['3/1h'] } })
  await world.advance('1m')
  expect(arrived(world)).toEqual(['u0', 'u1', 'u2'])
  await world.advance('64m')
  expect(arrived(world)).toEqual(['u0', 'u1', 'u2', 'u3'])
  await send(world, 'app@us.example', 'u4@far.example')
  await reload(world, {})
  await world.advance('1m')
  expect(arrived(world)).toContain('u4')
})
