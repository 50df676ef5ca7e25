/** Classes of mail from a client to the store: who gets which class, where it shows, and that mail of a higher class passes a backlog. */
import { describe, expect, test } from 'vitest'
import { matchers } from '../../src/testkit/results/matchers.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import type { WorldOptions } from '../../src/testkit/options/world-options.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { QueueWorld } from '../support/queue-world.ts'
import { dialogue } from '../support/world-dialogue.ts'

const CLASSES = {
  fast: { weight: 100, reserve: '5%', allow: ['10.0.0.0/8'] },
  normal: { weight: 10 },
  bulk: { weight: 1, maximal_queue_lifetime: '1h' },
}

const worldOf = (config: WorldOptions['config'] = {}, more: Omit<WorldOptions, 'config'> = {}): Promise<World> =>
  createWorld({
    config: { class: CLASSES, sender_class_maps: { 'news@us.example': 'bulk', 'alert@us.example': 'fast' }, ...config },
    ...more,
  })

const classesIn = async (world: World): Promise<readonly (string | undefined)[]> =>
  (await world.reader.list(ANY_MESSAGE, { after: 0, limit: 50 })).map(({ message }) => message.class)

describe.each(['memory', 'sqlite'] as const)('with a queue in %s', (store) => {
  test('the class is stored with the message, and a filter finds it', async () => {
    await using world = await worldOf({}, { store })
    await world.suspend('far.example')
    for (const from of ['news@us.example', 'app@us.example', 'alert@us.example']) await world.submit({ from, to: 'ann@far.example' })
    expect(await classesIn(world)).toEqual(['bulk', 'normal', 'fast'])
    const found = await world.reader.find({ ...ANY_MESSAGE, class: 'bulk' }, { after: 0, limit: 9 })
    expect(found.length).toBe(1)
  })

  test('a header field of a stranger asks for a lower class only, and is removed', async () => {
    await using world = await worldOf({}, { store })
    await world.suspend('far.example')
    const sent = (asked: string) => [
      'EHLO app.us.example',
      'MAIL FROM:<app@us.example>',
      'RCPT TO:<ann@far.example>',
      'DATA',
      `Subject: hi\r\nx-deferd-class: ${asked}\r\n\r\nhi\r\n.`,
    ]
    for (const asked of ['fast', 'bulk', 'nonsense']) await dialogue(world, sent(asked))
    expect(await classesIn(world)).toEqual(['normal', 'bulk', 'normal'])
    await world.resume('far.example')
    await world.advance('1s')
    expect(world.received.length).toBe(3)
    for (const { content } of world.received) expect(content.toString().toLowerCase()).not.toContain('x-deferd-class')
  })

  test('fast mail passes a backlog at its destination, and bulk mail goes on', async () => {
    await using world = await worldOf({ default_destination_concurrency_limit: 4, initial_destination_concurrency: 4 }, { store })
    world.destination('far.example').isSlow('1s')
    for (let n = 0; n < 60; n++) await world.submit({ from: 'news@us.example', to: `u${n}@far.example` })
    await world.advance('2s')
    await world.submit({ from: 'alert@us.example', to: 'eve@far.example' })
    await world.advance('3s')
    const times = world.received.flatMap(({ recipients }) => recipients)
    expect(times).toContain('eve@far.example')
    const startedWithin = (address: string, time: string): boolean =>
      matchers.toHaveStartedWithin.call({ isNot: false }, world.recipient(address), time).pass
    expect([startedWithin('eve@far.example', '1s'), startedWithin('u59@far.example', '1s')]).toEqual([true, false])
    expect(times.length).toBeGreaterThan(8)
    expect(times.length).toBeLessThan(25)
  })
})

