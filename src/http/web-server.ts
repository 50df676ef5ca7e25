/** Server of the admin API and the page, at a port or a Unix socket: time limits, sizes and numbers. */
import { createServer, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { seconds, type Duration, type Timers } from '../system/clock.ts'
import type { Endpoint, ListenOptions } from '../system/net.ts'
import type { Connections } from './connections.ts'
import type { Listener } from './route-listener.ts'
import { timeLimits, UnparsedRequests, type RequestTimes } from './unparsed-requests.ts'
import { WEB_HEADERS } from './web-headers.ts'
import { problemAnswer } from './problem-answer.ts'

/** Certificate with its chain, and its key, in PEM. */
export interface WebCertificate {
  readonly cert: Buffer
  readonly key: Buffer
}

const TIMES: RequestTimes = { header: seconds(10), request: seconds(300) }
/** Time for which an idle connection is kept. */
const KEEP_ALIVE: Duration = seconds(60)
const HEADER_SIZE = 16 * 1024
/** Maximum number of connections; further ones are closed on accept. 50 of them may be streams. */
const CONNECTIONS = 256
/** Time that running requests get when the server closes. */
const GRACE: Duration = seconds(1)

const OPTIONS: ServerOptions = {
  keepAliveTimeout: KEEP_ALIVE,
  maxHeaderSize: HEADER_SIZE,
  // A request without Host is refused by the admission, with the header fields of all responses.
  requireHostHeader: false,
  insecureHTTPParser: false,
}

interface WebServerDeps {
  readonly listener: Listener
  readonly clock: Timers
  /** Null for a server without TLS. */
  readonly certificate: WebCertificate | null
  readonly times?: RequestTimes
}

export class WebServer {
  readonly #server: Server | TlsServer
  readonly #connections: Connections

  constructor({ listener, clock, certificate, times = TIMES }: WebServerDeps) {
    const options = { ...OPTIONS, ...timeLimits(times) }
    const server = certificate === null ? createServer(options) : createTlsServer({ ...options, ...certificate })
    server.maxConnections = CONNECTIONS
    this.#connections = new UnparsedRequests(server, { listener, refusal: problemAnswer, headers: WEB_HEADERS, clock }).connections
    this.#server = server
  }

  /** Opens the port and resolves with its address. Rejects with the system's error. */
  async listen({ address, port, ipv6Only = false }: ListenOptions): Promise<Endpoint> {
    await this.#listening(() => this.#server.listen({ port, host: address, ipv6Only }))
    const bound = this.#server.address() as AddressInfo
    return { address: bound.address, port: bound.port }
  }

  /** Opens a Unix socket of mode 0600. Rejects with the system's error. */
  async listenAt(path: string): Promise<void> {
    await this.#listening(() => {
      // The umask gives the socket its mode at creation. A later chmod would leave time for other users to connect.
      const mask = process.umask(0o177)
      try {
        this.#server.listen(path)
      } finally {
        process.umask(mask)
      }
    })
  }

  /** Uses another certificate for new connections. */
  renew(certificate: WebCertificate): void {
    if ('setSecureContext' in this.#server) this.#server.setSecureContext(certificate)
  }

  /** Accepts no connection any more. Resolves when the requests have ended, after GRACE at the latest; they may then go on. */
  async refuse(): Promise<void> {
    await this.#connections.refuse(GRACE)
  }

  /** Closes the server. Running requests have GRACE to end; the caller ends streams before. */
  async close(): Promise<void> {
    await this.#connections.close(GRACE)
  }

  #listening(listen: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.once('listening', () => {
        this.#server.off('error', reject)
        resolve()
      })
      listen()
    })
  }
}
