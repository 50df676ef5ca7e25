/**
 * Connects the parts of a relay to one set of ports: intake, scheduler, delivery agent, MAILER-DAEMON and SMTP server. The daemon
 * passes real ports; the test kit and the simulator pass virtual ones.
 */
import { openDeliveryParts, type DeliveryParts } from './delivery-parts.ts'
import { openQueueParts, type QueueParts } from './queue-parts.ts'
import type { RelayDeps } from './relay-deps.ts'
import { openAccess, type AccessTables } from '../access/access-tables.ts'
import type { NoticeSettings } from '../bounce/notice-writer.ts'
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { ClassBands } from '../config/values/mail-classes.ts'
import { ProviderDirectory } from '../config/provider-directory.ts'
import type { Config } from '../config/options.ts'
import type { DeliveryAgent } from '../delivery/delivery-agent.ts'
import type { Endpoint } from '../system/net.ts'
import type { Duration, QueueTime } from '../system/clock.ts'
import type { MailEntry } from '../queue/resending.ts'
import { AccessTokens } from '../oauth/access-tokens.ts'
import { EventRecorder } from '../outbox/event-recorder.ts'
import { Suppressions } from '../suppression/suppressions.ts'
import type { Acceptor } from '../queue/intake/acceptor.ts'
import type { LimitState } from '../queue/intake/queue-limits.ts'
import { QuotaUpkeep } from '../queue/quota-upkeep.ts'
import { Intake, lifetimeOf } from '../queue/intake/intake.ts'
import { Maildrop, type MaildropDeps } from '../queue/intake/maildrop.ts'
import { expiryOf, type DestinationName, type Message } from '../mail/message.ts'
import type { SchedulerControl } from '../queue/operation-rounds.ts'
import { Scheduler } from '../queue/scheduler/scheduler.ts'
import type { SmtpAgent } from '../delivery/smtp/smtp-agent.ts'
import { Matching } from '../patterns/matching.ts'
import { queueOperatorMail, type OperatorMail } from './operator-mail.ts'
import type { Shard } from '../store/membership/shards.ts'
import { StsPolicies } from '../delivery/sts/sts-policies.ts'
import { SessionRecordings } from '../sessions/session-recordings.ts'
import { startSmtpd, type Smtpd } from '../smtpd/server.ts'
import { disconnect, drained } from '../smtpd/dialogue/replies.ts'
import type { OpenSession } from '../smtpd/open-connections.ts'
import type { FlushDomain } from '../smtpd/dialogue/session-context.ts'
import { onEvents } from '../telemetry/events.ts'
import { RelayStatus } from './relay-status.ts'
import { acceptorOf, compileRules, smtpAgent, type LastingRules, type RelaySettings, type Rules } from './rules.ts'

export class Relay {
  readonly intake: Intake
  readonly scheduler: Scheduler
  readonly matching: Matching
  /** MTA-STS policies; undefined without a reader. */
  readonly sts: StsPolicies | undefined
  /** Access tokens for next hops. */
  readonly accessTokens: AccessTokens
  /** Records of SMTP sessions. */
  readonly recordings: SessionRecordings
  /** Makes the events that programs get. */
  readonly recorder: EventRecorder
  readonly status: RelayStatus
  readonly suppressions: Suppressions
  readonly quotas: QuotaUpkeep
  readonly #deps: RelayDeps
  /** Facts of the queue that rules use. */
  readonly #lasting: LastingRules
  readonly #deliveries: DeliveryParts
  readonly #queue: QueueParts
  #rules: Rules
  #settings: RelaySettings
  #agent: SmtpAgent
  #acceptor: Acceptor
  #smtpd: Smtpd | null = null

