/** Receives the PROXY header of a new connection, before SMTP or TLS begins (Postfix smtpd_upstream_proxy_protocol). */
import type { Socket } from 'node:net'
import type { Clock, Duration, Timer } from '../system/clock.ts'
import type { OpenConnection } from './open-connections.ts'
import { parseProxyHeader } from './stream/proxy-header.ts'

interface ProxyHandshakeOptions {
  readonly clock: Clock
  /** Time limit for the whole header (smtpd_upstream_proxy_timeout). */
  readonly timeout: Duration
  /** Called once, with the address of the client; null stands for the address of the socket. Bytes after the header stay unread. */
  readonly received: (client: string | null) => void
  /** Called once, instead of `received`, with the reason when there is no valid header. */
  readonly failed: (why: string) => void
  /** Called when the server ends the connection before its header was received. */
  readonly closed: () => void
}

export class ProxyHandshake implements OpenConnection {
  readonly session = undefined
  readonly idleSince: Duration
  readonly #socket: Socket
  readonly #options: ProxyHandshakeOptions
  readonly #timer: Timer
  #bytes = Buffer.alloc(0)
  #isOver = false
  readonly #advance = (): void => this.#read()
  readonly #end = (): void => this.#fail('EOF')

  constructor(socket: Socket, options: ProxyHandshakeOptions) {
    this.#socket = socket
    this.#options = options
    this.idleSince = options.clock.monotonic()
    this.#timer = options.clock.after(options.timeout, () => this.#fail('timeout error'))
    socket.on('readable', this.#advance)
    socket.on('end', this.#end)
    socket.on('close', this.#end)
    socket.on('error', this.#end)
  }

  closeEarly(): void {
    this.destroy()
  }

  drain(): void {
    this.destroy()
  }

  destroy(): void {
    this.stop()
    this.#socket.destroy()
    this.#options.closed()
  }

  /** Ends the wait for the header. No callback is called after it. */
  stop(): void {
    this.#finish()
    // A late error of a socket without a listener would end the process.
    this.#socket.on('error', () => {})
  }

  #read(): void {
    const chunk = this.#socket.read() as Buffer | null
    if (chunk === null || this.#isOver) return
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    const header = parseProxyHeader(this.#bytes)
    if (header.kind === 'malformed') return this.#fail(header.why)
    if (header.kind === 'incomplete') return
    this.#finish()
    if (this.#bytes.length > header.length) this.#socket.unshift(this.#bytes.subarray(header.length))
    this.#options.received(header.client)
  }

  #fail(why: string): void {
    if (this.#isOver) return
    this.stop()
    this.#options.failed(why)
  }

  #finish(): void {
    this.#isOver = true
    this.#timer.cancel()
    this.#socket.off('readable', this.#advance)
    for (const event of ['end', 'close', 'error']) this.#socket.off(event, this.#end)
  }
}
