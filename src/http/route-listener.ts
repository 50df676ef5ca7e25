/** Serves a route table over node:http: admission, body, handler, response. The response of a refused request is that of `refusal`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { VERSION } from '../system/version.ts'
import { withTimeout, type Duration, type Timers } from '../system/clock.ts'
import { sendAnswer, type Exchange } from './answer-writer.ts'
import { VERSION_FIELD } from './command-protocol.ts'
import { RequestRoom, type BodyRoom } from './body-room.ts'
import type { Client } from './requests/forwarded-client.ts'
import type { EventStreams } from './event-streams.ts'
import { HTTP_PROBLEMS, Problem, problemOf } from './problem-details.ts'
import { awaitsContinue, collected, tooLarge, type RequestBody } from './request-body.ts'
import { requestId, REQUEST_ID_FIELD } from './web-headers.ts'
import { requestTarget, type RequestTarget } from './requests/request-target.ts'
import type { AuthenticatedClient, Role } from './requests/requester.ts'
import { matchRoute, type Answer, type Route, type RouteMatch } from './route-table.ts'
import type { AllSlots } from './slots.ts'
import type { UnreadAnswers } from './unread-answers.ts'
import { problemAnswer } from './problem-answer.ts'

/** A request that may be answered. */
export interface Admitted {
  readonly client: Client
  /** Null on a route for anyone. */
  readonly requester: AuthenticatedClient | null
  /** Resolves with false when the client has lost the right to the response, such as by a logout. */
  readonly confirm: () => Promise<boolean>
}

/** A request that was refused, or that failed. */
export interface FailedRequest {
  readonly error: unknown
  readonly request: IncomingMessage
  /** Null when the request was not admitted. */
  readonly requester: AuthenticatedClient | null
  readonly requestId: string
}

interface ListenerOptions {
  readonly routes: readonly Route[]
  readonly clock: Timers
  /**
   * Admits a request to a route of this role; rejects with Problem. It is also called, for the role `anyone`, when no route matches, so
   * that every refusal of a host precedes any other answer.
   */
  readonly admit: (request: IncomingMessage, target: RequestTarget, role: Role) => Promise<Admitted>
  /** The response to a refused or failed request. */
  readonly refusal: (failed: FailedRequest) => Answer
  /** Header fields of all responses. */
  readonly headers: Readonly<Record<string, string>>
  readonly streams: EventStreams
  readonly slots: AllSlots
  /** Memory for bodies; shared by the listeners of a daemon. */
  readonly bodies: BodyRoom
  /** Null for clients that may leave an answer unread for as long as they like. */
  readonly unread: UnreadAnswers | null
  /** Called for each refused or failed request. */
  readonly refused?: (problem: Problem, failed: FailedRequest) => void
}

/** Time limit of receiving a JSON body or a form. A streamed body has the limit of the server for a whole request. */
const BODY_TIMEOUT: Duration = 30_000

const MOST_LISTED_PATHS = 12

/** A request listener for node:http, also for the event `checkContinue`. */
export type Listener = (request: IncomingMessage, response: ServerResponse) => void

/** A handler runs to its end even when the client disconnects, unless it observes `signal`. */
export function routeListener(options: ListenerOptions): Listener {
  return (request, response) => {
    for (const [name, value] of Object.entries(options.headers)) response.setHeader(name, value)
    const id = requestId(request.headers[REQUEST_ID_FIELD])
    response.setHeader(REQUEST_ID_FIELD, id)
    // A client that has disconnected needs no response.
    response.on('error', () => undefined)
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    let requester: AuthenticatedClient | null = null
    const { streams, clock, unread } = options
    const exchange: Exchange = { id, request, response, streams, clock, unread, signal: gone.signal, confirm: () => Promise.resolve(true) }
    serve(options, exchange, (admitted) => (requester = admitted.requester)).catch((error: unknown) =>
      fail(options, exchange, { error, request, requester, requestId: id }),
    )
  }
}

async function serve(options: ListenerOptions, exchange: Exchange, noteAdmitted: (admitted: Admitted) => void): Promise<void> {
  const { request } = exchange
  if (request.httpVersionMajor !== 1)
    throw new Problem(HTTP_PROBLEMS.malformed, `the request has the version HTTP/${request.httpVersion}: send HTTP/1.1`)
  const target = requestTarget(request.url ?? '')
  if (target === undefined)
    throw new Problem(HTTP_PROBLEMS.malformed, 'the target of the request is neither a path nor a URL of this server')
  const match = matchRoute(options.routes, request.method ?? '', target.path)
  const admitted = await options.admit(request, target, match.kind === 'found' ? match.route.role : 'anyone')
  noteAdmitted(admitted)
  // A command of another version says so.
  if (admitted.requester?.role === 'local') exchange.response.setHeader(VERSION_FIELD, VERSION)
  const { route, parameters } = found(match, request.method ?? '', target.path, options.routes)
  const requester = admitted.requester && { ...admitted.requester, requestId: exchange.id }
  const { signal } = exchange
  // A command waits for no other client, and one that was stopped (SIGTSTP) reads its answer when it continues.
  const isLocal = requester?.role === 'local'
  const room = new RequestRoom(options.bodies, { name: requester?.name ?? '', signal })
  const made = async (): Promise<Answer> => {
    const body = route.body === undefined ? undefined : await receive(route.body, { ...exchange, room })
    const facts = { parameters, query: target.query, headers: request.headers, body, requester, client: admitted.client, signal }
    const handler = async (): Promise<Answer> => route.handler(facts)
    return route.slots === undefined || isLocal ? handler() : options.slots[route.slots].answer(handler, signal)
  }
  const answer = await made().finally(() => room.release())
  await sendAnswer({ ...exchange, ...(isLocal ? { unread: null } : {}), confirm: admitted.confirm }, answer)
}

