/**
 * A client's socket, with two services of the smtp-server library: the upgrade to TLS and the AUTH exchange. deferd itself reads,
 * writes, closes and sets all timers. Subclasses handle lines and replies only.
 */
/* oxlint-disable no-underscore-dangle -- the names are smtp-server's */
import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { SMTPServer } from 'smtp-server'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js'
import { SMTPStream } from 'smtp-server/lib/smtp-stream.js'
import { SECOND, type Clock, type Duration, type Timer } from '../system/clock.ts'
import { requireMembers } from '../system/library-members.ts'
import { formatReply, maskControls, type SmtpReply } from '../mail/smtp-reply.ts'
import type { SmtpClient } from '../queue/intake/received-header.ts'
import type { ContentReader } from './data-stream.ts'
import { LineReader, type CommandLine, type LineHandler } from './line-reader.ts'

/** Time limit for the client to close its side after the server has closed its own. */
const LINGER: Duration = 5 * SECOND

/** Members of the library's connection class that this file overrides, reads or sets. */
const MEMBERS = [
  ...(['_closed', '_closing', '_nextHandler', '_parser', '_socket', '_upgrading'] as const),
  ...(['_armTimeout', '_createParser', '_getEnhancedStatusCode', '_onClose', '_onError', '_setListeners', '_whenWritable'] as const),
  ...(['close', 'handler_AUTH', 'init', 'remoteAddress', 'send', 'session', 'upgrade'] as const),
] satisfies readonly (keyof SMTPConnection)[]

/** Local address for the library, which makes a system call for each connection without it. deferd does not use the address. */
const UNUSED_ADDRESS = { localAddress: '0.0.0.0', localPort: 1 }

/** Throws UnfitLibrary when smtp-server lacks a member that a connection relies on. */
export function checkSmtpServer(server: SMTPServer): void {
  const connection = new SMTPConnection(server, new Socket())
  requireMembers('smtp-server', connection, MEMBERS)
  requireMembers('smtp-server', new SMTPStream(), ['_flushData', '_write', 'isClosed'])
}

interface AdapterOptions {
  readonly clock: Clock
  readonly id: string
  /** Address of the client, which is not that of the socket behind a proxy. */
  readonly address: string
}

export abstract class SmtpConnectionAdapter extends SMTPConnection implements LineHandler {
  #address: string
  readonly #clock: Clock
  /** Replies that are not written yet. Commands received in one packet are answered in one packet. */
  #out = ''
  #linger: Timer | undefined
  /** The socket to destroy. During a TLS handshake, it is the TLS socket instead of the socket inside it. */
  #topmost: Socket
  #ended = false

  constructor(server: SMTPServer, socket: Socket, { clock, id, address }: AdapterOptions) {
    super(server, socket, { ...UNUSED_ADDRESS, id, remoteAddress: address })
    this.#clock = clock
    this.#topmost = socket
    this.#address = address
  }

  /** Address of the client. An IPv4 address has no IPv4-mapped prefix. */
  get address(): string {
    return this.#address
  }

  /** Continues as a connection of another client, who is not authenticated. */
  protected becomes(address: string): void {
    this.#address = address
    this.remoteAddress = address
    this.session.remoteAddress = address
    this.session.user = false
  }

  abstract line(line: CommandLine): Promise<void> | undefined
  abstract content(pieces: readonly Uint8Array[]): Promise<void> | undefined
  abstract contentEnd(): Promise<void> | undefined
  abstract endlessLine(): void
  abstract received(bytes: number): void
  abstract failed(error: unknown): void
  /** Called when a TLS handshake fails. */
  protected abstract tlsFailed(why: string): void
  /** Called once, when the connection has ended. `lost` is true when the client ended it before the server closed it. */
  protected abstract ended(lost: boolean): void

  /** Begins to read. Calls `ready` when replies can be sent; on a `wrapper` listener, that is after the TLS handshake. */
  protected open(ready: () => void): void {
    this._setListeners(ready)
  }

  protected get isOpen(): boolean {
    return !this._closing && !this._closed
  }

