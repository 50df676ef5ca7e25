/**
 * A world consists of the real relay on a virtual clock, with its queue in memory or in a file, and of remote servers that fail
 * as scripted, all in one process. Waits take no real time. Equal seeds and equal tests give equal histories. Worlds are
 * independent of each other.
 */
import type { Socket } from 'node:net'
import { loadTemplates } from '../bounce/templates.ts'
import type { LoadedConfig } from '../config/load.ts'
import { readPasswords, readTlsFiles } from '../daemon/delivery-secrets.ts'
import type { OauthClients } from '../oauth/access-tokens.ts'
import { readOauthClients } from '../oauth/oauth-client.ts'
import { tokenCommand } from '../daemon/token-command.ts'
import type { DeliverySecrets } from '../delivery/smtp/smtp-agent.ts'
import { loadDkimKeys, type DkimKeys } from '../dkim/keys.ts'
import type { Relay } from '../relay/relay.ts'
import type { Endpoint } from '../system/net.ts'
import { systemNet } from '../system/system-net.ts'
import { normalizeAddress } from '../mail/address.ts'
import type { Duration, WallTime } from '../system/clock.ts'
import { ANY_EVENT, type EventFilter } from '../events/event-filter.ts'
import type { TargetAnswer } from '../subscriptions/answer-decision.ts'
import type { Consignment } from '../subscriptions/target.ts'
import { sessionJson } from '../resources/session-json.ts'
import { seededRandom } from '../system/random.ts'
import type { Cancelled } from '../queue/cancellation.ts'
import { ANY_QUEUE, type OperationName, type OperationSummary } from '../queue/operation-request.ts'
import type { LiveDestination } from '../queue/scheduler/destination.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { ANY_DEPARTURE } from '../queue/resend-selection.ts'
import type { ResendSummary } from '../queue/resending.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import type { QueueStore } from '../store/queue-store.ts'
import { Events } from '../telemetry/events.ts'
import { loadSimulated, requireWorldOptions } from './world-limits.ts'
import {
  requireDomain,
  requireEventTypes,
  requireFunction,
  requireKnownOptions,
  requireObject,
  requireOperation,
  requireScriptText,
  requireSeed,
  requireStore,
  requireZone,
} from './argument-checks.ts'
import { Authority } from './test-authority.ts'
import type { AuthorityOptions } from './authority-options.ts'
import type { AuthorityRule } from './oauth/authority-rule.ts'
import { WORLD_CA, worldIdentity } from './remote/world-certificates.ts'
import { RemoteDomain, ruleFrom } from './remote-domain.ts'
import type { ReceivedMail } from './remote/remote-events.ts'
import { RemoteNetwork } from './remote/remote-network.ts'
import { RemotePorts } from './remote-ports.ts'
import type { RuleText } from './remote/rule-keys.ts'
import { readScriptOrDialogue } from './record/recorded-dialogue.ts'
import { History } from './world-history.ts'
import { OutsideCalls } from './virtual/outside-calls.ts'
import { TimeDriver, type Busy } from './virtual/time-driver.ts'
import { RecipientLog, type Attempt } from './recipient-log.ts'
import { Mailbox } from './mailbox.ts'
import { MemoryNet } from './virtual/memory-net.ts'
import { systemError } from './virtual/memory-socket.ts'
import { Recipient } from './recipient.ts'
import { RestartableRelay } from './restartable-relay.ts'
import { suppressionOf, type SuppressOptions } from './suppress-options.ts'
import { SUBMIT_OPTIONS, submitTo, timeOf, type SubmitOptions } from './submission.ts'
import { inSeconds, toDuration, toSignedDuration, toSize, type Time } from './time.ts'
import { listening, requireServer, serverSecrets } from './world-server.ts'
import { WorldClients, type WorldTransport } from './world-clients.ts'
import { publishedEvents, type WorldEvent } from './world-events.ts'
import { Webhook, type Application, type WebhookOptions } from './webhook.ts'
import { keepEventLoopFunctions } from './virtual/event-loop-functions.ts'
import { BEGINNING, VirtualClock } from './virtual/virtual-clock.ts'
import { openQueue, type Interceptors, type OpenedQueue, type WorldOptions } from './world-options.ts'
import { DEFAULT_STORE } from './world-stores.ts'

