/**
 * A client's socket, with what the smtp-server library is good for: it upgrades the socket to TLS and leads the AUTH
 * dialogue. Reading, writing, closing and every timer are ours. Whoever builds on it deals in lines and replies.
 */
/* oxlint-disable no-underscore-dangle -- they are the library's own names */
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { SMTPServer } from 'smtp-server'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js'
import { SECOND, type Clock, type Duration, type Timer } from '../mail/clock.ts'
import { formatReply, harmless, type SmtpReply } from '../mail/reply.ts'
import type { SmtpClient } from '../queue/received.ts'
import type { DataStream } from './data-stream.ts'
import { peerAddress } from '../config/networks.ts'
import { WireReader, type CommandLine, type WireHandler } from './wire-reader.ts'

/** How long a client may take to close its side after we closed ours. */
const LINGER: Duration = 5 * SECOND

export abstract class Wire extends SMTPConnection implements WireHandler {
  /** The client's address, without what a socket for both families adds. */
  readonly address: string
  readonly #clock: Clock
  /** Replies that were not written yet: what a client sends in one go is answered in one go. */
  #out = ''
  #linger: Timer | undefined
  /** What must be destroyed first: during a TLS handshake the TLS socket, not the one it wraps. */
  #topmost: Socket
  #ended = false

  constructor(server: SMTPServer, socket: Socket, clock: Clock, id: string) {
    super(server, socket, { id })
    this.#clock = clock
    this.#topmost = socket
    this.address = peerAddress(socket.remoteAddress ?? '')
  }

  abstract line(line: CommandLine): Promise<void> | undefined
  abstract content(pieces: readonly Uint8Array[]): Promise<void> | undefined
  abstract contentEnd(content: DataStream): Promise<void> | undefined
  abstract endlessLine(): void
  abstract arrived(bytes: number): void
  abstract failed(error: unknown): void
  /** The handshake failed. */
  protected abstract tlsFailed(why: string): void
  /** The connection is gone; `lost` says that the client went without our closing it. */
  protected abstract ended(lost: boolean): void

  /** Begins to read; `ready` is called when the client can be spoken to, after the handshake of a TLS listener. */
  protected open(ready: () => void): void {
    this._setListeners(ready)
  }

  protected get isOpen(): boolean {
    return !this._closing && !this._closed
  }

  /** Has the client sent more than what was dealt with? */
  protected get hasMore(): boolean {
    return this.#reader?.hasMore === true || this._socket.readableLength > 0
  }

  /** Protocol and cipher of the TLS session; undefined in the clear. */
  protected get encryption(): SmtpClient['tls'] {
    const socket = this._socket
    return socket instanceof TLSSocket ? { version: socket.getProtocol() ?? 'TLS', cipher: socket.getCipher().name } : undefined
  }

  protected say(reply: SmtpReply, keywords: readonly string[] = []): void {
    const lines = [formatReply(reply), ...keywords.map((keyword) => `${reply.code} ${keyword}`)]
    const last = lines.length - 1
    lines.forEach((line, i) => (this.#out += i < last ? `${line.slice(0, 3)}-${line.slice(4)}\r\n` : `${line}\r\n`))
  }

  protected flush(): void {
    // Nothing is written into the middle of a handshake.
    if (this.#out === '' || this._upgrading) return
    if (this._socket.writable) this._socket.write(this.#out)
    this.#out = ''
  }

  protected startContent(content: DataStream): void {
    this.#reader?.startContent(content)
  }

  /** What the client sent before the handshake is forgotten (RFC 3207 §4.2); `secured` is called after it. */
  protected startTls(secured: () => void): void {
    this.flush()
    this.upgrade(() => {}, secured)
  }

  /** The client is in the middle of an AUTH dialogue. */
  protected get inDialogue(): boolean {
    return this._nextHandler !== false
  }

  protected endDialogue(): void {
    this._nextHandler = false
  }

  /** The next line of an AUTH dialogue, AUTH itself being the first. Resolves when it was answered. */
  protected dialogue(line: string): Promise<void> {
    const next = this._nextHandler
    const said = Buffer.from(line)
    this._nextHandler = false
    return new Promise((resolve) => (next === false ? this.handler_AUTH(said, resolve) : next.call(this, said, resolve)))
  }

  idle(): Promise<void> | undefined {
    this.flush()
    if (!this._socket.writableNeedDrain || this._socket.destroyed) return undefined
    // A client that sends without ever reading our replies waits with us.
    return new Promise((resolve) => this._whenWritable(resolve))
  }

  /** Ends the connection after what was said; what the client still sends is not looked at. */
  override close(): void {
    if (!this.isOpen) return
    this.flush()
    this._closing = true
    if (this._upgrading) return this.cut()
    if (this._socket.writable) this._socket.end()
    if (this._parser !== false) {
      this._socket.unpipe(this._parser)
      this._parser.isClosed = true
    }
    // Nobody reads any more, but the end of the connection must be seen.
    if (!this._socket.destroyed) this._socket.resume()
    this.#linger = this.#clock.after(LINGER, () => this.cut())
  }

  /** Ends the connection when what was said has been written, whatever the client does. */
  protected cutSoon(): void {
    this.#topmost.destroySoon()
  }

  /** Ends the connection at once. */
  cut(): void {
    this.#topmost.destroy()
  }

  get #reader(): WireReader | undefined {
    return this._parser instanceof WireReader ? this._parser : undefined
  }

  // what the library calls

  /** Called by the library's constructor, and again for what comes after STARTTLS. */
  override _createParser(): WireReader {
    return new WireReader(this)
  }

  /** The library's own replies, those of the AUTH dialogue. */
  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    const status = this._getEnhancedStatusCode(code, context)
    const text = Array.isArray(data) ? data.join(' ') : (data ?? '')
    // A challenge may be empty, its blank may not (RFC 4954 §4).
    if (code === 334) this.#out += `334 ${text}\r\n`
    else this.say({ code, status: status === '' ? undefined : status, text })
  }

  /** The library would set a timer of its own; all we want is the socket. */
  override _armTimeout(socket: Socket = this._socket): void {
    this.#topmost = socket
  }

  override _onError(error: Error): void {
    if (this._upgrading && !this.#ended) this.tlsFailed(harmless(error.message))
    this.cut()
  }

  override _onClose(): void {
    if (!this.#ended) {
      this.#ended = true
      this.#linger?.cancel()
      this.ended(!this._closing)
    }
    super._onClose()
  }
}
