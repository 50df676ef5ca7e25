/**
 * Connects the parts of a relay to one set of ports: intake, scheduler, delivery agent, MAILER-DAEMON and SMTP server. The daemon
 * passes real ports; the test kit and the simulator pass virtual ones.
 */
import type { AccessEntries } from '../access/access-entries.ts'
import { openAccess, type AccessTables } from '../access/access-tables.ts'
import { MailerDaemon } from '../bounce/mailer-daemon.ts'
import type { NoticeSettings } from '../bounce/notice-writer.ts'
import { SubmissionReturner } from '../bounce/rejected-submission.ts'
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { ProviderDirectory } from '../config/provider-directory.ts'
import type { Config } from '../config/options.ts'
import type { DeliveryAgent } from '../delivery/delivery-agent.ts'
import type { Endpoint, Net } from '../system/net.ts'
import type { Clock, Duration, QueueTime } from '../system/clock.ts'
import type { Signing } from '../system/signing.ts'
import type { Random } from '../system/random.ts'
import { AccessTokens } from '../oauth/access-tokens.ts'
import { sharedGrantsIn } from '../oauth/shared-grant.ts'
import { EventRecorder } from '../outbox/event-recorder.ts'
import { StoreTroubles } from '../outbox/store-troubles.ts'
import { TokenReports } from '../outbox/token-reports.ts'
import type { Acceptor } from '../queue/intake/acceptor.ts'
import { Intake, lifetimeOf } from '../queue/intake/intake.ts'
import { Maildrop, type MaildropDeps } from '../queue/intake/maildrop.ts'
import type { DestinationName, Message } from '../mail/message.ts'
import type { SchedulerControl } from '../queue/operation-rounds.ts'
import { Scheduler } from '../queue/scheduler/scheduler.ts'
import { Matching } from '../patterns/matching.ts'
import { noticeEntry } from './notice-entry.ts'
import type { Shard } from '../store/membership/shards.ts'
import { SOLE_MEMBERSHIP, type Membership } from '../store/membership/membership.ts'
import type { StsPolicyReader } from '../store/tls/sts-policy.ts'
import { TlsReports, type TlsReportSettings } from '../tls-reports/tls-reports.ts'
import { queueReport } from './report-entry.ts'
import { StsPolicies } from '../delivery/sts/sts-policies.ts'
import type { QueueStore } from '../store/queue-store.ts'
import { StoreHealth } from '../store/store-health.ts'
import { ContentCache } from '../queue/intake/content-cache.ts'
import { startSmtpd, type Smtpd } from '../smtpd/server.ts'
import { disconnect, drained } from '../smtpd/replies.ts'
import type { FlushDomain } from '../smtpd/session.ts'
import type { Events } from '../telemetry/events.ts'
import { activeLimits } from './active-limits.ts'
import { RelayStatus } from './relay-status.ts'
import { compileRules, type RelaySettings, type Rules } from './rules.ts'

export interface RelayDeps extends RelaySettings {
  readonly clock: Clock
  readonly random: Random
  readonly net: Net
  readonly store: QueueStore
  /** Membership among the nodes that share the queue; SOLE_MEMBERSHIP when absent. */
  readonly membership?: Membership | undefined
  readonly events: Events
  /** Providers of destinations, which the store of a shared queue fills. Absent for a queue with one owner. */
  readonly providers?: ProviderDirectory | undefined
  /** Access entries of commands; none when absent. */
  readonly accessEntries?: Pick<AccessEntries, 'isEmpty' | 'find'> | undefined
  /** True while a drained node refuses mail; never when absent. */
  readonly isDraining?: (() => boolean) | undefined
  /** Signs with the DKIM keys; in the thread pool when absent. */
  readonly sign?: Signing | undefined
  /** Reads stored MTA-STS policies. When absent, no policies are applied. */
  readonly reader?: StsPolicyReader | undefined
  /** Wraps or replaces the SMTP agent, for simulations. */
  readonly watchAgent?: ((agent: DeliveryAgent) => DeliveryAgent) | undefined
}

