/**
 * One opening of the queue by the daemon: the store, the relay, and the parts that depend on them. They are opened in three steps, because
 * the process changes its user in between, and closed in reverse order.
 */
import { lstat, mkdir, open, opendir, rename, unlink } from 'node:fs/promises'
import { AccessEntries } from '../access/access-entries.ts'
import { addressKey, renewAddressKey } from '../queue/address-key.ts'
import { goOnErasing, limitReturnedContent } from './upkeep/returned-content.ts'
import { OutboxUpkeep } from '../outbox/outbox-upkeep.ts'
import { ANY_QUEUE } from '../queue/operation-request.ts'
import type { Operations } from '../queue/operations.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import type { StoreSides } from '../store/store-health.ts'
import { errorMessage } from '../system/caught-error.ts'
import { rethrowUnlessUnavailable } from '../store/queue-store.ts'
import { SECOND, type Duration } from '../system/clock.ts'
import type { NodeSettings } from '../resources/settings-json.ts'
import type { NodeAnswering } from '../queries/node-questions.ts'
import { systemRandom } from '../system/system-random.ts'
import { VERSION } from '../system/version.ts'
import type { Events } from '../telemetry/events.ts'
import type { RecentLog } from '../telemetry/recent-log.ts'
import { watchClock } from './upkeep/clock-watch.ts'
import { checkIndexes } from './upkeep/index-check.ts'
import { indexMail } from './upkeep/mail-index.ts'
import { maintain } from './upkeep/maintenance.ts'
import { memoryAnswers } from './live-queue.ts'
import { watchAccess } from './node/access-watch.ts'
import type { OpenedQueue } from './node/opened-queue.ts'
import { answerQuestions } from './node/question-watch.ts'
import { Closers } from './closers.ts'
import { nodeName, openServices, type OpenRelay, type ServicePorts, type Services } from './services.ts'
import { PickupSocket } from './pickup-socket.ts'
import { QueueSeries } from './upkeep/queue-series.ts'
import { Relay } from '../relay/relay.ts'
import type { RelaySettings } from '../relay/rules.ts'

export interface OpeningDeps extends Omit<ServicePorts, 'closers'> {
  /** The last warnings and errors of the process. */
  readonly log: RecentLog
  /** The settings that all nodes should share, for their comparison. */
  readonly settings: () => NodeSettings
  readonly openQueue: () => Promise<OpenedQueue>
}

export interface OpenParts extends OpenRelay {
  /** Null until deliveries have begun. */
  readonly services: Services | null
}

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
    await this.parts.relay.listen((domain, who) =>
      flushDomain(this.#parts?.services?.operations ?? null, { domain, who, events: this.#use.events }),
    )
  }

  /** Starts deliveries and operations, and opens the maildrop. */
  async start(): Promise<void> {
    const opened = this.parts
    await opened.relay.start()
    const { services, startSending } = openServices(opened, this.#use)
    const { operations, domainChecks, schedules } = services
    await joinNodes(opened, operations, this.#use)
    startSending()
    await openMaintenance(opened, this.#use)
    this.#use.closers.addPart(goOnErasing(this.#use.clock, operations.erasing))
    this.#use.closers.addPart(domainChecks)
    schedules.start()
    this.#use.closers.addPart(schedules)
    this.#parts = { ...this.parts, services }
    if (this.#isBehind) this.#followClock()
  }

  #stepped(): void {
    this.#parts?.services?.schedules.plan()
    this.#followClock()
  }

  /** Has the times of messages follow the wall clock: now, at the start of operations, or when the store commits again. */
  #followClock(): void {
    const operations = this.#parts?.services?.operations ?? null
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
  return { ...queue, relay, accessEntries, outbox, series, services: null }
}

/** Joins the nodes of a shared queue, and answers the questions of commands. */
async function joinNodes(
  { node, relay, accessEntries }: OpenRelay,
  operations: Operations,
  { clock, events, settings, closers }: Use,
): Promise<void> {
  if (node === null) return
  await node.start()
  const unread = (why: string): void => events.emit({ kind: 'note', level: 'warning', text: `cannot read the access entries: ${why}` })
  closers.addPart(watchAccess(clock, () => accessEntries.load(), unread))
  // A fenced node has no shards, and no time for its deliveries.
  closers.add((grace) => (grace > 0 ? node.drain() : undefined))
  const answers: NodeAnswering = {
    destinations: () => operations.destinations(),
    status: () => relay.status.all(),
    settings,
    ...memoryAnswers(relay),
  }
  closers.addPart(answerQuestions({ clock, table: node.questions, answers }))
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
  { relay, store, series }: OpenRelay,
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
