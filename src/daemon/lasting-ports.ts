/**
 * Listening ports that stay open while the queue is closed and opened again. Connections to a kept port without a server wait for the
 * next server at the same address.
 */
import type { Socket } from 'node:net'
import { ForwardingNet, type Listener, type ListenOptions } from '../system/net.ts'

type Accept = (socket: Socket) => void

interface KeptPort {
  readonly at: ListenOptions
  readonly listener: Listener
  /** Null while the port has no server. */
  accept: Accept | null
  waiting: Socket[]
}

/** Connections that wait at one port; further ones are closed. */
const MOST_WAITING = 64

export class LastingPorts extends ForwardingNet {
  readonly #ports = new Set<KeptPort>()
  #keeping = false

  /** Keeps open every port that is closed from now on. */
  keep(): void {
    this.#keeping = true
  }

  /** Closes the kept ports without a server. */
  async release(): Promise<void> {
    this.#keeping = false
    await Promise.all([...this.#ports].filter(({ accept }) => accept === null).map((port) => this.#close(port)))
  }

  override async listen(at: ListenOptions, accept: Accept): Promise<Listener> {
    const kept = [...this.#ports].find((port) => port.accept === null && isSame(port.at, at))
    const port = kept ?? (await this.#open(at))
    port.accept = accept
    for (const socket of port.waiting.splice(0)) accept(socket)
    return { address: port.listener.address, port: port.listener.port, close: () => this.#closed(port) }
  }

  async #open(at: ListenOptions): Promise<KeptPort> {
    const waiting: Socket[] = []
    const listener = await super.listen(at, (socket) => accepted(port, socket))
    const port: KeptPort = { at, listener, accept: null, waiting }
    this.#ports.add(port)
    return port
  }

  async #closed(port: KeptPort): Promise<void> {
    port.accept = null
    if (!this.#keeping) await this.#close(port)
  }

  async #close(port: KeptPort): Promise<void> {
    this.#ports.delete(port)
    for (const socket of port.waiting.splice(0)) socket.destroy()
    await port.listener.close()
  }
}

function accepted({ accept, waiting }: KeptPort, socket: Socket): void {
  // An error of a waiting connection concerns its client only.
  if (accept !== null) accept(socket)
  else if (waiting.length < MOST_WAITING) waiting.push(socket.on('error', () => undefined))
  else socket.destroy()
}

const isSame = (a: ListenOptions, b: ListenOptions): boolean =>
  a.address === b.address && a.port === b.port && (a.ipv6Only ?? false) === (b.ipv6Only ?? false)
