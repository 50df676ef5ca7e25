import { expect, test } from 'vitest'
import { days, hours, minutes } from '../../src/system/clock.ts'
import { type ModelledDelivery } from '../support/modelled-remote.ts'
import { QueueWorld } from '../support/queue-world.ts'
import { threadTime } from '../support/thread-time.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'

const far = ({ destination, at }: ModelledDelivery) => {
  if (destination === 'well.example' || destination === 'us.example') return { kind: 'accepts' } as const
  if (destination === 'down.example' && at >= hours(30)) return { kind: 'accepts' } as const
  return { kind: 'refuses-connections' } as const
}

/** 600 messages in ten hours, a third to each destination. */
async function sixDays(seed: number) {
  const world = await QueueWorld.create({ seed, remote: far, config: { maximal_queue_lifetime: '5d', retry_jitter: '0.2' } })
  for (let i = 0; i < 200; i++) {
    for (const domain of ['well.example', 'down.example', 'dead.example']) await world.accept([`ann${i}@${domain}`])
    await world.advance(minutes(3))
  }
  await world.advance(days(6))
  return world
}

test('six days with a healthy, a down and a dead destination: all mail is delivered or returned, identically for the same seed', async () => {
  const began = threadTime()
  const world = await sixDays(1)
  expect(threadTime() - began).toBeLessThan(10_000)

  const delivered = world.history.flatMap(({ event }) =>
    event.kind === 'attempted' ? event.attempts.filter((one) => one.outcome === 'delivered') : [],
  )
  const failures = world.happened('notice-sent').filter((event) => event.notice === 'failure')
  expect(failures).toHaveLength(200)
  // Two thirds of the mail, and the notices about the rest.
  expect(delivered).toHaveLength(600)
  expect(await world.reader.list(ANY_MESSAGE, { after: 0, limit: 1 })).toEqual([])

  expect((await sixDays(1)).hash()).toBe(world.hash())
  expect((await sixDays(2)).hash()).not.toBe(world.hash())
})
