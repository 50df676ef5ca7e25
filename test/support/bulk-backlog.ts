/** Mail of a high class beside a backlog of a low one, of which all is due: times from arrival to start, in virtual time. */
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { SECOND, type Duration } from '../../src/system/clock.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { fillBacklog } from './backlog.ts'
import { QueueWorld } from './queue-world.ts'

/** In ms. */
const DELIVERY: Duration = 500
const WINDOW = 20

interface BulkBacklog {
  readonly bulk: number
  /** Number of destinations, among which bulk and fast mail are spread. */
  readonly destinations: number
  /** Number of fast messages, two per second. */
  readonly fast: number
}

interface Figures {
  /** 99th percentile of the time from the arrival of a fast message to the begin of its delivery. */
  readonly p99: Duration
  /** Bulk messages that were delivered per second meanwhile. */
  readonly bulkPerSecond: number
}

export async function besideBacklog({ bulk, destinations, fast }: BulkBacklog): Promise<Figures> {
  const queue = await openInlineStore({ memory: true })
  const { classBands } = queue.store.records
  const ofClass = { name: 'bulk', band: 1 }
  await classBands.add(ofClass)
  const destinationOf = (n: number): string => `d${n % destinations}.example`
  await fillBacklog(queue.store, { messages: bulk, now: BEGINNING, destinationOf, dueIn: () => 0, bytes: 100, ofClass })
  const world = await QueueWorld.create({
    queue,
    config: {
      class: { fast: { weight: 100, reserve: '5%' }, normal: { weight: 10 }, bulk: { weight: 1 } },
      default_destination_concurrency_limit: WINDOW,
      initial_destination_concurrency: WINDOW,
    },
    remote: () => ({ kind: 'accepts', takes: DELIVERY }),
  })
  const arrived = new Map<string, Duration>()
  await world.advance(5 * SECOND)
  const before = world.arrivals().length
  for (let n = 0; n < fast; n++) {
    const address = `fast${n}@${destinationOf(n * 7)}`
    arrived.set(address, world.clock.now() - BEGINNING)
    await world.accept([address], { class: 'fast' })
    await world.advance(SECOND / 2)
  }
  const bulkDelivered = world.arrivals().length - before - fast
  await world.advance(5 * SECOND)
  const waits = [...arrived].map(([address, at]) => (world.arrivals(address)[0]?.at ?? Infinity) - DELIVERY - at).toSorted((a, b) => a - b)
  return { p99: waits[Math.floor(waits.length * 0.99)] ?? Infinity, bulkPerSecond: (2 * bulkDelivered) / fast }
}
