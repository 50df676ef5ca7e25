/**
 * Two ends of a connection that never leaves the process, each as much of a net.Socket as nodemailer, smtp-server and
 * node:tls use. Bytes take no time and keep their order; FIN, RST, back-pressure and idle timeouts behave as over TCP,
 * the timeouts on the Clock port.
 */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Clock, Duration, Timer } from '../mail/clock.ts'
import type { Endpoint } from '../delivery/net.ts'

type Done = (error?: Error | null) => void

/** What a socket tells the network it belongs to. */
export interface Wire {
  readonly clock: Clock
  /** Called whenever bytes or signals move: the world is not at rest. */
  stir(): void
}

/** An error as the system reports it: `read ECONNRESET`, with its code. */
export function systemError(code: string, syscall: string, at?: Endpoint): Error {
  const where = at === undefined ? '' : ` ${at.address}:${at.port}`
  return Object.assign(new Error(`${syscall} ${code}${where}`), { code, syscall, ...at })
}

const familyOf = (address: string): 'IPv4' | 'IPv6' => (address.includes(':') ? 'IPv6' : 'IPv4')

export class MemorySocket extends Duplex {
  readonly connecting = false
  readonly pending = false
  readonly localAddress: string
  readonly localPort: number
  readonly remoteAddress: string
  readonly remotePort: number
  bytesRead = 0
  bytesWritten = 0
  timeout: Duration | undefined
  readonly #wire: Wire
  #peer: MemorySocket | undefined
  #idle: Timer | undefined
  /** The peer's write that waits until we read on. */
  #held: Done | undefined
  #sentFin = false

  private constructor(wire: Wire, local: Endpoint, remote: Endpoint) {
    // net.Socket says in its 'close' event whether there was an error; a plain stream would not.
    super({ allowHalfOpen: false, emitClose: false })
    this.#wire = wire
    this.localAddress = local.address
    this.localPort = local.port
    this.remoteAddress = remote.address
    this.remotePort = remote.port
  }

  /** A connection from `client` to `server`, open at both ends. */
  static pair(wire: Wire, client: Endpoint, server: Endpoint): { readonly client: MemorySocket; readonly server: MemorySocket } {
    const ends = { client: new MemorySocket(wire, client, server), server: new MemorySocket(wire, server, client) }
    ends.client.#peer = ends.server
    ends.server.#peer = ends.client
    return ends
  }

  /** As the Net port wants it: every member of net.Socket that is missing here is about the real network. */
  get asSocket(): Socket {
    return this as unknown as Socket
  }

  get localFamily(): string {
    return familyOf(this.localAddress)
  }

  get remoteFamily(): string {
    return familyOf(this.remoteAddress)
  }

  get readyState(): 'open' | 'readOnly' | 'writeOnly' | 'closed' {
    if (this.readable) return this.writable ? 'open' : 'readOnly'
    return this.writable ? 'writeOnly' : 'closed'
  }

  address(): { readonly address: string; readonly family: string; readonly port: number } {
    return { address: this.localAddress, family: this.localFamily, port: this.localPort }
  }

  /** Emits 'timeout' when nothing moved for so long; 0 turns it off. */
  setTimeout(delay: Duration, listener?: () => void): this {
    this.timeout = delay
    if (listener !== undefined) {
      if (delay === 0) this.off('timeout', listener)
      else this.once('timeout', listener)
    }
    this.#touch()
    return this
  }

  /** Closes with RST: the peer's reads and writes fail, and what it had not read yet is lost. */
  resetAndDestroy(): this {
    if (this.destroyed) return this
    this.#sentFin = true
    this.#tellPeer((peer) => peer.#reset())
    return this.destroy()
  }

  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  setKeepAlive(): this {
    return this
  }

  setNoDelay(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  override _read(): void {
    this.#letPeerWrite()
  }

  override _write(chunk: Buffer, _encoding: string, done: Done): void {
    this.bytesWritten += chunk.length
    this.#touch()
    // The writer may reuse its buffer once `done` was called, and the reader may still hold it.
    const bytes = Buffer.from(chunk)
    this.#tellPeer((peer) => peer.#receive(bytes, done, this))
  }

  override _final(done: Done): void {
    this.#sendFin()
    done()
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#idle?.cancel()
    this.#letPeerWrite()
    this.#sendFin()
    done(error)
    process.nextTick(() => this.emit('close', error !== null))
  }

  #letPeerWrite(): void {
    const held = this.#held
    this.#held = undefined
    held?.()
  }

  #sendFin(): void {
    if (this.#sentFin) return
    this.#sentFin = true
    this.#tellPeer((peer) => {
      if (!peer.destroyed) peer.push(null)
    })
  }

  #receive(bytes: Buffer, done: Done, from: MemorySocket): void {
    if (this.destroyed) {
      done()
      // Nobody lives here any more: the system answers with RST.
      this.#tellPeer(() => from.#reset())
      return
    }
    this.bytesRead += bytes.length
    this.#touch()
    if (this.push(bytes)) done()
    else this.#held = done
  }

  #reset(): void {
    if (!this.destroyed) this.destroy(systemError('ECONNRESET', 'read'))
  }

  /** Signals travel in the order they were sent, after the code that sent them has finished. */
  #tellPeer(signal: (peer: MemorySocket) => void): void {
    const peer = this.#peer
    if (peer === undefined) return
    process.nextTick(() => {
      this.#wire.stir()
      signal(peer)
    })
  }

  #touch(): void {
    this.#idle?.cancel()
    if (this.timeout === undefined || this.timeout === 0 || this.destroyed) return
    this.#idle = this.#wire.clock.after(this.timeout, () => this.emit('timeout'))
  }
}
