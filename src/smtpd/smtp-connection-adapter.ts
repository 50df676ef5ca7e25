/**
 * Two services of the smtp-server library for one connection: the upgrade to TLS, and the AUTH exchange. The library's object is
 * created when a connection starts TLS, which AUTH needs, because most connections use neither.
 */
/* oxlint-disable no-underscore-dangle -- the names are smtp-server's */
import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { SMTPServer, SMTPServerSession } from 'smtp-server'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js'
import { requireMembers } from '../system/library-members.ts'
import type { Login } from './dialogue/client-identity.ts'

/** Members of the library's connection class that this file overrides, reads or sets. */
const MEMBERS = [
  ...(['_nextHandler', '_parser', '_socket'] as const),
  ...(['_armTimeout', '_getEnhancedStatusCode', '_onClose', '_onError'] as const),
  ...(['handler_AUTH', 'remoteAddress', 'send', 'session', 'upgrade'] as const),
] satisfies readonly (keyof SMTPConnection)[]

/** Local address for the library, which makes a system call for each connection without it. deferd does not use the address. */
const UNUSED_ADDRESS = { localAddress: '0.0.0.0', localPort: 1 }

/** Throws UnfitLibrary when smtp-server lacks a member that a connection relies on. */
export function checkSmtpServer(server: SMTPServer): void {
  requireMembers('smtp-server', new SMTPConnection(server, new Socket()), MEMBERS)
}

/** Receives what happens on a connection with TLS. */
export interface AdapterHandler {
  /** Called with the socket inside which bytes are encrypted, before the handshake. */
  wrapped(socket: Socket): void
  socketFailed(error: Error): void
  socketClosed(): void
  /** Called with each reply of an AUTH exchange. `text` of code 334 is a challenge, which may be empty. */
  authReply(code: number, status: string, text: string): void
  /** Called before the reply to a login with a wrong name or password. */
  loginRefused(login: Login): void
}

/** The library's session object, with the handler of its connection. */
export interface AdapterSession extends SMTPServerSession {
  readonly handler: AdapterHandler
}

interface AdapterOptions {
  readonly id: string
  /** Address of the client, which is not that of the socket behind a proxy. */
  readonly address: string
  readonly handler: AdapterHandler
}

export class SmtpConnectionAdapter extends SMTPConnection {
  readonly #handler: AdapterHandler

  constructor(server: SMTPServer, socket: Socket, { id, address, handler }: AdapterOptions) {
    super(server, socket, { ...UNUSED_ADDRESS, id, remoteAddress: address })
    this.#handler = handler
    Object.assign(this.session, { handler } satisfies Pick<AdapterSession, 'handler'>)
  }

  /** Continues as a connection of another client, who is not authenticated. */
  becomes(address: string): void {
    this.remoteAddress = address
    this.session.remoteAddress = address
    this.session.user = false
  }

  /** Awaits the handshake. Calls `secured` after it with the TLS socket, which is paused. */
  startTls(secured: (socket: TLSSocket) => void): void {
    const proceed = () => {
      const socket = this._socket as TLSSocket
      // The library reads lines by a parser of its own.
      if (this._parser !== false) socket.unpipe(this._parser)
      secured(socket)
    }
    this.upgrade(() => {}, proceed)
  }

  get inAuthExchange(): boolean {
    return this._nextHandler !== false
  }

  endAuthExchange(): void {
    this._nextHandler = false
  }

  /** Handles the next line of an AUTH exchange; the first line is AUTH itself. Resolves when the reply was given to the handler. */
  continueAuth(line: string): Promise<void> {
    const next = this._nextHandler
    const bytes = Buffer.from(line)
    this._nextHandler = false
    return new Promise((resolve) => (next === false ? this.handler_AUTH(bytes, resolve) : next.call(this, bytes, resolve)))
  }

  // called by smtp-server

  /** Called for the replies that the library creates, which are those of the AUTH exchange. */
  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    const text = Array.isArray(data) ? data.join(' ') : (data ?? '')
    this.#handler.authReply(code, this._getEnhancedStatusCode(code, context), text)
  }

  /** Stores the socket and sets no timer, because deferd replaces the library's time limits. */
  override _armTimeout(socket: Socket = this._socket): void {
    this.#handler.wrapped(socket)
  }

  override _onError(error: Error): void {
    this.#handler.socketFailed(error)
  }

  override _onClose(): void {
    this.#handler.socketClosed()
    super._onClose()
  }
}
