/** Refusals and failures of requests, as problem details (RFC 9457). */
import { errorExitCode, errorMessage } from '../system/caught-error.ts'
import type { WallTime } from '../system/clock.ts'
import { INVALID } from './command-protocol.ts'

export interface ProblemKind {
  /** Last part of the member `type`. */
  readonly slug: string
  readonly status: number
  readonly title: string
  /** Cause and remedy, for the documentation. */
  readonly about: string
}

const kind = (slug: string, status: number, title: string, about: string): ProblemKind => ({ slug, status, title, about })

/** Problems of any request. */
export const HTTP_PROBLEMS = {
  malformed: kind('malformed', 400, 'Malformed request', 'The request is not valid HTTP, its body is not JSON, or its form has no fields.'),
  unauthenticated: kind(
    'unauthenticated',
    401,
    'Authentication required',
    'The request has no valid token and no session: send `Authorization: Bearer TOKEN`, or open the link of `deferd page`.',
  ),
  notPermitted: kind('not-permitted', 403, 'Not permitted', 'The role of the token or session does not include this request.'),
  crossSite: kind(
    'cross-site',
    403,
    'Request from another site',
    'A browser sent the request from a page of another origin, or did not name the origin. Programs send a token instead of a cookie.',
  ),
  untrustedAddress: kind(
    'untrusted-address',
    403,
    'Address not trusted',
    '`admin_listen` has no TLS, so that only `admin_proxies` and this machine may connect to it.',
  ),
  unknownPath: kind('unknown-path', 404, 'Unknown path', 'No resource has this path.'),
  unknown: kind('unknown', 404, 'Not found', 'The named thing does not exist, or no longer.'),
  methodNotAllowed: kind(
    'method-not-allowed',
    405,
    'Method not allowed',
    'The field `Allow` of the response lists the methods of the path.',
  ),
  timeout: kind('timeout', 408, 'Request too slow', 'The request was not received in time.'),
  tooLarge: kind('too-large', 413, 'Body too large', 'The body has more bytes than the resource accepts.'),
  unsupportedMediaType: kind(
    'unsupported-media-type',
    415,
    'Media type not supported',
    'The resource does not accept bodies of this `Content-Type`, or with a `Content-Encoding`; the detail says what it accepts.',
  ),
  expectation: kind('expectation-failed', 417, 'Expectation failed', 'The field `Expect` may only be `100-continue`.'),
  wrongHost: kind(
    'wrong-host',
    421,
    'Host not served',
    'The field `Host` names neither this machine nor one of `admin_hosts`. This check stops DNS rebinding.',
  ),
  invalid: kind(INVALID, 422, 'Invalid request', 'Members of the body, or parameters of the query, are invalid; `errors` lists them.'),
  tooManyFailures: kind(
    'too-many-failures',
    429,
    'Too many failures',
    'The address has sent 10 wrong tokens or codes within a minute: wait for the seconds in `Retry-After`.',
  ),
  headerTooLarge: kind('header-too-large', 431, 'Header too large', 'The header of the request has more than 16 kB.'),
  internal: kind('internal', 500, 'Internal error', 'The request failed for a reason that the log of deferd has.'),
  busy: kind(
    'busy',
    503,
    'Busy',
    'As many searches, operations or streams run as are allowed, or the bodies of requests under way take as much memory: repeat the request after the seconds in `Retry-After`.',
  ),
  unavailable: kind(
    'unavailable',
    503,
    'Unavailable',
    'The queue is not available at present: repeat the request after the seconds in `Retry-After`.',
  ),
} as const satisfies Readonly<Record<string, ProblemKind>>

export interface InvalidPart {
  /** JSON pointer into the body (RFC 6901), or the name of a parameter of the query. */
  readonly pointer: string
  readonly detail: string
  /** For programs, where a problem has several. */
  readonly reason?: string
}

interface ProblemOptions extends ErrorOptions {
  readonly errors?: readonly InvalidPart[]
  readonly headers?: Readonly<Record<string, string>>
  /** Request of the API that leads on, such as `GET /tokens has all names`. The detail ends with it. */
  readonly hint?: string
  /** Instants that the detail has as ISO 8601. */
  readonly instants?: readonly WallTime[]
}

/** A request that is refused, or failed. The message is the detail: a sentence that states what failed, why, and what to do. */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly kind: ProblemKind
  /** The detail without the hint about the API, for the page. */
  readonly summary: string
  readonly errors: readonly InvalidPart[]
  readonly headers: Readonly<Record<string, string>>
  /** Instants in the detail, for the page, which has a zone of its own. */
  readonly instants: readonly WallTime[]

  constructor(problem: ProblemKind, detail: string, { errors = [], headers = {}, instants = [], hint, ...options }: ProblemOptions = {}) {
    super(hint === undefined ? detail : `${detail}; ${hint}`, options)
    this.kind = problem
    this.summary = detail
    this.errors = errors
    this.headers = headers
    this.instants = instants
  }
}

/** The problem of one invalid member or parameter. */
export const invalidPart = (pointer: string, detail: string): Problem =>
  new Problem(HTTP_PROBLEMS.invalid, `invalid request: ${pointer}: ${detail}`, { errors: [{ pointer, detail }] })

/** Base of the member `type`. Section of docs/api.md and path at which the kind is described. */
export const PROBLEM_TYPES = '/problems/'

export const problemJson = ({ kind: { slug, status, title }, message, errors }: Problem, requestId: string): object => ({
  type: `${PROBLEM_TYPES}${slug}`,
  title,
  status,
  detail: message,
  ...(errors.length === 0 ? {} : { errors }),
  request_id: requestId,
})

/** Time after which a client should repeat a request that failed because the queue was not available. */
const RETRY_AFTER = { 'retry-after': '5' }

/** The problem that an error of a handler is reported as: by its exit code (sysexits(3)), if it has one. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  const detail = errorMessage(error)
  switch (errorExitCode(error)) {
    case 65:
      return new Problem(HTTP_PROBLEMS.unknown, detail, { cause: error })
    case 69:
    case 75:
      return new Problem(HTTP_PROBLEMS.unavailable, detail, { cause: error, headers: RETRY_AFTER })
    case 77:
      return new Problem(HTTP_PROBLEMS.notPermitted, detail, { cause: error })
    case undefined:
    default:
      return new Problem(HTTP_PROBLEMS.internal, detail, { cause: error })
  }
}
