/** Times of retries and of expiry, and progress of all live mail. */
import { SECOND, type QueueTime } from '../../../src/system/clock.ts'
import { messageOf } from '../../../src/mail/message.ts'
import type { Settled } from '../../../src/store/recorded-outcomes.ts'
import type { LiveDestination } from '../../../src/queue/scheduler/destination.ts'
import type { ModelRecipient } from '../model.ts'
import type { ResultFacts } from '../record.ts'
import type { Complain, Invariant, Scene, UnderWay } from '../replay.ts'
import { nameOf } from './accounts.ts'

/** After a failure the next attempt is due at the time of the policy, to the millisecond; flushes and congestion are not steps. */
export function scheduleIsKept(complain: Complain): Invariant {
  const results = new Map<number, { readonly result: ResultFacts; readonly others: boolean; readonly served: boolean }>()
  return {
    see({ where, event }, scene) {
      if (where !== 'test') return
      if (event.did === 'ended') {
        const others = [...scene.queue.live()].some(
          ([one]) => one.destination === event.destination && one.state === 'leased' && !isIn(one, scene.underWay.get(event.attempt)),
        )
        const served = [...scene.underWay.values()].some(
          (there) => there.attempt !== event.attempt && there.destination === event.destination && !results.has(there.attempt),
        )
        results.set(event.attempt, { result: event.result, others, served })
      }
      if (event.did !== 'committed' || event.method !== 'settle') return
      for (const settled of event.settlement.recipients) {
        if (settled.state !== 'waiting') continue
        const one = scene.queue.recipient(settled.recipient)
        const attempt = [...scene.underWay.values()].find((there) => isIn(one, there))
        const ended = attempt === undefined ? undefined : results.get(attempt.attempt)
        if (one?.state !== 'leased' || attempt === undefined || ended === undefined) continue
        const problem = rescheduled(settled, one, { scene, attempt, ...ended })
        if (problem !== undefined) complain(`${nameOf(one)}: ${problem}`)
      }
    },
  }
}

const isIn = (one: ModelRecipient | undefined, attempt: UnderWay | undefined): boolean =>
  one !== undefined && attempt !== undefined && attempt.recipients.some(({ id }) => id === one.id)

interface Ended {
  readonly scene: Scene
  readonly attempt: UnderWay
  readonly result: ResultFacts
  /** True when other recipients of the destination were leased. */
  readonly others: boolean
  /** True when other deliveries to the destination were in progress. */
  readonly served: boolean
}

function rescheduled(
  settled: Extract<Settled, { state: 'waiting' }>,
  one: ModelRecipient,
  { scene, attempt, result, others, served }: Ended,
): string | undefined {
  if (settled.attempts !== one.attempts + 1) return `${settled.attempts} attempts counted after ${one.attempts}`
  const wasDue = one.keptDueAt ?? one.dueAt
  const unchanged = settled.steps === one.steps && settled.dueAt === wasDue
  if (result.congestion === 'early' && others && unchanged) return undefined
  if (result.congestion === 'early' && served) return 'was refused while others were served, and does not simply wait its turn'
  const flushed = attempt.recipients.some(({ id, flushed: was }) => id === one.id && was)
  if (flushed !== (one.keptDueAt !== null)) return 'a flush was forgotten, or invented'
  if (flushed) {
    if (settled.steps !== one.steps) return `a flush cost a step: ${settled.steps} after ${one.steps}`
    if (wasDue > result.endedAt) return settled.dueAt === wasDue ? undefined : 'a flush changed the due time'
    return isDueAfter(Math.max(1, one.steps), settled.dueAt, one, scene, result.endedAt)
  }
  if (settled.steps !== one.steps + 1) return `step ${settled.steps} after step ${one.steps}`
  return isDueAfter(settled.steps, settled.dueAt, one, scene, result.endedAt)
}

/** Waits of the policies that a scenario can have, computed independently. */
function isDueAfter(step: number, dueAt: QueueTime, one: ModelRecipient, scene: Scene, endedAt: QueueTime): string | undefined {
  const { settings, queue } = scene
  const minimum = settings.duration(one.destination, 'minimal_backoff_time', '300s')
  const maximum = settings.duration(one.destination, 'maximal_backoff_time', '4000s')
  const age = endedAt - (queue.messages.get(messageOf(one.id))?.message.createdAt ?? endedAt)
  const waits: Readonly<Record<string, readonly [number, number]>> = {
    doubling: both(Math.min(maximum, minimum * 2 ** (step - 1))),
    fixed: both(minimum),
    age: both(Math.max(minimum, Math.min(age, maximum))),
  }
  const [least, most] = waits[settings.text(one.destination, 'retry_backoff', 'doubling')] ?? [minimum, maximum]
  const spread = 1 + settings.number(one.destination, 'retry_jitter', 0)
  const [earliest, latest] = [Math.min(endedAt + least, one.expiresAt), Math.min(Math.ceil(endedAt + most * spread), one.expiresAt)]
  if (dueAt >= earliest - 1 && dueAt <= latest + 1) return undefined
  return `after step ${step} due ${dueAt - endedAt} ms after the attempt, and should be between ${earliest - endedAt} and ${latest - endedAt}`
}

