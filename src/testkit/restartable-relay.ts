/** The relay of a world across restarts. It can be stopped or killed, and started again on the same queue. */
import type { Templates } from '../bounce/templates.ts'
import type { Config } from '../config/options.ts'
import { ToldAddresses } from '../mail/told-addresses.ts'
import { addressKey } from '../queue/address-key.ts'
import { Relay } from '../relay/relay.ts'
import type { ServerSecrets } from '../smtpd/server.ts'
import type { DkimKeys } from '../dkim/keys.ts'
import type { DeliverySecrets } from '../delivery/smtp/smtp-agent.ts'
import type { DeliveryAgent } from '../delivery/delivery-agent.ts'
import { Operations } from '../queue/operations.ts'
import { ALL_EVENTS, settingsOf, signingSecrets } from '../outbox/configured-subscriptions.ts'
import { signAtOnce } from '../system/signing.ts'
import type { Net } from '../system/net.ts'
import type { Duration, MachineClock } from '../system/clock.ts'
import { seededRandom } from '../system/random.ts'
import type { Replay, SubscriptionSettings } from '../store/outbox/subscription.ts'
import { EventSender } from '../subscriptions/event-sender.ts'
import { openSchedules } from '../schedules/open-schedules.ts'
import type { ScheduleRunner } from '../schedules/schedule-runner.ts'
import { scheduledBackup } from '../schedules/scheduled-backup.ts'
import { openStoreReadOnly } from '../store/sqlite/open-store.ts'
import type { SendEvents } from '../subscriptions/target.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
import type { Events, Listen } from '../telemetry/events.ts'
import { Incarnation } from './virtual/incarnation.ts'
import type { Interceptors, OpenedQueue } from './options/world-options.ts'

interface RestartableRelayDeps {
  readonly queue: OpenedQueue
  readonly config: Config
  readonly templates: Templates
  readonly dkimKeys: DkimKeys
  readonly secrets: DeliverySecrets
  readonly serverSecrets: ServerSecrets | undefined
  readonly seed: number
  readonly between: Interceptors
  readonly clock: MachineClock
  readonly net: Net
  readonly events: Events
  readonly freeSpace: () => number
  /** Sends the events of subscriptions to their targets. */
  readonly sendEvents: SendEvents
  /** Runs work that takes real time, while the clock stands. Resolves with its result. */
  readonly outside: <T>(work: () => Promise<T>) => Promise<T>
  /** Folder of the queue; null for a queue without files. */
  readonly directory: string | null
  /** Called at each kill and each new start. */
  readonly did: (what: 'restarted' | 'killed' | 'started again') => void
  /** Called with false at each kill, and with true when the relay has started again. */
  readonly isUp: (isUp: boolean) => void
}

/** Name of the subscription of a world, which no table of a configuration can have. */
const EVENTS_OF_WORLD = 'events of the world'

export class RestartableRelay {
  readonly #deps: RestartableRelayDeps
  /** Addresses in events for webhooks and for the API. */
  readonly addresses: ToldAddresses
  #queue: OpenedQueue
  #life: Incarnation
  #relay: Relay
  #sender: EventSender | null = null
  #schedules: ScheduleRunner | null = null
  /** True from the first webhook on. Before, the sender of events does not run. */
  #sendsEvents = false

  constructor(deps: RestartableRelayDeps) {
    this.#deps = deps
    this.addresses = new ToldAddresses(deps.config.log_addresses)
    this.#queue = deps.queue
    this.#life = this.#incarnate()
    this.#relay = this.#assemble()
  }

  get queue(): OpenedQueue {
    return this.#queue
  }

  get life(): Incarnation {
    return this.#life
  }

  get relay(): Relay {
    return this.#relay
  }

