/**
 * Stops a simulated process, as SIGSTOP or a pause of its virtual machine does: timers, answers and data from sockets are held, and come
 * all at once when the process continues.
 */
import type { Socket } from 'node:net'
import type { Duration, MachineClock, Timer } from '../../../src/system/clock.ts'
import type { Listener, Net } from '../../../src/system/net.ts'

export class Freezer {
  readonly clock: MachineClock
  readonly net: Net
  readonly #sockets = new Set<Socket>()
  readonly #stopped: Socket[] = []
  #held: (() => void)[] = []
  #frozen = false
  /** Total time for which the monotonic clock stood still. */
  #stood: Duration = 0
  /** Difference of the machine's wall clock from that of the world. */
  wallSetBy: Duration = 0

  constructor(clock: MachineClock, net: Net) {
    this.clock = this.#stoppable(clock)
    this.net = this.#gatedNet(net)
  }

  get frozen(): boolean {
    return this.#frozen
  }

  freeze(): void {
    this.#frozen = true
    for (const socket of this.#sockets) {
      if (socket.readableFlowing !== true) continue
      socket.pause()
      this.#stopped.push(socket)
    }
  }

  /** Continues. `stood` is the time for which the monotonic clock of the machine stood still, too. `first` runs before all else. */
  thaw(stood: Duration, first: () => void): void {
    this.#frozen = false
    this.#stood += stood
    first()
    for (const socket of this.#stopped.splice(0)) socket.resume()
    const held = this.#held
    this.#held = []
    for (const action of held) this.run(action)
  }

  /** Passes an answer on when the process runs. */
  async answer<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } finally {
      await this.#running()
    }
  }

  #running(): Promise<void> | undefined {
    return this.#frozen ? new Promise((resolve) => this.#held.push(resolve)) : undefined
  }

  /** Runs an action now, or when the process continues. */
  run(action: () => void): void {
    if (this.#frozen) this.#held.push(action)
    else action()
  }

  #stoppable(clock: MachineClock): MachineClock {
    const cancellable = (set: (ring: () => void) => Timer, action: () => void): Timer => {
      let cancelled = false
      const timer = set(() => this.run(() => !cancelled && action()))
      return {
        cancel: () => {
          cancelled = true
          timer.cancel()
        },
      }
    }
    return {
      now: () => clock.now() + this.wallSetBy,
      uptime: () => clock.uptime(),
      boot: clock.boot,
      monotonic: () => clock.monotonic() - this.#stood,
      zone: (at) => clock.zone(at),
      after: (delay, action) => cancellable((ring) => clock.after(delay, ring), action),
      alarm: (at, action) => cancellable((ring) => clock.alarm(at, ring), action),
    }
  }

  #gatedNet(net: Net): Net {
    const keep = (socket: Socket): Socket => {
      this.#sockets.add(socket)
      return socket.once('close', () => this.#sockets.delete(socket))
    }
    return {
      ownAddresses: () => net.ownAddresses(),
      dial: (options) => this.answer(net.dial(options).then(keep)),
      lookupMx: (domain) => this.answer(net.lookupMx(domain)),
      lookupAddresses: (host, family) => this.answer(net.lookupAddresses(host, family)),
      lookupHost: (host) => this.answer(net.lookupHost(host)),
      lookupTxt: (name) => this.answer(net.lookupTxt(name)),
      lookupSecure: (name, type) => this.answer(net.lookupSecure(name, type)),
      lookupNames: (address) => this.answer(net.lookupNames(address)),
      listen: (at, accept): Promise<Listener> => net.listen(at, (socket) => this.run(() => accept(keep(socket)))),
    }
  }
}
