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

interface OpenPort {
  readonly at: Endpoint
  listener: Listener
}

export class WorldClients {
  readonly #host: string
  readonly #port: number
  readonly #dial: () => Promise<Socket>
  readonly #ports: OpenPort[] = []
  #isListening = true
  #last: Promise<void> = Promise.resolve()

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

  async openPort(at: Endpoint): Promise<Endpoint> {
    const listener = await this.#open(at)
    const place = { address: listener.address, port: listener.port }
    this.#ports.push({ at: place, listener })
    if (!this.#isListening) await listener.close()
    return place
  }

  /** Closes the ports while no relay runs, so that the system refuses connections, and opens them again. */
  async listen(isListening: boolean): Promise<void> {
    this.#isListening = isListening
    this.#last = this.#last.then(async () => {
      for (const port of this.#ports) {
        await port.listener.close()
        if (isListening) port.listener = await this.#open(port.at)
      }
    })
    await this.#last
  }

  /** Closes the ports. */
  async close(): Promise<void> {
    await this.#last
    await Promise.all(this.#ports.splice(0).map(({ listener }) => listener.close()))
  }

  #open(at: Endpoint): Promise<Listener> {
    return systemNet.listen(at, (outside) => {
      this.#dial().then(
        (inside) => join(outside, inside),
        () => outside.resetAndDestroy(),
      )
    })
  }
}

/** Connects both sockets. A reset of the relay, as at a kill, resets the connection of the client. */
function join(outside: Socket, inside: Socket): void {
  outside.pipe(inside).pipe(outside)
  outside.on('error', () => inside.destroy())
  inside.on('error', () => outside.resetAndDestroy())
}
