/**
 * The two ends of a connection in memory, with the members of net.Socket that nodemailer, smtp-server and node:tls use. Bytes
 * arrive without delay and in order. FIN, RST, back-pressure and idle timeouts behave as over TCP; timeouts are on the Clock
 * port.
 */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Duration, Timer, Timers } from '../../system/clock.ts'
import type { Endpoint } from '../../system/net.ts'

type Done = (error?: Error | null) => void

export interface Network {
  readonly clock: Timers
  /** Called when bytes or signals are sent, so that the world is not considered idle. */
  noteActivity(): void
}

/** Creates an error like the system's, such as `read ECONNRESET`, with its code. */
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
  readonly #network: Network
  #peer: MemorySocket | undefined
  #idle: Timer | undefined
  /** Callback of a write of the peer, which waits until this end reads. */
  #held: Done | undefined
  #sentFin = false

  private constructor(network: Network, local: Endpoint, remote: Endpoint) {
    // The 'close' event of net.Socket has an argument that reports an error; that of a plain stream has none.
    super({ allowHalfOpen: false, emitClose: false })
    this.#network = network
    this.localAddress = local.address
    this.localPort = local.port
    this.remoteAddress = remote.address
    this.remotePort = remote.port
  }

  /** Creates a connection from `client` to `server` that is open at both ends. */
  static pair(network: Network, client: Endpoint, server: Endpoint): { readonly client: MemorySocket; readonly server: MemorySocket } {
    const ends = { client: new MemorySocket(network, client, server), server: new MemorySocket(network, server, client) }
    ends.client.#peer = ends.server
    ends.server.#peer = ends.client
    return ends
  }

  /** This socket with the type of the Net port. The missing members of net.Socket apply to a real network only. */
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

  /** Emits 'timeout' when no bytes were sent or received for `delay`. 0 disables the timeout. */
  setTimeout(delay: Duration, listener?: () => void): this {
    this.timeout = delay
    if (listener !== undefined) {
      if (delay === 0) this.off('timeout', listener)
      else this.once('timeout', listener)
    }
    this.#touch()
    return this
  }

  /** Closes with RST: the peer's reads and writes fail, and its unread bytes are lost. */
  resetAndDestroy(): this {
    if (this.destroyed) return this
    this.#sentFin = true
    this.#signalPeer((peer) => peer.#reset())
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
    this.#resumePeer()
  }

  override _write(chunk: Buffer, _encoding: string, done: Done): void {
    this.bytesWritten += chunk.length
    this.#touch()
    // Copied, because the writer may reuse its buffer after `done` while the reader still holds the bytes.
    const bytes = Buffer.from(chunk)
    this.#signalPeer((peer) => peer.#receive(bytes, done, this))
  }

  override _final(done: Done): void {
    this.#sendFin()
    done()
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#idle?.cancel()
    this.#resumePeer()
    this.#sendFin()
    done(error)
    process.nextTick(() => this.emit('close', error !== null))
  }

  #resumePeer(): void {
    const held = this.#held
    this.#held = undefined
    held?.()
  }

  #sendFin(): void {
    if (this.#sentFin) return
    this.#sentFin = true
    this.#signalPeer((peer) => {
      if (!peer.destroyed) peer.push(null)
    })
  }

  #receive(bytes: Buffer, done: Done, from: MemorySocket): void {
    if (this.destroyed) {
      done()
      // A closed port answers with RST.
      this.#signalPeer(() => from.#reset())
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

  /** Delivers signals in the order in which they were sent, after the sending code has finished. */
  #signalPeer(signal: (peer: MemorySocket) => void): void {
    const peer = this.#peer
    if (peer === undefined) return
    process.nextTick(() => {
      this.#network.noteActivity()
      signal(peer)
    })
  }

  #touch(): void {
    this.#idle?.cancel()
    if (this.timeout === undefined || this.timeout === 0 || this.destroyed) return
    this.#idle = this.#network.clock.after(this.timeout, () => this.emit('timeout'))
  }
}
