/** The story of an outage of four hours and the recovery after it; the short and the long test tell it. */
import { hours, minutes, SECOND, type Duration } from '../../src/mail/clock.ts'
import { openInlineStore } from '../../src/queue/sqlite/inline-store.ts'
import { QueueWorld, type Reception, type Visit } from './queue-world.ts'

const OUTAGE = hours(4)
/** Served at once; everybody else hears 421 at the door. */
const DOOR = 50
const SERVICE: Duration = 500

/** Deliveries take 500 ms ± 5 %. */
function weakFarSide({ at, underWay, request }: Visit): Reception {
  if (at < OUTAGE) return { kind: 'refuses-connections', takes: 10 }
  if (underWay > DOOR) return { kind: 'too-busy', takes: 1 }
  return { kind: 'accepts', takes: 0.95 * SERVICE + ((request.message.id * 7_919) % 51) }
}

export interface Recovery {
  readonly delivered: number
  readonly attemptsPerMessage: number
  /** From the first message that was taken again to the last, in units of what the far side needs at its best. */
  readonly timesOptimum: number
  /** The most connects in any ten seconds, in units of what it serves in ten seconds. */
  readonly busiest: number
}

export async function recoveryAfterOutage(messages: number): Promise<Recovery> {
  const world = await QueueWorld.create({
    far: weakFarSide,
    store: () => openInlineStore({ memory: true }),
    config: ['default_destination_concurrency_limit=0'],
  })
  const perMinute = Math.ceil(messages / (OUTAGE / minutes(1)))
  for (let sent = 0; sent < messages; sent += perMinute) {
    for (let n = sent; n < Math.min(messages, sent + perMinute); n++) await world.accept([`user${n}@far.example`])
    await world.advance(minutes(1))
  }
  await world.advance(hours(6))
  const after = world.attempts('far.example').filter(({ at }) => at >= OUTAGE)
  const served = after.filter(({ kind }) => kind === 'accepts')
  const optimum = (messages * SERVICE) / DOOR
  return {
    delivered: served.length,
    attemptsPerMessage: after.length / messages,
    timesOptimum: ((served.at(-1)?.at ?? Infinity) - (served[0]?.at ?? 0)) / optimum,
    busiest: mostInTenSeconds(after.map(({ at }) => at)) / ((10 * SECOND * DOOR) / SERVICE),
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
