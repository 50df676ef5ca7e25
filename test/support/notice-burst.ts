/** Delivers mail to a healthy destination while a burst of undeliverable messages causes as many notices, in virtual time. */
import { HOUR, SECOND, type Duration } from '../../src/system/clock.ts'
import { type Behaviour, type ModelledDelivery } from './modelled-remote.ts'
import { QueueWorld } from './queue-world.ts'

/** Number of other messages, one per second; as many seconds as the largest burst lasts. */
const WATCHED = 120
/** Number of sender domains of the burst. */
const DOMAINS = 500
/** Duration of a delivery; a refusal takes a tenth. */
const ROUND_TRIP: Duration = 100

export interface BurstReport {
  /** Delivery time of each of the other messages, in ms. */
  readonly latencies: readonly Duration[]
  /** Number of composed notices, and the maximum within one second of the clock. */
  readonly notices: number
  readonly mostPerSecond: number
  /** Time from the first notice to the last, in s. */
  readonly lasted: number
  /** Number of notices that their senders received. */
  readonly arrived: number
}

function remoteServer({ destination }: ModelledDelivery): Behaviour {
  if (destination === 'no.example') return { kind: 'replies', reply: '550 5.1.1 no such user', takes: ROUND_TRIP / 10 }
  return { kind: 'accepts', takes: ROUND_TRIP }
}

/** Runs a burst of this size, while one other message is submitted each second. */
export async function noticeBurst(size: number): Promise<BurstReport> {
  const world = await QueueWorld.create({ config: { myhostname: 'relay.example' }, remote: remoteServer, store: 'sqlite' })
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
  const made = world.happened('notice-sent').map(({ at }) => at)
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
