/** Serves a route table over node:http. An error response is a JSON object with one sentence. Responses are never cached. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { errorExitCode, errorMessage } from '../system/caught-error.ts'
import { VERSION } from '../system/version.ts'
import { describeProblem, matchRoute, type Answer, type Role, type Route, type RouteRequest } from './route-table.ts'

/** Body of an error response. Also the last line of an NDJSON response that failed after its start. */
export interface Failure {
  readonly kind: 'failed'
  readonly why: string
  /** Exit code for a command (sysexits(3)). */
  readonly exitCode: number
}

/** EX_SOFTWARE, for errors without an exit code. */
const SOFTWARE = 70

/** HTTP status by an error's exit code (EX_DATAERR, EX_UNAVAILABLE, EX_TEMPFAIL, EX_NOPERM); 500 for other codes. */
const STATUS_BY_EXIT_CODE: Readonly<Record<number, number>> = { 65: 404, 69: 503, 75: 503, 77: 403 }

/** A request that is refused before its handler runs. */
class RequestRefused extends Error {
  override readonly name = 'RequestRefused'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

/** Reads the whole body, so that the response reaches the client, but keeps at most `limit` bytes. */
async function readBody(request: IncomingMessage, limit: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size <= limit) chunks.push(chunk)
    else chunks.length = 0
  }
  if (size > limit) throw new RequestRefused(413, `request body too large: ${size} bytes; the limit is ${limit}`)
  return Buffer.concat(chunks).toString()
}

async function parseBody(request: IncomingMessage, { body }: Route): Promise<unknown> {
  if (body === undefined) return undefined
  const text = await readBody(request, body.limit)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new RequestRefused(400, `request refused: the body is not JSON: ${errorMessage(cause)}`)
  }
  const parsed = body.shape.safeParse(value)
  if (!parsed.success) throw new RequestRefused(400, `request refused: ${describeProblem(parsed.error)}`)
  return parsed.data
}

function find(
  routes: readonly Route[],
  method: string,
  path: string,
): Pick<RouteRequest<unknown>, 'parameters'> & { readonly route: Route } {
  const match = matchRoute(routes, method, path)
  switch (match.kind) {
    case 'found':
      return match
    case 'wrong-method': {
      const allowed = match.allowed.join(', ')
      throw new RequestRefused(405, `method ${method} not allowed for ${path}; allowed: ${allowed}`, { allow: allowed })
    }
    case 'unknown-path': {
      const known = [...new Set(routes.map((one) => one.path))].join(', ')
      throw new RequestRefused(404, `no such path: ${path}; known: ${known}`)
    }
  }
}

async function answerTo(routes: readonly Route[], roles: readonly Role[], request: IncomingMessage): Promise<Answer> {
  const [path = '', query] = (request.url ?? '').split('?', 2)
  const { route, parameters } = find(routes, request.method ?? '', path)
  if (!roles.includes(route.role)) throw new RequestRefused(403, `${path} needs the role ${route.role}`)
  return route.handler({ parameters, query: new URLSearchParams(query), body: await parseBody(request, route) })
}

function write(response: ServerResponse, status: number, contentType: string, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store', ...headers })
}

const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`

async function send(response: ServerResponse, answer: Answer): Promise<void> {
  switch (answer.kind) {
    case 'json':
      write(response, answer.status, 'application/json')
      response.end(jsonLine(answer.value))
      return
    case 'text':
      write(response, answer.status, answer.contentType)
      response.end(answer.text)
      return
    case 'lines':
      write(response, 200, 'application/x-ndjson')
      await answer.produce((value) => void response.write(jsonLine(value)))
      response.end()
  }
}

function fail(response: ServerResponse, error: unknown): void {
  const exitCode = errorExitCode(error) ?? SOFTWARE
  const failure: Failure = { kind: 'failed', why: errorMessage(error), exitCode }
  if (!response.headersSent) {
    if (error instanceof RequestRefused) write(response, error.status, 'application/json', error.headers)
    else write(response, STATUS_BY_EXIT_CODE[exitCode] ?? 500, 'application/json')
  }
  response.end(jsonLine(failure))
}

/**
 * Creates a request listener for node:http, whose clients have all of `roles`. Each response has the version of the daemon in the
 * field Deferd-Version. A handler runs to its end even when the client disconnects.
 */
export const routeListener =
  (routes: readonly Route[], roles: readonly Role[]): RequestListener =>
  (request, response) => {
    response.setHeader('deferd-version', VERSION)
    // A client that has disconnected needs no response.
    response.on('error', () => undefined)
    answerTo(routes, roles, request)
      .then((answer) => send(response, answer))
      .catch((error: unknown) => fail(response, error))
  }
