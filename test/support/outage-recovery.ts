/** Runs an outage of four hours and the recovery after it; used by the short and the long test. */
import { hours, minutes, SECOND, type Duration } from '../../src/system/clock.ts'
import { type Behaviour, type ModelledDelivery } from './modelled-remote.ts'
import { QueueWorld } from './queue-world.ts'

const OUTAGE = hours(4)
/** Number of connections that the server accepts at once; others are greeted with 421. */
const CONNECTION_LIMIT = 50
const SERVICE: Duration = 500

/** Duration of a delivery: 500 ms ± 5 %. */
function limitedRemote({ at, inFlight, request }: ModelledDelivery): Behaviour {
  if (at < OUTAGE) return { kind: 'refuses-connections', takes: 10 }
  if (inFlight > CONNECTION_LIMIT) return { kind: 'too-busy', takes: 1 }
  return { kind: 'accepts', takes: 0.95 * SERVICE + ((request.message.id * 7_919) % 51) }
}

export interface Recovery {
  readonly delivered: number
  readonly attemptsPerMessage: number
  /** Time from the first message accepted after the outage to the last, as a multiple of the minimum that the server needs. */
  readonly timesOptimum: number
  /** Maximum number of connections in ten seconds, as a multiple of the number that the server can serve. */
  readonly busiest: number
}

export async function recoveryAfterOutage(messages: number): Promise<Recovery> {
  const world = await QueueWorld.create({
    remote: limitedRemote,
    store: 'sqlite',
    config: { default_destination_concurrency_limit: '0' },
  })
  const perMinute = Math.ceil(messages / (OUTAGE / minutes(1)))
  for (let sent = 0; sent < messages; sent += perMinute) {
    for (let n = sent; n < Math.min(messages, sent + perMinute); n++) await world.accept([`user${n}@far.example`])
    await world.advance(minutes(1))
  }
  await world.advance(hours(6))
  const after = world.attempts('far.example').filter(({ at }) => at >= OUTAGE)
  const served = after.filter(({ kind }) => kind === 'accepts')
  const optimum = (messages * SERVICE) / CONNECTION_LIMIT
  return {
    delivered: served.length,
    attemptsPerMessage: after.length / messages,
    timesOptimum: ((served.at(-1)?.at ?? Infinity) - (served[0]?.at ?? 0)) / optimum,
    busiest: mostInTenSeconds(after.map(({ at }) => at)) / ((10 * SECOND * CONNECTION_LIMIT) / SERVICE),
  }
}

function mostInTenSeconds(times: readonly Duration[]): number {
  let most = 0
  let first = 0
  times.forEach((at, n) => {
    while ((times[first] ?? at) <= at - 10 * SECOND) first++
    most = Math.max(most, n - first + 1)
  })
  return most
}
