/**
 * The services of an open queue: what works on it by order of operators, of programs and of the calendar. They are made when deliveries begin,
 * and begin to work one by one; see Opening.
 */
import type { AccessEntries } from '../access/access-entries.ts'
import type { Config } from '../config/options.ts'
import type { ToldAddresses } from '../mail/told-addresses.ts'
import { obstacleTo, signingSecrets } from '../outbox/configured-subscriptions.ts'
import type { OutboxUpkeep } from '../outbox/outbox-upkeep.ts'
import type { SchedulerControl } from '../queue/operation-rounds.ts'
import { Operations } from '../queue/operations.ts'
import { sharedScheduler, storedScheduler } from '../queue/stored-scheduler.ts'
import { DomainChecks } from '../relay/domain-checks.ts'
import { answerQuestion, type DomainQuestion } from '../relay/domain-question.ts'
import type { Relay } from '../relay/relay.ts'
import { openSchedules } from '../schedules/open-schedules.ts'
import type { ScheduleRunner } from '../schedules/schedule-runner.ts'
import { scheduledBackup } from '../schedules/scheduled-backup.ts'
import type { Recall } from '../store/membership/taken-back.ts'
import { copyInThread } from '../store/sqlite/file/copied-queue.ts'
import { EventSender } from '../subscriptions/event-sender.ts'
import { SubscriptionChanges } from '../subscriptions/subscription-changes.ts'
import { openTargets } from '../subscriptions/targets.ts'
import { eventLoopTurn } from '../system/event-loop.ts'
import type { Net } from '../system/net.ts'
import type { QueueClock } from '../system/queue-clock.ts'
import { systemClock } from '../system/system-clock.ts'
import { systemRandom } from '../system/system-random.ts'
import { VERSION } from '../system/version.ts'
import type { Events } from '../telemetry/events.ts'
import { BulkThrottle } from './bulk-throttle.ts'
import type { Closers } from './closers.ts'
import { liveQueue } from './live-queue.ts'
import { MoveService } from './move-service.ts'
import { openMoveTarget } from './move-target.ts'
import type { OpenedQueue } from './node/opened-queue.ts'
import type { Peers } from './node/peers.ts'
import type { QueueSeries } from './upkeep/queue-series.ts'

/** An open queue with its relay. */
export interface OpenRelay extends OpenedQueue {
  readonly relay: Relay
  readonly outbox: OutboxUpkeep
  readonly series: QueueSeries
  readonly accessEntries: AccessEntries
}

export interface Services {
  readonly operations: Operations
  readonly subscriptions: SubscriptionChanges
  readonly sender: EventSender
  readonly schedules: ScheduleRunner
  readonly domainChecks: DomainChecks
  readonly moves: MoveService
}

export interface ServicePorts {
  readonly queueDirectory: string
  readonly clock: QueueClock
  readonly net: Net
  readonly events: Events
  /** Addresses in the log and in events. */
  readonly addresses: ToldAddresses
  readonly config: () => Config
  readonly closers: Closers
}

/** Name of the node in records. */
export const nodeName = ({ node_name, myhostname }: Config): string => node_name || myhostname

/** Makes the services. The caller calls `startSending`, which sends events to their subscribers, and starts the schedules. */
export function openServices(opened: OpenRelay, ports: ServicePorts): { readonly services: Services; readonly startSending: () => void } {
  const { closers } = ports
  const { sender, start: startSending } = eventSender(opened, ports)
  const throttle = new BulkThrottle(ports.clock, ports.events)
  const operations = operationsOn(opened, throttle, ports)
  const moves = moveService(opened, throttle, ports)
  closers.add(() => {
    throttle.end()
    return Promise.all([moves.stop(), operations.jobs.stop()]).then(() => undefined)
  })
  const { store, reader, outbox } = opened
  const changed = () => outbox.refresh().then(() => sender.wake())
  const services = {
    operations,
    subscriptions: new SubscriptionChanges({ store, reader, clock: ports.clock, changed }),
    sender,
    schedules: schedulesOf(opened, operations, ports),
    domainChecks: domainChecksOf(opened, ports),
    moves,
  }
  return { services, startSending }
}

