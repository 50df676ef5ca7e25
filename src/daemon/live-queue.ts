/** State in the memory of the nodes of a queue, for the API: of this process alone, or of all nodes of a shared queue. */
import type { NodeAnswering } from '../queries/node-questions.ts'
import type { KnownInMemory, LiveQueue, NodeLines, SharedNodes } from '../queries/queue-view.ts'
import type { DestinationName } from '../mail/message.ts'
import { stateOf } from '../resources/node-json.ts'
import { drainedAll } from '../resources/node-trouble.ts'
import { mergedStatus } from '../queue/queue-status.ts'
import type { LiveDestination } from '../queue/scheduler/destination.ts'
import type { Clock } from '../system/clock.ts'
import type { SharingNode } from './node/opened-queue.ts'
import type { Peers } from './node/peers.ts'
import type { Relay } from '../relay/relay.ts'
import type { LogSearch } from '../telemetry/recent-log.ts'

/** Answers about the memory of this process. */
export const memoryAnswers = (relay: Relay): Omit<NodeAnswering, 'destinations' | 'status' | 'settings'> => ({
  glance: () => relay.status.brief(),
  memory: () => relay.scheduler.destinations.all(),
  destination: (name) => known(relay, name),
  transfers: () => relay.scheduler.transfers,
  slots: () => relay.scheduler.destinations.slots,
  shares: () => relay.scheduler.destinations.shares,
  log: (search) => relay.status.log.find(JSON.parse(search) as LogSearch),
})

function known(relay: Relay, name: DestinationName): KnownInMemory {
  return { live: relay.scheduler.destinations.status(name), recent: relay.status.recentAttempts(name) }
}

/** The memory of all that deliver mail of the queue; `node` is null for a queue with one owner. */
export const liveQueue = (relay: Relay, node: Pick<SharingNode, 'peers'> | null): LiveQueue =>
  node === null ? ownQueue(relay) : sharedQueue(relay, node.peers)

/** The memory of this process, which schedules all destinations. */
const ownQueue = (relay: Relay): LiveQueue => ({
  brief: () => relay.status.brief(),
  destinations: async () => relay.scheduler.destinations.all(),
  named: async (names) => names.flatMap((name) => relay.scheduler.destinations.status(name) ?? []),
  destination: async (name) => known(relay, name),
  shares: async () => relay.scheduler.destinations.shares,
  owners: async () => () => null,
  log: async (search) => [{ node: 0, name: null, found: relay.status.log.find(search) }],
})

/** The memory of all nodes. A node that does not answer contributes nothing. */
const sharedQueue = (relay: Relay, peers: Peers): LiveQueue => {
  const destinations = async (): Promise<readonly LiveDestination[]> => (await peers.ask('memory')).flat()
  return {
    brief: async () => mergedStatus(await peers.ask('glance')) ?? relay.status.brief(),
    destinations,
    named: async (names) => {
      const wanted = new Set(names)
      return (await destinations()).filter(({ destination }) => wanted.has(destination))
    },
    destination: async (name) => {
      const answers = await peers.ask('destination', name)
      return answers.find(({ live }) => live !== undefined) ?? answers.find(({ recent }) => recent.outcomes.length > 0) ?? answers[0]
    },
    shares: async () => (await peers.ask('shares')).flat(),
    owners: () => peers.owners(),
    log: async (search) => {
      const { answers, silent } = await peers.answers('log', JSON.stringify(search))
      const found = answers.map(({ node: { id, name }, answer }): NodeLines => ({ node: id, name, found: answer }))
      return [...found, ...silent.map((name) => ({ node: 0, name, found: null }))]
    },
  }
}

/** The nodes of a shared queue. Commands, which have no settings, are none of them. */
export const sharedNodes = (relay: Relay, { me, peers, view, silent }: SharingNode, clock: Clock): SharedNodes => {
  const { node_lease: lease, node_name: own } = relay.config
  const daemons = () => {
    const quiet = silent()
    const nodes = (view()?.nodes ?? []).filter(({ settings }) => settings !== '')
    return nodes.map((one) => ({ id: one.id, name: one.name, state: stateOf(one, quiet.includes(one.id)) }))
  }
  return {
    me,
    lease,
    own,
    clock,
    nodes: peers.nodes,
    silent: () => daemons().filter(({ state }) => state === 'silent'),
    drained: () => drainedAll(daemons()).map(({ name }) => name),
    unanswered: () => peers.unanswered,
    settings: () => peers.askEach('settings'),
    slots: () => peers.askEach('slots'),
  }
}
