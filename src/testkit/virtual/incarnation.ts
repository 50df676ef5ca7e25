/**
 * The ports of a relay from one start to its end. A kill ends all ports at once: timers are cancelled, connections are reset,
 * calls neither reach the store nor resolve, and later events are dropped. A relay can therefore be killed between any two steps,
 * and its unfinished work has no further effect.
 */
import type { Socket } from 'node:net'
import type { Listener, Net } from '../../system/net.ts'
import type { Duration, MachineClock, Timer, WallTime } from '../../system/clock.ts'
import { QueueClock } from '../../system/queue-clock.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import { intercepted } from '../../store/methods.ts'
import { Events, type Listen } from '../../telemetry/events.ts'

interface IncarnationDeps {
  readonly clock: MachineClock
  readonly net: Net
  readonly store: QueueStore
  /** Receives the events of the queue until the end of the incarnation. */
  readonly onEvent: Listen
  /** Returns the bytes that are free for new mail; when absent, the store does. */
  readonly freeSpace?: (() => number) | undefined
  readonly between?: ((store: QueueStore, life: Incarnation) => QueueStore) | undefined
}

/** A promise that never settles. Each call creates a new one, because a shared promise would collect waiting callers. */
const never = (): Promise<never> => new Promise(() => undefined)

export class Incarnation {
  readonly clock: QueueClock
  readonly net: Net
  readonly store: QueueStore
  readonly events: Events
  readonly #timers = new Set<Timer>()
  readonly #sockets = new Set<Socket>()
  readonly #listeners = new Set<Listener>()
  readonly #freeSpace: (() => number) | undefined
  #alive = true

  constructor({ clock, net, store, freeSpace, onEvent, between = (one) => one }: IncarnationDeps) {
    this.#freeSpace = freeSpace
    this.clock = new QueueClock(this.#mortalClock(clock))
    this.net = this.#mortalNet(net)
    this.store = this.#mortalStore(between(store, this))
    this.events = new Events(() => clock.now())
    this.events.listen((event, at) => {
      if (this.#alive) onEvent(event, at)
    })
  }

  get alive(): boolean {
    return this.#alive
  }

  /** A reader of the queue that ends with the incarnation: a relay that is killed while it starts reads nothing any more. */
  readingBy(reader: QueueReader): QueueReader {
    const mortal = <P extends object>(port: P): P =>
      new Proxy(port, {
        get: (target, name: keyof P & string) => {
          const member: unknown = target[name]
          if (typeof member !== 'function') return mortal(member as object)
          const call = member as (...args: unknown[]) => Promise<unknown>
          return (...args: unknown[]) => this.#whileAlive(() => call.apply(target, args))
        },
      })
    return mortal(reader)
  }

  /** Ends all ports at once. */
  die(): void {
    this.#alive = false
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
    for (const listener of this.#listeners) void listener.close()
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  #mortalClock(clock: MachineClock): MachineClock {
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
      uptime: () => clock.uptime(),
      boot: clock.boot,
      monotonic: () => clock.monotonic(),
      zone: (at) => clock.zone(at),
      after: (delay: Duration, action) => keep((ring) => clock.after(delay, ring), action),
      alarm: (at: WallTime, action) => keep((ring) => clock.alarm(at, ring), action),
    }
  }

  #mortalNet(net: Net): Net {
    return {
      ownAddresses: () => net.ownAddresses(),
      dial: (options) => this.#whileAlive(() => net.dial(options), this.#keep),
      lookupMx: (domain) => this.#whileAlive(() => net.lookupMx(domain)),
      lookupAddresses: (host, family) => this.#whileAlive(() => net.lookupAddresses(host, family)),
      lookupHost: (host) => this.#whileAlive(() => net.lookupHost(host)),
      lookupTxt: (name) => this.#whileAlive(() => net.lookupTxt(name)),
      lookupSecure: (name, type) => this.#whileAlive(() => net.lookupSecure(name, type)),
      lookupNames: (address) => this.#whileAlive(() => net.lookupNames(address)),
      listen: (at, accept) =>
        this.#whileAlive(async () => {
          const listener = await net.listen(at, (socket) => accept(this.#keep(socket)))
          this.#listeners.add(listener)
          return listener
        }),
    }
  }

  /** Registers a connection, which is reset when the incarnation ends. */
  readonly #keep = (socket: Socket): Socket => {
    if (!this.#alive) return socket.resetAndDestroy()
    this.#sockets.add(socket)
    return socket.once('close', () => this.#sockets.delete(socket))
  }

  #mortalStore(store: QueueStore): QueueStore {
    const freeSpace = this.#freeSpace
    return intercepted(store, (method, _args, perform) =>
      this.#whileAlive(method === 'freeSpace' && freeSpace !== undefined ? async () => freeSpace() : perform),
    )
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
