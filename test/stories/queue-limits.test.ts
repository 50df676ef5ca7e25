/** Limits of the queue and of its shares: refusals at MAIL and at the end of the content, their end, and mail that is exempt. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ShareCount } from '../../src/store/share-counts.ts'
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import type { WorldOptions } from '../../src/testkit/options/world-options.ts'
import { dialogue } from '../support/world-dialogue.ts'

const FULL = '452 4.3.1 Error: queue is full, try again later'
const OK = '250 2.1.0 Ok'

/** A world whose mail is not delivered. */
async function worldOf(config: WorldOptions['config'], more: Omit<WorldOptions, 'config'> = {}): Promise<World> {
  const world = await createWorld({ config, ...more })
  await world.suspend('far.example')
  return world
}

const mailFrom = (sender: string, more = ''): string => `MAIL FROM:<${sender}>${more}`

/** The reply to the last of these lines. */
async function replyTo(world: World, ...lines: readonly string[]): Promise<string> {
  return (await dialogue(world, ['EHLO app.us.example', ...lines])).at(-1) ?? ''
}

const fromUs = mailFrom('app@us.example')
const sent = (sender: string, to = 'ann@far.example') => [mailFrom(sender), `RCPT TO:<${to}>`, 'DATA', 'Subject: hi\r\n\r\nhi\r\n.']

async function fill(world: World, count: number, from = 'app@us.example'): Promise<readonly string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) ids.push(await world.submit({ from, to: `u${n}@far.example` }))
  return ids
}

const changes = async (world: World) =>
  (await world.events({ types: ['queue.limit_reached', 'queue.limit_cleared'] })).map(({ type, data }) => ({ type, ...data }))

describe.each(['memory', 'sqlite'] as const)('with a queue in %s', (store) => {
  test('the 101st message is refused at MAIL; the limit is open again when 5 of 100 have left, and not when 3 have', async () => {
    await using world = await worldOf({ queue_message_limit: 100 }, { store })
    const ids = await fill(world, 100)
    expect(await replyTo(world, fromUs)).toBe(FULL)
    await world.operate('delete', ids.slice(0, 3))
    expect(await replyTo(world, fromUs)).toBe(FULL)
    await world.operate('delete', ids.slice(3, 5))
    expect(await replyTo(world, fromUs)).toBe(OK)
    const limit = { share: null, measure: 'messages', limit: 100 }
    expect(await changes(world)).toEqual([
      { type: 'queue.limit_reached', ...limit, used: 100 },
      { type: 'queue.limit_cleared', ...limit, used: 95 },
    ])
  })

  test('a client fills its share; another one is still accepted', async () => {
    await using world = await worldOf({ queue_message_limit: 10, queue_share_message_limit: '20%' }, { store })
    for (let n = 0; n < 2; n++) await replyTo(world, ...sent('app@us.example'))
    expect(await replyTo(world, fromUs)).toBe('452 4.3.1 Error: too much mail of us.example in the queue')
    expect(await replyTo(world, mailFrom('app@them.example'))).toBe(OK)
    expect(await changes(world)).toMatchObject([{ type: 'queue.limit_reached', share: 'us.example', used: 2, limit: 2 }])
  })

  test('a size is checked at MAIL when it is given, and at the end of the content; a large message does not close the limit', async () => {
    await using world = await worldOf({ queue_size_limit: 2_000 }, { store })
    expect(await replyTo(world, mailFrom('app@us.example', ' SIZE=3000'))).toBe(FULL)
    const large = [fromUs, 'RCPT TO:<ann@far.example>', 'DATA', `Subject: hi\r\n\r\n${'x'.repeat(70)}\r\n`.padEnd(3_000, 'y\r\n') + '\r\n.']
    expect(await replyTo(world, ...large)).toBe(FULL)
    expect(await replyTo(world, ...sent('app@us.example'))).toMatch(/^250 2\.0\.0 Ok: queued/)
    expect(await changes(world)).toEqual([])
  })
})

test('a bounce is queued at a full queue', async () => {
  await using world = await worldOf({ queue_message_limit: 2 })
  await fill(world, 1)
  world.rule({ recipient: 'eve@gone.example', at: 'rcpt', reply: '550 5.1.1 no such user' })
  await world.suspend('us.example')
  await world.submit({ from: 'app@us.example', to: 'eve@gone.example' })
  await world.advance('1s')
  expect((await world.events({ types: ['notice.sent'] })).length).toBe(1)
  expect(await replyTo(world, fromUs)).toBe(FULL)
})

test('scheduled mail counts before and after its time, until it has left', async () => {
  await using world = await createWorld({ config: { queue_message_limit: 2, smtpd_future_release_limit: '7d' } })
  await world.submit({ from: 'app@us.example', to: 'ann@far.example', notBefore: '1h' })
  const id = await world.submit({ from: 'app@us.example', to: 'ben@far.example', notBefore: '1d' })
  expect(await replyTo(world, fromUs)).toBe(FULL)
  await world.advance('59m')
  expect(await replyTo(world, fromUs)).toBe(FULL)
  await world.advance('2m')
  expect(world.attempts('ann@far.example')).toHaveLength(1)
  expect(await replyTo(world, fromUs)).toBe(OK)
  expect(await world.cancel(id)).toMatchObject({ cancelled: ['ben@far.example'] })
  expect(await changes(world)).toMatchObject([
    { type: 'queue.limit_reached', used: 2 },
    { type: 'queue.limit_cleared', used: 1 },
  ])
})

test('networks and users of queue_limit_exceptions are not refused, and their mail counts', async () => {
  await using world = await worldOf({ queue_message_limit: 1, queue_limit_exceptions: '127.0.0.0/8' })
  await fill(world, 2)
  expect(await replyTo(world, fromUs)).toBe(OK)
})

test('restored and requeued mail is not refused', async () => {
  await using world = await worldOf({ queue_message_limit: 2 })
  const ids = await fill(world, 2)
  await world.operate('delete', ids)
  await fill(world, 2)
  expect(await world.operate('restore', ids)).toMatchObject({ changed: 2 })
  expect(await world.operate('requeue')).toMatchObject({ changed: 4 })
  expect(await replyTo(world, fromUs)).toBe(FULL)
})

test('the counts go on after a restart, and begin at the first start with a limit', async () => {
  await using world = await worldOf({ queue_message_limit: 2 })
  await fill(world, 2)
  await world.restart()
  expect(await replyTo(world, fromUs)).toBe(FULL)
  await world.crash()
  expect(await replyTo(world, fromUs)).toBe(FULL)
})

test('the counts of an earlier life end at a start without limits', async () => {
  const store = { directory: mkdtempSync(join(tmpdir(), 'deferd-limits-')) }
  const counts = async () => {
    const opened = await openInlineStore(store)
    let found: readonly ShareCount[] = []
    opened.store.shares.onShares(({ counts: told }) => (found = told))
    await opened.store.nextIds(1)
    await opened.store.close()
    return found.map(({ messages }) => messages)
  }
  const before = await worldOf({ queue_message_limit: 2 }, { store })
  await fill(before, 2)
  await before.close()
  expect(await counts()).toEqual([2])
  const after = await worldOf({}, { store })
  expect(await replyTo(after, fromUs)).toBe(OK)
  await after.close()
  expect(await counts()).toEqual([])
})