  /** True when the client has sent data after the commands and content handled so far. */
  protected get hasMore(): boolean {
    return this.#reader?.hasMore === true || this._socket.readableLength > 0
  }

  /** Protocol and cipher of the TLS session; undefined without TLS. */
  protected get encryption(): SmtpClient['tls'] {
    const socket = this._socket
    return socket instanceof TLSSocket ? { version: socket.getProtocol() ?? 'TLS', cipher: socket.getCipher().name } : undefined
  }

  /** Adds a reply to the output, which `flush` writes. `keywords` become further lines of the reply. */
  protected sendReply(reply: SmtpReply, keywords: readonly string[] = []): void {
    let line = formatReply(reply)
    for (const keyword of keywords) {
      this.#out += `${reply.code}-${line.slice(4)}\r\n`
      line = `${reply.code} ${keyword}`
    }
    this.#out += `${line}\r\n`
  }

  protected flush(): void {
    // Writing plain text would break a TLS handshake.
    if (this.#out === '' || this._upgrading) return
    if (this._socket.writable) this._socket.write(this.#out)
    this.#out = ''
  }

  protected startContent(content: ContentReader): void {
    this.#reader?.startContent(content)
  }

  /** Starts TLS, discards all bytes received before the handshake (RFC 3207 §4.2), and calls `secured` after the handshake. */
  protected startTls(secured: () => void): void {
    this.flush()
    this.upgrade(() => {}, secured)
  }

  protected get inAuthExchange(): boolean {
    return this._nextHandler !== false
  }

  protected endAuthExchange(): void {
    this._nextHandler = false
  }

  /** Handles the next line of an AUTH exchange; the first line is AUTH itself. Resolves when the reply is in the output. */
  protected continueAuth(line: string): Promise<void> {
    const next = this._nextHandler
    const bytes = Buffer.from(line)
    this._nextHandler = false
    return new Promise((resolve) => (next === false ? this.handler_AUTH(bytes, resolve) : next.call(this, bytes, resolve)))
  }

  idle(): Promise<void> | undefined {
    this.flush()
    if (!this._socket.writableNeedDrain || this._socket.destroyed) return undefined
    // A client that does not read its replies has to wait until they are written.
    return new Promise((resolve) => this._whenWritable(resolve))
  }

  /** Ends the connection after the replies in the output. Later input is discarded. */
  override close(): void {
    if (!this.isOpen) return
    this.flush()
    this._closing = true
    if (this._upgrading) return this.destroy()
    if (this._socket.writable) this._socket.end()
    if (this._parser !== false) {
      this._socket.unpipe(this._parser)
      this._parser.isClosed = true
    }
    // The socket is read without a parser, so that the end of the connection is noticed.
    if (!this._socket.destroyed) this._socket.resume()
    this.#linger = this.#clock.after(LINGER, () => this.destroy())
  }

  /** Ends the connection when the output is written, independent of the client. */
  protected destroySoon(): void {
    this.#topmost.destroySoon()
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.#topmost.destroy()
  }

  get #reader(): LineReader | undefined {
    return this._parser instanceof LineReader ? this._parser : undefined
  }

  // called by smtp-server

  /** Called by the constructor of the library, and again after STARTTLS. */
  override _createParser(): LineReader {
    return new LineReader(this)
  }

  /** Called for the replies that the library creates, which are those of the AUTH exchange. */
  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    const status = this._getEnhancedStatusCode(code, context)
    const text = Array.isArray(data) ? data.join(' ') : (data ?? '')
    // A challenge may be empty. The space before it is required (RFC 4954 §4).
    if (code === 334) this.#out += `334 ${text}\r\n`
    else this.sendReply({ code, status: status === '' ? undefined : status, text })
  }

  /** Stores the socket and sets no timer, because deferd replaces the library's time limits. */
  override _armTimeout(socket: Socket = this._socket): void {
    this.#topmost = socket
  }

  override _onError(error: Error): void {
    if (this._upgrading && !this.#ended) this.tlsFailed(maskControls(error.message))
    this.destroy()
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
