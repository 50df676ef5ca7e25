/**
 * What a service manager offers and expects: sockets that are already open (sd_listen_fds(3)), and a word when the daemon
 * is ready, alive and stopping (sd_notify(3)). Without a service manager nothing of this happens.
 */
import { execFile } from 'node:child_process'
import { createServer, type AddressInfo } from 'node:net'
import type { Net } from '../delivery/net.ts'
import type { Clock, Duration, Timer } from '../mail/clock.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The first descriptor that is passed on. */
const FIRST = 3

/** Descriptors of the sockets that were opened for this process, in the order of the unit. */
export function inheritedSockets(env: Environment, pid: number): readonly number[] {
  if (env['LISTEN_PID'] !== String(pid)) return []
  return Array.from({ length: Number(env['LISTEN_FDS'] ?? 0) }, (_, i) => FIRST + i)
}

/** A Net whose listeners use inherited sockets, in order, instead of opening ports; the rest is as before. */
export function withInheritedSockets(net: Net, sockets: readonly number[]): Net {
  const left = [...sockets]
  return {
    dial: (options) => net.dial(options),
    lookupMx: (domain) => net.lookupMx(domain),
    lookupAddresses: (host, family) => net.lookupAddresses(host, family),
    ...(net.lookupNames === undefined ? {} : { lookupNames: net.lookupNames.bind(net) }),
    ...(net.ownAddresses === undefined ? {} : { ownAddresses: net.ownAddresses.bind(net) }),
    listen: (at, accept) => {
      const fd = left.shift()
      if (fd === undefined) return net.listen(at, accept)
      return new Promise((resolve, reject) => {
        const server = createServer({ noDelay: true }, accept)
        server.once('error', reject)
        server.listen({ fd }, () => {
          server.off('error', reject)
          // Errors of an open listener concern single connections; accepting goes on by itself.
          server.on('error', () => undefined)
          const { address, port } = server.address() as AddressInfo
          resolve({ address, port, close: async () => void server.close() })
        })
      })
    },
  }
}

/** How often the service manager wants to hear of us; null when it does not. Half of what it allows, as sd_notify(3) advises. */
export function watchdogInterval(env: Environment, pid: number): Duration | null {
  const micros = Number(env['WATCHDOG_USEC'] ?? 0)
  const ours = env['WATCHDOG_PID'] === undefined || env['WATCHDOG_PID'] === String(pid)
  return micros > 0 && ours ? Math.max(1, Math.floor(micros / 2000)) : null
}

export interface ServiceParts {
  readonly env: Environment
  readonly pid: number
  readonly clock: Clock
  /** Told when the service manager cannot be reached. */
  readonly note: (text: string) => void
}

/** Keeps the service manager informed. Node has no Unix datagrams, so systemd-notify(1) carries the words. */
export class ServiceManager {
  readonly #parts: ServiceParts
  #timer: Timer | null = null

  constructor(parts: ServiceParts) {
    this.#parts = parts
  }

  /** The daemon takes mail from now on. */
  ready(): void {
    this.#say('READY=1')
    this.#beat()
  }

  stopping(): void {
    this.#timer?.cancel()
    this.#timer = null
    this.#say('STOPPING=1')
  }

  /** Only a daemon whose event loop turns gets here. */
  #beat(): void {
    const { env, pid, clock } = this.#parts
    const interval = watchdogInterval(env, pid)
    if (interval === null) return
    this.#timer = clock.after(interval, () => {
      this.#say('WATCHDOG=1')
      this.#beat()
    })
  }

  #say(word: string): void {
    const { env, pid, note } = this.#parts
    if (env['NOTIFY_SOCKET'] === undefined) return
    execFile('systemd-notify', [`--pid=${pid}`, word], (error) => {
      if (error !== null) note(`the service manager cannot be told ${word}: ${error.message}`)
    })
  }
}
