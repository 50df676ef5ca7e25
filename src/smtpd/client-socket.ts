/**
 * A client's socket: passes what it receives to the reader of lines and content, writes replies, and closes. Subclasses handle lines
 * and replies only. TLS and the AUTH exchange are services of the smtp-server library.
 */
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { SMTPServer } from 'smtp-server'
import { SECOND, type Clock, type Duration, type Timer } from '../system/clock.ts'
import { cipherOf } from '../system/tls-cipher.ts'
import { formatReply, maskControls, type SmtpReply } from '../mail/smtp-reply.ts'
import type { SessionRecorder } from '../sessions/session-recorder.ts'
import type { SmtpClient } from '../queue/intake/received-header.ts'
import type { ContentReader } from './stream/data-stream.ts'
import type { Login } from './dialogue/client-identity.ts'
import { LineReader, type CommandLine, type LineHandler } from './stream/line-reader.ts'
import { SmtpConnectionAdapter, type AdapterHandler } from './smtp-connection-adapter.ts'

/** Time limit for the client to close its side after the server has closed its own. */
const LINGER: Duration = 5 * SECOND

interface ClientSocketOptions {
  readonly clock: Clock
  readonly id: string
  /** Address of the client, which is not that of the socket behind a proxy. */
  readonly address: string
  /** Records the session; null where nothing is recorded. */
  readonly recorder: SessionRecorder | null
}

export abstract class ClientSocket implements LineHandler, AdapterHandler {
  protected readonly recorder: SessionRecorder | null
  readonly #server: SMTPServer
  readonly #clock: Clock
  readonly #id: string
  #address: string
  #socket: Socket
  /** The socket to destroy. During a TLS handshake, it is the TLS socket instead of the socket inside it. */
  #topmost: Socket
  #reader = new LineReader(this)
  /** Replies that are not written yet. Commands received in one packet are answered in one packet. */
  #out = ''
  #linger: Timer | undefined
  #upgrading = false
  #closing = false
  #ended = false
  #hasFailedHandshake = false
  /** Undefined until TLS needs it. */
  #adapter: SmtpConnectionAdapter | undefined

  constructor(server: SMTPServer, socket: Socket, { clock, id, address, recorder }: ClientSocketOptions) {
    this.recorder = recorder
    this.#server = server
    this.#socket = socket
    this.#topmost = socket
    this.#clock = clock
    this.#id = id
    this.#address = address
  }

  /** Address of the client. An IPv4 address has no IPv4-mapped prefix. */
  get address(): string {
    return this.#address
  }

  /** Continues as a connection of another client, who is not authenticated. */
  protected becomes(address: string): void {
    this.#address = address
    this.#adapter?.becomes(address)
  }

  abstract line(line: CommandLine): Promise<void> | undefined
  abstract content(pieces: readonly Uint8Array[]): Promise<void> | undefined
  abstract contentEnd(): Promise<void> | undefined
  abstract endlessLine(): void
  abstract received(bytes: number): void
  abstract failed(error: unknown): void
  abstract loginRefused(login: Login): void
  /** Called when a TLS handshake fails. */
  protected abstract tlsFailed(why: string): void
  /** Called once, when the connection has ended. `lost` is true when the client ended it before the server closed it. */
  protected abstract ended(lost: boolean): void

  /** Begins to read. Calls `ready` when replies can be sent; on a `wrapper` listener, that is after the TLS handshake. */
  protected open(isWrapped: boolean, ready: () => void): void {
    this.#socket.on('close', () => this.socketClosed())
    this.#socket.on('error', (error) => this.socketFailed(error))
    if (isWrapped) return this.startTls(ready)
    this.#read()
    ready()
  }

