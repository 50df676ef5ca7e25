/**
 * Connects the parts of a relay to one set of ports: intake, scheduler, delivery agent, MAILER-DAEMON and SMTP server. The daemon
 * passes real ports; the test kit and the simulator pass virtual ones.
 */
import type { AccessEntries } from '../access/access-entries.ts'
import { openAccess, type AccessTables } from '../access/access-tables.ts'
import { MailerDaemon } from '../bounce/mailer-daemon.ts'
import type { NoticeEntry, NoticeSettings } from '../bounce/notice-writer.ts'
import { SubmissionReturner } from '../bounce/rejected-submission.ts'
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { ClassBands } from '../config/values/mail-classes.ts'
import { ProviderDirectory } from '../config/provider-directory.ts'
import type { Config } from '../config/options.ts'
import { parseMailbox } from '../mail/mailbox-list.ts'
import type { DeliveryAgent } from '../delivery/delivery-agent.ts'
import type { Endpoint, Net } from '../system/net.ts'
import type { Clock, Duration, QueueTime } from '../system/clock.ts'
import type { MailEntry } from '../queue/resending.ts'
import type { Signing } from '../system/signing.ts'
import type { Random } from '../system/random.ts'
import { AccessTokens } from '../oauth/access-tokens.ts'
import { EventRecorder } from '../outbox/event-recorder.ts'
import { StoreTroubles } from '../outbox/store-troubles.ts'
import { TokenReports } from '../outbox/token-reports.ts'
import { Suppressions } from '../suppression/suppressions.ts'
import type { Acceptor } from '../queue/intake/acceptor.ts'
import type { LimitState } from '../queue/intake/queue-limits.ts'
import { QuotaUpkeep } from '../queue/quota-upkeep.ts'
import { LimitUpkeep } from '../queue/intake/limit-upkeep.ts'
import { ScheduledLimit } from '../queue/intake/scheduled-limit.ts'
import { Intake, lifetimeOf } from '../queue/intake/intake.ts'
import { Maildrop, type MaildropDeps } from '../queue/intake/maildrop.ts'
import { expiryOf, type DestinationName, type Message } from '../mail/message.ts'
import type { SchedulerControl } from '../queue/operation-rounds.ts'
import { ActiveQueue } from '../queue/scheduler/active-queue.ts'
import { DestinationTable } from '../queue/scheduler/destination-table.ts'
import { Scheduler } from '../queue/scheduler/scheduler.ts'
import type { SchedulerPorts } from '../queue/scheduler/scheduler-state.ts'
import type { SmtpAgent } from '../delivery/smtp/smtp-agent.ts'
import { Matching } from '../patterns/matching.ts'
import { ClassRegistry } from './class-registry.ts'
import { noticeEntry } from './notice-entry.ts'
import { brakeMail, queueOperatorMail, type OperatorMail } from './operator-mail.ts'
import type { Shard } from '../store/membership/shards.ts'
import { SOLE_MEMBERSHIP, type Membership } from '../store/membership/membership.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { ReportSender } from '../tls-reports/report-sender.ts'
import { TlsReports, type TlsReportSettings } from '../tls-reports/tls-reports.ts'
import { queueReport } from './report-entry.ts'
import { StsPolicies } from '../delivery/sts/sts-policies.ts'
import type { QueueStore } from '../store/queue-store.ts'
import { StoreHealth } from '../store/store-health.ts'
import { ContentCache } from '../queue/intake/content-cache.ts'
import { SessionRecordings } from '../sessions/session-recordings.ts'
import { startSmtpd, type Smtpd } from '../smtpd/server.ts'
import { disconnect, drained } from '../smtpd/replies.ts'
import type { OpenSession } from '../smtpd/open-connections.ts'
import type { FlushDomain } from '../smtpd/session.ts'
import { onEvents, type Events } from '../telemetry/events.ts'
import { activeLimits } from './active-limits.ts'
import type { RecentLog } from '../telemetry/recent-log.ts'
import { RelayStatus } from './relay-status.ts'
import { acceptorOf, compileRules, smtpAgent, type RelaySettings, type Rules } from './rules.ts'

