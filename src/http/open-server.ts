/** A server without authentication, for http_listen. An error response is a JSON object with one sentence. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Timers } from '../system/clock.ts'
import { errorMessage } from '../system/caught-error.ts'
import { VERSION } from '../system/version.ts'
import { BodyRoom } from './body-room.ts'
import type { Connections } from './connections.ts'
import { EventStreams } from './event-streams.ts'
import { VERSION_FIELD } from './command-protocol.ts'
import type { Client } from './requests/forwarded-client.ts'
import { HTTP_PROBLEMS, Problem, problemOf } from './problem-details.ts'
import { routeListener, type Admitted } from './route-listener.ts'
import type { Answer, Route } from './route-table.ts'
import { newSlots } from './slots.ts'
import { UnreadAnswers } from './unread-answers.ts'
import { timeLimits, UnparsedRequests, type RequestTimes } from './unparsed-requests.ts'

export interface OpenServer {
  readonly server: Server
  /** Connections of `server`, with which it is closed. */
  readonly connections: Connections
}

interface OpenServerOptions {
  readonly clock: Timers
  readonly times: RequestTimes
}

/**
 * Property of a server of node:http that answers a client which has ended its direction, as `nc -N` does. A server with searches and streams
 * takes that end for the end of the client instead.
 */
const HALF_OPEN = { httpAllowHalfOpen: true }

/** Each response has the version of the daemon in the field Deferd-Version. */
const HEADERS = { [VERSION_FIELD]: VERSION }

export function openServer(routes: readonly Route[], { clock, times }: OpenServerOptions): OpenServer {
  // A request without Host is refused by `admit`, with the header fields of all responses.
  const server = Object.assign(createServer({ ...timeLimits(times), requireHostHeader: false }), HALF_OPEN)
  const listener = routeListener({
    routes,
    clock,
    streams: new EventStreams(clock),
    slots: newSlots(clock),
    bodies: new BodyRoom(clock),
    unread: new UnreadAnswers(clock),
    admit: async (request) => admitted(request),
    refusal: ({ error }) => failureAnswer(error),
    headers: HEADERS,
  })
  const { connections } = new UnparsedRequests(server, { listener, refusal: failureAnswer, headers: HEADERS, clock })
  return { server, connections }
}

function failureAnswer(error: unknown): Extract<Answer, { kind: 'json' }> {
  const { kind, headers } = problemOf(error)
  return {
    kind: 'json',
    status: kind.status,
    value: { kind: 'failed', why: errorMessage(error) },
    headers,
  }
}

const UNKNOWN: Client = { address: 'local', scheme: 'http', host: 'localhost', user: null }

/** Throws Problem for a request of HTTP/1.1 without the field Host (RFC 9112 §3.2). */
function admitted({ httpVersion, headers }: IncomingMessage): Admitted {
  if (httpVersion !== '1.0' && headers.host === undefined) throw new Problem(HTTP_PROBLEMS.malformed, 'the request has no field Host')
  return { client: UNKNOWN, requester: null, confirm: () => Promise.resolve(true) }
}
