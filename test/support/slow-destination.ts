/**
 * Runs one failing destination with a large backlog of due mail among many healthy ones, and measures the delivery time at the
 * others. Used by the short and the long test.
 */
import { minutes, SECOND, type Duration } from '../../src/system/clock.ts'
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { fillBacklog } from './backlog.ts'
import { type Behaviour } from './modelled-remote.ts'
import { QueueWorld } from './queue-world.ts'

const FAILING = 'sick.example'
const OTHERS = 1_000

/** Failure of the destination: it accepts connections without a greeting, or is unreachable. */
export type Failure = 'tarpit' | 'dead'

const BEHAVIOURS: { readonly [S in Failure]: Behaviour } = {
  tarpit: { kind: 'refuses-connections', takes: minutes(5) },
  dead: { kind: 'refuses-connections', takes: 10 },
}

/** Median time from acceptance to delivery of mail to a thousand healthy destinations, in virtual milliseconds. */
export async function medianLatencyOfOthers(failure: Failure, due: number): Promise<Duration> {
  const queue = await openInlineStore({ memory: true })
  await fillBacklog(queue.store, { messages: due, now: BEGINNING, destinationOf: () => FAILING, dueIn: () => 0, bytes: 100 })
  const world = await QueueWorld.create({
    queue,
    remote: ({ destination, request }) =>
      destination === FAILING ? BEHAVIOURS[failure] : { kind: 'accepts', takes: 200 + ((request.message.id * 7_919) % 101) },
  })
  const accepted = new Map<string, Duration>()
  for (let n = 0; n < 2 * OTHERS; n++) {
    const address = `user${n}@d${n % OTHERS}.example`
    await world.accept([address])
    accepted.set(address, world.clock.now() - BEGINNING)
    await world.advance(SECOND / 20)
  }
  await world.advance(minutes(1))
  const latencies = [...accepted].map(([address, at]) => (world.arrivals(address)[0]?.at ?? Infinity) - at)
  return latencies.toSorted((a, b) => a - b)[latencies.length >> 1] ?? Infinity
}
