/** Connections of clients to the relay of a world: from nodemailer in the same process, or over a TCP port. */
import type { Socket } from 'node:net'
import type { Endpoint, Listener } from '../system/net.ts'
import { systemNet } from '../system/system-net.ts'

/** Options for nodemailer's `createTransport`. */
export interface WorldTransport {
  readonly host: string
  readonly port: number
  readonly ignoreTLS: true
  getSocket(options: unknown, callback: (error: Error | null, socket?: { connection: Socket }) => void): void
}

const LOOPBACK = '127.0.0.1'

export class WorldClients {
  readonly #host: string
  readonly #port: number
  readonly #dial: () => Promise<Socket>
  readonly #listeners: Listener[] = []

  /** `dial` connects to the relay, or rejects when no relay runs. */
  constructor(host: string, port: number, dial: () => Promise<Socket>) {
    this.#host = host
    this.#port = port
    this.#dial = dial
  }

  transport(): WorldTransport {
    return {
      host: this.#host,
      port: this.#port,
      ignoreTLS: true,
      getSocket: (_options, callback) => {
        this.#dial().then(
          (connection) => callback(null, { connection }),
          (error: unknown) => callback(error instanceof Error ? error : new Error(String(error))),
        )
      },
    }
  }

  async openPort(port: number): Promise<Endpoint> {
    const listener = await systemNet.listen({ address: LOOPBACK, port }, (outside) => {
      this.#dial().then(
        (inside) => join(outside, inside),
        () => outside.destroy(),
      )
    })
    this.#listeners.push(listener)
    return { address: listener.address, port: listener.port }
  }

  /** Closes the ports. */
  async close(): Promise<void> {
    await Promise.all(this.#listeners.splice(0).map((listener) => listener.close()))
  }
}

function join(one: Socket, other: Socket): void {
  one.pipe(other).pipe(one)
  one.on('error', () => other.destroy())
  other.on('error', () => one.destroy())
}