const HOSTNAME = 'deferd.example'
/** Address on which the relay listens inside the world. */
const RELAY_ADDRESS: Endpoint = { address: '127.0.0.1', port: 2525 }
const CLIENT_ADDRESS = '127.0.0.1'
/** Bytes that are free on the disk of a new world. */
const FREE_SPACE = 100 * 1024 ** 3

/**
 * Creates a world and starts its relay, at 2026-01-01T00:00:00Z. Rejects with a ConfigError that lists every mistake in the
 * configuration or the script. Close the world with `close` or `await using`.
 */
export const createWorld = (options: WorldOptions = {}): Promise<World> => createObservedWorld(options, {})

/** Creates a world with wrappers around the ports of its relay, for simulations of the relay itself. */
export async function createObservedWorld(options: WorldOptions, between: Interceptors): Promise<World> {
  requireWorldOptions(options)
  requireStore(options.store ?? DEFAULT_STORE)
  requireSeed(options.seed ?? 1)
  if (options.script !== undefined) requireScriptText(options.script)
  requireObject('config', options.config ?? {})
  if (options.zone !== undefined) requireZone(options.zone)
  requireServer(options)
  const listen = `${RELAY_ADDRESS.address}:${RELAY_ADDRESS.port}`
  const loaded = loadSimulated(listening(options, listen), HOSTNAME)
  const { config } = loaded
  const { templates } = loadTemplates(loaded)
  const dkimKeys = loadDkimKeys(config)
  const tls = readTlsFiles(config)
  const oauth = trusting(readOauthClients(loaded, tokenCommand), WORLD_CA)
  const secrets = {
    passwords: readPasswords(config),
    tls: { ...tls, ca: tls.ca ?? WORLD_CA, policyHostCa: tls.policyHostCa ?? WORLD_CA },
    oauth,
  }
  const script = options.script === undefined ? undefined : readScriptOrDialogue(options.script, 'script')
  const queue = between.queue ?? (await openQueue(options.store ?? DEFAULT_STORE))
  const world = new World({ options, between, loaded, templates, dkimKeys, secrets, script, queue })
  await world.start()
  return world
}

/** The clients, which trust `ca` where their table names no CA certificates. */
const trusting = (clients: OauthClients, ca: string): OauthClients =>
  new Map([...clients].map(([name, client]) => [name, { ...client, ca: client.ca ?? ca }]))

interface WorldDeps {
  readonly queue: OpenedQueue
  readonly options: WorldOptions
  readonly between: Interceptors
  readonly loaded: LoadedConfig
  readonly templates: ReturnType<typeof loadTemplates>['templates']
  readonly dkimKeys: DkimKeys
  readonly secrets: DeliverySecrets
  readonly script: ReturnType<typeof readScriptOrDialogue> | undefined
}

/** Use of one limit of a quota. */
export interface QuotaUseNow {
  /** Name of the table `[quota.NAME]`. */
  readonly quota: string
  /** As it is written: `1000/1h`. */
  readonly limit: string
  /** Messages or recipients, by the limit, in its span. */
  readonly used: number
  /** True when mail is refused or held. */
  readonly isFull: boolean
}

/**
 * A relay in virtual time with scripted remote servers. Times are `'5m'`, `'2d'` or seconds. The clock advances only in
 * `advance`, in `settle` and in the methods that wait for the relay.
 */
export class World implements AsyncDisposable {
  /** Seed of all random numbers. */
  readonly seed: number
  /** @internal */
  readonly clock: VirtualClock
  /** @internal */
  readonly net: MemoryNet
  /** @internal */
  readonly remote: RemoteNetwork
  /** Events of the relay; `relayEvents.listen` adds a listener. @internal */
  readonly relayEvents: Events
  /** @internal */
  readonly loaded: LoadedConfig
  readonly #remotePorts: RemotePorts
  readonly #driver: TimeDriver
  readonly #outside = new OutsideCalls()
  readonly #webhooks = new Map<string, Webhook>()
  readonly #dkimKeys: DkimKeys
  readonly #authoritySeed: Uint8Array
  readonly #authorityRules: readonly AuthorityRule[]
  readonly #history = new History()
  readonly #log = new RecipientLog()
  readonly #received = new Map<string, ReceivedMail[]>()
  readonly #mails: ReceivedMail[] = []
  #accepted = 0
  readonly #clients = new WorldClients(HOSTNAME, RELAY_ADDRESS.port, () => this.#dialIn())
  readonly #lives: RestartableRelay
  #releaseFunctions: () => void = () => undefined
  #catchingUp = false
  #freeSpace = FREE_SPACE
  #closed = false
  /** False if the queue was not empty at the last count and no message has left it since. */
  #mayBeEmpty = true

