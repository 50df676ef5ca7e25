/**
 * One opening of the queue by the daemon: the store, the relay, and the parts that depend on them. They are opened in three steps, because
 * the process changes its user in between, and closed in reverse order.
 */
import { lstat, mkdir, open, opendir, rename, unlink } from 'node:fs/promises'
import { AccessEntries } from '../access/access-entries.ts'
import type { ToldAddresses } from '../mail/told-addresses.ts'
import type { MessageId } from '../mail/message.ts'
import type { Config } from '../config/options.ts'
import { addressKey, renewAddressKey } from '../queue/address-key.ts'
import { goOnErasing, limitReturnedContent } from './upkeep/returned-content.ts'
import { obstacleTo, signingSecrets } from '../outbox/configured-subscriptions.ts'
import { OutboxUpkeep } from '../outbox/outbox-upkeep.ts'
import { ANY_QUEUE } from '../queue/operation-request.ts'
import type { SchedulerControl } from '../queue/operation-rounds.ts'
import { Operations } from '../queue/operations.ts'
import { sharedScheduler, storedScheduler } from '../queue/stored-scheduler.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import type { Recall } from '../store/membership/taken-back.ts'
import type { StoreSides } from '../store/store-health.ts'
import { errorMessage } from '../system/caught-error.ts'
import { rethrowUnlessUnavailable } from '../store/queue-store.ts'
import { SECOND, type Duration } from '../system/clock.ts'
import type { NodeSettings } from '../resources/settings-json.ts'
import type { Net } from '../system/net.ts'
import type { QueueClock } from '../system/queue-clock.ts'
import { systemClock } from '../system/system-clock.ts'
import { systemRandom } from '../system/system-random.ts'
import { VERSION } from '../system/version.ts'
import type { Events } from '../telemetry/events.ts'
import type { RecentLog } from '../telemetry/recent-log.ts'
import { EventSender } from '../subscriptions/event-sender.ts'
import { SubscriptionChanges } from '../subscriptions/subscription-changes.ts'
import { openTargets } from '../subscriptions/targets.ts'
import { BulkThrottle } from './bulk-throttle.ts'
import { watchClock } from './upkeep/clock-watch.ts'
import { checkIndexes } from './upkeep/index-check.ts'
import { indexMail } from './upkeep/mail-index.ts'
import { maintain } from './upkeep/maintenance.ts'
import { memoryAnswers } from './live-queue.ts'
import { watchAccess } from './node/access-watch.ts'
import type { OpenedQueue } from './node/opened-queue.ts'
import type { Peers } from './node/peers.ts'
import { answerQuestions } from './node/question-watch.ts'
import { MoveService } from './move-service.ts'
import { openSchedules } from '../schedules/open-schedules.ts'
import type { ScheduleRunner } from '../schedules/schedule-runner.ts'
import { scheduledBackup } from '../schedules/scheduled-backup.ts'
import { copyInThread } from '../store/sqlite/file/copied-queue.ts'
import { eventLoopTurn } from '../system/event-loop.ts'
import { openMoveTarget } from './move-target.ts'
import { PickupSocket } from './pickup-socket.ts'
import { QueueSeries } from './upkeep/queue-series.ts'
import { DomainChecks } from '../relay/domain-checks.ts'
import { answerQuestion, type DomainQuestion } from '../relay/domain-question.ts'
import { Relay } from '../relay/relay.ts'
import type { RelaySettings } from '../relay/rules.ts'

export interface OpeningDeps {
  readonly queueDirectory: string
  readonly clock: QueueClock
  readonly net: Net
  readonly events: Events
  /** The last warnings and errors of the process. */
  readonly log: RecentLog
  /** Addresses in the log and in events. */
  readonly addresses: ToldAddresses
  readonly config: () => Config
  /** The settings that all nodes should share, for their comparison. */
  readonly settings: () => NodeSettings
  readonly openQueue: () => Promise<OpenedQueue>
}

