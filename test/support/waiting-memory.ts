/**
 * Prints as JSON the reachable bytes that a relay with waiting mail has in its heap: `few` with 10 messages to 10 destinations, `messages`
 * with the messages of the first argument to 10 destinations, `destinations` with as many to one destination each. The queue is in the
 * memory of SQLite, outside the heap. A process of its own, with --expose-gc: the heap of a process with other work changes meanwhile.
 */
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { fillBacklog } from './backlog.ts'
import { QueueWorld } from './queue-world.ts'

const HOUR = 3_600_000

/** Bytes of the heap after garbage collections. */
function collected(): number {
  if (globalThis.gc === undefined) throw new Error('the garbage collector is not exposed: run node with --expose-gc')
  globalThis.gc()
  globalThis.gc()
  return process.memoryUsage().heapUsed
}

/** Bytes that a relay takes which has started on a queue, none of whose mail is due. */
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
  const attempts = world.attempts().length
  if (attempts > 0) throw new Error(`${attempts} messages were attempted: their mail did not wait`)
  await world.close()
  await queue.store.close()
  return after - before
}

const count = Number(process.argv[2])
if (!(count > 10)) throw new Error('the first argument is the number of messages, more than 10')
await heapWith(10, 10)
const few = await heapWith(10, 10)
const messages = await heapWith(count, 10)
const destinations = await heapWith(count, count)
console.log(JSON.stringify({ few, messages, destinations }))