function found(match: RouteMatch, method: string, path: string, routes: readonly Route[]): Extract<RouteMatch, { kind: 'found' }> {
  switch (match.kind) {
    case 'found':
      return match
    case 'wrong-method': {
      const allow = match.allowed.join(', ')
      throw new Problem(HTTP_PROBLEMS.methodNotAllowed, `method ${method} not allowed for ${path}; allowed: ${allow}`, {
        headers: { allow },
      })
    }
    case 'unknown-path': {
      const known = [...new Set(routes.map((route) => route.path))]
      const description = known.find((one) => one.endsWith('/openapi.json'))
      const some = known.length > MOST_LISTED_PATHS ? '' : `; known: ${known.join(', ')}`
      const rest = description === undefined ? some : `; GET ${description} describes the resources`
      throw new Problem(HTTP_PROBLEMS.unknownPath, `no such path: ${path}${rest}`)
    }
  }
}

/** Media type of a request, without parameters. */
const mediaType = ({ headers }: IncomingMessage): string => (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''

interface Receiving extends Exchange {
  readonly room: RequestRoom
}

async function receive<Body>(body: RequestBody<Body>, { request, response, signal, clock, room }: Receiving): Promise<Body> {
  const contentType = mediaType(request)
  if (!body.types.includes(contentType)) {
    const given = contentType === '' ? 'the request has no Content-Type' : `the Content-Type is ${contentType}`
    throw new Problem(HTTP_PROBLEMS.unsupportedMediaType, `${given}; accepted: ${body.types.join(', ')}`)
  }
  assertNotEncoded(request)
  const limit = body.limit()
  const { 'content-length': length } = request.headers
  const declared = length === undefined ? null : Number(length)
  if (declared !== null && declared > limit) throw tooLarge(limit)
  if (awaitsContinue(request)) response.writeContinue()
  const bytes = limited(request, limit)
  const otherTypes = body.types.filter((type) => type !== contentType)
  const reading = body.read({ contentType, bytes, collected: () => collected(bytes, { declared, limit, room, otherTypes }) })
  if (body.isStreamed) return reading
  const read = await withTimeout(
    reading.then((value) => ({ value })),
    clock,
    BODY_TIMEOUT,
    signal,
  )
  if (read !== undefined) return read.value
  if (signal.aborted) throw new Error('the client has disconnected')
  throw new Problem(HTTP_PROBLEMS.timeout, `the body was not received within ${BODY_TIMEOUT / 1_000} s`)
}

/** Throws Problem for a body with a content coding (RFC 9110 §8.4), which would be read as if it had none. */
function assertNotEncoded({ headers }: IncomingMessage): void {
  const coding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (coding === '' || coding === 'identity') return
  throw new Problem(HTTP_PROBLEMS.unsupportedMediaType, `the Content-Encoding is ${coding}; send the body without one`, {
    headers: { 'accept-encoding': 'identity' },
  })
}

/** The bytes of a body. Throws Problem at the limit; the connection stays open for the response. */
async function* limited(request: IncomingMessage, limit: number): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > limit) throw tooLarge(limit)
    yield chunk
  }
}

function fail({ refusal, refused }: ListenerOptions, exchange: Exchange, failed: FailedRequest): void {
  const { response, signal } = exchange
  const { error } = failed
  if (signal.aborted && !(error instanceof Problem)) return
  refused?.(problemOf(error), failed)
  if (response.headersSent) {
    // The client sees by the missing end that the response is not complete.
    response.destroy()
    return
  }
  sendAnswer(exchange, refusalAnswer(refusal, refused, failed)).catch(() => response.destroy())
}

/** The answer to a failed request: in problem details where `refusal` fails, too. */
function refusalAnswer(refusal: ListenerOptions['refusal'], refused: ListenerOptions['refused'], failed: FailedRequest): Answer {
  try {
    return refusal(failed)
  } catch (error) {
    refused?.(problemOf(error), { ...failed, error })
    return problemAnswer(problemOf(failed.error), failed.requestId)
  }
}