  constructor(deps: RelayDeps) {
    this.#deps = deps
    this.#settings = deps
    const [directory, bands] = [deps.providers ?? new ProviderDirectory(), new ClassBands()]
    this.#lasting = { providers: directory, bands, membership: { hostnames: () => this.#deliveries.membership.hostnames() } }
    this.#rules = compileRules(deps, this.#lasting, deps)
    const rules = () => this.#rules
    this.#deliveries = openDeliveryParts(deps, rules)
    this.#agent = this.#agentOf(this.#rules)
    const agent: DeliveryAgent = {
      deliver: (request, options) => this.#agent.deliver(request, options),
      close: () => this.#agent.close(),
    }
    this.#queue = openQueueParts({ ...deps, ...this.#deliveries, rules, bands, directory, agent })
    this.#acceptor = this.#acceptorOf(this.#rules)
    const { matching, sts, tokens, sessions, recorder } = this.#deliveries
    this.matching = matching
    this.sts = sts
    this.accessTokens = tokens
    this.recordings = sessions
    this.recorder = recorder
    const { intake, scheduler, suppressions, quotas } = this.#queue
    this.intake = intake
    this.scheduler = scheduler
    this.suppressions = suppressions
    this.quotas = quotas
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
      limits: this.#queue.limits.limits,
      listings: this.suppressions,
      notices: this.#queue.mailerDaemon,
      quotas: () => this.quotas.full,
      log,
    })
  }

  #attach(): void {
    const { nodes } = this.scheduler
    this.#deliveries.membership.attach({
      taken: (shards) => this.#shardsTaken(shards),
      releasing: (shards, given) => nodes.releasing(shards, given),
      arrived: (arrivals) => {
        nodes.arrived(arrivals)
        this.#queue.mailerDaemon.arrived(arrivals)
      },
      missed: () => {
        nodes.missed()
        this.#queue.mailerDaemon.load()
      },
      recalled: (recall) => nodes.recalled(recall),
      resumed: () => this.scheduler.resumeWork(),
    })
  }

  async #shardsTaken(shards: readonly Shard[]): Promise<void> {
    const taken = new Set(shards)
    this.status.forgetAttempts((name) => taken.has(this.#deliveries.membership.shardOf(name)))
    await this.scheduler.nodes.taken(shards)
    this.#queue.mailerDaemon.load()
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
      returnToSender: (rejected) => this.#queue.submissions.return(rejected),
    })
    events.listen(onEvents({ 'limit-cleared': () => maildrop.wake() }))
    return maildrop
  }

  /** Limits of the queue with their use. */
  limitStates(): readonly LimitState[] {
    return this.#queue.limits.limits.states()
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
    return smtpAgent(rules, { ...this.#deps, ...this.#deliveries })
  }

  #acceptorOf(rules: Rules): Acceptor {
    return acceptorOf(rules, { ...this.#deps, intake: this.#queue.intake, matching: this.#deliveries.matching })
  }

  /**
   * Applies changed settings. Running deliveries end with the previous ones. Rejects without effect: with PolicyError for an
   * invalid retry policy, with CannotListen for a port that cannot be opened, with CertificateUnusable.
   */
  async reload(settings: RelaySettings): Promise<void> {
    const { config } = settings
    const rules = compileRules(settings, this.#lasting, this.#deps)
    const [old, agent] = [this.#agent, this.#agentOf(rules)]
    const acceptor = this.#acceptorOf(rules)
    try {
      await this.#queue.classes.apply(config.class.keys())
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
    await this.#queue.limits.apply(config)
    this.quotas.apply(config)
    await this.suppressions.apply(config)
    this.scheduler.reconfigure()
    this.#queue.tlsReports.start()
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
    return queueOperatorMail(mail, { intake: this.intake, entry: this.#queue.entry, clock: this.#deps.clock, config: this.config })
  }

  /** Starts deliveries. Mail accepted earlier waits in the queue until then. */
  async start(): Promise<void> {
    await this.#queue.classes.apply(this.config.class.keys())
    await this.#queue.limits.apply(this.config)
    await this.suppressions.apply(this.config)
    await this.scheduler.start()
    await this.quotas.start()
    this.#queue.mailerDaemon.start(this.#queue.entry)
    await this.sts?.start()
    this.#queue.tlsReports.start()
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
    await this.#queue.classes.apply(config.class.keys())
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
    await this.#queue.mailerDaemon.stop()
    await this.#queue.limits.stop()
    await this.quotas.stop()
    await this.#queue.classes.stop()
    await this.suppressions.stop()
    this.#queue.tlsReports.close()
    await this.#deliveries.tlsReports.close()
    this.sts?.close()
    this.accessTokens.close()
    await this.#deliveries.tokenReports.settled()
    await this.#agent.close()
    await this.matching.close()
  }
}

const accessOf = ({ config, access }: RelaySettings): AccessTables => access ?? openAccess(config).access
