/**
 * A loopback port whose requests are forwarded to a server on a Unix socket. Requests are parsed and written anew, so that the
 * client cannot add fields that the server believes of the Unix socket.
 */
import { createServer, request as httpRequest, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { errorMessage } from '../system/caught-error.ts'
import { seconds, type Timers } from '../system/clock.ts'
import type { Connections } from './connections.ts'
import type { Listener } from './route-listener.ts'
import { awaitsContinue } from './request-body.ts'
import { closeAfter } from './staged-close.ts'
import { timeLimits, UnparsedRequests, type RequestTimes } from './unparsed-requests.ts'
import { WEB_HEADERS } from './web-headers.ts'
import { problemAnswer } from './problem-answer.ts'

/** Fields that concern one connection (RFC 9110 §7.6.1), and those that the server believes of the Unix socket. */
const DROPPED = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'forwarded',
])
const isDropped = (name: string): boolean => DROPPED.has(name) || name.startsWith('x-forwarded-')

const TIMES: RequestTimes = { header: seconds(10), request: seconds(300) }

/** Name and value pairs as node:http takes them, without the fields of one connection. */
function forwardedFields(rawHeaders: readonly string[]): string[] {
  const pairs = rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name, rawHeaders[i + 1] ?? ''] as const] : []))
  return pairs.filter(([name]) => !isDropped(name.toLowerCase())).flat()
}

export class SocketForwarder {
  readonly #socketPath: string
  readonly #clock: Timers
  readonly #server: Server
  readonly #connections: Connections

  constructor(socketPath: string, clock: Timers, times: RequestTimes = TIMES) {
    this.#socketPath = socketPath
    this.#clock = clock
    this.#server = createServer({ ...timeLimits(times), requireHostHeader: false })
    const listener: Listener = (incoming, response) => this.#forward(incoming, response)
    const { connections } = new UnparsedRequests(this.#server, { listener, refusal: problemAnswer, headers: WEB_HEADERS, clock })
    this.#connections = connections
  }

  /** Opens the port on 127.0.0.1, and resolves with its number; a free one for 0. Rejects with the system's error. */
  async listen(port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, '127.0.0.1', resolve)
    })
    return (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    await this.#connections.close(0)
  }

  #forward(incoming: IncomingMessage, response: ServerResponse): void {
    const { method, url, rawHeaders, headers, socket } = incoming
    if (awaitsContinue(incoming)) response.writeContinue()
    const isChunked = headers['transfer-encoding'] !== undefined
    const fields = [
      ...forwardedFields(rawHeaders),
      'X-Forwarded-For',
      socket.remoteAddress ?? '127.0.0.1',
      ...(isChunked ? ['Transfer-Encoding', 'chunked'] : []),
      // A server that closes after its response could do so before the last write of the body, which would fail with EPIPE.
      'Connection',
      'keep-alive',
    ]
    const outgoing = httpRequest({ socketPath: this.#socketPath, method, path: url, headers: fields, setHost: false, agent: false })
    outgoing.on('response', (answer) => {
      this.#closeEarly(response)
      response.writeHead(answer.statusCode ?? 502, forwardedFields(answer.rawHeaders))
      response.flushHeaders()
      answer.pipe(response)
      answer.on('error', () => response.destroy())
    })
    outgoing.on('error', (error) => this.#fail(response, error))
    // Ends the request of a client that has disconnected, and with it a stream.
    response.on('close', () => outgoing.destroy())
    response.on('error', () => undefined)
    incoming.pipe(outgoing)
  }

  /** Closes the connection after a response that precedes the end of its request. */
  #closeEarly(response: ServerResponse): void {
    if (!response.req.complete) closeAfter(response, this.#clock)
  }

  #fail(response: ServerResponse, error: Error): void {
    if (response.headersSent) {
      // After a whole answer, the rest of the request has no reader.
      if (!response.writableEnded) response.destroy()
      return
    }
    this.#closeEarly(response)
    response.writeHead(502, { ...WEB_HEADERS, 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' })
    response.end(`The daemon does not answer at its socket (${errorMessage(error)}): see its log, and start it again if it has ended.\n`)
  }
}
