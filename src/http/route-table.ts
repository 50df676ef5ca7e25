/**
 * Routes of the HTTP servers (admin.sock, admin_listen, http_listen). A route maps a method and a path to a handler and to the
 * role that the client needs. Matching is pure; route-listener.ts does the I/O.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Client } from './requests/forwarded-client.ts'
import { percentDecoded } from './requests/percent-encoding.ts'
import type { RequestBody } from './request-body.ts'
import type { Requester, Role } from './requests/requester.ts'

type Headers = Readonly<Record<string, string>>

/** Sends lines. `isBehind` is true while the client has not read 256 kB of them, which are kept in memory. */
type LineProducer = (send: (value: unknown) => void, isBehind: () => boolean) => Promise<void>

/** A response. Header fields of an answer replace those that all responses of the listener have. */
export type Answer =
  | { readonly kind: 'json'; readonly status: number; readonly value: unknown; readonly headers?: Headers }
  | { readonly kind: 'text'; readonly status: number; readonly contentType: string; readonly text: string; readonly headers?: Headers }
  /** Sends the client to another path, relative to that of the request, with GET (303 See Other). */
  | { readonly kind: 'redirect'; readonly location: string; readonly headers?: Headers }
  /** One JSON value per line (NDJSON), sent as soon as it is produced. `isSearch`: it is produced in a slot. */
  | { readonly kind: 'lines'; readonly isSearch?: boolean; readonly produce: LineProducer }
  /** Pieces are taken as fast as the client reads. The iterator ends when the client disconnects. */
  | {
      readonly kind: 'stream'
      readonly contentType: string
      readonly chunks: AsyncIterable<string | Uint8Array>
      readonly headers?: Headers
    }
  /**
   * Server-sent events, until the client disconnects. `send` takes a complete event, such as `data: …\n\n`. `subscribe` returns the
   * function that ends the subscription.
   */
  | { readonly kind: 'events'; readonly subscribe: (send: (event: string) => void) => () => void }
  /** Server-sent events that the client must not miss: taken as fast as it reads. The iterator ends when the client disconnects. */
  | { readonly kind: 'complete-events'; readonly chunks: AsyncIterable<string> }

export interface RouteRequest<Body> {
  /** Decoded values of the path's `:name` segments. */
  readonly parameters: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: Body
  /** The authenticated client; null on a route for `anyone`. */
  readonly requester: Requester | null
  /** The connection, and the origin that the client sees. */
  readonly client: Client
  /** Aborted when the client has disconnected, or the server closes. */
  readonly signal: AbortSignal
}

/** Work that may walk the whole queue. */
export type SlotKind = 'searches' | 'operations'

export interface Route<Body = unknown> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /**
   * Pattern such as `/destinations/:name`. A segment that begins with a colon matches any non-empty segment. The first matching
   * route is used.
   */
  readonly path: string
  readonly role: Role
  /** Absent for a request without a body. */
  readonly body?: RequestBody<Body>
  /** Slots of a request that may walk the whole queue: few of a kind run at once. */
  readonly slots?: SlotKind
  handler(request: RouteRequest<Body>): Answer | Promise<Answer>
}

/** Defines a route whose body type is inferred from the shape. */
export const route = <Body = undefined>(definition: Route<Body>): Route => definition

export type RouteMatch =
  | { readonly kind: 'found'; readonly route: Route; readonly parameters: Readonly<Record<string, string>> }
  | { readonly kind: 'wrong-method'; readonly allowed: readonly string[] }
  | { readonly kind: 'unknown-path' }

/** Values of a pattern's parameters in a path; null when the path does not match. */
function parametersOf(pattern: string, path: string): Readonly<Record<string, string>> | null {
  const [names, values] = [pattern.split('/'), path.split('/')]
  if (names.length !== values.length) return null
  const parameters: Record<string, string> = {}
  for (const [i, name] of names.entries()) {
    const value = percentDecoded(values[i] ?? '')
    if (!name.startsWith(':')) {
      if (name !== value) return null
    } else if (value === undefined || value === '') return null
    else parameters[name.slice(1)] = value
  }
  return parameters
}

/** Methods of a route. HEAD is GET without a response body (RFC 9110 §9.3.2). */
const methodsOf = ({ method }: Route): readonly string[] => (method === 'GET' ? ['GET', 'HEAD'] : [method])

/** Finds the route of a request. `path` does not include the query. A path that a route has literally is none of those with a parameter. */
export function matchRoute(routes: readonly Route[], method: string, path: string): RouteMatch {
  const all = routes.flatMap((candidate) => {
    const parameters = parametersOf(candidate.path, path)
    return parameters === null ? [] : [{ kind: 'found' as const, route: candidate, parameters }]
  })
  const literal = all.filter((match) => match.route.path === path)
  const matches = literal.length > 0 ? literal : all
  const found = matches.find((match) => methodsOf(match.route).includes(method))
  if (found !== undefined) return found
  if (matches.length === 0) return { kind: 'unknown-path' }
  return { kind: 'wrong-method', allowed: [...new Set(matches.flatMap((match) => methodsOf(match.route)))] }
}