function operationsOn(opened: OpenRelay, throttle: BulkThrottle, { clock, events }: ServicePorts): Operations {
  const { relay, store, reader, node } = opened
  return new Operations({
    mail: relay.mailEntry,
    random: systemRandom,
    recorder: relay.recorder,
    store,
    reader,
    clock,
    policies: () => relay.policies,
    retention: () => relay.config,
    events,
    scheduler: node === null ? relay.schedulerControl : schedulerOfNodes(opened, node.peers),
    throttle: (messages) => throttle.wait(messages),
  })
}

function schedulerOfNodes({ relay, store, reader, membership }: OpenRelay, peers: Peers): SchedulerControl {
  const others = {
    recall: (recall: Recall) => membership.recall(recall),
    transfers: async () => (await peers.ask('transfers')).flat(),
  }
  return sharedScheduler(relay.schedulerControl, storedScheduler(store, reader, relay.recorder, others), membership)
}

/** The runs of the [schedule.NAME] tables. */
function schedulesOf(
  { relay, store, reader, node }: OpenRelay,
  operations: Operations,
  { clock, net, config, events, queueDirectory }: ServicePorts,
): ScheduleRunner {
  return openSchedules({
    relay,
    store,
    reader,
    clock,
    net,
    events,
    operations: () => operations,
    live: () => liveQueue(relay, node).brief(),
    random: systemRandom,
    node: nodeName(config()),
    isShared: node !== null,
    backup: (run, action) =>
      scheduledBackup(run, action, {
        directory: queueDirectory,
        clock: systemClock,
        random: systemRandom,
        runs: store.records.scheduleRuns,
        copyTo: (path, stopping) => copyInThread({ directory: queueDirectory, path }, stopping),
      }),
    pause: eventLoopTurn,
  })
}

/** The checks of domains that operators order. */
function domainChecksOf({ relay, store, reader }: OpenRelay, { clock, net, config }: ServicePorts): DomainChecks {
  const asked = { relay, reader, clock, net, random: systemRandom }
  const answer = async (question: DomainQuestion, signal: AbortSignal) => (await answerQuestion(question, asked, signal)).json
  return new DomainChecks({ store, clock, node: nodeName(config()), answer })
}

function moveService(
  { relay, store, reader, node, movable }: OpenRelay,
  throttle: BulkThrottle,
  { clock, queueDirectory, config, events }: ServicePorts,
): MoveService {
  const ownFolder = node === null ? null : queueDirectory
  return new MoveService({
    name: movable.name,
    source: { store, reader, clock, moves: movable.moves },
    events,
    control: {
      close: (stopping) => (relay.refuseMail(true), movable.giveAway(stopping)),
      reopen: () => (relay.refuseMail(false), movable.takeBack()),
    },
    openTarget: (request) => openMoveTarget(request, { machine: systemClock, clock, config: config(), threads: true, ownFolder }),
    takeBack: (messages, options) => relay.scheduler.takeBack(messages, options),
    returned: (due) => relay.scheduler.workAdded(due),
    throttle: (messages) => throttle.wait(messages),
  })
}

/** Sends events to their subscribers, from `start` on. */
function eventSender({ store, outbox, relay, node }: OpenRelay, { clock, net, config, events, addresses, closers }: ServicePorts) {
  const targets = openTargets({ net, clock, source: () => relay.config.myhostname, version: VERSION, write: writeOut })
  const sender = new EventSender({
    outbox: store.outbox,
    clock,
    random: systemRandom,
    events,
    addresses,
    send: targets.send,
    secretsOf: (subscription) => signingSecrets(subscription, config(), clock.now()),
    obstacle: (subscription) => obstacleTo(subscription, config()),
    isShared: node !== null,
  })
  const start = (): void => {
    const ignore = outbox.onPublished((isChange) => (isChange ? sender.wake() : sender.published()))
    sender.start()
    closers.add(async () => {
      ignore()
      await sender.stop()
      targets.close()
    })
  }
  return { sender, start }
}

/** Resolves when the system has taken the text. */
const writeOut = (text: string): Promise<void> =>
  new Promise((resolve, reject) => process.stdout.write(text, (error) => (error instanceof Error ? reject(error) : resolve())))
