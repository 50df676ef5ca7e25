/** Memory of a relay with waiting mail. test/long/memory.long.ts and `npm run bench -- memory` measure a daemon. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { openInlineStore } from '../../src/store/sqlite/inline-store.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { fillBacklog } from '../support/backlog.ts'
import { QueueWorld } from '../support/queue-world.ts'

const MESSAGES = 3_000
const HOUR = 3_600_000

function collected(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

/** Reachable bytes of a relay that has started on a queue. The queue is in the memory of SQLite, outside the heap. */
async function heapWith(messages: number, destinations: number): Promise<number> {
  const queue = await openInlineStore({ memory: true })
  const before = collected()
  await fillBacklog(queue.store, {
    messages,
    now: BEGINNING,
    destinationOf: (n) => `d${n % destinations}.example`,
    dueIn: (n) => 12 * HOUR + n,
    bytes: 100,
  })
  const world = await QueueWorld.create({ queue, remote: () => ({ kind: 'accepts' }) })
  await world.advance(HOUR)
  const after = collected()
  expect(world.attempts()).toEqual([])
  await world.close()
  await queue.store.close()
  return after - before
}

test('a waiting destination takes less than 1,200 bytes, a queued message none', async () => {
  await heapWith(10, 10)
  const few = await heapWith(10, 10)
  const messages = await heapWith(MESSAGES, 10)
  const destinations = await heapWith(MESSAGES, MESSAGES)
  expect((messages - few) / MESSAGES).toBeLessThan(150)
  expect((destinations - messages) / MESSAGES).toBeGreaterThan(200)
  expect((destinations - messages) / MESSAGES).toBeLessThan(1_200)
})