export class Relay {
  readonly intake: Intake
  readonly scheduler: Scheduler
  readonly matching: Matching
  /** MTA-STS policies; undefined without a reader. */
  readonly sts: StsPolicies | undefined
  readonly #tlsReports: TlsReports
  /** Access tokens for next hops. They outlive a reload. */
  readonly accessTokens: AccessTokens
  readonly #tokenReports: TokenReports
  /** Makes the events that programs get. */
  readonly recorder: EventRecorder
  readonly status: RelayStatus
  readonly #deps: RelayDeps
  /** Providers of destinations. They outlive a reload. */
  readonly #providers: ProviderDirectory
  readonly #contents = new ContentCache()
  readonly #mailerDaemon: MailerDaemon
  readonly #submissions: SubmissionReturner
  #rules: Rules
  #smtpd: Smtpd | null = null

  constructor(deps: RelayDeps) {
    const { clock, store, events } = deps
    this.#deps = deps
    this.#providers = deps.providers ?? new ProviderDirectory()
    this.matching = new Matching(clock)
    this.sts = this.#openStsPolicies(deps)
    this.status = new RelayStatus({
      store,
      clock,
      events,
      destinations: () => this.scheduler.destinations,
      tokens: () => this.accessTokens.states(),
    })
    this.recorder = new EventRecorder(clock)
    const storeHealth = this.#watchStore(deps)
    this.scheduler = this.#openScheduler(deps, storeHealth)
    this.intake = this.#openIntake(deps, storeHealth)
    const entry = noticeEntry({
      intake: this.intake,
      events,
      rewriting: () => this.#rules.rewriting,
      signing: () => this.#rules.signing,
    })
    const notices = { store, clock, events, recorder: this.recorder, entry, settings: () => this.#rules.notices }
    this.#mailerDaemon = new MailerDaemon({
      ...notices,
      storeHealth,
      roundIsOpen: (message) => this.scheduler.roundIsOpen(message),
      closed: (destination) => this.scheduler.destinations.isClosed(destination),
    })
    this.#tlsReports = this.#openTlsReports(deps)
    this.#tokenReports = new TokenReports({ store, recorder: this.recorder, events })
    this.accessTokens = this.#openAccessTokens(deps)
    this.#submissions = new SubmissionReturner(notices)
    this.#rules = this.#compile(deps)
    this.#attach(deps)
  }

  #watchStore({ store, clock, events, membership = SOLE_MEMBERSHIP }: RelayDeps): StoreHealth {
    const troubles = new StoreTroubles(store, this.recorder, () => clock.now())
    const storeHealth = new StoreHealth({
      store,
      clock,
      holds: () => membership.holds(),
      failed: (why) => {
        troubles.began(why)
        events.emit({ kind: 'store-unavailable', why })
      },
    })
    storeHealth.onRecovery(() => {
      events.emit({ kind: 'store-recovered' })
      void troubles.ended()
    })
    return storeHealth
  }

  #openScheduler(deps: RelayDeps, storeHealth: StoreHealth): Scheduler {
    const { store, clock, random, events, membership = SOLE_MEMBERSHIP, watchAgent = (agent) => agent } = deps
    return new Scheduler({
      store,
      clock,
      events,
      recorder: this.recorder,
      storeHealth,
      membership,
      agent: watchAgent({
        deliver: (request, options) => this.#rules.agent.deliver(request, options),
        close: () => this.#rules.agent.close(),
      }),
      limits: () => activeLimits(this.#rules.config),
      policies: () => this.#rules.policies,
      providers: this.#providers,
      fillsProviders: deps.providers === undefined,
      notices: () => this.#rules.notices,
      draw: (key) => random.draw(key),
      noticeDue: (message) => this.#mailerDaemon.noticeDue(message),
      atRest: (message) => {
        this.#contents.release(message.contentId)
        this.#mailerDaemon.atRest(message.id)
      },
    })
  }

  #openIntake({ store, clock, events }: RelayDeps, storeHealth: StoreHealth): Intake {
    return new Intake({
      store,
      storeHealth,
      clock,
      events,
      recorder: this.recorder,
      contents: this.#contents,
      scheduler: this.scheduler,
      waits: (message) => this.#mailerDaemon.waits(message),
      destinationOf: (address, sender) => this.#rules.router.route(address, sender).destination,
      policies: () => this.#rules.policies,
      needed: () => Math.max(this.#rules.config.queue_minfree, 1.5 * this.#rules.config.message_size_limit),
    })
  }

  #attach({ membership = SOLE_MEMBERSHIP }: RelayDeps): void {
    const { nodes } = this.scheduler
    membership.attach({
      taken: (shards) => this.#shardsTaken(shards),
      releasing: (shards, given) => nodes.releasing(shards, given),
      arrived: (arrivals) => {
        nodes.arrived(arrivals)
        this.#mailerDaemon.arrived(arrivals)
      },
      missed: () => {
        nodes.missed()
        this.#mailerDaemon.load()
      },
      recalled: (recall) => nodes.recalled(recall),
      resumed: () => this.scheduler.resumeWork(),
    })
  }

  async #shardsTaken(shards: readonly Shard[]): Promise<void> {
    await this.scheduler.nodes.taken(shards)
    this.#mailerDaemon.load()
  }

  /** Accepts mail that does not arrive by SMTP. */
  get acceptor(): Acceptor {
    return this.#rules.acceptor
  }

  /** Creates the maildrop of a queue folder. The caller starts and stops it. */
  maildrop(queueDirectory: string, files: MaildropDeps['files']): Maildrop {
    const { store, clock, events } = this.#deps
    return new Maildrop({
      queueDirectory,
      files,
      store,
      clock,
      events,
      acceptor: { accept: (submission) => this.acceptor.accept(submission) },
      refusal: (size) => this.intake.refusal(size),
      sizeLimit: () => this.#rules.config.message_size_limit,
      returnToSender: (rejected) => this.#submissions.return(rejected),
    })
  }

  /** Configuration as of the last reload. */
  get config(): Config {
    return this.#rules.config
  }

  /** Settings and retry policies of destinations, as of the last reload. */
  get policies(): DestinationPolicies {
    return this.#rules.policies
  }

  /** Rules and texts of notices, as of the last reload. */
  get notices(): NoticeSettings {
    return this.#rules.notices
  }

  /** The named draws of the retry schedule; see Random.draw. */
  readonly draw = (key: string): number => this.#deps.random.draw(key)

  #compile(settings: RelaySettings): Rules {
    const { membership = SOLE_MEMBERSHIP, sign } = this.#deps
    return compileRules(settings, {
      ...this.#deps,
      membership,
      sign,
      providers: this.#providers,
      contents: this.#contents,
      intake: this.intake,
      matching: this.matching,
      sts: this.sts,
      tokens: (name) => this.accessTokens.of(name),
      tlsReports: this.#tlsReports,
    })
  }

  #openStsPolicies({ net, clock, store, reader, random, events, membership = SOLE_MEMBERSHIP }: RelayDeps): StsPolicies | undefined {
    if (reader === undefined) return undefined
    return new StsPolicies({
      net,
      clock,
      store,
      reader,
      terms: () => ({
        ca: this.#rules.policyHostCa,
        allowPrivate: this.#rules.config.smtp_allow_private_addresses,
      }),
      owns: (domain) => membership.owns(domain),
      draw: (key) => random.draw(key),
      note: (text, level = 'info') => events.emit({ kind: 'note', level, text }),
    })
  }

  #openAccessTokens({ net, clock, random, store, secrets }: RelayDeps): AccessTokens {
    const { answered } = this.#tokenReports
    return AccessTokens.open({ net, clock, random, grants: sharedGrantsIn(store), answered }, secrets?.oauth)
  }

  #openTlsReports({ net, clock, store, random, events, membership = SOLE_MEMBERSHIP }: RelayDeps): TlsReports {
    const entry = { intake: this.intake, clock, sender: () => this.config.smtp_tlsrpt_sender, signing: () => this.#rules.signing }
    return new TlsReports({
      net,
      clock,
      store,
      source: `${store.leaseTerms().owner} ${clock.now()}`,
      settings: () => tlsReportSettings(this.config),
      owns: (domain) => membership.owns(domain),
      draw: (key) => random.draw(key),
      mail: (report, recipient) => queueReport(report, recipient, entry),
      note: (text, level) => events.emit({ kind: 'note', level, text }),
    })
  }

  /**
   * Applies changed settings. Running deliveries end with the previous ones. Rejects without effect: with PolicyError for an
   * invalid retry policy, with CannotListen for a port that cannot be opened, with CertificateUnusable.
   */
  async reload(settings: RelaySettings): Promise<void> {
    const [old, rules] = [this.#rules, this.#compile(settings)]
    try {
      await this.#smtpd?.reload({ config: settings.config, acceptor: rules.acceptor, deadEnds: rules.deadEnds, access: accessOf(settings) })
    } catch (error) {
      await rules.agent.close()
      throw error
    }
    this.#rules = rules
    this.accessTokens.configure(settings.secrets?.oauth ?? new Map())
    this.scheduler.reconfigure()
    this.#tlsReports.start()
    await old.agent.close()
  }

  /** Destination of an address, and the time when a message's lifetime ends there. */
  routeOf(
    address: string,
    message: Pick<Message, 'sender' | 'createdAt'>,
  ): { readonly destination: DestinationName; readonly expiresAt: QueueTime } {
    const { destination } = this.#rules.router.route(address, message.sender)
    return { destination, expiresAt: message.createdAt + lifetimeOf(message.sender, this.#rules.policies.for(destination).settings) }
  }

  /** Starts deliveries. Mail accepted earlier waits in the queue until then. */
  async start(): Promise<void> {
    await this.scheduler.start()
    this.#mailerDaemon.start()
    await this.sts?.start()
    this.#tlsReports.start()
  }

  /** Addresses of the SMTP ports; empty before `listen`. */
  get listeners(): readonly Endpoint[] {
    return this.#smtpd?.listeners ?? []
  }

  /** Opens the SMTP ports. Rejects with CannotListen when a port cannot be opened. `flushDomain` serves ETRN; without it, ETRN gets 458. */
  async listen(flushDomain: FlushDomain = () => false): Promise<readonly Endpoint[]> {
    const { config, net, clock, random, events, isDraining = () => false } = this.#deps
    const intake = { refusal: (size: number) => (isDraining() ? drained(config.myhostname) : this.intake.refusal(size)) }
    const { acceptor } = this
    const { deadEnds } = this.#rules
    const access = { access: accessOf(this.#deps), accessEntries: this.#deps.accessEntries }
    this.#smtpd = await startSmtpd({ config, net, clock, random, events, acceptor, deadEnds, intake, flushDomain, ...access })
    return this.#smtpd.listeners
  }

  get schedulerControl(): SchedulerControl {
    const { scheduler } = this
    const { destinations } = scheduler
    return {
      workAdded: (due, options) => scheduler.workAdded(due, options),
      suspend: (name, suspension) => destinations.suspend(name, suspension),
      resume: (name, by) => destinations.resume(name, by),
      takeBack: (messages, options) => scheduler.takeBack(messages, options),
      transfers: async () => scheduler.transfers,
      snapshot: () => destinations.all(),
    }
  }

  /** True refuses all new mail with 421, because the queue moves to another place. */
  refuseMail(refused: boolean): void {
    const reply = disconnect('4.3.2', this.#rules.config.myhostname, 'Service not available, the queue is being moved')
    this.intake.refuseAll(refused ? reply : null)
  }

  /** Closes the SMTP ports and waits up to `grace` for running deliveries. Other mail stays in the store. */
  async stop(grace: Duration): Promise<void> {
    await Promise.all([this.#smtpd?.close(grace / 2), this.scheduler.stop(grace)])
    await this.#mailerDaemon.stop()
    await this.#tlsReports.close()
    this.sts?.close()
    this.accessTokens.close()
    await this.#tokenReports.settled()
    await this.#rules.agent.close()
    await this.matching.close()
  }
}

const accessOf = ({ config, access }: RelaySettings): AccessTables => access ?? openAccess(config).access

const tlsReportSettings = (config: Config): TlsReportSettings => ({
  enabled: config.smtp_tlsrpt_enable,
  sender: config.smtp_tlsrpt_sender,
  organization: config.myorigin,
  hostname: config.myhostname,
  allowPrivate: config.smtp_allow_private_addresses,
  skipsResumed: config.smtp_tlsrpt_skip_reused_handshakes,
  noPolicy: config.tlsrpt_no_policy,
})
