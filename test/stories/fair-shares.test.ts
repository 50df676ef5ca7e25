/** Fair shares from a client to the deliveries: no sender waits behind the backlog of another, whatever holds the queue. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { queueIdOf } from '../../src/mail/message.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import type { WorldOptions } from '../../src/testkit/options/world-options.ts'
import { dialogue } from '../support/world-dialogue.ts'

const NARROW = { default_destination_concurrency_limit: 4, initial_destination_concurrency: 4 }

const worldOf = (config: WorldOptions['config'] = {}, more: Omit<WorldOptions, 'config'> = {}): Promise<World> =>
  createWorld({ config: { fair_share: 'yes', share_key: 'sender_domain', ...NARROW, ...config }, ...more })

async function sharesIn(world: World): Promise<readonly (string | undefined)[]> {
  const listed = await world.reader.list(ANY_MESSAGE, { after: 0, limit: 50 })
  const details = await Promise.all(listed.map(({ message }) => world.reader.details(queueIdOf(message))))
  return details.map((one) => one?.message.share)
}

async function submitAll(world: World, from: string, count: number, domain = 'far.example'): Promise<readonly string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) ids.push(await world.submit({ from, to: `${from.slice(0, 4)}${n}@${domain}` }))
  return ids
}

/** Number of messages of a sender among those that arrived from a number on. */
const arrived = (world: World, sender: string, from = 0): number => world.received.slice(from).filter((one) => one.sender === sender).length

const [NEWS, SHOP, APP] = ['mail@news.example', 'mail@shop.example', 'mail@app.example'] as const

describe.each(['memory', 'sqlite'] as const)('with a queue in %s', (store) => {
  test('the mail of a sender passes the backlog of another at their destination', async () => {
    await using world = await worldOf({}, { store })
    world.destination('far.example').isSlow('1s')
    await submitAll(world, NEWS, 150)
    await world.advance('2s')
    await submitAll(world, SHOP, 10)
    const before = world.received.length
    await world.advance('10s')
    // At most as much as a claim brings is ahead of it.
    expect(arrived(world, SHOP, before)).toBe(10)
    expect(arrived(world, NEWS, before)).toBeGreaterThan(20)
  })

  test('a backlog is shared by weights, and after a crash too', async () => {
    // A queue in SQLite outlives its relay in a file.
    const place = store === 'memory' ? store : { directory: mkdtempSync(join(tmpdir(), 'deferd-shares-')) }
    await using world = await worldOf({ share_weight_maps: { 'shop.example': '3' } }, { store: place })
    world.destination('far.example').isSlow('1s')
    await world.suspend('far.example')
    for (const sender of [NEWS, APP, SHOP]) await submitAll(world, sender, sender === SHOP ? 180 : 80)
    await world.resume('far.example')
    for (const crashes of [false, true]) {
      if (crashes) await world.crash()
      // Deliveries of mail that was in memory come first.
      await world.advance('11s')
      const from = world.received.length
      await world.advance('11s')
      const parts = [SHOP, NEWS, APP].map((sender) => arrived(world, sender, from) / (world.received.length - from))
      expect(world.received.length - from).toBeGreaterThan(30)
      for (const [n, fair] of [0.6, 0.2, 0.2].entries()) expect(Math.abs((parts[n] ?? 0) - fair)).toBeLessThan(0.1)
    }
    await world.advance('2h')
    expect(world.received.length).toBeGreaterThanOrEqual(340)
    expect(await world.isEmpty()).toBe(true)
  })

  test('retries that fall due together are shared, new mail with them', async () => {
    await using world = await worldOf({ minimal_backoff_time: '5m', maximal_backoff_time: '5m', retry_jitter: '0' }, { store })
    world.destination('far.example').defers('*', '450 4.2.1 busy', { for: '4m' })
    await submitAll(world, NEWS, 100)
    await submitAll(world, APP, 20)
    await world.advance('4m')
    world.destination('far.example').isSlow('1s')
    await world.advance('3m')
    await submitAll(world, SHOP, 5)
    const from = world.received.length
    await world.advance('12s')
    expect(arrived(world, SHOP, from)).toBe(5)
  })
})

test('new mail of a sender that comes faster than it leaves does not keep the stored mail of another from its turns', async () => {
  await using world = await worldOf()
  world.destination('far.example').isSlow('1s')
  await world.suspend('far.example')
  await submitAll(world, SHOP, 60)
  await world.resume('far.example')
  for (let second = 0; second < 30; second++) {
    await submitAll(world, NEWS, 8)
    await world.advance('1s')
  }
  // Four places of 1 s make 120 deliveries.
  expect(world.received.length).toBeGreaterThan(90)
  expect(arrived(world, SHOP)).toBeGreaterThan(40)
})

test('a sender that comes while the mail of another fills memory has its turns from the first claim on', async () => {
  await using world = await worldOf()
  world.destination('far.example').isSlow('1s')
  // 4 in delivery and 16 in memory, which is as much as a claim brings; the rest waits in the store.
  await submitAll(world, NEWS, 50)
  await submitAll(world, SHOP, 30)
  await world.advance('11s')
  expect(world.received.length).toBeGreaterThanOrEqual(40)
  const afterMemory = world.received.slice(20, 40)
  expect(afterMemory.filter((one) => one.sender === SHOP).length).toBeGreaterThanOrEqual(9)
  expect(afterMemory.filter((one) => one.sender === NEWS).length).toBeGreaterThanOrEqual(9)
})