export interface OpenParts extends OpenedQueue {
  readonly relay: Relay
  readonly outbox: OutboxUpkeep
  /** Null until deliveries begin. */
  readonly operations: Operations | null
  /** Null until deliveries begin. */
  readonly subscriptions: SubscriptionChanges | null
  /** Null until deliveries begin. */
  readonly sender: EventSender | null
  /** Null until deliveries begin. */
  readonly schedules: ScheduleRunner | null
  /** Null until deliveries begin. */
  readonly domainChecks: DomainChecks | null
  /** Null until deliveries begin. */
  readonly moves: MoveService | null
  readonly series: QueueSeries
  readonly accessEntries: AccessEntries
}

/** Closes a part. `grace` is the time in ms that its work in progress may take. */
type Closer = (grace: Duration) => Promise<void> | void

/** Open parts, to be closed in the reverse order of their opening, also after an opening that failed. */
export class Closers {
  readonly #closers: Closer[] = []
  readonly #events: Events

  constructor(events: Events) {
    this.#events = events
  }

  add(close: Closer): void {
    this.#closers.push(close)
  }

  /** Stops a part before the parts that were added earlier. */
  addPart(part: { readonly stop: () => Promise<void> | void }): void {
    this.add(() => part.stop())
  }

  /**
   * Closes everything. Errors are logged, because the other parts must still be closed: accepted mail is in the store, however the process
   * ends.
   */
  async close(grace: Duration): Promise<void> {
    for (let last = this.#closers.pop(); last !== undefined; last = this.#closers.pop()) {
      try {
        await last(grace)
      } catch (error) {
        this.#events.emit({ kind: 'note', level: 'error', text: `while stopping: ${errorMessage(error)}` })
      }
    }
  }
}

/** Name of the node in records. */
const nodeName = ({ node_name, myhostname }: Config): string => node_name || myhostname

export class Opening {
  readonly #use: Use
  #parts: OpenParts | null = null
  #sides: StoreSides | null = null
  /** True after a step of the wall clock that the times of messages do not follow yet. */
  #isBehind = false

  constructor(deps: OpeningDeps) {
    // Listeners on the events of an opening end with it.
    const events = deps.events.branch()
    this.#use = { ...deps, events, closers: new Closers(events), stepped: () => this.#stepped() }
  }

