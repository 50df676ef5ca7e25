/**
 * One life of a relay: the ports as it sees them. When it dies, all of them go dead at once: its timers never ring, its
 * connections are reset, its calls to the store reach nothing and are never answered, and nobody hears of what it goes
 * on to do. So a relay can be killed between any two steps, and what was under way in it changes nothing any more.
 */
import type { Socket } from 'node:net'
import type { Listener, Net } from '../delivery/net.ts'
import type { Clock, Duration, Instant, Timer } from '../mail/clock.ts'
import type { QueueStore } from '../queue/store.ts'
import { Events, type Listen } from '../telemetry/events.ts'

export interface Surroundings {
  readonly clock: Clock
  readonly net: Net
  readonly store: QueueStore
  /** Told of what happens in the queue while the relay lives. */
  readonly hear: Listen
  /** Stands between the relay and its store. */
  readonly between?: ((store: QueueStore, life: Incarnation) => QueueStore) | undefined
}

/** Never answered: whoever waits for it is dead. A new one each time, so that the dead are forgotten with it. */
const never = (): Promise<never> => new Promise(() => undefined)

export class Incarnation {
  readonly clock: Clock
  readonly net: Net
  readonly store: QueueStore
  readonly events: Events
  readonly #timers = new Set<Timer>()
  readonly #sockets = new Set<Socket>()
  readonly #listeners = new Set<Listener>()
  #alive = true

  constructor({ clock, net, store, hear, between = (one) => one }: Surroundings) {
    this.clock = this.#mortalClock(clock)
    this.net = this.#mortalNet(net)
    this.store = this.#mortalStore(between(store, this))
    this.events = new Events(() => clock.now())
    this.events.listen((event, at) => {
      if (this.#alive) hear(event, at)
    })
  }

  get alive(): boolean {
    return this.#alive
  }

  die(): void {
    this.#alive = false
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
    for (const listener of this.#listeners) void listener.close()
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  #mortalClock(clock: Clock): Clock {
    const keep = (set: (ring: () => void) => Timer, action: () => void): Timer => {
      if (!this.#alive) return { cancel: () => undefined }
      const timer = set(() => {
        this.#timers.delete(timer)
        action()
      })
      this.#timers.add(timer)
      return {
        cancel: () => {
          this.#timers.delete(timer)
          timer.cancel()
        },
      }
    }
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      zone: (at) => clock.zone(at),
      after: (delay: Duration, action) => keep((ring) => clock.after(delay, ring), action),
      alarm: (at: Instant, action) => keep((ring) => clock.alarm(at, ring), action),
    }
  }

  #mortalNet(net: Net): Net {
    return {
      ...(net.ownAddresses === undefined ? {} : { ownAddresses: net.ownAddresses.bind(net) }),
      ...(net.lookupNames === undefined ? {} : { lookupNames: net.lookupNames.bind(net) }),
      dial: (options) => this.#whileAlive(() => net.dial(options), this.#keep),
      lookupMx: (domain) => this.#whileAlive(() => net.lookupMx(domain)),
      lookupAddresses: (host, family) => this.#whileAlive(() => net.lookupAddresses(host, family)),
      listen: (at, accept) =>
        this.#whileAlive(async () => {
          const listener = await net.listen(at, (socket) => accept(this.#keep(socket)))
          this.#listeners.add(listener)
          return listener
        }),
    }
  }

  /** The connection ends with the process that holds it. */
  readonly #keep = (socket: Socket): Socket => {
    if (!this.#alive) return socket.resetAndDestroy()
    this.#sockets.add(socket)
    return socket.once('close', () => this.#sockets.delete(socket))
  }

  #mortalStore(store: QueueStore): QueueStore {
    return new Proxy(store, {
      get: (target, name: keyof QueueStore) => {
        if (name === 'nextId') return () => target.nextId()
        const method = target[name] as (...args: unknown[]) => Promise<unknown>
        return (...args: unknown[]) => this.#whileAlive(() => method.apply(target, args))
      },
    })
  }

  async #whileAlive<T>(call: () => Promise<T>, receive: (answer: T) => T = (answer) => answer): Promise<T> {
    if (!this.#alive) return never()
    try {
      const answer = receive(await call())
      return this.#alive ? answer : await never()
    } catch (error) {
      if (!this.#alive) return never()
      throw error
    }
  }
}
