/**
 * Requests of a server that node:http does not pass on: malformed ones, those beyond a limit of size or time, CONNECT, unknown expectations.
 * Each gets a whole response, after which its connection is closed in stages.
 */
import { STATUS_CODES, type Server, type ServerOptions } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { jsonLine } from '../presentation/text.ts'
import { errorCode } from '../system/caught-error.ts'
import type { Duration, Timers } from '../system/clock.ts'
import { Connections } from './connections.ts'
import { HTTP_PROBLEMS, Problem, type ProblemKind } from './problem-details.ts'
import { requestId, REQUEST_ID_FIELD } from './web-headers.ts'
import type { Listener } from './route-listener.ts'
import type { Answer } from './route-table.ts'
import { closeAfter, closeInStages, isClosing } from './staged-close.ts'

/** Time limits of receiving a request, in real time. */
export interface RequestTimes {
  readonly header: Duration
  /** For the whole request, with its body. */
  readonly request: Duration
}

/** Options of a server with these limits. node:http looks for connections beyond their limit at an interval. */
export const timeLimits = ({ header, request }: RequestTimes): ServerOptions => ({
  headersTimeout: header,
  requestTimeout: request,
  connectionsCheckingInterval: header / 5,
})

interface UnparsedRequestsDeps {
  /** Receives all other requests, also those that wait for 100 Continue. */
  readonly listener: Listener
  readonly refusal: (problem: Problem, requestId: string) => Extract<Answer, { kind: 'json' | 'text' }>
  /** Header fields of all responses. */
  readonly headers: Readonly<Record<string, string>>
  readonly clock: Timers
}

export class UnparsedRequests {
  /** Connections of the server, with which it is closed. */
  readonly connections: Connections
  readonly #deps: UnparsedRequestsDeps

  constructor(server: Server | TlsServer, deps: UnparsedRequestsDeps) {
    this.#deps = deps
    this.connections = new Connections(server, deps.clock)
    const answering: Listener = (request, response) => {
      this.connections.note(response)
      if (this.connections.isClosing) closeAfter(response, deps.clock)
      deps.listener(request, response)
    }
    server.on('request', answering)
    server.on('checkContinue', answering)
    server.on('checkExpectation', ({ socket }) => this.#endWith(socket, problemOf(HTTP_PROBLEMS.expectation)))
    server.on('connect', (_request, socket) => this.#endWith(socket as Socket, NO_PROXY))
    server.on('clientError', (error, socket) => this.#refuse(error, socket as Socket))
  }

  /** Answers a request that was not parsed, after the responses to earlier ones of the connection. */
  #refuse(error: Error, socket: Socket): void {
    if (isClosing(socket)) return
    const open = this.connections.responsesOf(socket)
    const earlier = open.findLast(({ req }) => req.complete)
    const isAnswering = open.some(({ headersSent, req }) => headersSent && !req.complete)
    if (errorCode(error) === 'ECONNRESET' || !socket.writable || isAnswering) socket.destroy()
    else if (earlier !== undefined) earlier.once('close', () => this.#refuse(error, socket))
    else this.#endWith(socket, problemOf(PARSE_PROBLEMS[errorCode(error)] ?? HTTP_PROBLEMS.malformed))
  }

  /** Closes a connection after a whole response. node:http has no listener on the socket of a CONNECT request. */
  #endWith(socket: Socket, problem: Problem): void {
    const { refusal, headers, clock } = this.#deps
    socket.on('error', () => socket.destroy())
    const id = requestId()
    socket.write(rawResponse(refusal(problem, id), { ...headers, [REQUEST_ID_FIELD]: id }))
    closeInStages(socket, clock)
  }
}

/** Kind of the problem of a request that was not parsed, by the code of its error. */
const PARSE_PROBLEMS: Readonly<Record<string, ProblemKind>> = {
  HPE_HEADER_OVERFLOW: HTTP_PROBLEMS.headerTooLarge,
  ERR_HTTP_REQUEST_TIMEOUT: HTTP_PROBLEMS.timeout,
}

const problemOf = (kind: ProblemKind): Problem => new Problem(kind, kind.about)

const NO_PROXY = new Problem(HTTP_PROBLEMS.methodNotAllowed, 'method CONNECT not allowed: this server is no proxy', {
  headers: { allow: 'GET, HEAD, POST, DELETE' },
})

/** A whole response, after which the connection is closed. */
function rawResponse(answer: ReturnType<UnparsedRequestsDeps['refusal']>, headers: Readonly<Record<string, string>>): string {
  const [type, body] = answer.kind === 'text' ? [answer.contentType, answer.text] : ['application/json', jsonLine(answer.value)]
  const fields = {
    ...answer.headers,
    ...headers,
    'cache-control': 'no-store',
    'content-type': type,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}`, ...lines, '', body].join('\r\n')
}
