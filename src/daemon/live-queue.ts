/** State in the memory of the nodes of a queue, for the API: of this process alone, or of all nodes of a shared queue. */
import type { KnownInMemory, LiveQueue } from '../api/queries/queue-view.ts'
import type { DestinationName } from '../mail/message.ts'
import { mergedStatus, type LiveStatus } from '../queue/queue-status.ts'
import type { LiveDestination } from '../store/destination-status.ts'
import type { Clock, Instant } from '../system/clock.ts'
import type { Peers } from './node/peers.ts'
import type { Relay } from './relay/relay.ts'

/** Questions that a node answers about its memory; those with a name have it after a blank. */
export const memoryAnswers = (relay: Relay, clock: Clock): Readonly<Record<string, (name: string) => unknown>> => ({
  glance: () => ownGlance(relay, clock),
  memory: () => onWall(relay.scheduler.destinations.all(), clock),
  destination: (name) => known(relay, clock, name),
  transfers: () => relay.scheduler.transfers,
})

function onWall(destinations: readonly LiveDestination[], clock: Clock): readonly LiveDestination[] {
  const offset = clock.wallOffset()
  const wall = (at: Instant | null): Instant | null => (at === null ? null : at - offset)
  return destinations.map((one) => ({ ...one, nextDueAt: wall(one.nextDueAt), deadUntil: wall(one.deadUntil) }))
}

async function ownGlance(relay: Relay, clock: Clock): Promise<LiveStatus> {
  const status = await relay.status.glance()
  const queues = status.tally.queues.map((one) => ({ ...one, oldestArrival: one.oldestArrival - clock.wallOffset() }))
  return { ...status, tally: { ...status.tally, queues }, destinations: onWall(status.destinations, clock) }
}

function known(relay: Relay, clock: Clock, name: DestinationName): KnownInMemory {
  const status = relay.scheduler.destinations.status(name)
  return { live: status === undefined ? undefined : onWall([status], clock)[0], recent: relay.status.recentAttempts(name) }
}

/** The memory of this process, which schedules all destinations. */
export const ownQueue = (relay: Relay, clock: Clock): LiveQueue => ({
  glance: () => ownGlance(relay, clock),
  destinations: async () => onWall(relay.scheduler.destinations.all(), clock),
  named: async (names) =>
    onWall(
      names.flatMap((name) => relay.scheduler.destinations.status(name) ?? []),
      clock,
    ),
  destination: async (name) => known(relay, clock, name),
  owners: async () => () => null,
})

/** The memory of all nodes. Figures of a node that does not answer are absent. */
export const sharedQueue = (relay: Relay, clock: Clock, peers: Peers): LiveQueue => {
  const destinations = async (): Promise<readonly LiveDestination[]> =>
    ((await peers.ask('memory')) as (readonly LiveDestination[])[]).flat()
  return {
    glance: async () => mergedStatus((await peers.ask('glance')) as LiveStatus[]) ?? ownGlance(relay, clock),
    destinations,
    named: async (names) => {
      const wanted = new Set(names)
      return (await destinations()).filter(({ destination }) => wanted.has(destination))
    },
    destination: async (name) => {
      const answers = (await peers.ask(`destination ${name}`)) as KnownInMemory[]
      return answers.find(({ live }) => live !== undefined) ?? answers.find(({ recent }) => recent.outcomes.length > 0) ?? answers[0]
    },
    owners: () => peers.owners(),
  }
}
