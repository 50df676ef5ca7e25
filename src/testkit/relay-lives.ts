/**
 * The relay of a world, life after life: it is stopped or killed, and rises again on the queue that it left behind.
 */
import type { Templates } from '../bounce/templates.ts'
import type { Config } from '../config/options.ts'
import { Relay } from '../daemon/relay.ts'
import type { Net } from '../delivery/net.ts'
import type { Clock, Duration } from '../mail/clock.ts'
import { seededRandom } from '../mail/random.ts'
import type { Events } from '../telemetry/events.ts'
import { Incarnation } from './incarnation.ts'
import type { Between, OpenedQueue } from './world-options.ts'

export interface RelayLivesParts {
  readonly queue: OpenedQueue
  readonly config: Config
  readonly templates: Templates
  readonly seed: number
  readonly between: Between
  readonly clock: Clock
  readonly net: Net
  /** Hears of what happens in each life. */
  readonly events: Events
  /** Told of deaths and new lives. */
  readonly did: (what: 'restarted' | 'killed' | 'started again') => void
}

export class RelayLives {
  readonly #parts: RelayLivesParts
  #queue: OpenedQueue
  #life: Incarnation
  #relay: Relay

  constructor(parts: RelayLivesParts) {
    this.#parts = parts
    this.#queue = parts.queue
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

  /** Opens the doors. */
  async start(): Promise<void> {
    await this.#relay.listen()
    await this.#relay.start()
  }

  /** The next life after one that was stopped in order; it is yet to be started. */
  async renew(): Promise<void> {
    this.#life.die()
    if (this.#queue.survives) this.#queue = await this.#queue.reopen()
    this.#parts.did('restarted')
    this.#life = this.#incarnate()
    this.#relay = this.#assemble()
  }

  /** Ends a life from within anything that happens; nothing of it goes on after the call. The next begins after `downFor`. */
  kill(downFor: Duration): void {
    if (!this.#life.alive) return
    const left = this.#queue.reopen()
    this.#parts.did('killed')
    this.#life.die()
    this.#parts.clock.after(downFor, () => void this.#rise(left))
  }

  async #rise(left: Promise<OpenedQueue>): Promise<void> {
    this.#queue = await left
    this.#parts.did('started again')
    this.#life = this.#incarnate()
    this.#relay = this.#assemble()
    await this.start()
  }

  #incarnate(): Incarnation {
    const { clock, net, between, events } = this.#parts
    return new Incarnation({ clock, net, store: this.#queue.store, between: between.store, hear: (event) => events.emit(event) })
  }

  #assemble(): Relay {
    const { config, templates, seed, between } = this.#parts
    const life = this.#life
    const { clock, net, store, events } = life
    const random = seededRandom(seed)
    return new Relay({ config, templates, clock, net, store, events, random, watchAgent: (agent) => between.agent?.(agent, life) ?? agent })
  }
}
