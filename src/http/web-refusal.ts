/** Responses to refused and failed requests of browsers and programs: a page, a redirection to the login, or problem details. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { problemAnswer } from './problem-answer.ts'
import { HTTP_PROBLEMS, problemOf, type Problem } from './problem-details.ts'
import type { AuthenticatedClient } from './requests/requester.ts'
import type { FailedRequest } from './route-listener.ts'
import type { Answer } from './route-table.ts'

interface RefusedRequest {
  readonly path: string
  /** Path and query of a request for a screen; null for a change. */
  readonly screen: string | null
  readonly headers: IncomingHttpHeaders
  readonly requester: AuthenticatedClient | null
}

/** Makes the page that shows a problem to a person. */
export type RefusalPage = (problem: Problem, request: RefusedRequest) => Answer

/** Path relative to `path` that leads to `name` at the root, also behind a proxy that strips a prefix. */
const fromRoot = (path: string, name: string): string => `${'../'.repeat(Math.max(0, path.split('/').length - 2))}${name}` || './'

/** A cookie of a session; it exists after the session has ended, too. */
const SESSION = /(?:^|;\s*)deferd-\d+=[^;\s]/

/** The screen to which the login leads back, and whether a session has ended. */
function loginQuery({ url = '', headers }: IncomingMessage): string {
  const query = new URLSearchParams()
  if (SESSION.test(headers.cookie ?? '')) query.set('ended', '1')
  if (url !== '/') query.set('back', url.slice(1))
  return query.size === 0 ? '' : `?${query.toString()}`
}

/** True for a request of a person who follows a link or sends a form. */
export const isNavigation = ({ url = '', headers }: IncomingMessage): boolean =>
  !url.startsWith('/api/') && (headers.accept ?? '').includes('text/html')

/** Responses to refused requests. A screen without a session leads to the login. */
export const webRefusal =
  (page: RefusalPage) =>
  ({ error, request, requester, requestId }: FailedRequest): Answer => {
    const problem = problemOf(error)
    const { url = '' } = request
    const [path = ''] = url.split('?', 1)
    if (!isNavigation(request)) return problemAnswer(problem, requestId)
    const isScreen = request.method === 'GET' || request.method === 'HEAD'
    if (problem.kind === HTTP_PROBLEMS.unauthenticated && isScreen)
      return { kind: 'redirect', location: fromRoot(path, `login${loginQuery(request)}`) }
    return page(problem, { path, screen: isScreen ? url : null, headers: request.headers, requester })
  }