interface RelayDeps extends RelaySettings {
  readonly clock: Clock
  readonly random: Random
  readonly net: Net
  readonly store: QueueStore
  /** Membership among the nodes that share the queue; SOLE_MEMBERSHIP when absent. */
  readonly membership?: Membership | undefined
  readonly events: Events
  /** The last warnings and errors of the process; those of this relay when absent. */
  readonly log?: RecentLog | undefined
  /** Providers of destinations, which the store of a shared queue fills. Absent for a queue with one owner. */
  readonly providers?: ProviderDirectory | undefined
  /** Access entries of commands; none when absent. */
  readonly accessEntries?: Pick<AccessEntries, 'isEmpty' | 'find'> | undefined
  /** True while a drained node refuses mail; never when absent. */
  readonly isDraining?: (() => boolean) | undefined
  /** Signs with the DKIM keys; in the thread pool when absent. */
  readonly sign?: Signing | undefined
  /** Reads the queue. When absent, no MTA-STS policies are applied, and mail that quotas hold is not planned anew. */
  readonly reader?: QueueReader | undefined
  /** Wraps or replaces the SMTP agent, for simulations. */
  readonly watchAgent?: ((agent: DeliveryAgent) => DeliveryAgent) | undefined
}

export class Relay {
  readonly intake: Intake
  readonly scheduler: Scheduler
  readonly matching: Matching
  /** MTA-STS policies; undefined without a reader. */
  readonly sts: StsPolicies | undefined
  readonly #tlsResults: TlsReports
  readonly #tlsReports: ReportSender
  /** Access tokens for next hops. They outlive a reload. */
  readonly accessTokens: AccessTokens
  readonly #tokenReports: TokenReports
  /** Records of SMTP sessions. They outlive a reload. */
  readonly recordings: SessionRecordings
  /** Makes the events that programs get. */
  readonly recorder: EventRecorder
  readonly status: RelayStatus
  readonly suppressions: Suppressions
  readonly #deps: RelayDeps
  readonly #membership: Membership
  /** Providers of destinations. They outlive a reload. */
  readonly #providers: ProviderDirectory
  /** Numbers of the classes. They outlive a reload. */
  readonly #bands = new ClassBands()
  readonly #classes: ClassRegistry
  readonly #contents = new ContentCache()
  readonly #mailerDaemon: MailerDaemon
  readonly #entry: NoticeEntry
  readonly #submissions: SubmissionReturner
  readonly #limits: LimitUpkeep
  readonly quotas: QuotaUpkeep
  #rules: Rules
  #settings: RelaySettings
  #agent: SmtpAgent
  #acceptor: Acceptor
  #smtpd: Smtpd | null = null