  /** @internal Use createWorld. */
  constructor(deps: WorldDeps) {
    const { options, script, dkimKeys, loaded } = deps
    this.loaded = loaded
    this.#dkimKeys = dkimKeys
    const seed = options.seed ?? 1
    this.seed = seed
    this.#authoritySeed = Buffer.from(`authority of seed ${seed}`)
    this.#authorityRules = script?.authority ?? []
    this.clock = new VirtualClock({ zone: options.zone, due: () => this.#catchUp() })
    this.relayEvents = new Events(() => this.clock.now())
    this.remote = new RemoteNetwork({
      clock: this.clock,
      random: seededRandom(seed),
      script,
      onEvent: (event) => this.#history.record({ at: this.#elapsed(), where: 'remote', event }),
      keep: (mail) => this.#receive(mail),
    })
    this.#remotePorts = new RemotePorts(systemNet, this.remote)
    this.net = new MemoryNet(this.clock, this.remote)
    this.#driver = new TimeDriver(this.clock, { net: this.net, patterns: this.#patterns() }, this.#outside)
    this.relayEvents.listen((event) => {
      this.#history.record({ at: this.#elapsed(), where: 'queue', event, wall: this.#lives.life.clock.wall })
      this.#log.onEvent(event, this.#lives.life.clock.now())
      if (event.kind === 'accepted' && event.originalId === undefined) this.#accepted++
      if (event.kind === 'removed' || event.kind === 'operated' || event.kind === 'quarantined') this.#mayBeEmpty = true
    })
    const { clock, net, relayEvents: events } = this
    this.#lives = new RestartableRelay({
      ...deps,
      serverSecrets: serverSecrets(options, loaded.config.myhostname),
      config: loaded.config,
      seed,
      clock,
      net,
      events,
      freeSpace: () => this.#freeSpace,
      sendEvents: (one) => this.#sendEvents(one),
      outside: (work) => this.#outsideWork(work),
      directory: typeof options.store === 'object' ? options.store.directory : null,
      did: (what) => this.#did(what),
      isUp: (isUp) => void this.#outside.run(() => this.#clients.listen(isUp)),
    })
  }

