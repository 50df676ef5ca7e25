/** A message to a large number of recipients; used by the short and the long test. */
import { expect } from 'vitest'
import { minutes, seconds } from '../../src/system/clock.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { QueueWorld } from './queue-world.ts'

/** Expects delivery in batches of at most 50, and that a small message is delivered before the large one is. */
export async function deliverToMany(recipients: number): Promise<void> {
  const world = await QueueWorld.create({
    store: 'sqlite',
    remote: ({ destination }) => (destination === 'us.example' ? { kind: 'accepts' } : { kind: 'accepts', takes: seconds(1) }),
  })
  await world.accept(Array.from({ length: recipients }, (_, i) => `ann${i}@far${i % 10}.example`))
  await world.advance(seconds(5))
  const small = await world.accept(['bob@far3.example'])
  await world.advance(seconds(5))
  expect((await world.reader.details(small))?.queue).toBe('gone')
  await world.advance(minutes(30))
  const batches = world.attempts().map((attempt) => attempt.recipients)
  expect(batches.reduce((sum, size) => sum + size, 0)).toBe(recipients + 1)
  expect(Math.max(...batches)).toBe(50)
  expect(await world.reader.list(ANY_MESSAGE, { after: 0, limit: 1 })).toEqual([])
}
