/** Mail to a healthy destination while a storm of undeliverable messages makes as many notices, in virtual time. */
import { HOUR, SECOND, type Duration } from '../../src/mail/clock.ts'
import { openInlineStore } from '../../src/queue/sqlite/inline-store.ts'
import { QueueWorld, type Reception, type Visit } from './queue-world.ts'

/** As long as the largest storm lasts. */
const WATCHED = 120
/** The storm is said to come from this many domains. */
const DOMAINS = 500
/** Of a delivery; a refusal takes a tenth. */
const ROUND_TRIP: Duration = 100

export interface StormReport {
  /** How long each of the other messages took, in ms. */
  readonly latencies: readonly Duration[]
  /** Notices that were made, and the most in any second of the clock. */
  readonly notices: number
  readonly mostPerSecond: number
  /** From the first notice to the last, in s. */
  readonly lasted: number
  /** Notices that arrived where they belong. */
  readonly arrived: number
}

function far({ destination }: Visit): Reception {
  if (destination === 'no.example') return { kind: 'replies', reply: '550 5.1.1 no such user', takes: ROUND_TRIP / 10 }
  return { kind: 'accepts', takes: ROUND_TRIP }
}

/** A storm of this size breaks out at once; one other message comes in every second. */
export async function noticeStorm(size: number): Promise<StormReport> {
  const world = await QueueWorld.create({ config: ['myhostname=relay.example'], far, store: () => openInlineStore({ memory: true }) })
  for (let n = 0; n < size; n++) await world.accept([`user${n}@no.example`], { sender: `app@us${n % DOMAINS}.example` })
  const began = world.clock.monotonic()
  for (let n = 0; n < WATCHED; n++) {
    await world.accept([`ann${n}@ok.example`], { sender: 'app@us.example' })
    await world.advance(SECOND)
  }
  await world.advance(HOUR)
  const latencies = Array.from(
    { length: WATCHED },
    (_, n) => (world.arrivals(`ann${n}@ok.example`)[0]?.at ?? Infinity) - began - n * SECOND,
  )
  const made = world.happened('noticed').map(({ at }) => at)
  const perSecond = new Map<number, number>()
  for (const at of made) perSecond.set(Math.floor(at / SECOND), (perSecond.get(Math.floor(at / SECOND)) ?? 0) + 1)
  const arrived = Array.from({ length: DOMAINS }, (_, n) => world.arrivals(`app@us${n}.example`).length)
  await world.store.close()
  return {
    latencies,
    notices: made.length,
    mostPerSecond: Math.max(0, ...perSecond.values()),
    lasted: made.length === 0 ? 0 : ((made.at(-1) ?? 0) - (made[0] ?? 0)) / SECOND,
    arrived: arrived.reduce((sum, count) => sum + count, 0),
  }
}
