/** State in the memory of the nodes of a queue, for the API: of this process alone, or of all nodes of a shared queue. */
import type { KnownInMemory, LiveQueue } from '../queries/queue-view.ts'
import type { DestinationName } from '../mail/message.ts'
import { mergedStatus, type LiveStatus } from '../queue/queue-status.ts'
import type { LiveDestination } from '../store/destination-status.ts'
import type { ListedNode } from '../store/membership/node-directory.ts'
import type { Duration } from '../system/clock.ts'
import type { Peers } from './node/peers.ts'
import type { Relay } from '../relay/relay.ts'

/** Questions to a node about its memory. A name follows its question after a blank. */
export const memoryAnswers = (relay: Relay): Readonly<Record<string, (name: string) => unknown>> => ({
  glance: () => relay.status.glance(),
  memory: () => relay.scheduler.destinations.all(),
  destination: (name) => known(relay, name),
  transfers: () => relay.scheduler.transfers,
})

function known(relay: Relay, name: DestinationName): KnownInMemory {
  return { live: relay.scheduler.destinations.status(name), recent: relay.status.recentAttempts(name) }
}

/** The memory of this process, which schedules all destinations. */
export const ownQueue = (relay: Relay): LiveQueue => ({
  glance: () => relay.status.glance(),
  destinations: async () => relay.scheduler.destinations.all(),
  named: async (names) => names.flatMap((name) => relay.scheduler.destinations.status(name) ?? []),
  destination: async (name) => known(relay, name),
  silentNodes: async () => [],
  owners: async () => () => null,
})

export const silentAmong = (nodes: readonly Pick<ListedNode, 'name' | 'beatAge'>[], lease: Duration): readonly string[] =>
  nodes.filter(({ beatAge }) => beatAge > lease).map(({ name }) => name)

/** The memory of all nodes. A node that does not answer contributes nothing. */
export const sharedQueue = (relay: Relay, peers: Peers): LiveQueue => {
  const destinations = async (): Promise<readonly LiveDestination[]> =>
    ((await peers.ask('memory')) as (readonly LiveDestination[])[]).flat()
  return {
    glance: async () => mergedStatus((await peers.ask('glance')) as LiveStatus[]) ?? relay.status.glance(),
    destinations,
    named: async (names) => {
      const wanted = new Set(names)
      return (await destinations()).filter(({ destination }) => wanted.has(destination))
    },
    destination: async (name) => {
      const answers = (await peers.ask(`destination ${name}`)) as KnownInMemory[]
      return answers.find(({ live }) => live !== undefined) ?? answers.find(({ recent }) => recent.outcomes.length > 0) ?? answers[0]
    },
    silentNodes: async () => silentAmong(await peers.nodes.list(), relay.config.node_lease),
    owners: () => peers.owners(),
  }
}
