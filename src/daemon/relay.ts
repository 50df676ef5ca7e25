/**
 * A relay, assembled: the parts of the queue, the agent that delivers, MAILER-DAEMON and the SMTP server, wired to one
 * set of ports. The daemon gives it the real ports, the test kit virtual ones; the relay does not know which.
 */
import { MailerDaemon } from '../bounce/mailer-daemon.ts'
import { noticeSettings, type NoticeSettings } from '../bounce/notice-writer.ts'
import type { Templates } from '../bounce/templates.ts'
import type { Config } from '../config/options.ts'
import type { DeliveryAgent } from '../delivery/delivery-agent.ts'
import type { Endpoint, Net } from '../delivery/net.ts'
import { Router } from '../delivery/route.ts'
import { SmtpAgent, type DeliverySecrets } from '../delivery/smtp-agent.ts'
import type { Clock, Duration, Instant } from '../mail/clock.ts'
import type { Random } from '../mail/random.ts'
import { Acceptor } from '../queue/accept.ts'
import type { ActiveLimits } from '../queue/active-queue.ts'
import type { Destination } from '../queue/destination.ts'
import { Intake, lifetimeOf } from '../queue/intake.ts'
import type { DestinationName, Message } from '../queue/message.ts'
import type { LiveDestination, Wakes } from '../queue/operations.ts'
import { PolicyBook } from '../queue/policy-book.ts'
import { Scheduler } from '../queue/scheduler.ts'
import type { QueueStore } from '../queue/store.ts'
import { WarmBodies } from '../queue/warm-bodies.ts'
import { startSmtpd, type Smtpd } from '../smtpd/server.ts'
import type { Events } from '../telemetry/events.ts'

/** What a reload can change. */
export interface RelaySettings {
  readonly config: Config
  /** The texts of notices, checked. */
  readonly templates: Templates
  /** Keys and passwords for next hops; none when absent. */
  readonly secrets?: DeliverySecrets | undefined
}

export interface RelayParts extends RelaySettings {
  readonly clock: Clock
  readonly random: Random
  readonly net: Net
  readonly store: QueueStore
  readonly events: Events
  /** Delivers in place of the SMTP agent, for simulations that need no SMTP. */
  readonly agent?: DeliveryAgent | undefined
  /** Stands between the scheduler and the agent, for simulations that look on. */
  readonly watchAgent?: ((agent: DeliveryAgent) => DeliveryAgent) | undefined
}

/** The settings, compiled: who asks for them asks anew each time. */
interface Rules {
  readonly config: Config
  readonly router: Router
  readonly book: PolicyBook
  readonly notices: NoticeSettings
  readonly agent: DeliveryAgent
  readonly acceptor: Acceptor
}

export class Relay {
  readonly intake: Intake
  readonly scheduler: Scheduler
  readonly #parts: RelayParts
  readonly #warmBodies = new WarmBodies()
  readonly #mailerDaemon: MailerDaemon
  #rules: Rules
  #smtpd: Smtpd | null = null

  constructor(parts: RelayParts) {
    const { clock, store, events, watchAgent = (agent) => agent } = parts
    this.#parts = parts
    this.scheduler = new Scheduler({
      store,
      clock,
      events,
      agent: watchAgent({
        deliver: (request, options) => this.#rules.agent.deliver(request, options),
        close: () => this.#rules.agent.close(),
      }),
      limits: () => limitsOf(this.#rules.config),
      settingsOf: (destination) => this.#rules.book.settingsOf(destination),
      factsFor: (destination) => this.#rules.book.factsFor(destination),
      owes: (message) => this.#mailerDaemon.notice(message),
      atRest: (message) => {
        this.#warmBodies.drop(message)
        this.#mailerDaemon.atRest(message.id)
      },
    })
    this.intake = new Intake({
      store,
      clock,
      events,
      warmBodies: this.#warmBodies,
      scheduler: this.scheduler,
      waits: (message) => this.#mailerDaemon.waits(message),
      destinationOf: (address) => this.#rules.router.route(address).destination,
      settingsOf: (destination) => this.#rules.book.settingsOf(destination),
      needed: () => Math.max(this.#rules.config.queue_minfree, 1.5 * this.#rules.config.message_size_limit),
    })
    this.#mailerDaemon = new MailerDaemon({
      store,
      clock,
      events,
      entry: this.intake,
      settings: () => this.#rules.notices,
      rounds: (message) => (this.scheduler.roundIsOpen(message) ? 'open' : 'over'),
      closed: (destination) => this.scheduler.isClosed(destination),
    })
    this.#rules = this.#compile(parts)
  }

