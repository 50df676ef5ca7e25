/**
 * Routes of /api/v1 with their documentation: one definition gives the route, its part of the OpenAPI document and its section of
 * docs/api.md.
 */
import { z } from 'zod'
import { BASE, NDJSON } from '../../http/command-protocol.ts'
import { HTTP_PROBLEMS, Problem, type ProblemKind } from '../../http/problem-details.ts'
import { shaped, type RequestBody } from '../../http/request-body.ts'
import type { Requester, Rights, Role } from '../../http/requests/requester.ts'
import type { Answer, Route, RouteRequest } from '../../http/route-table.ts'
import { wholeNumber } from '../../queries/cursor.ts'

export interface AnswerDescription {
  readonly about: string
  /** Media type; JSON when absent. */
  readonly type?: string
  /** Shape of a JSON response, or of each line or event. */
  readonly shape?: z.ZodType
}

/** A request to the API, with its checked query. */
export interface ApiRequest<Query, Body> extends Omit<RouteRequest<Body>, 'query' | 'requester'> {
  readonly query: Query
  /** The parameters as the client has written them. */
  readonly written: URLSearchParams
  readonly requester: Requester
}

export interface Definition<Query, Body> {
  readonly method: Route['method']
  /** Path below that of the API. */
  readonly path: string
  readonly role: Exclude<Role, 'anyone' | 'local'>
  readonly summary: string
  readonly about?: string
  readonly query?: z.ZodType<Query>
  readonly body?: RequestBody<Body>
  /** Shapes of the body by media type, for the documentation; that of `body` for JSON when absent. */
  readonly bodies?: Readonly<Record<string, z.ZodType | null>>
  /** Example of a JSON body. */
  readonly example?: unknown
  /** Header fields of the request, with their meaning. */
  readonly headers?: Readonly<Record<string, string>>
  readonly answers: Readonly<Record<number, AnswerDescription | readonly AnswerDescription[]>>
  /** Problems of this route, in addition to those of any request. */
  readonly problems?: readonly ProblemKind[]
  readonly slots?: Route['slots']
  handler(request: ApiRequest<Query, Body>): Answer | Promise<Answer>
}

export interface ApiRoute extends Route {
  readonly about: Omit<Definition<unknown, unknown>, 'handler'>
}

/** Defines a route of the API. */
export const apiRoute = <Query = unknown, Body = undefined>(definition: Definition<Query, Body>): ApiRoute =>
  documentedRoute(BASE, definition)

/** Defines a route below `base`. A query with unknown or invalid parameters is refused. */
export function documentedRoute<Query, Body>(base: string, definition: Definition<Query, Body>): ApiRoute {
  const { method, path, role, query = z.strictObject({}), body, slots } = definition
  return {
    method,
    path: `${base}${path}`,
    role,
    ...(body === undefined ? {} : { body }),
    ...(slots === undefined ? {} : { slots }),
    about: definition,
    handler: (request) => {
      const { requester } = request
      if (requester === null) throw new Problem(HTTP_PROBLEMS.unauthenticated, 'this resource needs a token or a session')
      const values = shaped(query as z.ZodType<Query>, valuesOf(request.query))
      return definition.handler({ ...request, requester, body: request.body as Body, query: values, written: request.query })
    },
  }
}

/** The parameters of a query. A parameter that occurs several times becomes a list. */
function valuesOf(query: URLSearchParams): Readonly<Record<string, string | readonly string[]>> {
  const values: Record<string, string | readonly string[]> = Object.create(null) as Record<string, string | readonly string[]>
  for (const name of new Set(query.keys())) {
    const all = query.getAll(name)
    values[name] = all.length === 1 ? (all[0] ?? '') : all
  }
  return { ...values }
}

/** The destinations that a client sees, and the end of its request. */
export const viewerOf = ({
  requester,
  signal,
}: ApiRequest<unknown, unknown>): { readonly visible: string | null; readonly signal: AbortSignal } => ({
  visible: requester.destinations,
  signal,
})

/** Throws Problem for a client that is limited to some destinations. */
export function assertUnlimited({ requester: { destinations } }: { readonly requester: Pick<Rights, 'destinations'> }): void {
  if (destinations !== null) throw new Problem(HTTP_PROBLEMS.notPermitted, `the token is limited to the destinations ${destinations}`)
}

/** A page with the field Link of RFC 8288 for the next one. */
export function page(value: { readonly next: string | null }, written: URLSearchParams, parameter: 'after' | 'before'): Answer {
  if (value.next === null) return json(value)
  const words = new URLSearchParams(written)
  words.set(parameter, value.next)
  return json(value, { link: `<?${words.toString()}>; rel="next"` })
}

/** `limit` of a page. */
export const pageLimit = wholeNumber(1, 500).default(50).describe('entries per page')
export const pageCursor = z.string().max(500).optional().describe('cursor of the former page')

/** True when the field Accept names a media type, with a weight above 0 (RFC 9110 §12.5.1). */
export const accepts = ({ headers }: Pick<RouteRequest<unknown>, 'headers'>, type: string): boolean =>
  (headers.accept ?? '').split(',').some((range) => {
    const [name, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    return name === type && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
  })

/** A JSON response. */
export const json = (value: unknown, headers?: Readonly<Record<string, string>>): Answer => ({
  kind: 'json',
  status: 200,
  value,
  ...(headers === undefined ? {} : { headers }),
})

/** True when a client prefers one value per line. */
export const wantsLines = (request: ApiRequest<unknown, unknown>): boolean => accepts(request, NDJSON)

export const lines = (chunks: AsyncIterable<Uint8Array | string>): Answer => ({ kind: 'stream', contentType: NDJSON, chunks })

/** A text that names something, or a pattern. */
export const nameOrPattern = z.string().min(1).max(1_000)

/** Maximum size of a body without lists. */
export const SMALL_BODY = 64 * 1024
