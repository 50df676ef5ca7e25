/**
 * One opening of the queue by the daemon: the store, the relay, and the parts that depend on them. They are opened in three steps, because
 * the process changes its user in between, and closed in reverse order.
 */
import { lstat, mkdir, open, opendir, rename, unlink } from 'node:fs/promises'
import { AccessEntries } from '../access/access-entries.ts'
import type { MessageId } from '../mail/message.ts'
import type { Config } from '../config/options.ts'
import { obstacleTo, signingSecrets } from '../outbox/configured-subscriptions.ts'
import { OutboxUpkeep } from '../outbox/outbox-upkeep.ts'
import type { SchedulerControl } from '../queue/operation-rounds.ts'
import { Operations } from '../queue/operations.ts'
import { sharedScheduler, storedScheduler } from '../queue/stored-scheduler.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import type { Membership } from '../store/membership/membership.ts'
import type { Recall } from '../store/membership/taken-back.ts'
import type { NodesView } from '../store/membership/node-table.ts'
import type { QuestionTable } from '../store/membership/questions.ts'
import type { MoveStore } from '../store/move-store.ts'
import type { DatabaseState } from '../store/membership/database-state.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { StoreSides } from '../store/store-health.ts'
import { ProviderDirectory } from '../config/provider-directory.ts'
import { errorMessage } from '../system/caught-error.ts'
import type { Duration } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import type { QueueClock } from '../system/queue-clock.ts'
import { systemClock } from '../system/system-clock.ts'
import { systemRandom } from '../system/system-random.ts'
import { VERSION } from '../system/version.ts'
import type { Events } from '../telemetry/events.ts'
import { EventSender } from '../subscriptions/event-sender.ts'
import { sendToFile, sendToStream } from '../subscriptions/file-target.ts'
import { SubscriptionChanges } from '../subscriptions/subscription-changes.ts'
import { toTarget } from '../subscriptions/target.ts'
import { webTarget } from '../subscriptions/web-target.ts'
import { BulkThrottle } from './bulk-throttle.ts'
import { watchClock } from './clock-watch.ts'
import { checkIndexes } from './index-check.ts'
import { maintain } from './maintenance.ts'
import { memoryAnswers } from './live-queue.ts'
import { watchAccess } from './node/access-watch.ts'
import type { Peers } from './node/peers.ts'
import { answerQuestions } from './node/question-watch.ts'
import { MoveService } from './move-service.ts'
import { openMoveTarget } from './move-target.ts'
import { PickupSocket } from './pickup-socket.ts'
import { Relay } from '../relay/relay.ts'
import type { RelaySettings } from '../relay/rules.ts'

/** This process as one of the nodes that share the queue. */
export interface SharingNode {
  /** The nodes at the last beat; null before the first. */
  readonly view: () => NodesView | null
  /** True after `deferd node drain`: the node gives its shards away and refuses mail. */
  readonly isDraining: () => boolean
  readonly questions: QuestionTable
  /** State of the database as last read; null before the first read. */
  readonly database: () => DatabaseState | null
  /** True when commits wait for a standby, and none is connected. */
  readonly lacksStandby: () => boolean
  readonly peers: Peers
  /** Begins to beat and to take shards. Resolves when the node may accept mail, or its first beat has failed. */
  start(): Promise<void>
  /** Begins to give all shards away, before the node leaves. */
  drain(): void
}

/** The open queue as the source of a move. */
export interface MovableSource {
  /** The queue, as operators name it: its directory, or its URL without the password. */
  readonly name: string
  readonly moves: MoveStore
  /**
   * Ends the scheduling of all mail. Resolves when no mail waits in memory. Rejects with MoveRefused while other nodes accept mail for
   * the queue, or soon after `stopping` aborts.
   */
  giveAway(stopping: AbortSignal): Promise<void>
  /** Schedules the mail again. Has no effect unless the queue was given away. */
  takeBack(): Promise<void>
}

