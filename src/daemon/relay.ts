/**
 * A relay, assembled: the parts of the queue, the agent that delivers, MAILER-DAEMON and the SMTP server, wired to one
 * set of ports. The daemon gives it the real ports, the test kit virtual ones; the relay does not know which.
 */
import { MailerDaemon } from '../bounce/mailer-daemon.ts'
import { noticeSettings } from '../bounce/notice-writer.ts'
import type { Templates } from '../bounce/templates.ts'
import type { Config } from '../config/options.ts'
import type { DeliveryAgent } from '../delivery/delivery-agent.ts'
import type { Endpoint, Net } from '../delivery/net.ts'
import { Router } from '../delivery/route.ts'
import { SmtpAgent } from '../delivery/smtp-agent.ts'
import type { Clock, Duration } from '../mail/clock.ts'
import type { Random } from '../mail/random.ts'
import { Acceptor } from '../queue/accept.ts'
import type { Destination } from '../queue/destination.ts'
import { Intake } from '../queue/intake.ts'
import type { LiveDestination, Wakes } from '../queue/operations.ts'
import { PolicyBook } from '../queue/policy-book.ts'
import { Scheduler } from '../queue/scheduler.ts'
import type { QueueStore } from '../queue/store.ts'
import { WarmBodies } from '../queue/warm-bodies.ts'
import { startSmtpd, type Smtpd } from '../smtpd/server.ts'
import type { Events } from '../telemetry/events.ts'

export interface RelayParts {
  readonly config: Config
  readonly clock: Clock
  readonly random: Random
  readonly net: Net
  readonly store: QueueStore
  readonly events: Events
  /** The texts of notices, checked. */
  readonly templates: Templates
  /** Delivers in place of the SMTP agent, for simulations that need no SMTP. */
  readonly agent?: DeliveryAgent | undefined
}

export class Relay {
  readonly intake: Intake
  readonly scheduler: Scheduler
  readonly acceptor: Acceptor
  readonly #parts: RelayParts
  readonly #agent: DeliveryAgent
  readonly #mailerDaemon: MailerDaemon
  #smtpd: Smtpd | null = null

  constructor(parts: RelayParts) {
    const { config, clock, random, net, store, events, templates } = parts
    this.#parts = parts
    const router = new Router(config)
    const book = new PolicyBook(config, (key) => random.draw(key))
    const warmBodies = new WarmBodies()
    this.#agent =
      parts.agent ??
      new SmtpAgent({
        config,
        router,
        net,
        clock,
        random,
        readBody: (body, index) => store.readBody(body, index),
        warmBody: (message) => warmBodies.get(message),
        note: (text) => events.emit({ kind: 'note', level: 'info', text }),
      })
    this.scheduler = new Scheduler({
      store,
      clock,
      events,
      agent: this.#agent,
      limits: {
        deliveries: config.default_process_limit,
        messages: config.qmgr_message_active_limit,
        recipients: Math.max(config.qmgr_message_recipient_limit, config.qmgr_message_active_limit),
        slots: {
          cost: config.default_delivery_slot_cost,
          loan: config.default_delivery_slot_loan,
          discount: config.default_delivery_slot_discount,
          minimum: config.default_minimum_delivery_slots,
        },
      },
      settingsOf: (destination) => book.settingsOf(destination),
      factsFor: (destination) => book.factsFor(destination),
      owes: (message) => this.#mailerDaemon.notice(message),
      atRest: (message) => {
        warmBodies.drop(message)
        this.#mailerDaemon.atRest(message.id)
      },
    })
    this.intake = new Intake({
      store,
      clock,
      events,
      warmBodies,
      scheduler: this.scheduler,
      waits: (message) => this.#mailerDaemon.waits(message),
      destinationOf: (address) => router.route(address).destination,
      settingsOf: (destination) => book.settingsOf(destination),
      minimumFree: config.queue_minfree,
      sizeLimit: config.message_size_limit,
    })
    this.acceptor = new Acceptor({ intake: this.intake, config, clock, events })
    const settings = noticeSettings(config, templates)
    this.#mailerDaemon = new MailerDaemon({
      store,
      clock,
      events,
      entry: this.intake,
      settings: () => settings,
      rounds: (message) => (this.scheduler.roundIsOpen(message) ? 'open' : 'over'),
      closed: (destination) => this.scheduler.isClosed(destination),
    })
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
    await this.#agent.close()
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