  /** Where mail comes in that is not handed over by SMTP. */
  get acceptor(): Acceptor {
    return this.#rules.acceptor
  }

  #compile({ config, templates, secrets }: RelaySettings): Rules {
    const { clock, random, net, store, events } = this.#parts
    const router = new Router(config)
    const agent =
      this.#parts.agent ??
      new SmtpAgent({
        config,
        router,
        net,
        clock,
        random,
        ...(secrets === undefined ? {} : { secrets }),
        readBody: (body, index) => store.readBody(body, index),
        warmBody: (message) => this.#warmBodies.get(message),
        note: (text) => events.emit({ kind: 'note', level: 'info', text }),
      })
    return {
      config,
      router,
      agent,
      book: new PolicyBook(config, (key) => random.draw(key)),
      notices: noticeSettings(config, templates),
      acceptor: new Acceptor({ intake: this.intake, config, clock, events }),
    }
  }

  /** Takes up changed settings; what is under way ends by the old ones. Throws, and changes nothing, when they cannot be compiled. */
  async reload(settings: RelaySettings): Promise<void> {
    const old = this.#rules
    this.#rules = this.#compile(settings)
    this.#smtpd?.reload({ config: settings.config, acceptor: this.#rules.acceptor })
    this.scheduler.reconfigure()
    if (old.agent !== this.#rules.agent) await old.agent.close()
  }

  /** Where mail for an address goes, and until when mail that came at `createdAt` is tried there. */
  routeOf(
    address: string,
    message: Pick<Message, 'sender' | 'createdAt'>,
  ): { readonly destination: DestinationName; readonly expiresAt: Instant } {
    const { destination } = this.#rules.router.route(address)
    return { destination, expiresAt: message.createdAt + lifetimeOf(message.sender, this.#rules.book.settingsOf(destination)) }
  }

  /** Takes up the queue. Mail that comes in before simply waits in it. */
  async start(): Promise<void> {
    await this.scheduler.start()
    this.#mailerDaemon.start()
  }

  /** Opens the SMTP ports; rejects with the system's error when one is taken. */
  async listen(): Promise<readonly Endpoint[]> {
    const { config, net, clock, random, events } = this.#parts
    this.#smtpd = await startSmtpd({ config, net, clock, random, events, acceptor: this.acceptor, intake: this.intake })
    return this.#smtpd.listeners
  }

  /** What operators' commands need of the scheduler. */
  get wakes(): Wakes {
    const { scheduler } = this
    return {
      woken: (due, options) => scheduler.woken(due, options),
      suspend: (name, by) => scheduler.suspend(name, by),
      resume: (name, by) => scheduler.resume(name, by),
      snapshot: () => Array.from(scheduler.destinations, seen),
    }
  }

  /** Closes the doors, lets deliveries end for at most `grace`, and leaves everything else in the store. */
  async stop(grace: Duration): Promise<void> {
    await Promise.all([this.#smtpd?.close(grace / 2), this.scheduler.stop(grace)])
    await this.#mailerDaemon.stop()
    await this.#rules.agent.close()
  }
}

function limitsOf(config: Config): ActiveLimits {
  return {
    deliveries: config.default_process_limit,
    messages: config.qmgr_message_active_limit,
    recipients: Math.max(config.qmgr_message_recipient_limit, config.qmgr_message_active_limit),
    transportPause: config.default_transport_rate_delay,
    slots: {
      cost: config.default_delivery_slot_cost,
      loan: config.default_delivery_slot_loan,
      discount: config.default_delivery_slot_discount,
      minimum: config.default_minimum_delivery_slots,
    },
  }
}

/** A destination as operators see it. */
function seen(destination: Destination): LiveDestination {
  const { name, window, inFlight, waitingRecipients, nextDueAt, standing, lastTrouble } = destination
  return {
    destination: name,
    window,
    inFlight,
    waiting: waitingRecipients,
    nextDueAt,
    deadUntil: standing.kind === 'dead' ? standing.until : null,
    probeInterval: standing.kind === 'dead' ? standing.interval : null,
    suspendedBy: standing.kind === 'suspended' ? standing.by : null,
    lastReply: lastTrouble === null ? null : (lastTrouble.reply ?? lastTrouble.reason),
  }
}
