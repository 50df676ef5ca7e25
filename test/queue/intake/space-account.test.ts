import { expect, test } from 'vitest'
import { SpaceAccount } from '../../../src/queue/intake/space-account.ts'
import { StoreUnavailable } from '../../../src/store/queue-store.ts'
import { eventLoopTurn } from '../../../src/system/event-loop.ts'
import { realClock } from '../../support/real-clock.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

function account(free: number) {
  const disk = { free }
  const space = new SpaceAccount({ freeSpace: async () => disk.free }, realClock, async () => false)
  return { disk, space }
}

test('bytes are promised once: messages that ask together do not get more than there is', async () => {
  const { space } = account(30_000_000)
  const promised = await Promise.all([1, 2, 3, 4].map((content) => space.promise(content, 9_000_000)))
  expect(promised).toEqual([true, true, true, false])
  space.ended(2)
  expect(await space.promise(4, 9_000_000)).toBe(true)
})

test('stored bytes stay used when the message has ended, until the disk is looked at again', async () => {
  const { space } = account(10_000_000)
  expect(await space.promise(1, 4_000_000)).toBe(true)
  space.stored(1, 4_000_000)
  space.ended(1)
  expect(space.available).toBe(10_000_000 - 4_280_000)
  expect(await space.promise(2, 5_000_000)).toBe(true)
})

test('a message that grows is promised the difference only', async () => {
  const { space } = account(10_000_000)
  expect(await space.promise(1, 5_000_000)).toBe(true)
  space.stored(1, 1_000_000)
  expect(await space.promise(1, 4_000_000)).toBe(true)
  expect(space.available).toBe(10_000_000 - 5_350_000)
})

test('messages that ask while the disk is read share one sample; a young sample answers at once', async () => {
  let samples = 0
  const space = new SpaceAccount({ freeSpace: async () => (++samples, 10_000_000) }, realClock, async () => false)
  expect(await Promise.all([1, 2, 3].map(async () => space.hasMoreThan(1_000_000)))).toEqual([true, true, true])
  expect(samples).toBe(1)
  expect(space.hasMoreThan(1_000_000)).toBe(true)
  expect(samples).toBe(1)
})

test('a sample that failed is taken again by the next message', async () => {
  const answers = [() => Promise.reject(new StoreUnavailable('the database is away')), async () => 10_000_000]
  const space = new SpaceAccount(
    { freeSpace: () => answers.shift()?.() ?? Promise.reject(new Error('asked too often')) },
    realClock,
    async () => false,
  )
  await expect(space.hasMoreThan(1_000_000)).rejects.toThrow('the database is away')
  expect(await space.hasMoreThan(1_000_000)).toBe(true)
})

test('a message is not refused by a sample that another one asked for before space became free', async () => {
  const clock = new VirtualClock()
  const asked: ((free: number) => void)[] = []
  const space = new SpaceAccount({ freeSpace: () => new Promise((resolve) => asked.push(resolve)) }, clock, async () => false)
  const first = space.hasMoreThan(1_000_000)
  asked.shift()?.(0)
  expect(await first).toBe(false)
  clock.jumpTo(clock.now() + 25)
  const [early, late] = [space.hasMoreThan(1_000_000), space.hasMoreThan(1_000_000)]
  await eventLoopTurn()
  expect(asked).toHaveLength(2)
  asked[0]?.(0)
  asked[1]?.(10_000_000)
  expect(await Promise.all([early, late])).toContain(true)
})
