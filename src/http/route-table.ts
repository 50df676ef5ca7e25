/**
 * Routes of the HTTP servers (control socket, http_listen). A route maps a method and a path to a handler and to the role that
 * the client needs. Matching is pure; route-server.ts does the I/O.
 */
import type { z } from 'zod'

/**
 * Role of a client. `anyone` requires no authentication. `local` is the control socket, which only the owner of the queue and
 * root can open.
 */
export type Role = 'anyone' | 'viewer' | 'operator' | 'sender' | 'admin' | 'local'

/** A response. `lines` are sent as soon as they are produced, one JSON value per line (NDJSON). */
export type Answer =
  | { readonly kind: 'json'; readonly status: number; readonly value: unknown }
  | { readonly kind: 'text'; readonly status: number; readonly contentType: string; readonly text: string }
  | { readonly kind: 'lines'; readonly produce: (send: (value: unknown) => void) => Promise<void> }

export interface RouteRequest<Body> {
  /** Decoded values of the path's `:name` segments. */
  readonly parameters: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly body: Body
}

export interface Route<Body = unknown> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /**
   * Pattern such as `/destinations/:name`. A segment that begins with a colon matches any non-empty segment. The first matching
   * route is used.
   */
  readonly path: string
  readonly role: Role
  /** Shape and maximum size in bytes of the JSON body. Absent for a request without a body. */
  readonly body?: { readonly shape: z.ZodType<Body>; readonly limit: number }
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
    const value = decoded(values[i] ?? '')
    if (!name.startsWith(':')) {
      if (name !== value) return null
    } else if (value === undefined || value === '') return null
    else parameters[name.slice(1)] = value
  }
  return parameters
}

/** Decodes a segment. Undefined when its percent-encoding is invalid (RFC 3986 §2.1). */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

/** Methods of a route. HEAD is GET without a response body (RFC 9110 §9.3.2). */
const methodsOf = ({ method }: Route): readonly string[] => (method === 'GET' ? ['GET', 'HEAD'] : [method])

/** Finds the route of a request. `path` does not include the query. */
export function matchRoute(routes: readonly Route[], method: string, path: string): RouteMatch {
  const matches = routes.flatMap((candidate) => {
    const parameters = parametersOf(candidate.path, path)
    return parameters === null ? [] : [{ kind: 'found' as const, route: candidate, parameters }]
  })
  const found = matches.find((match) => methodsOf(match.route).includes(method))
  if (found !== undefined) return found
  if (matches.length === 0) return { kind: 'unknown-path' }
  return { kind: 'wrong-method', allowed: [...new Set(matches.flatMap((match) => methodsOf(match.route)))] }
}

/** Describes the first problem of a body in one sentence. Unknown or missing members indicate a client of another version. */
export function describeProblem({ issues: [issue] }: z.ZodError): string {
  if (issue === undefined) return 'the request has another shape than expected'
  const path = issue.path.map(String)
  if (issue.code === 'unrecognized_keys') {
    const names = issue.keys.map((key) => JSON.stringify(key)).join(', ')
    return `unknown member ${names}${within(path)}; if this daemon is older than the command, restart it`
  }
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) {
    return `missing member "${path.at(-1) ?? ''}"${within(path.slice(0, -1))}; use a command of the daemon's version`
  }
  return [...(path.length > 0 ? [path.join('.')] : []), issue.message].join(': ')
}

const within = (path: readonly string[]): string => (path.length === 0 ? '' : ` of ${path.join('.')}`)