  /** The open parts. Throws before `open` and after `stop`. */
  get parts(): OpenParts {
    if (this.#parts === null) throw new Error('the queue is not open')
    return this.#parts
  }

  /** The open parts; null before `open` and after `stop`. */
  get partsIfOpen(): OpenParts | null {
    return this.#parts
  }

  /** Reader and writer of the queue, from `open` on and even after `stop`; null before `open`. */
  get sides(): StoreSides | null {
    return this.#sides
  }

  /** Opens the queue and makes the relay. Rejects as `openQueue` does. */
  async open(settings: RelaySettings): Promise<void> {
    const queue = await this.#use.openQueue()
    this.#use.closers.add(queue.close)
    this.#sides = queue.sides
    this.#parts = await openRelay(queue, settings, this.#use)
  }

  /** Opens the SMTP ports. Rejects with CannotListen. */
  async listen(): Promise<void> {
    await this.parts.relay.listen((domain, who) => flushDomain(this.#parts?.operations ?? null, { domain, who, events: this.#use.events }))
  }

  /** Starts deliveries and operations, and opens the maildrop. */
  async start(): Promise<void> {
    const opened = this.parts
    await opened.relay.start()
    const sending = eventSender(opened, this.#use)
    const started = openOperations(opened, sending.sender, this.#use)
    this.#parts = { ...opened, ...started }
    await joinNodes(opened, started.operations, this.#use)
    if (this.#isBehind) this.#followClock()
    sending.start()
    await openMaintenance(opened, this.#use)
    this.#use.closers.addPart(goOnErasing(this.#use.clock, started.operations.erasing))
    const domainChecks = openDomainChecks(opened, this.#use)
    this.#parts = { ...this.parts, domainChecks, schedules: startSchedules(opened, started.operations, this.#use) }
  }

  #stepped(): void {
    this.#parts?.schedules?.plan()
    this.#followClock()
  }

  /** Has the times of messages follow the wall clock: now, at the start of operations, or when the store commits again. */
  #followClock(): void {
    const operations = this.#parts?.operations ?? null
    this.#isBehind = true
    if (operations === null) return
    operations.clockStepped().then(
      () => (this.#isBehind = false),
      (error: unknown) => {
        rethrowUnlessUnavailable(error)
        this.#use.clock.after(SECOND, () => this.#followClock())
      },
    )
  }

  /** Refuses new mail, waits up to `grace` for running deliveries and closes all parts. */
  async stop(grace: Duration): Promise<void> {
    this.#parts = null
    await this.#use.closers.close(grace)
  }
}

/** Parts that the steps of an opening use. */
interface Use extends OpeningDeps {
  readonly closers: Closers
  /** Called after each step of the wall clock. */
  readonly stepped: () => void
}

async function openRelay(queue: OpenedQueue, settings: RelaySettings, use: Use): Promise<OpenParts> {
  const { store, reader, membership, node } = queue
  const { clock, net, config, events, log, addresses, closers } = use
  const step = clock.resume(await reader.clockRecord(), config().maximal_backoff_time)
  closers.addPart(watchClock({ clock, store: store.upkeep, events, stepped: use.stepped }, step))
  const accessEntries = new AccessEntries({ store, reader, clock })
  await accessEntries.load()
  const relay = new Relay({
    accessEntries,
    ...settings,
    clock,
    random: systemRandom,
    net,
    store,
    reader,
    providers: queue.providers ?? undefined,
    membership,
    events,
    log,
    isDraining: () => node?.isDraining() ?? false,
  })
  addresses.change(config().log_addresses, await addressKey(config(), { store, clock, random: systemRandom }))
  const outbox = new OutboxUpkeep({ outbox: store.outbox, recorder: relay.recorder, clock, config, events, isShared: node !== null })
  await outbox.start()
  closers.addPart(outbox)
  closers.add((grace) => relay.stop(grace))
  const series = new QueueSeries({ clock, store, events, node: () => nodeName(config()) })
  return {
    ...queue,
    relay,
    accessEntries,
    outbox,
    series,
    operations: null,
    subscriptions: null,
    sender: null,
    schedules: null,
    domainChecks: null,
    moves: null,
  }
}

/** Sends events to their subscribers, from `start` on. */
function eventSender({ store, outbox, relay, node }: OpenParts, { clock, net, config, events, addresses, closers }: Use) {
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

/** Joins the nodes of a shared queue, and answers the questions of commands. */
async function joinNodes(
  { node, relay, accessEntries }: OpenParts,
  operations: Operations,
  { clock, events, settings, closers }: Use,
): Promise<void> {
  if (node === null) return
  await node.start()
  const unread = (why: string): void => events.emit({ kind: 'note', level: 'warning', text: `cannot read the access entries: ${why}` })
  closers.addPart(watchAccess(clock, () => accessEntries.load(), unread))
  // A fenced node has no shards, and no time for its deliveries.
  closers.add((grace) => (grace > 0 ? node.drain() : undefined))
  const answers = { destinations: () => operations.destinations(), status: () => relay.status.all(), settings, ...memoryAnswers(relay) }
  closers.addPart(answerQuestions({ clock, table: node.questions, answers }))
}

/** Makes what changes the queue by order of operators and programs. */
function openOperations(
  parts: OpenParts,
  sender: EventSender,
  use: Use,
): { readonly [Part in 'operations' | 'subscriptions' | 'sender' | 'moves']: NonNullable<OpenParts[Part]> } {
  const { relay, outbox, store, reader, node } = parts
  const { clock, events, closers } = use
  const changed = () => outbox.refresh().then(() => sender.wake())
  const subscriptions = new SubscriptionChanges({ store, reader, clock, changed })
  const throttle = new BulkThrottle(clock, events)
  const operations = new Operations({
    mail: relay.mailEntry,
    random: systemRandom,
    recorder: relay.recorder,
    store,
    reader,
    clock,
    policies: () => relay.policies,
    retention: () => relay.config,
    events,
    scheduler: node === null ? relay.schedulerControl : schedulerOfNodes(parts, node.peers),
    throttle: (messages) => throttle.wait(messages),
  })
  const moves = moveService(parts, throttle, use)
  closers.add(() => {
    throttle.end()
    return Promise.all([moves.stop(), operations.jobs.stop()]).then(() => undefined)
  })
  return { operations, subscriptions, sender, moves }
}

function schedulerOfNodes({ relay, store, reader, membership }: OpenParts, peers: Peers): SchedulerControl {
  const others = {
    recall: (recall: Recall) => membership.recall(recall),
    transfers: async () => ((await peers.ask('transfers')) as (readonly MessageId[])[]).flat(),
  }
  return sharedScheduler(relay.schedulerControl, storedScheduler(store, reader, relay.recorder, others), membership)
}

/** Makes the runs of the [schedule.NAME] tables. */
function startSchedules(
  { relay, store, reader, node }: OpenParts,
  operations: Operations,
  { clock, net, config, events, queueDirectory, closers }: Use,
): ScheduleRunner {
  const schedules = openSchedules({
    relay,
    store,
    reader,
    clock,
    net,
    events,
    operations: () => operations,
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
  schedules.start()
  closers.addPart(schedules)
  return schedules
}

/** Makes the checks of domains that operators order. */
function openDomainChecks({ relay, store, reader }: OpenParts, { clock, net, config, closers }: Use): DomainChecks {
  const asked = { relay, reader, clock, net, random: systemRandom }
  const answer = async (question: DomainQuestion, signal: AbortSignal) => (await answerQuestion(question, asked, signal)).json
  const checks = new DomainChecks({ store, clock, node: nodeName(config()), answer })
  closers.addPart(checks)
  return checks
}

function moveService(
  { relay, store, reader, node, movable }: OpenParts,
  throttle: BulkThrottle,
  { clock, queueDirectory, config, events }: Use,
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

/** Flushes the mail of a domain, as `postqueue -s` does. Returns false while the daemon starts. */
function flushDomain(
  operations: Operations | null,
  { domain, who, events }: { readonly domain: string; readonly who: string; readonly events: Events },
): boolean {
  if (operations === null) return false
  const filter = { ...ANY_MESSAGE, recipient: `*@${domain}` }
  const selection = { kind: 'filter', filter, limit: null } as const
  const request = { operation: 'flush', selection, ...ANY_QUEUE, dryRun: false, who } as const
  operations.perform(request).catch((error: unknown) => {
    events.emit({ kind: 'note', level: 'error', text: `cannot flush ${domain} for ${who}: ${errorMessage(error)}` })
  })
  return true
}

/** Opens the maildrop, and begins the periodic tasks. */
async function openMaintenance(
  { relay, store, series }: OpenParts,
  { clock, config, queueDirectory, events, addresses, closers }: Use,
): Promise<void> {
  const maildrop = relay.maildrop(queueDirectory, { lstat, mkdir, open, opendir, rename, unlink })
  await maildrop.prepare()
  maildrop.start()
  closers.addPart(maildrop)
  const { outcomes } = maildrop
  const pickup = new PickupSocket({ queueDirectory, wake: () => maildrop.wake(), outcomes, clock, events })
  pickup.start()
  closers.addPart(pickup)
  closers.addPart(maintain({ config, clock, store: store.upkeep, records: store.records, scheduler: relay.scheduler, events }))
  closers.addPart(checkIndexes(clock, store.upkeep))
  closers.addPart(indexMail(clock, store.upkeep))
  series.mark('restart', VERSION)
  series.start()
  closers.addPart(series)
  closers.addPart(renewAddressKey({ config, clock, store, random: systemRandom, addresses }))
  closers.addPart(limitReturnedContent({ config, clock, store: store.departed }))
}

/** Resolves when the system has taken the text. */
const writeOut = (text: string): Promise<void> =>
  new Promise((resolve, reject) => process.stdout.write(text, (error) => (error instanceof Error ? reject(error) : resolve())))
