/** Routes of the login and the logout. */
import { z } from 'zod'
import { cookieName, cookieValue, sessionCookie } from '../http/cookies.ts'
import type { FailureLimit } from '../http/failure-limit.ts'
import { formBody } from '../http/request-body.ts'
import { route, type Answer, type Route } from '../http/route-table.ts'
import { assertMayTry } from '../http/web-admission.ts'
import type { Sessions } from './sessions.ts'

/** The login page. `problem` is the sentence on a failed login; null at the first visit. */
export type LoginPage = (facts: { readonly problem: string | null }) => string

interface AccountRoutesDeps {
  readonly sessions: Sessions
  readonly failures: FailureLimit
  readonly loginPage: LoginPage
  readonly loggedOut: () => void
  /** Logs a refused login. */
  readonly refused: (address: string) => void
}

const BODY_LIMIT = 4_096

const UNKNOWN_CODE = 'The code is unknown, was used already, or is older than 60 seconds. Run “deferd page” again.'

export function accountRoutes({ sessions, failures, loginPage, loggedOut, refused }: AccountRoutesDeps): readonly Route[] {
  const form = (status: number, problem: string | null): Answer => ({
    kind: 'text',
    status,
    contentType: 'text/html; charset=utf-8',
    text: loginPage({ problem }),
  })
  return [
    route({ method: 'GET', path: '/login', role: 'anyone', handler: () => form(200, null) }),
    route({
      method: 'POST',
      path: '/login',
      role: 'anyone',
      body: formBody(z.strictObject({ code: z.string() }), BODY_LIMIT),
      handler: ({ body: { code }, client }) => {
        assertMayTry(failures, client)
        const id = sessions.logIn(code)
        if (id !== null) return { kind: 'redirect', location: './', headers: { 'set-cookie': sessionCookie(client, id) } }
        failures.failed(client.address)
        refused(client.address)
        return form(403, UNKNOWN_CODE)
      },
    }),
    route({
      method: 'POST',
      path: '/logout',
      role: 'known',
      handler: ({ headers, client }) => {
        const id = cookieValue(headers.cookie, cookieName(client))
        if (id !== null) sessions.logOut(id)
        loggedOut()
        return { kind: 'redirect', location: 'login', headers: { 'set-cookie': sessionCookie(client, null) } }
      },
    }),
  ]
}