describe('while slow hosts hold every slot that bulk mail may have', () => {
  const SLOTS = 40
  const FAST = 12

  /** 40 destinations that take a minute for a delivery, three bulk messages for each; then fast mail for other ones, two per second. */
  async function besideSlowHosts(reserve: string) {
    await using world = await worldOf({ default_process_limit: SLOTS, class: { ...CLASSES, fast: { ...CLASSES.fast, reserve } } })
    for (let n = 0; n < SLOTS; n++) {
      world.destination(`slow${n}.example`).isSlow('1m')
      for (let k = 0; k < 3; k++) await world.submit({ from: 'news@us.example', to: `u${k}@slow${n}.example` })
    }
    await world.advance('10s')
    const inDelivery: number[] = []
    for (let n = 0; n < FAST; n++) {
      inDelivery.push(world.destinations().reduce((sum, { inFlight }) => sum + inFlight, 0))
      await world.submit({ from: 'alert@us.example', to: `eve${n}@d${n}.example` })
      await world.advance('500ms')
    }
    await world.advance('2s')
    const inTime = Array.from({ length: FAST }, (_, n) => world.recipient(`eve${n}@d${n}.example`)).filter(
      (recipient) => matchers.toHaveStartedWithin.call({ isNot: false }, recipient, '1s').pass,
    )
    return { inDelivery: new Set(inDelivery), inTime: inTime.length }
  }

  test('fast mail with a reserve starts within a second', async () => {
    // Two of the 40 slots are free for it.
    expect(await besideSlowHosts('5%')).toEqual({ inDelivery: new Set([38]), inTime: FAST })
  })

  test('fast mail without one waits', async () => {
    expect(await besideSlowHosts('0%')).toEqual({ inDelivery: new Set([SLOTS]), inTime: 0 })
  })
})

test.each(['memory', 'sqlite'] as const)('a reclass gives mail that waits the turns of another class, in %s', async (store) => {
  await using world = await worldOf({ default_destination_concurrency_limit: 4, initial_destination_concurrency: 4 }, { store })
  world.destination('far.example').isSlow('1s')
  const ids: string[] = []
  for (let n = 0; n < 60; n++) ids.push(await world.submit({ from: 'news@us.example', to: `u${n}@far.example` }))
  await world.advance('2s')
  // It is behind the backlog, in the store or in memory.
  const last = ids.at(-1) ?? ''
  expect(await world.operate('reclass', [last], { class: 'fast' })).toMatchObject({ changed: 1, inTransfer: 0 })
  await world.advance('2s')
  expect(world.received.flatMap(({ recipients }) => recipients)).toContain('u59@far.example')
  await expect(world.operate('reclass', [last], { class: 'slow' })).rejects.toThrow('there is no class "slow"')
  await expect(world.operate('hold', [last], { class: 'fast' })).rejects.toThrow('needs class')
})

test('mail in transfer that is deferred waits in its new class, and is tried when it is due', async () => {
  // The wait is shorter than the time until the scheduler looks at the whole queue again.
  const world = await QueueWorld.create({
    remote: () => ({ kind: 'replies', reply: '450 4.2.1 busy', takes: 10_000 }),
    config: { class: CLASSES, minimal_backoff_time: '15s' },
  })
  const id = await world.accept(['ann@far.example'], { class: 'bulk' })
  await world.accept(['bob@other.example'], { class: 'bulk' })
  await world.advance(5_000)
  expect(await world.operate('reclass', [id], { class: 'fast' })).toMatchObject({ changed: 1 })
  await world.advance(35_000)
  expect(world.tried('far.example').length).toBe(2)
  expect(world.tried('far.example')).toEqual(world.tried('other.example'))
  const listed = await world.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })
  expect(listed.map(({ message }) => message.class)).toEqual(['fast', 'bulk'])
  await world.close()
})

test('a notice has the class of its message, at least that of other mail', async () => {
  await using world = await worldOf()
  world.rule({ recipient: 'eve@gone.example', at: 'rcpt', reply: '550 5.1.1 no such user' })
  await world.suspend('us.example')
  for (const from of ['news@us.example', 'alert@us.example']) await world.submit({ from, to: 'eve@gone.example' })
  await world.advance('1s')
  expect(new Set(await classesIn(world))).toEqual(new Set(['fast', 'normal']))
})

test('the lifetime is that of the class, and a class that is taken out leaves its mail to default_class', async () => {
  await using world = await worldOf()
  world.destination('far.example').defers('*', '450 4.2.1 busy')
  for (const from of ['news@us.example', 'app@us.example']) await world.submit({ from, to: 'ann@far.example' })
  await world.advance('61m')
  expect((await classesIn(world)).filter((name) => name === 'bulk')).toEqual([])
  await world.submit({ from: 'news@us.example', to: 'ben@far.example' })
  await world.advance('1s')
  const { settings } = world.relay
  const [normal] = [...settings.config.class].filter(([name]) => name === 'normal')
  if (normal === undefined) throw new Error('no class normal')
  await world.relay.reload({
    ...settings,
    classMaps: new Map(),
    config: { ...settings.config, class: new Map([normal]), sender_class_maps: [] },
  })
  world.destination('far.example').recovers()
  await world.advance('2h')
  expect(world.received.flatMap(({ recipients }) => recipients).toSorted()).toEqual([
    'ann@far.example',
    'ben@far.example',
    // The notice about the expired message.
    'news@us.example',
  ])
})
