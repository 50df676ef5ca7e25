/** Runs several nodes through a scenario and returns the history. */
import { ANY_EVENT } from '../../../src/events/event-filter.ts'
import { publishedEvents } from '../../../src/testkit/results/world-events.ts'
import { HOUR, SECOND, type Duration } from '../../../src/system/clock.ts'
import { queueIdOf } from '../../../src/mail/message.ts'
import { ANY_MESSAGE, type QueueFilter } from '../../../src/store/message-conditions.ts'
import type { History } from '../../../src/testkit/index.ts'
import { contentOf, submit } from '../client.ts'
import { arrivedIn, digestOf, drainTime, storiesIn } from '../run.ts'
import { providerConfig, type Mail, type Step } from '../scenario.ts'
import { Cluster } from './cluster.ts'
import type { Database } from './database.ts'
import type { NodeFault, NodeScenario } from './node-scenario.ts'

export interface NodeRun {
  readonly scenario: NodeScenario
  readonly history: History
  readonly counts: Database['counts']
}

export async function runNodes(scenario: NodeScenario): Promise<NodeRun> {
  const { config, tables, faults } = scenario
  const cluster = new Cluster({ ...scenario, config: { ...config, destination: tables, ...providerConfig(scenario) } })
  try {
    await cluster.start()
    for (const fault of faults) cluster.rule(fault)
    for (const one of inOrder(scenario)) {
      await cluster.advanceTo(one.at)
      if ('fault' in one) disturb(cluster, one)
      else await make(cluster, one)
    }
    await end(cluster, scenario)
    return { scenario, history: cluster.history, counts: cluster.database.counts }
  } finally {
    cluster.close()
  }
}

const inOrder = ({ steps, nodeFaults }: NodeScenario): readonly (Step | NodeFault)[] =>
  [...steps, ...nodeFaults].toSorted((a, b) => a.at - b.at)

function disturb(cluster: Cluster, fault: NodeFault): void {
  const { database, clock } = cluster
  const { at: _, ...what } = fault
  cluster.note('node fault', what)
  const node = 'node' in fault ? cluster.nodes[fault.node] : undefined
  switch (fault.fault) {
    case 'kill':
      return node?.kill(fault.time)
    case 'leave':
      return void node?.leave(fault.time)
    case 'pause':
      return node?.pause(fault.time, fault.still)
    case 'cut':
      return node?.cut(fault.time)
    case 'away':
      return database.goAway(fault.time)
    case 'fail over':
      return database.failOver(fault.time)
    case 'disturb':
      database.disturbance = fault.probability
      clock.after(fault.time, () => (database.disturbance = 0))
      return
    case 'set the clock':
      return cluster.setWall(fault.step)
  }
}

async function make(cluster: Cluster, step: Step): Promise<void> {
  if (step.do === 'mail') handIn(cluster, step.mail)
  else if (step.do === 'look') await look(cluster)
  else if ('destination' in step) await cluster[step.do](step.destination)
  else if ('pick' in step) await cluster.operate(step.do, step.pick === 'all' ? 'all' : await pickFrom(cluster, step.pick))
}

function handIn(cluster: Cluster, mail: Mail): void {
  const { number, sender, to } = mail
  const messageId = `<${number}@sim.example>`
  const digest = digestOf(contentOf(mail))
  cluster.note('handed in', { mail: number, messageId, digest, sender, to: to.map(({ address }) => address) })
  void submit(cluster, mail).then((reply) => cluster.note('answered', { mail: number, messageId, reply }))
}

async function look(cluster: Cluster): Promise<void> {
  const messages = [...(await listed(cluster)), ...(await listed(cluster, 'trash'))]
  const { queue } = cluster.database
  const leases = [...queue.messages.values()].flatMap(({ recipients }) => recipients.flatMap(({ leasedBy }) => leasedBy ?? []))
  const nodes = [...queue.nodes.keys()]
  cluster.note('looked', { messages, destinations: cluster.destinations(), leases: [...new Set(leases)], nodes })
}

const listed = ({ reader }: Cluster, queue: QueueFilter['queue'] = null) =>
  reader.list({ ...ANY_MESSAGE, queue }, { after: 0, limit: 1_000 })

async function pickFrom(cluster: Cluster, pick: number): Promise<readonly string[]> {
  const messages = [...(await listed(cluster)), ...(await listed(cluster, 'trash'))]
  const picked = messages[pick % Math.max(1, messages.length)]
  return picked === undefined ? [] : [queueIdOf(picked.message)]
}

/** Removes all causes of delay. Then all mail must be delivered or returned in a bounded time. */
async function end(cluster: Cluster, scenario: NodeScenario): Promise<void> {
  const advance = (time: Duration) => cluster.advanceTo(cluster.clock.monotonic() + time)
  cluster.calm()
  cluster.note('node faults end')
  await advance(2 * HOUR)
  if (scenario.ends === 'well') {
    cluster.remote.removeRules(() => true)
    cluster.note('faults end')
  }
  for (const destination of scenario.destinations) await cluster.resume(destination)
  for (const queue of ['hold', 'corrupt'] as const) {
    await cluster.operate(
      'release',
      (await listed(cluster, queue)).map(({ message }) => queueIdOf(message)),
    )
  }
  await advance(10 * SECOND)
  await look(cluster)
  await advance(drainTime(scenario))
  await look(cluster)
  cluster.note('mailboxes', { mails: arrivedIn(cluster, scenario) })
  const { reader } = cluster
  cluster.note('told', { events: await publishedEvents(reader, ANY_EVENT), stories: await storiesIn(reader) })
}
