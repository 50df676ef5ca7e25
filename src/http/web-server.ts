/**
 * Server of the admin API and the page, at a port or a Unix socket: time limits, sizes and numbers, and responses to requests that
 * node:http cannot parse.
 */
import { createServer, STATUS_CODES, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { errorCode } from '../system/caught-error.ts'
import { seconds, withTimeout, type Clock, type Duration } from '../system/clock.ts'
import type { Endpoint, ListenOptions } from '../system/net.ts'
import { HTTP_PROBLEMS, Problem, problemJson, type ProblemKind } from './problem-details.ts'
import type { Listener } from './route-listener.ts'
import { closeInStages, isClosing } from './staged-close.ts'
import { WEB_HEADERS } from './web-headers.ts'

/** Certificate with its chain, and its key, in PEM. */
export interface WebCertificate {
  readonly cert: Buffer
  readonly key: Buffer
}

/** Time limits of receiving a request, in real time. */
export interface RequestTimes {
  readonly header: Duration
  /** For the whole request, with a large message. */
  readonly request: Duration
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

export interface WebServerDeps {
  readonly listener: Listener
  readonly clock: Clock
  /** Null for a server without TLS. */
  readonly certificate: WebCertificate | null
  readonly times?: RequestTimes
}

export class WebServer {
  readonly #server: Server | TlsServer
  readonly #clock: Clock
  /** Open connections whose request node:http has not passed on, and which it does not close with the server. */
  readonly #refused = new Set<Socket>()
  /** Responses that have not ended, by connection. */
  readonly #responses = new WeakMap<Socket, Set<ServerResponse>>()

  constructor({ listener, clock, certificate, times = TIMES }: WebServerDeps) {
    const { header, request: whole } = times
    // node:http looks for connections beyond their time limit at an interval.
    const options = { ...OPTIONS, headersTimeout: header, requestTimeout: whole, connectionsCheckingInterval: header / 5 }
    const server = certificate === null ? createServer(options) : createTlsServer({ ...options, ...certificate })
    server.maxConnections = CONNECTIONS
    const answering: Listener = (request, response) => {
      this.#note(request.socket, response)
      listener(request, response)
    }
    server.on('request', answering)
    server.on('checkContinue', answering)
    server.on('checkExpectation', ({ socket }) => this.#endWith(socket, rawProblem(HTTP_PROBLEMS.expectation)))
    server.on('connect', (_request, socket) => this.#endWith(socket as Socket, rawProblem(HTTP_PROBLEMS.methodNotAllowed, NO_PROXY)))
    server.on('clientError', (error, socket) => this.#refuse(error, socket as Socket))
    this.#server = server
    this.#clock = clock
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

  /** Closes the server. Running requests have GRACE to end; the caller ends streams before. */
  async close(): Promise<void> {
    if (!this.#server.listening) return
    const closed = new Promise<void>((resolve) => void this.#server.close(() => resolve()))
    this.#server.closeIdleConnections()
    await withTimeout(closed, this.#clock, GRACE, new AbortController().signal)
    this.#server.closeAllConnections()
    for (const socket of this.#refused) socket.destroy()
    await closed
  }

  #note(socket: Socket, response: ServerResponse): void {
    const open = this.#responses.get(socket) ?? new Set()
    this.#responses.set(socket, open.add(response))
    response.on('close', () => open.delete(response))
  }

  /** Answers a request that was not parsed, after the responses to earlier ones of the connection. */
  #refuse(error: Error, socket: Socket): void {
    if (isClosing(socket)) return
    const open = [...(this.#responses.get(socket) ?? [])]
    const earlier = open.findLast(({ req }) => req.complete)
    const isAnswering = open.some(({ headersSent, req }) => headersSent && !req.complete)
    if (errorCode(error) === 'ECONNRESET' || !socket.writable || isAnswering) socket.destroy()
    else if (earlier !== undefined) earlier.once('close', () => this.#refuse(error, socket))
    else this.#endWith(socket, rawProblem(PARSE_PROBLEMS[errorCode(error)] ?? HTTP_PROBLEMS.malformed))
  }

  /** Closes a connection after a whole response. node:http has no listener on the socket of a CONNECT request. */
  #endWith(socket: Socket, response: string): void {
    this.#refused.add(socket)
    socket.on('close', () => this.#refused.delete(socket))
    socket.on('error', () => socket.destroy())
    socket.write(response)
    closeInStages(socket, this.#clock)
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

/** Kind of the problem of a request that was not parsed, by the code of its error. */
const PARSE_PROBLEMS: Readonly<Record<string, ProblemKind>> = {
  HPE_HEADER_OVERFLOW: HTTP_PROBLEMS.headerTooLarge,
  ERR_HTTP_REQUEST_TIMEOUT: HTTP_PROBLEMS.timeout,
}

/** Detail and header fields of the answer to CONNECT. */
const NO_PROXY = { detail: 'method CONNECT not allowed: this server is no proxy', headers: { allow: 'GET, HEAD, POST, DELETE' } }

/** A whole response with a problem, after which the connection is closed. */
function rawProblem(
  kind: ProblemKind,
  { detail, headers }: { detail: string; headers: object } = { detail: kind.about, headers: {} },
): string {
  const body = `${JSON.stringify(problemJson(new Problem(kind, detail)))}\n`
  const fields = {
    ...headers,
    ...WEB_HEADERS,
    'cache-control': 'no-store',
    'content-type': 'application/problem+json',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${kind.status} ${STATUS_CODES[kind.status] ?? ''}`, ...lines, '', body].join('\r\n')
}
