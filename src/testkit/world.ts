/**
 * A world consists of the real relay on a virtual clock, with its queue in memory or in a file, and of remote servers that fail
 * as scripted, all in one process. Waits take no real time. Equal seeds and equal tests give equal histories. Worlds are
 * independent of each other.
 */
import type { Socket } from 'node:net'
import type { loadTemplates } from '../bounce/templates.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { DeliverySecrets } from '../delivery/smtp/smtp-agent.ts'
import type { DkimKeys } from '../dkim/keys.ts'
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
import type { OperationName, OperationSummary } from '../queue/operation-request.ts'
import type { LiveDestination } from '../queue/scheduler/destination.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { ResendSummary } from '../queue/resending.ts'
import type { QueueStore } from '../store/queue-store.ts'
import { Events } from '../telemetry/events.ts'
import { requireDomain, requireEventTypes, requireFunction, requireKnownOptions } from './options/argument-checks.ts'
import { Authority } from './scripted/test-authority.ts'
import type { AuthorityOptions } from './options/authority-options.ts'
import type { AuthorityRule } from './oauth/authority-rule.ts'
import { worldIdentity } from './remote/world-certificates.ts'
import { RemoteDomain, ruleFrom } from './scripted/remote-domain.ts'
import type { ReceivedMail } from './remote/remote-events.ts'
import { RemoteNetwork } from './remote/remote-network.ts'
import { RemotePorts } from './scripted/remote-ports.ts'
import type { RuleText } from './remote/rule-keys.ts'
import type { readScriptOrDialogue } from './record/recorded-dialogue.ts'
import { History } from './results/world-history.ts'
import { OutsideCalls } from './virtual/outside-calls.ts'
import type { Busy } from './virtual/time-driver.ts'
import { RecipientLog, type Attempt } from './results/recipient-log.ts'
import { Mailbox } from './results/mailbox.ts'
import { MemoryNet } from './virtual/memory-net.ts'
import { systemError } from './virtual/memory-socket.ts'
import { Recipient } from './results/recipient.ts'
import { RestartableRelay } from './restartable-relay.ts'
import type { SuppressOptions } from './options/suppress-options.ts'
import { SUBMIT_OPTIONS, submitTo, type SubmitOptions } from './submission.ts'
import { inSeconds, toDuration, toSignedDuration, toSize, type Time } from './options/time.ts'
import { serverSecrets } from './options/world-server.ts'
import { WorldClients, type WorldTransport } from './world-clients.ts'
import { publishedEvents, type WorldEvent } from './results/world-events.ts'
import { Webhook, type Application, type WebhookOptions } from './scripted/webhook.ts'
import { keepEventLoopFunctions } from './virtual/event-loop-functions.ts'
import { BEGINNING, VirtualClock } from './virtual/virtual-clock.ts'
import type { Interceptors, OpenedQueue, WorldOptions } from './options/world-options.ts'
import { ReceivedMails } from './results/received-mails.ts'
import { WorldOperator } from './world-operator.ts'
import { WorldTime } from './world-time.ts'