export interface OpenedQueue {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly sides: StoreSides
  /** Providers of destinations of a shared queue; null for a queue with one owner, whose scheduler reads them. */
  readonly providers: ProviderDirectory | null
  readonly membership: Membership
  /** Null for a queue with one owner. */
  readonly node: SharingNode | null
  readonly movable: MovableSource
  /** Closes reader and store, and gives up the ownership. */
  readonly close: () => Promise<void>
}

export interface OpeningDeps {
  readonly queueDirectory: string
  readonly clock: QueueClock
  readonly net: Net
  readonly events: Events
  readonly config: () => Config
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
  readonly moves: MoveService | null
  readonly accessEntries: AccessEntries
}

export class Opening {
  readonly #deps: OpeningDeps
  /** Events of this opening. Listeners on them end with it. */
  readonly #events: Events
  readonly #closing: ((grace: Duration) => Promise<void> | void)[] = []
  #parts: OpenParts | null = null
  #sides: StoreSides | null = null
  #operations: Operations | null = null
  #wakeSender: () => void = () => undefined

  constructor(deps: OpeningDeps) {
    this.#deps = deps
    this.#events = deps.events.branch()
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
    const { clock, net, config, openQueue } = this.#deps
    const events = this.#events
    const queue = await openQueue()
    this.#closing.push(queue.close)
    const { store, reader, sides, membership, node } = queue
    this.#sides = sides
    const step = clock.resume(await reader.clockRecord(), config().maximal_backoff_time)
    this.#stopLater(watchClock({ clock, store, events }, step))
    const isDraining = () => node?.isDraining() ?? false
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
      isDraining,
    })
    const { recorder } = relay
    const outbox = new OutboxUpkeep({ store, recorder, clock, config, events, isShared: node !== null })
    await outbox.start()
    this.#stopLater(outbox)
    this.#closing.push((grace) => relay.stop(grace))
    this.#parts = { ...queue, relay, accessEntries, outbox, operations: null, subscriptions: null, moves: null }
  }

  /** Opens the SMTP ports. Rejects with CannotListen. */
  async listen(): Promise<void> {
    await this.parts.relay.listen((domain, who) => this.#flushDomain(domain, who))
  }

  /** Starts deliveries and operations, and opens the maildrop. */
  async start(): Promise<void> {
    await this.parts.relay.start()
    const { outbox, store, reader } = this.parts
    const changed = () => outbox.refresh().then(() => this.#wakeSender())
    const subscriptions = new SubscriptionChanges({ store, reader, clock: this.#deps.clock, changed })
    const { operations, moves } = this.#openOperations(this.parts)
    this.#parts = { ...this.parts, operations, subscriptions, moves }
    await this.#joinNodes(this.parts, operations)
    this.#sendEvents(this.parts)
    await this.#openMaintenance(this.parts)
  }

  /**
   * Refuses new mail, waits up to `grace` for running deliveries and closes all parts. Errors are logged, because the other parts
   * must still be closed: accepted mail is in the store, however the process ends.
   */
  async stop(grace: Duration): Promise<void> {
    this.#parts = null
    for (let last = this.#closing.pop(); last !== undefined; last = this.#closing.pop()) {
      try {
        await last(grace)
      } catch (error) {
        this.#events.emit({ kind: 'note', level: 'error', text: `while stopping: ${errorMessage(error)}` })
      }
    }
  }

  #sendEvents({ store, outbox, relay, node }: OpenParts): void {
    const { clock, net, config } = this.#deps
    const web = webTarget({ net, clock, source: () => relay.config.myhostname, version: VERSION })
    const sender = new EventSender({
      store,
      clock,
      random: systemRandom,
      events: this.#events,
      send: toTarget({ web: web.send, file: sendToFile, stdout: sendToStream(writeOut) }),
      secretsOf: (subscription) => signingSecrets(subscription, config(), clock.now()),
      obstacle: (subscription) => obstacleTo(subscription, config()),
      isShared: node !== null,
    })
    this.#wakeSender = () => sender.wake()
    const ignore = outbox.onPublished((isChange) => (isChange ? sender.wake() : sender.published()))
    sender.start()
    this.#closing.push(async () => {
      ignore()
      await sender.stop()
      web.close()
    })
  }

  /** Joins the nodes of a shared queue, and answers the questions of commands. */
  async #joinNodes({ node, relay, accessEntries }: OpenParts, operations: Operations): Promise<void> {
    if (node === null) return
    const { clock } = this.#deps
    await node.start()
    const unread = (why: string): void =>
      this.#events.emit({ kind: 'note', level: 'warning', text: `cannot read the access entries: ${why}` })
    this.#stopLater(watchAccess(clock, () => accessEntries.load(), unread))
    // A fenced node has no shards, and no time for its deliveries.
    this.#closing.push((grace) => (grace > 0 ? node.drain() : undefined))
    const answers = { destinations: () => operations.destinations(), status: () => relay.status.all(), ...memoryAnswers(relay) }
    this.#stopLater(answerQuestions({ clock, table: node.questions, answers }))
  }

  #openOperations(parts: OpenParts): { readonly operations: Operations; readonly moves: MoveService } {
    const { relay, store, reader, node } = parts
    const { clock } = this.#deps
    const events = this.#events
    const throttle = new BulkThrottle(clock, events)
    const operations = new Operations({
      recorder: relay.recorder,
      store,
      reader,
      clock,
      policies: () => relay.policies,
      retention: () => relay.config,
      events,
      scheduler: node === null ? relay.schedulerControl : this.#sharedScheduler(parts, node.peers),
      throttle: (messages) => throttle.wait(messages),
    })
    this.#operations = operations
    const moves = this.#moveService(parts, throttle)
    this.#closing.push(() => {
      throttle.end()
      return Promise.all([moves.stop(), operations.jobs.stop()]).then(() => undefined)
    })
    return { operations, moves }
  }

  #sharedScheduler({ relay, store, reader, membership }: OpenParts, peers: Peers): SchedulerControl {
    const others = {
      recall: (recall: Recall) => membership.recall(recall),
      transfers: async () => ((await peers.ask('transfers')) as (readonly MessageId[])[]).flat(),
    }
    return sharedScheduler(relay.schedulerControl, storedScheduler(store, reader, relay.recorder, others), membership)
  }

  #moveService({ relay, store, reader, node, movable }: OpenParts, throttle: BulkThrottle): MoveService {
    const { clock, queueDirectory, config } = this.#deps
    const ownFolder = node === null ? null : queueDirectory
    return new MoveService({
      name: movable.name,
      source: { store, reader, clock, moves: movable.moves },
      events: this.#events,
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
  #flushDomain(domain: string, who: string): boolean {
    if (this.#operations === null) return false
    const filter = { ...ANY_MESSAGE, recipient: `*@${domain}` }
    const selection = { kind: 'filter', filter, limit: null } as const
    const request = { operation: 'flush', selection, queues: null, purge: false, dryRun: false, who } as const
    this.#operations.perform(request).catch((error: unknown) => {
      this.#events.emit({ kind: 'note', level: 'error', text: `cannot flush ${domain} for ${who}: ${errorMessage(error)}` })
    })
    return true
  }

  async #openMaintenance({ relay, store }: OpenParts): Promise<void> {
    const { clock, config, queueDirectory } = this.#deps
    const events = this.#events
    const maildrop = relay.maildrop(queueDirectory, { lstat, mkdir, open, opendir, rename, unlink })
    await maildrop.prepare()
    maildrop.start()
    this.#stopLater(maildrop)
    const { outcomes } = maildrop
    const pickup = new PickupSocket({ queueDirectory, wake: () => maildrop.wake(), outcomes, clock, events })
    pickup.start()
    this.#stopLater(pickup)
    this.#stopLater(maintain({ config, clock, store, scheduler: relay.scheduler, events }))
    this.#stopLater(checkIndexes(clock, store))
  }

  /** Stops a part before the parts that were started earlier. */
  #stopLater(part: { readonly stop: () => Promise<void> | void }): void {
    this.#closing.push(() => part.stop())
  }
}

/** Resolves when the system has taken the text. */
const writeOut = (text: string): Promise<void> =>
  new Promise((resolve, reject) => process.stdout.write(text, (error) => (error instanceof Error ? reject(error) : resolve())))
