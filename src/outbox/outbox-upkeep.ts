/**
 * Keeps the outbox of a running daemon in order: subscriptions of the configuration, types that are wanted, numbers of events on a shared
 * queue, and the limits of what is kept. Mail waits for none of it.
 */
import type { Config } from '../config/options.ts'
import type { OutboxStore } from '../store/outbox-store.ts'
import { rethrowUnlessUnavailable } from '../store/queue-store.ts'
import { MINUTE, SECOND, type Clock, type Duration, type Timer } from '../system/clock.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'
import { TaskSet } from '../system/task-set.ts'
import type { Events } from '../telemetry/events.ts'
import { settingsOf } from './configured-subscriptions.ts'
import type { EventRecorder } from './event-recorder.ts'

interface OutboxUpkeepDeps {
  readonly outbox: Pick<OutboxStore, 'configureSubscriptions' | 'wantedTypes' | 'numberEvents' | 'pruneEvents'>
  readonly recorder: EventRecorder
  readonly clock: Clock
  readonly config: () => Pick<Config, 'events' | 'event_retention' | 'event_limit'>
  readonly events: Events
  /** True for a queue of several nodes. */
  readonly isShared: boolean
}

/** Events are collected for this time before subscribers are notified: 10 ms for the first ones, longer under load. */
const COLLECTED: Duration = 10
const COLLECTED_UNDER_LOAD: Duration = 100
/** Subscriptions and events of other nodes are read at this interval. */
const LOOK_EVERY: Duration = SECOND
/** After this number of new events, the limits are applied at once. */
const PRUNE_AFTER = 1_000

export class OutboxUpkeep {
  readonly #deps: OutboxUpkeepDeps
  readonly #tasks = new TaskSet(rethrowUnlessUnavailable)
  readonly #listeners = new Set<(isChange: boolean) => void>()
  /** Time of the last publication, on the monotonic clock. */
  #publishedAt: Duration = -COLLECTED_UNDER_LOAD
  #collecting: Timer | null = null
  #looking: PeriodicTask | null = null
  #pruning: PeriodicTask | null = null
  /** Calls that made events since the last pruning. */
  #sincePruning = 0
  #isConfigured = true
  #isStopped = false

  constructor(deps: OutboxUpkeepDeps) {
    this.#deps = deps
  }

  /**
   * Brings the subscriptions of the configuration into the queue. While the queue cannot be written, this is repeated every minute without
   * a delay of mail.
   */
  async start(): Promise<void> {
    try {
      await this.refresh()
      await this.configure()
    } catch (error) {
      rethrowUnlessUnavailable(error)
      this.#isConfigured = false
      const text = `[events.…] tables have no effect yet: ${error.message}; this is tried again every minute`
      this.#deps.events.emit({ kind: 'note', level: 'warning', text })
    }
    const { recorder, clock, isShared } = this.#deps
    recorder.onRecorded(() => this.#recorded())
    const failed = rethrowUnlessUnavailable
    if (isShared) this.#looking = every(clock, LOOK_EVERY, () => this.#look(), { failed })
    this.#pruning = every(clock, MINUTE, (stopping) => this.#prune(stopping), { failed })
  }

  /** Applies the subscriptions of the configuration in effect. */
  async configure(): Promise<void> {
    const { outbox, clock, config, events } = this.#deps
    const entries = [...config().events].map(([name, table]) => ({ name, settings: settingsOf(table) }))
    for (const name of await outbox.configureSubscriptions(entries, clock.now())) {
      const text = `[events.${name}] has no effect, because a subscription by command has the name: remove one of the two (deferd webhook remove ${name})`
      events.emit({ kind: 'note', level: 'warning', text })
    }
    await this.refresh()
    this.#isConfigured = true
    this.#tell(true)
  }

  /** Called after a subscription was added or removed. */
  async refresh(): Promise<void> {
    await this.#deps.recorder.refresh(this.#deps.outbox)
  }

  /**
   * Adds a listener, called when events can be pulled, and with true when subscriptions have changed. Returns a function that removes the
   * listener.
   */
  onPublished(listener: (isChange: boolean) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#collecting?.cancel()
    await Promise.all([this.#looking?.stop(), this.#pruning?.stop(), this.#tasks.settled()])
  }

  #recorded(): void {
    if (this.#isStopped) return
    if (++this.#sincePruning === PRUNE_AFTER) this.#pruning?.wake()
    if (this.#collecting !== null) return
    const { clock } = this.#deps
    const rest = this.#publishedAt + COLLECTED_UNDER_LOAD - clock.monotonic()
    this.#collecting = clock.after(Math.max(COLLECTED, rest), () => {
      this.#collecting = null
      this.#publishedAt = clock.monotonic()
      this.#tasks.add(this.#publish())
    })
  }

  /** The answer comes after the commit of earlier calls of the store, so that readers see the events. */
  async #publish(): Promise<void> {
    while (!this.#isStopped && (await this.#deps.outbox.numberEvents())) await this.#pause()
    this.#tell(false)
  }

  #tell(isChange: boolean): void {
    for (const listener of this.#listeners) listener(isChange)
  }

  /** Lets another node that numbers events finish. */
  #pause(): Promise<void> {
    return new Promise((resolve) => this.#deps.clock.after(COLLECTED, resolve))
  }

  async #look(): Promise<void> {
    await this.refresh()
    if (!this.#deps.recorder.isIdle) await this.#publish()
  }

  /** Applies the limits in slices, one transaction each, so that mail does not wait. */
  async #prune(stopping: AbortSignal): Promise<void> {
    this.#sincePruning = 0
    if (!this.#isConfigured) await this.configure()
    const { outbox, clock, config } = this.#deps
    const limits = { before: clock.now() - config().event_retention, count: config().event_limit }
    for (let { more } = await outbox.pruneEvents(limits); more && !stopping.aborted;) ({ more } = await outbox.pruneEvents(limits))
  }
}