  /** Continues the clock of the queue, opens the listeners and starts deliveries. */
  async start(): Promise<void> {
    const step = this.#life.clock.resume(await this.#queue.reader.clockRecord(), this.#deps.config.maximal_backoff_time)
    void this.#saveClock()
    await this.#nameAddresses()
    await this.#subscribe()
    await this.#relay.listen()
    await this.#relay.start()
    if (step !== 0) await this.operations().clockStepped()
    this.#schedules = this.#openSchedules()
    this.#schedules.start()
    if (this.#sendsEvents) this.#sender = this.#startSender()
  }

  /** Stops the relay after running deliveries, and saves the clock. */
  async stop(): Promise<void> {
    await this.#sender?.stop()
    this.#sender = null
    await this.#schedules?.stop()
    this.#schedules = null
    await this.#relay.stop(0)
    await this.#saveClock()
  }

  /** Creates the next incarnation after an orderly stop; the caller starts it. */
  async renew(): Promise<void> {
    this.#life.die()
    if (this.#queue.survives) this.#queue = await this.#queue.reopen()
    this.#deps.did('restarted')
    this.#life = this.#incarnate()
    this.#relay = this.#assemble()
  }

  /** Kills the current incarnation at once. The next one starts after `downFor` milliseconds. May be called from any callback. */
  kill(downFor: Duration): void {
    if (!this.#life.alive) return
    const left = this.#queue.reopen()
    this.#deps.did('killed')
    this.#life.die()
    // Ends the open requests. Their results reach the store no more.
    void this.#sender?.stop()
    this.#sender = null
    this.#schedules = null
    this.#deps.isUp(false)
    this.#deps.clock.after(downFor, () => void this.#startAgain(left))
  }

  async #startAgain(left: Promise<OpenedQueue>): Promise<void> {
    this.#queue = await left
    this.#deps.did('started again')
    this.#life = this.#incarnate()
    this.#relay = this.#assemble()
    await this.start()
    this.#deps.isUp(true)
  }

  operations(): Operations {
    const { store, clock, events } = this.#life
    const relay = this.#relay
    return new Operations({
      store,
      reader: this.#life.readingBy(this.#queue.reader),
      clock,
      events,
      mail: relay.mailEntry,
      random: seededRandom(this.#deps.seed),
      recorder: relay.recorder,
      policies: () => relay.policies,
      retention: () => relay.config,
      scheduler: relay.schedulerControl,
    })
  }

  /** Plans the runs of schedules anew, after a step of the clock. */
  planSchedules(): void {
    this.#schedules?.plan()
  }

  #openSchedules(): ScheduleRunner {
    const { net, seed, outside, directory } = this.#deps
    const { store, clock, events } = this.#life
    const random = seededRandom(seed)
    return openSchedules({
      relay: this.#relay,
      store,
      clock,
      random,
      net,
      events,
      reader: this.#life.readingBy(this.#queue.reader),
      operations: () => this.operations(),
      live: () => this.#relay.status.brief(),
      node: 'world',
      isShared: false,
      backup: (run, action) => {
        if (directory === null) throw new Error('the queue of this world has no file: create the world with store: { directory }')
        const machine = { now: () => clock.wall.now() }
        const copyTo = async (path: string): Promise<number> => {
          const queue = openStoreReadOnly(directory)
          try {
            return await queue.copyTo(path)
          } finally {
            await queue.close()
          }
        }
        const deps = { directory, clock: machine, random, runs: store.records.scheduleRuns, copyTo }
        return outside(() => scheduledBackup(run, action, deps))
      },
      pause: async () => undefined,
    })
  }

  async subscribe(name: string, settings: SubscriptionSettings): Promise<boolean> {
    const { store, clock } = this.#life
    const added = await store.outbox.subscribe({ name, settings, at: clock.now(), by: 'test' })
    await this.#relay.recorder.refresh(store.outbox)
    this.#sendsEvents = true
    this.#sender ??= this.#startSender()
    return added
  }

  /** Queues events to be sent again, as a command does. Resolves with their number; null for an unknown subscription. */
  async replayEvents(name: string, replay: Replay): Promise<number | null> {
    const count = await this.#life.store.outbox.replayEvents(name, replay)
    this.#sender?.wake()
    return count
  }

  #startSender(): EventSender {
    const { config, seed, sendEvents } = this.#deps
    const { store, clock, events } = this.#life
    const sender = new EventSender({
      outbox: store.outbox,
      clock,
      events,
      random: seededRandom(seed),
      send: sendEvents,
      addresses: this.addresses,
      secretsOf: (subscription) => signingSecrets(subscription, config, clock.now()),
      // The configuration of a world never changes.
      obstacle: () => null,
      isShared: false,
    })
    // The events are in the next transaction, so that they are stored when a later call has ended.
    const published = (): Promise<void> =>
      store.outbox.numberEvents().then(
        () => sender.wake(),
        () => sender.wake(),
      )
    this.#relay.recorder.onRecorded(() => void clock.after(0, () => void published()))
    sender.start()
    return sender
  }

  async #nameAddresses(): Promise<void> {
    const { config, seed } = this.#deps
    const { store, clock } = this.#life
    this.addresses.change(config.log_addresses, await addressKey(config, { store, clock, random: seededRandom(seed) }))
  }

  /** Subscribes the test to all events, and applies the subscriptions of the configuration. */
  async #subscribe(): Promise<void> {
    const { store } = this.#queue
    const settings = [...this.#deps.config.events].map(([name, table]) => ({ name, settings: settingsOf(table) }))
    await store.outbox.configureSubscriptions(
      [...settings, { name: EVENTS_OF_WORLD, settings: settingsOf(ALL_EVENTS) }],
      this.#life.clock.now(),
    )
    await this.#relay.recorder.refresh(store.outbox)
  }

  async #saveClock(): Promise<void> {
    const { clock, store } = this.#life
    try {
      await store.upkeep.saveClock(clock.record())
    } catch (error) {
      // The next start continues the clock from an older record.
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }

  #incarnate(): Incarnation {
    const { clock, net, between, events, freeSpace } = this.#deps
    const onEvent: Listen = (event) => events.emit(event)
    return new Incarnation({ clock, net, store: this.#queue.store, freeSpace, between: between.store, onEvent })
  }

  #assemble(): Relay {
    const { config, templates, dkimKeys, secrets, serverSecrets, seed, between } = this.#deps
    const life = this.#life
    const reader = life.readingBy(this.#queue.reader)
    const { clock, net, store, events } = life
    const random = seededRandom(seed)
    const watchAgent = (agent: DeliveryAgent): DeliveryAgent => between.agent?.(agent, life) ?? agent
    const settings = { config, templates, dkimKeys, secrets, serverSecrets }
    return new Relay({ ...settings, clock, net, store, reader, events, random, sign: signAtOnce, watchAgent })
  }
}
