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