const both = (wait: number): readonly [number, number] => [wait, wait]

/** Maximum lateness of mail without a cause of delay: a few commits. */
const grace = ({ scenario }: Scene): number => SECOND + 100 * scenario.commitTakes

/** Every live recipient is due later, leased, parked, or waits for a probe or for a slot that others have. */
export const nothingIsStuck = (complain: Complain): Invariant => ({
  see({ where, event }, scene) {
    if (where !== 'test' || event.did !== 'looked' || !isCalm(scene)) return
    const destinations = new Map(event.destinations.map((one) => [one.destination, one]))
    for (const [one] of scene.queue.live()) {
      const since = Math.max(one.since, scene.openSince.get(one.destination) ?? 0)
      if (one.state !== 'waiting' || scene.at - since < grace(scene)) continue
      const destination = destinations.get(one.destination)
      const late = scene.now - one.dueAt
      const patience = scene.settings.duration(one.destination, 'minimal_backoff_time', '300s') + 2 * grace(scene)
      const isClosed = destination !== undefined && (destination.deadUntil !== null || destination.suspension !== null)
      if (isClosed && scene.at - since > patience && scene.now - one.expiresAt > patience)
        complain(`${nameOf(one)} waits behind a closed door, and should have expired ${scene.now - one.expiresAt} ms ago`)
      else if (scene.now - one.expiresAt > 2 * grace(scene) && !mayWait(destination, scene))
        complain(`${nameOf(one)} should have expired ${scene.now - one.expiresAt} ms ago`)
      else if (late > grace(scene) && !mayWait(destination, scene) && one.deliveryStarts < 2)
        complain(`${nameOf(one)} was due ${late} ms ago, and nothing keeps it`)
    }
    for (const destination of event.destinations)
      if (isForgotten(destination, scene)) complain(`${destination.destination} is dead, and will never be probed`)
  },
})

/** True when the relay has been up long enough to claim due mail. */
const isCalm = (scene: Scene): boolean =>
  scene.upSince !== null && scene.at - scene.upSince > 10 * SECOND && scene.at > scene.diskFullUntil + 5 * SECOND

/** Places of a limit that the lowest class may use. */
function unreserved(limit: number, { scenario }: Scene): number {
  const percent = Object.values(scenario.shares?.classes ?? {}).reduce((sum, { reserve }) => sum + reserve, 0)
  return percent === 0 || limit < 4 ? limit : limit - Math.max(1, Math.floor((limit * percent) / 100))
}

function mayWait(destination: LiveDestination | undefined, scene: Scene): boolean {
  if (destination === undefined) return false
  const { settings, queue, underWay, provider } = scene
  const { destination: name, deadUntil, suspension, inFlight, window } = destination
  if (deadUntil !== null || suspension !== null) return true
  const number = (parameter: string, byDefault: number) => settings.number(name, parameter, byDefault)
  if (inFlight >= window || underWay.size >= unreserved(number('default_process_limit', 100), scene)) return true
  if (settings.duration(name, 'default_destination_rate_delay', '0') > 0 || number('default_destination_message_rate_limit', 0) > 0)
    return true
  const isOfProvider = (one: string): boolean => provider?.of.includes(one) === true
  if (
    isOfProvider(name) &&
    [...underWay.values()].filter((one) => isOfProvider(one.destination)).length >= unreserved(provider?.limit ?? 0, scene)
  )
    return true
  const room = Math.min(number('qmgr_message_active_limit', 20_000), number('qmgr_message_recipient_limit', 20_000))
  return queue.leased >= Math.max(1, Math.floor(room / 5))
}

function isForgotten({ deadUntil, nextDueAt, inFlight, destination }: LiveDestination, scene: Scene): boolean {
  const here = [...scene.queue.live()].flatMap(([one]) => (one.destination === destination ? [one] : []))
  if (deadUntil === null || inFlight > 0 || here.some(({ state }) => state === 'leased')) return false
  const waits = here.some(
    ({ state, deliveryStarts, since }) => state === 'waiting' && deliveryStarts < 2 && scene.at - since > grace(scene),
  )
  // While its mail is claimed, the destination has no due time: for the duration of a commit.
  return waits && Math.max(deadUntil, nextDueAt ?? deadUntil) < scene.now - grace(scene)
}
