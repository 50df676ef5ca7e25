import { expect, test } from 'vitest'
import { MessageAges, MOST_COUNTED } from '../../src/queries/message-ages.ts'
import { MINUTE } from '../../src/system/clock.ts'
import { createWorld } from '../../src/testkit/index.ts'
import { queue } from '../conformance/mail.ts'

test('messages are counted by age, in a large queue none', async () => {
  await using world = await createWorld()
  const now = world.now()
  for (const minutes of [1, 7, 8, 3000]) await queue(world.store, { at: now - minutes * MINUTE })
  const { reader, clock } = world
  const ages = new MessageAges({ reader, clock })
  expect(await ages.value(MOST_COUNTED + 1)).toBeNull()
  expect(await ages.value(4)).toMatchObject({
    limits: [5, 10, 20, 40, 80, 160, 320, 640, 1280, null],
    counts: [1, 2, 0, 0, 0, 0, 0, 0, 0, 1],
  })
  expect(await ages.value(MOST_COUNTED + 1)).toBeNull()
})

test('counts that nobody has asked for in the meantime are made again before they are shown', async () => {
  await using world = await createWorld()
  const { reader, clock } = world
  await queue(world.store, { at: world.now() })
  const ages = new MessageAges({ reader, clock })
  const counts = async () => (await ages.value(1))?.counts.slice(0, 3)
  expect(await counts()).toEqual([1, 0, 0])
  await world.advance('20s')
  await queue(world.store, { at: world.now() })
  expect(await counts()).toEqual([1, 0, 0])
  await world.advance('8m')
  expect(await counts()).toEqual([0, 2, 0])
})