export const HOSTNAME = 'deferd.example'
/** Address on which the relay listens inside the world. */
export const RELAY_ADDRESS: Endpoint = { address: '127.0.0.1', port: 2525 }
const CLIENT_ADDRESS = '127.0.0.1'
/** Bytes that are free on the disk of a new world. */
const FREE_SPACE = 100 * 1024 ** 3

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
  readonly #time: WorldTime
  readonly #operator: WorldOperator
  readonly #outside = new OutsideCalls()
  readonly #webhooks = new Map<string, Webhook>()
  readonly #dkimKeys: DkimKeys
  readonly #authoritySeed: Uint8Array
  readonly #authorityRules: readonly AuthorityRule[]
  readonly #history = new History()
  readonly #log = new RecipientLog()
  readonly #received = new ReceivedMails()
  #accepted = 0
  readonly #clients = new WorldClients(HOSTNAME, RELAY_ADDRESS.port, () => this.#dialIn())
  readonly #lives: RestartableRelay
  #releaseFunctions: () => void = () => undefined
  #freeSpace = FREE_SPACE

  /** @internal Use createWorld. */
  constructor(deps: WorldDeps) {
    const { options, script, dkimKeys, loaded } = deps
    this.loaded = loaded
    this.#dkimKeys = dkimKeys
    const seed = options.seed ?? 1
    this.seed = seed
    this.#authoritySeed = Buffer.from(`authority of seed ${seed}`)
    this.#authorityRules = script?.authority ?? []
    this.clock = new VirtualClock({ zone: options.zone, due: () => this.#time.timerIsDue() })
    this.relayEvents = new Events(() => this.clock.now())
    this.remote = new RemoteNetwork({
      clock: this.clock,
      random: seededRandom(seed),
      script,
      onEvent: (event) => this.#history.record({ at: this.#elapsed(), where: 'remote', event }),
      keep: (mail) => this.#received.add(mail),
    })
    this.#remotePorts = new RemotePorts(systemNet, this.remote)
    this.net = new MemoryNet(this.clock, this.remote)
    const ports = { net: this.net, patterns: this.#patterns() }
    this.#time = new WorldTime({ clock: this.clock, ports, outside: this.#outside, lives: () => this.#lives })
    this.relayEvents.listen((event) => {
      this.#history.record({ at: this.#elapsed(), where: 'queue', event, wall: this.#lives.life.clock.wall })
      this.#log.onEvent(event, this.#lives.life.clock.now())
      if (event.kind === 'accepted' && event.originalId === undefined) this.#accepted++
      if (event.kind === 'removed' || event.kind === 'operated' || event.kind === 'quarantined') this.#time.mailMayHaveLeft()
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
    this.#operator = new WorldOperator({ time: this.#time, lives: this.#lives, did: (what) => this.#did(what) })
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
    return this.#received.all
  }

  // --- time

  /** Advances the clock by a time. Runs everything that is due up to and including the end, with its consequences at that instant. */
  async advance(time: Time): Promise<void> {
    await this.#time.advance(time)
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
    return this.#time.runTimersWhile(wanted)
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
    this.#time.requireOpen()
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
    this.#time.requireClock()
    requireKnownOptions('submit', options, SUBMIT_OPTIONS)
    return this.#time.driven(submitTo(this.#lives.relay, this.#lives.life.clock, options))
  }

  /** Cancels a message at the request of its submitter, as `DELETE /messages/ID` does, and returns its recipients by what became of them. */
  async cancel(queueId: string): Promise<Pick<Cancelled, 'cancelled' | 'tooLate'>> {
    return this.#operator.cancel(queueId)
  }

  /**
   * Opens a TCP port on 127.0.0.1, or another address, that is connected to the relay, for clients in other processes. Port 0 selects a free
   * port. The port is closed while the relay is down.
   */
  async openPort(port = 0, address = CLIENT_ADDRESS): Promise<Endpoint> {
    this.#time.requireOpen()
    return this.#clients.openPort({ address, port })
  }

  /**
   * Opens a TCP port on 127.0.0.1, or another address, at which the remote host `mx` listens, for a relay in another process. Its rules are those
   * of the world, and their times follow its clock. Port 0 selects a free port. Rejects with the error of the system.
   */
  async openRemotePort(mx: string, port = 0, address = CLIENT_ADDRESS): Promise<Endpoint> {
    this.#time.requireOpen()
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
    await this.#time.driven(Promise.resolve(quotas.counts.load(uses)))
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
    return new Mailbox(name, this.#received.of(name), { keys: this.#dkimKeys, startedAt: BEGINNING })
  }

  /** Returns the events so far, in their order, as a webhook or the admin API would report them. */
  async events(filter: Partial<EventFilter> = {}): Promise<readonly WorldEvent[]> {
    requireKnownOptions('events', filter, Object.keys(ANY_EVENT))
    requireEventTypes('events', filter.types)
    return publishedEvents(this.#lives.queue.reader, { ...ANY_EVENT, ...filter })
  }

  /** Adds a receiver of webhooks, which gets the events from now on. Rejects with a TypeError when the name is in use. */
  async webhook(name: string, options: WebhookOptions = {}): Promise<Webhook> {
    this.#time.requireClock()
    requireKnownOptions('webhook', options, ['types', 'destinations', 'senders', 'batch', 'format', 'handler'])
    requireFunction('handler of webhook', options.handler)
    requireEventTypes('webhook', options.types)
    return this.addWebhook(name, options, null)
  }

  /** Adds a receiver of webhooks, which `application` answers for in place of a handler. @internal */
  async addWebhook(name: string, options: WebhookOptions, application: Application | null): Promise<Webhook> {
    const webhook = new Webhook({ clock: this.clock, startedAt: BEGINNING, outside: this.#outside, options, application })
    if (!(await this.#time.driven(this.#lives.subscribe(name, webhook.settings)))) throw new TypeError(`there is a webhook ${name} already`)
    this.#webhooks.set(name, webhook)
    return webhook
  }

  /**
   * Enables a webhook and has its events sent, as `deferd webhook replay NAME` does: the waiting ones, or the parked ones (`--parked`).
   * Returns their number.
   */
  async replay(name: string, kind: 'waiting' | 'parked' = 'waiting'): Promise<number> {
    this.#time.requireClock()
    const count = await this.#time.driven(this.#lives.replayEvents(name, { kind, at: this.#lives.life.clock.now() }))
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
    terms: { readonly notBefore?: Time; readonly class?: string | null } = {},
  ): Promise<OperationSummary> {
    return this.#operator.operate(operation, ids, terms)
  }

  /**
   * Sends mail that has left the queue again to the recipients that it did not reach: that of these queue ids, or all. Its content must be
   * kept (returned_content_retention). Rejects when nothing can be sent again.
   */
  async resend(ids: readonly string[] | 'all' = 'all', options: { readonly again?: boolean } = {}): Promise<ResendSummary> {
    return this.#operator.resend(ids, options)
  }

  /**
   * Erases the addresses of recipients, or of senders, that match a pattern, in all that the queue keeps of mail that has left. Mail in the
   * queue stays as it is.
   */
  async erase(side: 'recipient' | 'sender', pattern: string): Promise<OperationSummary> {
    return this.#operator.erase(side, pattern)
  }

  /** Puts an address, or all of `@domain`, on the suppression list, in place of its entry: for the sender domain `scope`, or all senders. */
  async suppress(address: string, options: SuppressOptions = {}): Promise<void> {
    await this.#operator.suppress(address, options)
  }

  /** Suspends deliveries to a destination. */
  async suspend(destination: string): Promise<void> {
    await this.#operator.suspend(destination)
  }

  /** Resumes deliveries to a suspended destination. */
  async resume(destination: string): Promise<void> {
    await this.#operator.resume(destination)
  }

  /** Stops the relay and starts it again on the same queue. */
  async restart(): Promise<void> {
    this.#time.requireClock()
    await this.#time.driven(this.#lives.stop())
    await this.#lives.renew()
    await this.#time.driven(this.#lives.start())
  }

  /**
   * Kills the relay as kill -9 does: uncommitted work is lost and connections are reset. After `downFor`, the relay starts again
   * on the queue as the kill left it. Rejects for an SQLite queue in memory.
   */
  async crash(options: { readonly downFor?: Time } = {}): Promise<void> {
    this.#time.requireClock()
    requireKnownOptions('crash', options, ['downFor'])
    this.kill(options.downFor ?? 0)
    await this.#time.catchUp()
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
    if (this.#time.isClosed) return
    this.#time.requireClock()
    this.#time.close()
    try {
      await this.#clients.close()
      if (this.#lives.life.alive) await this.#time.drive(this.#lives.stop())
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

  /** Connects a client to the relay. */
  async #dialIn(): Promise<Socket> {
    this.#time.requireOpen()
    if (!this.#lives.life.alive || !this.net.isListening(RELAY_ADDRESS)) throw systemError('ECONNREFUSED', 'connect', RELAY_ADDRESS)
    return this.net.dialFrom(CLIENT_ADDRESS, RELAY_ADDRESS)
  }

  /** True when the queue has no mail, apart from held and corrupt mail. @internal */
  async isEmpty(): Promise<boolean> {
    return this.#time.isEmpty()
  }

  #did(did: string, details: Readonly<Record<string, unknown>> = {}): void {
    this.#time.mailMayHaveLeft()
    this.#history.record({ at: this.#elapsed(), where: 'test', event: { did, ...details } })
  }

  #elapsed(): Duration {
    return this.clock.monotonic()
  }
}