  /** Lookups of patterns, which are answered without the clock. */
  #patterns(): Busy {
    const matching = (): Busy => this.#lives.relay.matching
    return {
      get inFlight() {
        return matching().inFlight
      },
      get activity() {
        return matching().activity
      },
    }
  }

  /** @internal */
  get store(): QueueStore {
    return this.#lives.queue.store
  }

  /** @internal */
  get reader(): QueueReader {
    return this.#lives.queue.reader
  }

  /** @internal */
  get relay(): Relay {
    return this.#lives.relay
  }

  /** The relay across its restarts. @internal */
  get lives(): RestartableRelay {
    return this.#lives
  }

  /** Starts the relay. @internal */
  async start(): Promise<void> {
    this.#releaseFunctions = keepEventLoopFunctions()
    try {
      await this.#lives.start()
    } catch (error) {
      this.#releaseFunctions()
      throw error
    }
  }

  /** Number of messages that clients have sent to the relay. @internal */
  get accepted(): number {
    return this.#accepted
  }

  /** Addresses for which the relay has accepted mail. @internal */
  get addresses(): readonly string[] {
    return this.#log.addresses
  }

  /** All messages that remote servers kept, in the order of their arrival. @internal */
  get received(): readonly ReceivedMail[] {
    return this.#mails
  }

  // --- time

  /** Advances the clock by a time. Runs everything that is due up to and including the end, with its consequences at that instant. */
  async advance(time: Time): Promise<void> {
    this.#requireClock()
    await this.#driver.runUntil(this.clock.now() + toDuration(time))
    this.#outside.throwFailure()
  }

  /**
   * Advances the clock until the queue is empty, apart from held and corrupt mail, and all events until then have been sent. Rejects if the
   * queue cannot become empty.
   */
  async settle(): Promise<void> {
    const settled = await this.runTimersWhile(async () => !(await this.isEmpty()))
    if (!settled) throw new Error('the queue cannot become empty: no timer and no delivery is pending')
  }

  /**
   * Advances from timer to timer while `wanted` resolves with true. It is asked again when everything that is due has happened, since a handler
   * of a webhook may have sent mail. Resolves with false when no timer is left before. @internal
   */
  async runTimersWhile(wanted: () => boolean | Promise<boolean>): Promise<boolean> {
    this.#requireClock()
    let isDone: boolean
    do {
      this.#mayBeEmpty = true
      isDone = await this.#driver.runWhile(wanted)
      await this.#driver.catchUp()
      this.#mayBeEmpty = true
    } while (isDone && (await wanted()))
    this.#outside.throwFailure()
    return isDone
  }

  /** Wall clock of the world, in milliseconds since 1970, as `Date.now()` has it. All other times of a world are in seconds. */
  now(): WallTime {
    return this.clock.now()
  }

  // --- the remote network

  /** Returns a remote domain, whose methods script its failures. */
  destination(domain: string): RemoteDomain {
    return new RemoteDomain(domain, {
      remote: this.remote,
      elapsed: () => this.#elapsed(),
    })
  }

  /** Adds any rule of the script language, before all others. Throws a ConfigError with all its mistakes. */
  rule(written: RuleText, name = 'rule'): void {
    this.remote.addRules(ruleFrom(name, written))
  }

  /**
   * Sets the wall clock forward by a time, or back by a negative one (`'-5m'`, -300). Timers, waits and the remote network are not affected.
   * Throws a TypeError for a text that is not a time.
   */
  stepClock(time: Time): void {
    const by = toSignedDuration(time)
    this.#did(`set the clock by ${inSeconds(by)} s`, { by: inSeconds(by) })
    this.clock.step(by)
    this.#lives.planSchedules()
    if (this.isUp) void this.#lives.operations().clockStepped()
  }

  /**
   * Sets the number of bytes that are free on the disk of the relay, `'20M'` or a number; 100G in a new world. Mail is refused with 452
   * while less is free than `queue_minfree` and 1.5 × `message_size_limit`. Throws a TypeError for a text that is not a size.
   */
  setFreeSpace(size: string | number): void {
    this.#freeSpace = toSize(size)
    this.#did(`set the free space to ${this.#freeSpace} bytes`, { free: this.#freeSpace })
    this.#lives.relay.intake.spaceChanged()
  }

  /**
   * Adds an authorization server (OAuth 2) at its host, over HTTPS with a certificate of WORLD_CA. `protects` of the result lets mail servers
   * require its tokens.
   */
  authority(options: AuthorityOptions): Authority {
    this.#requireOpen()
    const authority = new Authority(options, {
      clock: this.clock,
      startedAt: BEGINNING,
      beganAt: 0,
      seed: this.#authoritySeed,
      identityOf: worldIdentity,
      rules: this.#authorityRules,
      report: (event) => this.remote.report(event),
      protect: (host, identity, guard) => this.remote.protect(host, identity, guard),
      run: (call) => this.#outside.run(call),
    })
    this.remote.setWebHost(authority.host, authority)
    return authority
  }

  // --- submission

  /** Returns a transport to the relay: `nodemailer.createTransport(world.transport())`. */
  transport(): WorldTransport {
    return this.#clients.transport()
  }

  /** Queues a message without an SMTP client, and returns its queue id. */
  async submit(options: SubmitOptions): Promise<string> {
    this.#requireClock()
    requireKnownOptions('submit', options, SUBMIT_OPTIONS)
    return this.#driven(submitTo(this.#lives.relay, this.#lives.life.clock, options))
  }

  /** Cancels a message at the request of its submitter, as `DELETE /messages/ID` does, and returns its recipients by what became of them. */
  async cancel(queueId: string): Promise<Pick<Cancelled, 'cancelled' | 'tooLate'>> {
    this.#requireClock()
    this.#did('cancel')
    const details = await this.#lives.queue.reader.details(queueId)
    if (details === undefined) throw new TypeError(`there is no message ${queueId}`)
    const [outcome] = await this.#driven(this.#lives.operations().cancel([details.message], 'app'))
    const { cancelled = [], tooLate = [] } = outcome ?? {}
    return { cancelled, tooLate }
  }

  /**
   * Opens a TCP port on 127.0.0.1, or another address, that is connected to the relay, for clients in other processes. Port 0 selects a free
   * port. The port is closed while the relay is down.
   */
  async openPort(port = 0, address = CLIENT_ADDRESS): Promise<Endpoint> {
    this.#requireOpen()
    return this.#clients.openPort({ address, port })
  }

  /**
   * Opens a TCP port on 127.0.0.1, or another address, at which the remote host `mx` listens, for a relay in another process. Its rules are those
   * of the world, and their times follow its clock. Port 0 selects a free port. Rejects with the error of the system.
   */
  async openRemotePort(mx: string, port = 0, address = CLIENT_ADDRESS): Promise<Endpoint> {
    this.#requireOpen()
    requireDomain('openRemotePort', mx)
    return this.#remotePorts.open({ at: { address, port }, mx: mx.toLowerCase() })
  }

  // --- results

  /** Returns the history of an address so far. */
  recipient(address: string): Recipient {
    const name = normalizeAddress(address)
    return new Recipient(name, { entries: this.#log.of(name), mailbox: this.mailbox(name), known: this.#log.addresses, seed: this.seed })
  }

  /** The use of each quota that counts mail of a key, such as a sender or `token:app`; empty for a key that none counts. */
  async quotas(key: string): Promise<readonly QuotaUseNow[]> {
    const { quotas } = this.relay.quotas
    const uses = quotas.tables.map(({ name: quota }) => ({ quota, key }))
    await this.#driven(Promise.resolve(quotas.counts.load(uses)))
    return uses
      .flatMap((use) => quotas.statesOfKey(use))
      .map(({ quota, limit, used }) => ({ quota, limit: limit.text, used, isFull: used >= limit.most }))
  }

  /** Returns the attempts for an address, oldest first. */
  attempts(address: string): readonly Attempt[] {
    return this.recipient(address).attempts
  }

  /** Returns the timeline of an address as text, one line per event. */
  story(address: string): readonly string[] {
    return this.recipient(address).story
  }

  /**
   * Returns what both sides said in the last attempt of a message that has a dialogue (session_transcripts), with the milliseconds since the
   * connection began; null when none has.
   */
  async dialogue(queueId: string): Promise<string | null> {
    const { reader } = this.#lives.queue
    const details = await reader.details(queueId)
    if (details === undefined) throw new TypeError(`there is no message ${queueId}`)
    const id = details.history.findLast(({ session }) => session !== undefined)?.session
    const stored = id === undefined ? undefined : await reader.records.sessions.of(id)
    return stored === undefined ? null : sessionJson(stored, this.#lives.life.clock.wall).text
  }

  /** Returns the messages that remote servers kept for an address. */
  mailbox(address: string): Mailbox {
    const name = normalizeAddress(address)
    return new Mailbox(name, this.#received.get(name) ?? [], { keys: this.#dkimKeys, startedAt: BEGINNING })
  }

  /** Returns the events so far, in their order, as a webhook or the admin API would report them. */
  async events(filter: Partial<EventFilter> = {}): Promise<readonly WorldEvent[]> {
    requireKnownOptions('events', filter, Object.keys(ANY_EVENT))
    requireEventTypes('events', filter.types)
    return publishedEvents(this.#lives.queue.reader, { ...ANY_EVENT, ...filter })
  }

  /** Adds a receiver of webhooks, which gets the events from now on. Rejects with a TypeError when the name is in use. */
  async webhook(name: string, options: WebhookOptions = {}): Promise<Webhook> {
    this.#requireClock()
    requireKnownOptions('webhook', options, ['types', 'destinations', 'senders', 'batch', 'format', 'handler'])
    requireFunction('handler of webhook', options.handler)
    requireEventTypes('webhook', options.types)
    return this.addWebhook(name, options, null)
  }

  /** Adds a receiver of webhooks, which `application` answers for in place of a handler. @internal */
  async addWebhook(name: string, options: WebhookOptions, application: Application | null): Promise<Webhook> {
    const webhook = new Webhook({ clock: this.clock, startedAt: BEGINNING, outside: this.#outside, options, application })
    if (!(await this.#driven(this.#lives.subscribe(name, webhook.settings)))) throw new TypeError(`there is a webhook ${name} already`)
    this.#webhooks.set(name, webhook)
    return webhook
  }

  /**
   * Enables a webhook and has its events sent, as `deferd webhook replay NAME` does: the waiting ones, or the parked ones (`--parked`).
   * Returns their number.
   */
  async replay(name: string, kind: 'waiting' | 'parked' = 'waiting'): Promise<number> {
    this.#requireClock()
    const count = await this.#driven(this.#lives.replayEvents(name, { kind, at: this.#lives.life.clock.now() }))
    if (count === null) throw new TypeError(`there is no webhook ${name}`)
    return count
  }

  /** Does work of the relay that takes real time. Its failure is one of the relay, not of the test. */
  async #outsideWork<T>(work: () => Promise<T>): Promise<T> {
    const settled = await this.#outside.run(() => Promise.allSettled([work()]))
    if (settled === 'failed') throw new Error('the work failed')
    const [result] = settled.value
    if (result.status === 'rejected') throw result.reason
    return result.value
  }

  /** Sends events to the webhooks of the test. The webhooks of the configuration have no server in a world. */
  #sendEvents(consignment: Consignment): Promise<TargetAnswer> {
    const webhook = this.#webhooks.get(consignment.name)
    return webhook?.take(consignment) ?? Promise.resolve({ kind: 'failed', text: 'no such server in this world' })
  }

  /** Returns the record of all events: of the relay as programs get them, of the remote servers, and actions of the test. */
  history(): History {
    return this.#history
  }

  // --- operators

  /** Performs an operation on messages by queue id, or on all. A `reschedule` needs the time before which no delivery begins, a `reclass` the class. */
  async operate(
    operation: OperationName,
    ids: readonly string[] | 'all' = 'all',
    { notBefore, class: named = null }: { readonly notBefore?: Time; readonly class?: string | null } = {},
  ): Promise<OperationSummary> {
    this.#requireClock()
    requireOperation(operation, ids)
    const release = timeOf('notBefore', notBefore) ?? null
    if ((operation === 'reschedule') !== (release !== null))
      throw new TypeError('operate: reschedule, and no other operation, needs notBefore')
    if ((operation === 'reclass') !== (named !== null)) throw new TypeError('operate: reclass, and no other operation, needs class')
    this.#did(operation)
    const selection = ids === 'all' ? { kind: 'filter' as const, filter: ANY_MESSAGE, limit: null } : { kind: 'ids' as const, ids }
    return this.#driven(
      this.#lives.operations().perform({ operation, selection, ...ANY_QUEUE, release, class: named, dryRun: false, who: 'operator' }),
    )
  }

  /**
   * Sends mail that has left the queue again to the recipients that it did not reach: that of these queue ids, or all. Its content must be
   * kept (returned_content_retention). Rejects when nothing can be sent again.
   */
  async resend(ids: readonly string[] | 'all' = 'all', options: { readonly again?: boolean } = {}): Promise<ResendSummary> {
    this.#requireClock()
    requireKnownOptions('resend', options, ['again'])
    this.#did('resend')
    const selection = ids === 'all' ? { kind: 'filter' as const, filter: ANY_DEPARTURE } : { kind: 'ids' as const, ids }
    const terms = { selection, again: options.again === true, isVisible: () => true, rate: null }
    const told = { who: 'operator', words: ids === 'all' ? '' : ids.join(' '), reason: null, request: null }
    return this.#driven(
      this.#lives
        .operations()
        .resending.start({ ...terms, ...told })
        .then(({ ended }) => ended),
    )
  }

  /**
   * Erases the addresses of recipients, or of senders, that match a pattern, in all that the queue keeps of mail that has left. Mail in the
   * queue stays as it is.
   */
  async erase(side: 'recipient' | 'sender', pattern: string): Promise<OperationSummary> {
    this.#requireClock()
    this.#did('erase')
    const terms = { side, pattern, before: this.#lives.life.clock.now() + 1 }
    const told = { who: 'operator', reason: null, request: null }
    return this.#driven(
      this.#lives
        .operations()
        .erasing.start({ terms, ...told })
        .then(({ ended }) => ended),
    )
  }

  /** Puts an address, or all of `@domain`, on the suppression list, in place of its entry: for the sender domain `scope`, or all senders. */
  async suppress(address: string, options: SuppressOptions = {}): Promise<void> {
    this.#requireClock()
    await this.#driven(this.#lives.relay.suppressions.changes.add(suppressionOf(address, options), { who: 'operator' }))
  }

  /** Suspends deliveries to a destination. */
  async suspend(destination: string): Promise<void> {
    this.#requireClock()
    requireDomain('suspend', destination)
    await this.#driven(this.#lives.relay.schedulerControl.suspend(destination, { by: 'operator', until: null, reason: null }))
  }

  /** Resumes deliveries to a suspended destination. */
  async resume(destination: string): Promise<void> {
    this.#requireClock()
    requireDomain('resume', destination)
    await this.#driven(this.#lives.relay.schedulerControl.resume(destination, 'operator'))
  }

  /** Stops the relay and starts it again on the same queue. */
  async restart(): Promise<void> {
    this.#requireClock()
    await this.#driven(this.#lives.stop())
    await this.#lives.renew()
    await this.#driven(this.#lives.start())
  }

  /**
   * Kills the relay as kill -9 does: uncommitted work is lost and connections are reset. After `downFor`, the relay starts again
   * on the queue as the kill left it. Rejects for an SQLite queue in memory.
   */
  async crash(options: { readonly downFor?: Time } = {}): Promise<void> {
    this.#requireClock()
    requireKnownOptions('crash', options, ['downFor'])
    this.kill(options.downFor ?? 0)
    await this.#driver.catchUp()
    this.#outside.throwFailure()
  }

  /** Kills the relay at once. May be called from a callback of the relay itself. @internal */
  kill(downFor: Time = 0): void {
    this.#lives.kill(toDuration(downFor))
  }

  /** Returns the destinations that the scheduler has in memory. */
  destinations(): readonly LiveDestination[] {
    return this.#lives.relay.schedulerControl.snapshot()
  }

  /** False between a crash and the next start. */
  get isUp(): boolean {
    return this.#lives.life.alive
  }

  /** Stops the relay and releases ports, connections and the queue. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#requireClock()
    this.#closed = true
    try {
      await this.#clients.close()
      if (this.#lives.life.alive) await this.#drive(this.#lives.stop())
      await this.#remotePorts.close()
      await this.store.close()
    } finally {
      this.#releaseFunctions()
    }
    this.#outside.throwFailure()
  }

  /** Closes the world at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #requireOpen(): void {
    if (this.#closed) throw new Error('the world is closed: its relay takes no mail and its clock does not advance; create another world')
  }

  /** Throws in a handler, too: the clock would wait for the handler, and the handler for the clock. */
  #requireClock(): void {
    if (this.#outside.isInside) throw new Error('a handler of a webhook cannot advance the clock of its world, which stands while it runs')
    this.#requireOpen()
  }

  /** Connects a client to the relay. */
  async #dialIn(): Promise<Socket> {
    this.#requireOpen()
    if (!this.#lives.life.alive) throw systemError('ECONNREFUSED', 'connect', RELAY_ADDRESS)
    return this.net.dialFrom(CLIENT_ADDRESS, RELAY_ADDRESS)
  }

  /** As `#drive`; rejects also with the failure of a handler. */
  async #driven<T>(work: Promise<T>): Promise<T> {
    const result = await this.#drive(work)
    this.#outside.throwFailure()
    return result
  }

  /** Advances the clock until `work` has settled. Rejects if the relay is killed first. */
  async #drive<T>(work: Promise<T>): Promise<T> {
    const life = this.#lives.life
    let done = false
    const end = () => {
      done = true
    }
    work.then(end, end)
    await this.#driver.runWhile(() => !done && life.alive)
    if (!done) throw new Error('the relay was killed before the call ended')
    const result = await work
    await this.#driver.catchUp()
    return result
  }

  /** Runs the timers that are due now, so that a test need not advance the clock by 0. */
  #catchUp(): void {
    this.#driver.timerIsDue()
    if (this.#catchingUp) return
    this.#catchingUp = true
    void this.#driver.catchUp().finally(() => (this.#catchingUp = false))
  }

  /** True when the queue has no mail, apart from held and corrupt mail. @internal */
  async isEmpty(): Promise<boolean> {
    if (!this.#mayBeEmpty || !this.#lives.life.alive) return false
    this.#mayBeEmpty = false
    return (await this.reader.counts()).every(({ queue, messages }) => messages === 0 || queue === 'hold' || queue === 'corrupt')
  }

  #receive(mail: ReceivedMail): void {
    this.#mails.push(mail)
    for (const recipient of mail.recipients) {
      const mails = this.#received.get(recipient)
      if (mails === undefined) this.#received.set(recipient, [mail])
      else mails.push(mail)
    }
  }

  #did(did: string, details: Readonly<Record<string, unknown>> = {}): void {
    this.#mayBeEmpty = true
    this.#history.record({ at: this.#elapsed(), where: 'test', event: { did, ...details } })
  }

  #elapsed(): Duration {
    return this.clock.monotonic()
  }
}