describe('operations on a part of a backlog', () => {
  /** 150 messages of each of two senders, of which four are in delivery and 16 in memory. Those of NEWS that are in the store. */
  async function backlog(world: World): Promise<readonly string[]> {
    world.destination('far.example').isSlow('1s')
    await world.suspend('far.example')
    const ids = await submitAll(world, NEWS, 150)
    await submitAll(world, SHOP, 150)
    await world.resume('far.example')
    await world.advance('1s')
    return ids.slice(40)
  }

  test('released mail has its place in its share again', async () => {
    await using world = await worldOf()
    const held = (await backlog(world)).slice(0, 10)
    expect(await world.operate('hold', held)).toMatchObject({ changed: 10 })
    await world.advance('40s')
    const before = world.received.length
    expect(await world.operate('release', held)).toMatchObject({ changed: 10 })
    await world.advance('16s')
    // Half of the four deliveries per second are those of its sender, and at most 24 in memory are ahead.
    const arrivedOf = world.received.slice(before).flatMap(({ recipients }) => recipients)
    expect(arrivedOf.length).toBeGreaterThan(50)
    expect(arrivedOf.filter((one) => /^mail4\d@/.test(one)).length).toBe(10)
  })

  test.each(['hold', 'delete'] as const)('a sender whose mail is taken out by %s has its part with the rest', async (operation) => {
    await using world = await worldOf()
    const ids = await backlog(world)
    expect(await world.operate(operation, ids.slice(0, 70))).toMatchObject({ changed: 70 })
    // Mail in memory comes first, and mail before what was taken out.
    await world.advance('20s')
    const from = world.received.length
    await world.advance('10s')
    const parts = [NEWS, SHOP].map((sender) => arrived(world, sender, from))
    expect(world.received.length - from).toBeGreaterThan(35)
    expect(Math.abs((parts[0] ?? 0) - (parts[1] ?? 0))).toBeLessThanOrEqual(6)
  })

  test.each(['hold', 'delete'] as const)(
    'senders whose mail is taken out by %s, of whole claims, have their parts with the rest',
    async (operation) => {
      await using world = await worldOf({ default_destination_concurrency_limit: 1, initial_destination_concurrency: 1 })
      world.destination('far.example').isSlow('1s')
      await world.suspend('far.example')
      // A claim is of ten recipients: of ten senders, then of the ten others.
      const senders = Array.from({ length: 20 }, (_, n) => `mail@${n < 10 ? 'news' : 'shop'}${n}.example`)
      const ids: string[] = []
      for (let round = 0; round < 10; round++) for (const sender of senders) ids.push(...(await submitAll(world, sender, 1)))
      await world.resume('far.example')
      await world.advance('1s')
      const isNews = (_: unknown, n: number): boolean => n % 20 < 10
      expect(await world.operate(operation, ids.slice(20, 120).filter(isNews))).toMatchObject({ changed: 50 })
      // The claims in memory, and a turn of each sender, come first.
      await world.advance('40s')
      const from = world.received.length
      await world.advance('40s')
      const ofNews = world.received.slice(from).filter(({ sender }) => sender.includes('news')).length
      expect(world.received.length - from).toBeGreaterThan(35)
      expect(Math.abs(ofNews - (world.received.length - from) / 2)).toBeLessThanOrEqual(5)
    },
  )
})

test('without fair_share, messages have no share and wait in the order of their arrival', async () => {
  await using world = await worldOf({ fair_share: 'no' })
  world.destination('far.example').isSlow('1s')
  await submitAll(world, NEWS, 60)
  await world.advance('2s')
  await submitAll(world, SHOP, 1)
  await world.advance('8s')
  expect(arrived(world, SHOP)).toBe(0)
  expect(new Set(await sharesIn(world))).toEqual(new Set([undefined]))
})

test('a header field of a client that a class allows names the share; of others it has no effect, and it is removed from all mail', async () => {
  for (const [allow, shares] of [
    [['127.0.0.1'], ['acme', 'us.example']],
    [['192.0.2.1'], ['us.example', 'us.example']],
  ] as const) {
    await using world = await worldOf({
      share_key: 'header:X-Tenant, sender_domain',
      class: { normal: { weight: 1, allow: [...allow] } },
    })
    await world.suspend('far.example')
    for (const fields of ['x-tenant: acme\r\nSubject: hi', 'Subject: hi'])
      await dialogue(world, [
        'EHLO app.us.example',
        'MAIL FROM:<app@us.example>',
        'RCPT TO:<ann@far.example>',
        'DATA',
        `${fields}\r\n\r\nhi\r\n.`,
      ])
    expect(await sharesIn(world)).toEqual(shares)
    await world.resume('far.example')
    await world.advance('1s')
    expect(world.received.length).toBe(2)
    for (const { content } of world.received) expect(content.toString().toLowerCase()).not.toContain('x-tenant')
  }
})

test('a destination that is given back keeps the places of its mail', async () => {
  await using world = await worldOf({}, { store: 'sqlite' })
  world.destination('far.example').isSlow('1s')
  await submitAll(world, NEWS, 80)
  await submitAll(world, SHOP, 40)
  await world.advance('5s')
  await world.suspend('far.example')
  await world.advance('5s')
  await world.resume('far.example')
  await world.advance('1h')
  expect(world.received.length).toBe(120)
  expect(await world.isEmpty()).toBe(true)
})
