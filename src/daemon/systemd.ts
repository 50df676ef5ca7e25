/**
 * Interface to a service manager: inherited sockets (sd_listen_fds(3)) and notifications of start, watchdog and stop
 * (sd_notify(3)). Without a service manager it has no effect.
 */
import { execFile } from 'node:child_process'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { ForwardingNet, type Listener, type ListenOptions, type Net } from '../system/net.ts'
import type { Duration, Timers } from '../system/clock.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** SD_LISTEN_FDS_START. */
const FIRST_DESCRIPTOR = 3

/** Descriptors of the inherited sockets, in the order of the socket unit. */
export function inheritedSockets(env: Environment, pid: number): readonly number[] {
  if (env['LISTEN_PID'] !== String(pid)) return []
  return Array.from({ length: Number(env['LISTEN_FDS'] ?? 0) }, (_, i) => FIRST_DESCRIPTOR + i)
}

/** Assigns the inherited sockets to listeners in order. Further listeners open ports. */
export class InheritedSockets extends ForwardingNet {
  readonly #left: number[]

  constructor(net: Net, sockets: readonly number[]) {
    super(net)
    this.#left = [...sockets]
  }

  override listen(at: ListenOptions, accept: (socket: Socket) => void): Promise<Listener> {
    const fd = this.#left.shift()
    if (fd === undefined) return super.listen(at, accept)
    return new Promise((resolve, reject) => {
      const server = createServer({ noDelay: true }, accept)
      server.once('error', reject)
      server.listen({ fd }, () => {
        server.off('error', reject)
        // An error of an open listener concerns a single connection, and accepting continues.
        server.on('error', () => undefined)
        const { address, port } = server.address() as AddressInfo
        resolve({ address, port, close: async () => void server.close() })
      })
    })
  }
}

/** Interval of watchdog notifications: half of the timeout, as sd_watchdog_enabled(3) advises. Null without a watchdog. */
export function watchdogInterval(env: Environment, pid: number): Duration | null {
  const micros = Number(env['WATCHDOG_USEC'] ?? 0)
  const isOurs = env['WATCHDOG_PID'] === undefined || env['WATCHDOG_PID'] === String(pid)
  return micros > 0 && isOurs ? Math.max(1, Math.floor(micros / 2000)) : null
}

interface ServiceManagerDeps {
  readonly env: Environment
  readonly pid: number
  readonly clock: Timers
  readonly note: (text: string) => void
}

/** Notifies the service manager through systemd-notify(1), because Node has no Unix datagram sockets. */
export class ServiceManager {
  readonly #deps: ServiceManagerDeps
  #watchdog: PeriodicTask | null = null

  constructor(deps: ServiceManagerDeps) {
    this.#deps = deps
  }

  ready(): void {
    const { env, pid, clock } = this.#deps
    this.#notify('READY=1')
    const interval = watchdogInterval(env, pid)
    // A timer notifies the watchdog, so that a blocked event loop stops the notifications.
    if (interval !== null) this.#watchdog = every(clock, interval, () => this.#notify('WATCHDOG=1'))
  }

  stopping(): void {
    void this.#watchdog?.stop()
    this.#notify('STOPPING=1')
  }

  #notify(state: string): void {
    const { env, pid, note } = this.#deps
    if (env['NOTIFY_SOCKET'] === undefined) return
    execFile('systemd-notify', [`--pid=${pid}`, state], (error) => {
      if (error !== null) note(`cannot notify the service manager (${state}): ${error.message}`)
    })
  }
}
