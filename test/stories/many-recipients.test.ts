import { expect, test } from 'vitest'
import { minutes, seconds } from '../../src/mail/clock.ts'
import { openInlineStore } from '../../src/queue/sqlite/inline-store.ts'
import { QueueWorld } from '../support/queue-world.ts'

test('a message to 100,000 recipients is delivered in batches, and a small one need not wait for it', { timeout: 60_000 }, async () => {
  const world = await QueueWorld.create({
    store: () => openInlineStore({ memory: true }),
    far: ({ destination }) => (destination === 'us.example' ? { kind: 'accepts' } : { kind: 'accepts', takes: seconds(1) }),
  })
  await world.accept(Array.from({ length: 100_000 }, (_, i) => `ann${i}@far${i % 10}.example`))
  await world.advance(seconds(5))
  const small = await world.accept(['bob@far3.example'])
  await world.advance(seconds(5))
  expect(world.reader.story(small, world.clock.now())?.queue).toBe('gone')
  await world.advance(minutes(30))
  const batches = world.attempts().map(({ recipients }) => recipients)
  expect(batches.reduce((sum, recipients) => sum + recipients, 0)).toBe(100_001)
  expect(Math.max(...batches)).toBe(50)
  expect(world.reader.list({}, { after: 0, limit: 1, now: world.clock.now() })).toEqual([])
})