  constructor(deps: RelayDeps) {
    const { clock, random, net, store, events, secrets, providers, membership = SOLE_MEMBERSHIP } = deps
    this.#deps = deps
    this.#settings = deps
    this.#membership = membership
    this.#providers = providers ?? new ProviderDirectory()
    this.matching = new Matching(clock)
    this.recorder = new EventRecorder(clock)
    this.recordings = new SessionRecordings({ clock, keepsDeliveries: () => this.config.session_transcripts !== 'no' })
    this.#rules = compileRules(deps, { providers: this.#providers, bands: this.#bands }, deps)
    this.sts = this.#openStsPolicies(deps)
    this.#tokenReports = new TokenReports({ outbox: store.outbox, recorder: this.recorder, events })
    const { answered } = this.#tokenReports
    this.accessTokens = AccessTokens.open({ net, clock, random, grants: store.records.grants, answered }, secrets?.oauth)
    this.#tlsResults = new TlsReports({
      store,
      clock,
      source: `${store.leaseTerms().owner} ${clock.now()}`,
      settings: () => tlsReportSettings(this.config),
      note: (text, level) => events.emit({ kind: 'note', level, text }),
    })
    this.#agent = this.#agentOf(this.#rules)
    const storeHealth = this.#watchStore(deps)
    const limits = () => activeLimits(this.#rules.config)
    const active = new ActiveQueue(limits)
    const table = new DestinationTable(active, limits, () => this.#rules.policies)
    const { recorder } = this
    this.#mailerDaemon = new MailerDaemon({
      store,
      clock,
      events,
      recorder,
      storeHealth,
      settings: () => this.#rules.notices,
      roundIsOpen: (message) => active.holds(message),
      closed: (destination) => table.isClosed(destination),
    })
    this.#limits = new LimitUpkeep({ store, clock, events, recorder, isShared: membership.isShared })
    this.quotas = this.#openQuotas(deps)
    this.suppressions = this.#openSuppressions(deps)
    this.#classes = this.#openClasses(deps)
    this.scheduler = this.#openScheduler(deps, { storeHealth, active, table, limits })
    this.intake = this.#openIntake(deps, storeHealth)
    this.#tlsReports = this.#reportSender(deps)
    this.#acceptor = acceptorOf(this.#rules, { ...deps, intake: this.intake, matching: this.matching })
    this.#entry = noticeEntry({
      intake: this.intake,
      events,
      rewriting: () => this.#rules.rewriting,
      signing: () => this.#rules.signing,
    })
    this.#submissions = new SubmissionReturner({ store, clock, events, recorder, entry: this.#entry, settings: () => this.#rules.notices })
    this.status = this.#statusOf(deps)
    this.#attach()
  }

  #statusOf({ store, clock, events, log }: RelayDeps): RelayStatus {
    return new RelayStatus({
      store,
      clock,
      events,
      destinations: this.scheduler.destinations,
      tokens: this.accessTokens,
      schedules: () => this.config.schedule,
      limits: this.#limits.limits,
      listings: () => this.suppressions.obstacles(),
      quotas: () => this.quotas.full,
      log,
    })
  }

  #openQuotas({ store, clock, events, reader }: RelayDeps): QuotaUpkeep {
    const deps = {
      store,
      clock,
      events,
      reader,
      recorder: this.recorder,
      policies: () => this.#rules.policies,
      scheduler: () => this.scheduler,
      owns: (key: string) => this.#membership.owns(key),
      isShared: this.#membership.isShared,
    }
    return new QuotaUpkeep(deps, this.config)
  }

  #openClasses({ store, clock }: RelayDeps): ClassRegistry {
    const added = (): Promise<void> => this.scheduler.scan()
    return new ClassRegistry({ store, clock, bands: this.#bands, isShared: this.#membership.isShared, added })
  }

  #openSuppressions({ store, clock, events }: RelayDeps): Suppressions {
    return new Suppressions(
      {
        store,
        clock,
        events,
        recorder: this.recorder,
        isShared: this.#membership.isShared,
        braked: (destination) => this.#tellPostmaster(brakeMail(destination)),
      },
      this.config,
    )
  }

  #watchStore({ store, clock, events }: RelayDeps): StoreHealth {
    const troubles = new StoreTroubles(store.outbox, this.recorder, () => clock.now())
    const storeHealth = new StoreHealth({
      store: store.upkeep,
      clock,
      holds: () => this.#membership.holds(),
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

  #openScheduler(
    { store, clock, random, events, providers, watchAgent = (agent) => agent }: RelayDeps,
    state: Pick<SchedulerPorts, 'storeHealth' | 'active' | 'table' | 'limits'>,
  ): Scheduler {
    return new Scheduler({
      ...state,
      store,
      clock,
      events,
      recorder: this.recorder,
      membership: this.#membership,
      agent: watchAgent({ deliver: (request, options) => this.#agent.deliver(request, options), close: () => this.#agent.close() }),
      policies: () => this.#rules.policies,
      directory: this.#providers,
      fillsDirectory: providers === undefined,
      noticeSettings: () => this.#rules.notices,
      notices: this.#mailerDaemon,
      contents: this.#contents,
      draw: (key) => random.draw(key),
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
      notices: this.#mailerDaemon,
      limits: this.#limits.limits,
      quotas: this.quotas.quotas,
      scheduledLimit: new ScheduledLimit({ store, clock, settings: () => this.#rules.config }),
      destinationOf: (address, sender) => this.#rules.router.route(address, sender).destination,
      policies: () => this.#rules.policies,
      keepsContent: () => this.#rules.config.returned_content_retention > 0,
      needed: () => Math.max(this.#rules.config.queue_minfree, 1.5 * this.#rules.config.message_size_limit),
    })
  }

  #attach(): void {
    const { nodes } = this.scheduler
    this.#membership.attach({
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
    return this.#acceptor
  }

  /** Creates the maildrop of a queue folder. The caller starts and stops it. */
  maildrop(queueDirectory: string, files: MaildropDeps['files']): Maildrop {
    const { store, clock, events } = this.#deps
    const maildrop = new Maildrop({
      queueDirectory,
      files,
      store,
      clock,
      events,
      acceptor: { accept: (submission) => this.acceptor.accept(submission) },
      refusal: (...mail) => this.intake.refusal(...mail),
      sizeLimit: () => this.#rules.config.message_size_limit,
      returnToSender: (rejected) => this.#submissions.return(rejected),
    })
    events.listen(onEvents({ 'limit-cleared': () => maildrop.wake() }))
    return maildrop
  }

  /** Limits of the queue with their use. */
  limitStates(): readonly LimitState[] {
    return this.#limits.limits.states()
  }

  /** Settings as of the last reload. */
  get settings(): RelaySettings {
    return this.#settings
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

  /** Parts that queue mail again. */
  get mailEntry(): MailEntry {
    const { intake, suppressions } = this
    return { intake, suppressions, signing: () => this.#rules.signing, lineLimit: () => this.config.smtp_line_length_limit }
  }

  /** The named draws of the retry schedule; see Random.draw. */
  readonly draw = (key: string): number => this.#deps.random.draw(key)

  #agentOf(rules: Rules): SmtpAgent {
    return smtpAgent(rules, {
      ...this.#deps,
      membership: this.#membership,
      contents: this.#contents,
      matching: this.matching,
      sts: this.sts,
      tokens: this.accessTokens,
      tlsReports: this.#tlsResults,
      sessions: this.recordings,
    })
  }

  #openStsPolicies({ net, clock, store, reader, random, events }: RelayDeps): StsPolicies | undefined {
    if (reader === undefined) return undefined
    return new StsPolicies({
      net,
      clock,
      store: store.records.stsPolicies,
      reader: reader.records.stsPolicies,
      terms: () => ({
        ca: this.#rules.secrets?.tls?.policyHostCa,
        allowPrivate: this.#rules.config.smtp_allow_private_addresses,
      }),
      owns: (domain) => this.#membership.owns(domain),
      draw: (key) => random.draw(key),
      note: (text, level = 'info') => events.emit({ kind: 'note', level, text }),
    })
  }

  #reportSender({ net, clock, store, random, events }: RelayDeps): ReportSender {
    const entry = {
      intake: this.intake,
      clock,
      sender: () => this.config.smtp_tlsrpt_sender,
      signing: () => this.#rules.signing,
      keepsTexts: () => this.config.queue_index_headers,
    }
    return new ReportSender({
      net,
      clock,
      store,
      settings: () => tlsReportSettings(this.config),
      owns: (domain) => this.#membership.owns(domain),
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
    const { config } = settings
    const rules = compileRules(settings, { providers: this.#providers, bands: this.#bands }, this.#deps)
    const [old, agent] = [this.#agent, this.#agentOf(rules)]
    const acceptor = acceptorOf(rules, { ...this.#deps, intake: this.intake, matching: this.matching })
    try {
      await this.#classes.apply(config.class.keys())
      await this.#smtpd?.reload({ config, acceptor, deadEnds: rules.deadEnds, access: accessOf(settings) })
    } catch (error) {
      await agent.close()
      throw error
    }
    this.#rules = rules
    this.#settings = settings
    this.#agent = agent
    this.#acceptor = acceptor
    this.accessTokens.configure(settings.secrets?.oauth ?? new Map())
    await this.#limits.apply(config)
    this.quotas.apply(config)
    await this.suppressions.apply(config)
    this.scheduler.reconfigure()
    this.#tlsReports.start()
    await old.close()
  }

  /** Destination of an address, and the time when a message's lifetime ends there. */
  routeOf(
    address: string,
    message: Pick<Message, 'sender' | 'createdAt' | 'notBefore' | 'expires' | 'class'>,
  ): { readonly destination: DestinationName; readonly expiresAt: QueueTime } {
    const { destination } = this.#rules.router.route(address, message.sender)
    return {
      destination,
      expiresAt: expiryOf(message, lifetimeOf(message.sender, this.#rules.policies.forMail(destination, message).settings)),
    }
  }

  /** Queues a mail to the operators. Rejects as queueOperatorMail does. */
  mailOperators(mail: OperatorMail): Promise<void> {
    return queueOperatorMail(mail, { intake: this.intake, entry: this.#entry, clock: this.#deps.clock, config: this.config })
  }

  /** Queues a mail of the class `resource` to the postmaster. */
  async #tellPostmaster(mail: Omit<OperatorMail, 'recipients'>): Promise<void> {
    const { notify_classes: classes, error_notice_recipient: recipient, myorigin } = this.config
    const address = parseMailbox(recipient, myorigin)
    if (classes.includes('resource') && address !== undefined) await this.mailOperators({ ...mail, recipients: [address] })
  }

  /** Starts deliveries. Mail accepted earlier waits in the queue until then. */
  async start(): Promise<void> {
    await this.#classes.apply(this.config.class.keys())
    await this.#limits.apply(this.config)
    await this.suppressions.apply(this.config)
    await this.scheduler.start()
    await this.quotas.start()
    this.#mailerDaemon.start(this.#entry)
    await this.sts?.start()
    this.#tlsReports.start()
  }

  /** Addresses of the SMTP ports; empty before `listen`. */
  get listeners(): readonly Endpoint[] {
    return this.#smtpd?.listeners ?? []
  }

  /** Sessions of SMTP clients; empty before `listen`. */
  get sessions(): readonly OpenSession[] {
    return this.#smtpd?.sessions ?? []
  }

  /** Opens the SMTP ports. Rejects with CannotListen when a port cannot be opened. `flushDomain` serves ETRN; without it, ETRN gets 458. */
  async listen(flushDomain: FlushDomain = () => false): Promise<readonly Endpoint[]> {
    const { config, net, clock, random, events, isDraining = () => false } = this.#deps
    await this.#classes.apply(config.class.keys())
    const refusal: Intake['refusal'] = (...mail) => (isDraining() ? drained(config.myhostname) : this.intake.refusal(...mail))
    const recipientRefusal: Intake['recipientRefusal'] = (...mail) => this.intake.recipientRefusal(...mail)
    const { acceptor, recordings, suppressions } = this
    const { deadEnds } = this.#rules
    const { accessEntries, serverSecrets } = this.#deps
    const access = { access: accessOf(this.#deps), accessEntries, serverSecrets }
    this.#smtpd = await startSmtpd({
      config,
      net,
      clock,
      random,
      events,
      acceptor,
      deadEnds,
      intake: { refusal, recipientRefusal },
      classes: () => this.#rules.classes,
      flushDomain,
      recordings,
      suppressions,
      ...access,
    })
    return this.#smtpd.listeners
  }

  get schedulerControl(): SchedulerControl {
    const { scheduler } = this
    const { destinations } = scheduler
    return {
      workAdded: (due, options) => scheduler.workAdded(due, options),
      suspend: (name, suspension) => destinations.suspend(name, suspension),
      resume: (name, by) => destinations.resume(name, by),
      suspendProvider: (name, suspension) => destinations.suspendProvider(name, suspension),
      resumeProvider: (name, by) => destinations.resumeProvider(name, by),
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
    this.recordings.traces.close()
    await Promise.all([this.#smtpd?.close(grace / 2), this.scheduler.stop(grace)])
    await this.#mailerDaemon.stop()
    await this.#limits.stop()
    await this.quotas.stop()
    await this.#classes.stop()
    await this.suppressions.stop()
    this.#tlsReports.close()
    await this.#tlsResults.close()
    this.sts?.close()
    this.accessTokens.close()
    await this.#tokenReports.settled()
    await this.#agent.close()
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
