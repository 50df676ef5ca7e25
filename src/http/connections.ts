/** The connections of a server, also those that node:http does not close with it: before a TLS handshake, refused, or after CONNECT. */
import type { Server, ServerResponse } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { withTimeout, type Duration, type Timers } from '../system/clock.ts'

export class Connections {
  readonly #server: Server | TlsServer
  readonly #clock: Timers
  /** Open TCP connections; with TLS, the sockets below it. */
  readonly #open = new Set<Socket>()
  /** Responses that have not been sent, by connection. */
  readonly #responses = new WeakMap<Socket, Set<ServerResponse>>()
  /** Resolves when all connections have ended; null while the server is open. */
  #closed: Promise<true> | null = null

  constructor(server: Server | TlsServer, clock: Timers) {
    this.#server = server
    this.#clock = clock
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket)
      socket.on('close', () => this.#open.delete(socket))
    })
  }

  /** True from the start of a close: the next response of each connection is its last one. */
  get isClosing(): boolean {
    return !this.#server.listening
  }

  /** Notes a response until it has been sent, or its connection has ended. */
  note(response: ServerResponse): void {
    const { socket } = response.req
    const open = this.#responses.get(socket) ?? new Set()
    this.#responses.set(socket, open.add(response))
    response.on('close', () => open.delete(response))
  }

  /** The responses of a connection that have not been sent. */
  responsesOf(socket: Socket): readonly ServerResponse[] {
    return [...(this.#responses.get(socket) ?? [])]
  }

  /** Closes the server. Requests have `grace` to end; then all connections are closed. */
  async close(grace: Duration): Promise<void> {
    await this.refuse(grace)
    for (const socket of this.#open) socket.destroy()
    await this.#closed
  }

  /** Closes the port and idle connections. Resolves when the requests have ended, after `grace` at the latest; they may then go on. */
  async refuse(grace: Duration): Promise<void> {
    if (this.#closed === null && this.isClosing) return
    this.#closed ??= new Promise((resolve) => void this.#server.close(() => resolve(true)))
    if (grace > 0) await withTimeout(this.#closed, this.#clock, grace)
  }
}