  #read(): void {
    this.#socket.on('data', (packet: Buffer) => {
      if (!this.#reader.take(packet)) this.#socket.pause()
    })
    // A socket after TLS or a PROXY header is paused.
    this.#socket.resume()
  }

  protected get isOpen(): boolean {
    return !this.#closing && !this.#ended
  }

  /** True when the client has sent data after the commands and content handled so far. */
  protected get hasMore(): boolean {
    return this.#reader.hasMore || this.#socket.readableLength > 0
  }

  /** Protocol and cipher of the TLS session; undefined without TLS. */
  protected get encryption(): SmtpClient['tls'] {
    const socket = this.#socket
    return socket instanceof TLSSocket ? { version: socket.getProtocol() ?? 'TLS', cipher: cipherOf(socket) ?? 'unknown' } : undefined
  }

  /** Adds a reply to the output, which `flush` writes. `keywords` become further lines of the reply. */
  protected sendReply(reply: SmtpReply, keywords: readonly string[] = []): void {
    const before = this.#out.length
    let line = formatReply(reply)
    for (const keyword of keywords) {
      this.#out += `${reply.code}-${line.slice(4)}\r\n`
      line = `${reply.code} ${keyword}`
    }
    this.#out += `${line}\r\n`
    this.recorder?.server(this.#out.slice(before, -2).split('\r\n'))
  }

  protected flush(): void {
    // Writing plain text would break a TLS handshake.
    if (this.#out === '' || this.#upgrading) return
    if (this.#socket.writable) this.#socket.write(this.#out)
    this.#out = ''
  }

  protected startContent(content: ContentReader): void {
    this.#reader.startContent(content)
  }

  /** Starts TLS, discards all bytes received before the handshake (RFC 3207 §4.2), and calls `secured` after the handshake. */
  protected startTls(secured: () => void): void {
    this.flush()
    this.#reader.close()
    this.#reader = new LineReader(this)
    this.#upgrading = true
    this.#adapter = new SmtpConnectionAdapter(this.#server, this.#socket, { id: this.#id, address: this.#address, handler: this })
    this.#adapter.startTls((socket) => {
      // A client that closes the connection right after its handshake leaves a socket without a session.
      if (socket.destroyed || cipherOf(socket) === undefined) return this.destroy()
      this.#socket = socket
      this.#upgrading = false
      this.#read()
      secured()
    })
  }

  protected get inAuthExchange(): boolean {
    return this.#adapter?.inAuthExchange === true
  }

  protected endAuthExchange(): void {
    this.#adapter?.endAuthExchange()
  }

  /** Handles the next line of an AUTH exchange; the first line is AUTH itself. Resolves when the reply is in the output. */
  protected async continueAuth(line: string): Promise<void> {
    await this.#adapter?.continueAuth(line)
  }

  /** The user of the AUTH exchange; false or undefined when it failed. */
  protected get authenticatedUser(): unknown {
    return this.#adapter?.session.user
  }

  idle(): Promise<void> | undefined {
    this.flush()
    const socket = this.#socket
    if (!socket.writableNeedDrain || socket.destroyed) return undefined
    // A client that does not read its replies has to wait until they are written.
    return new Promise((resolve) => socket.once('drain', resolve))
  }

  resumed(): void {
    this.#socket.resume()
  }

  /** Ends the connection after the replies in the output. Later input is discarded. */
  close(): void {
    if (!this.isOpen) return
    this.flush()
    this.#closing = true
    if (this.#upgrading) return this.destroy()
    if (this.#socket.writable) this.#socket.end()
    this.#reader.close()
    // The socket is read, so that the end of the connection is noticed.
    if (!this.#socket.destroyed) this.#socket.resume()
    this.#linger = this.#clock.after(LINGER, () => this.destroy())
  }

  /**
   * Ends the connection after QUIT: at once, when the system has taken all replies and the client has sent nothing more, which leaves the
   * replies and FIN to the system; otherwise as `close`, because unread bytes would make the system reset the connection.
   */
  protected closeAfterQuit(): void {
    this.flush()
    if (this.hasMore || this.#socket.writableLength > 0 || this.#adapter !== undefined) return this.close()
    this.#closing = true
    this.#reader.close()
    this.destroy()
  }

  /** Ends the connection when the output is written, independent of the client. */
  protected destroySoon(): void {
    this.#topmost.destroySoon()
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.#topmost.destroy()
  }

  /** Reports the end of a handshake that was not completed, once. The socket, the TLS socket and their end may each report it. */
  #handshakeFailed(why: string): void {
    if (!this.#upgrading || this.#ended || this.#hasFailedHandshake) return
    this.#hasFailedHandshake = true
    this.tlsFailed(why)
  }

  // called by the adapter

  wrapped(socket: Socket): void {
    this.#topmost = socket
  }

  /** A challenge may be empty. The space before it is required (RFC 4954 §4). */
  authReply(code: number, status: string, text: string): void {
    if (code === 334) {
      this.#out += `334 ${text}\r\n`
      this.recorder?.server([`334 ${text}`])
    } else this.sendReply({ code, status: status === '' ? undefined : status, text })
  }

  socketFailed(error: Error): void {
    // The message of an error of OpenSSL has its source file; the reason is a part of it.
    const { reason = error.message } = error as Error & { readonly reason?: string }
    this.#handshakeFailed(maskControls(reason))
    this.destroy()
  }

  socketClosed(): void {
    if (this.#ended) return
    this.#handshakeFailed(this.#closing ? 'closed by the server' : 'lost connection')
    this.#ended = true
    if (!this.#closing) this.recorder?.event('the client closed the connection')
    this.recorder?.end()
    this.#linger?.cancel()
    this.#reader.close()
    // The handle of a closed socket outlives two collections of the young heap, and would keep the session with its listeners.
    this.#socket.removeAllListeners()
    this.ended(!this.#closing)
  }
}
