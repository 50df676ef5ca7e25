/**
 * The story of one sick destination with a mountain of due mail among many healthy ones; the short and the long test
 * tell it. What is asked is how long the mail of the others takes.
 */
import { minutes, SECOND, type Duration } from '../../src/mail/clock.ts'
import { openInlineStore } from '../../src/queue/sqlite/inline-store.ts'
import { BEGINNING } from '../../src/testkit/virtual-clock.ts'
import { fillBacklog } from './backlog.ts'
import { QueueWorld, type Reception } from './queue-world.ts'

const SICK = 'sick.example'
const OTHERS = 1_000

/** How the sick destination fails: it takes the connection and never greets, or nobody is there. */
export type Sickness = 'tarpit' | 'dead'

const RECEPTIONS: { readonly [S in Sickness]: Reception } = {
  tarpit: { kind: 'refuses-connections', takes: minutes(5) },
  dead: { kind: 'refuses-connections', takes: 10 },
}

/** The median time from acceptance to arrival of mail to a thousand healthy destinations, in virtual milliseconds. */
export async function medianOfTheOthers(sickness: Sickness, due: number): Promise<Duration> {
  const world = await QueueWorld.create({
    far: ({ destination, request }) =>
      destination === SICK ? RECEPTIONS[sickness] : { kind: 'accepts', takes: 200 + ((request.message.id * 7_919) % 101) },
    store: async () => {
      const opened = await openInlineStore({ memory: true })
      await fillBacklog(opened.store, { messages: due, now: BEGINNING, destinationOf: () => SICK, dueIn: () => 0, bytes: 100 })
      return opened
    },
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
