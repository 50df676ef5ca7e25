/** Routes of the login and the logout. */
import { z } from 'zod'
import { cookieName, cookieValue, sessionCookie } from '../http/requests/cookies.ts'
import type { FailureLimit } from '../http/failure-limit.ts'
import { formBody } from '../http/request-body.ts'
import { route, type Answer, type Route } from '../http/route-table.ts'
import { assertMayTry } from '../http/web-admission.ts'
import type { Sessions } from './sessions.ts'

export interface LoginFacts {
  /** The sentence on a failed login; null at the first visit. */
  readonly problem: string | null
  /** True after a session has ended. */
  readonly hasEnded: boolean
  /** The screen to which the login leads, below the root; empty for the first one. */
  readonly back: string
}

export type LoginPage = (facts: LoginFacts) => string

interface AccountRoutesDeps {
  readonly sessions: Sessions
  readonly failures: FailureLimit
  readonly loginPage: LoginPage
  readonly loggedOut: () => void
  /** Logs a refused login. */
  readonly refused: (address: string) => void
}

const BODY_LIMIT = 8_192
const BACK_LIMIT = 2_000

const UNKNOWN_CODE = 'The code is unknown, was used already, or is older than 60 seconds. Run “deferd page” again.'

/** The path of a screen below the root. Anything else, such as another site, becomes the first screen. */
export const screenPath = (back: string | null | undefined): string =>
  back !== null &&
  back !== undefined &&
  back.length <= BACK_LIMIT &&
  /^[a-z]+(?:[/?][\u0021-\u007e]*)?$/.test(back) &&
  !/\.\.|\\|^log(?:in|out)/.test(back)
    ? back
    : ''

export function accountRoutes({ sessions, failures, loginPage, loggedOut, refused }: AccountRoutesDeps): readonly Route[] {
  const form = (status: number, facts: LoginFacts): Answer => ({
    kind: 'text',
    status,
    contentType: 'text/html; charset=utf-8',
    text: loginPage(facts),
  })
  return [
    route({
      method: 'GET',
      path: '/login',
      role: 'anyone',
      handler: ({ query }) => form(200, { problem: null, hasEnded: query.has('ended'), back: screenPath(query.get('back')) }),
    }),
    route({
      method: 'POST',
      path: '/login',
      role: 'anyone',
      body: formBody(z.strictObject({ code: z.string(), back: z.string().optional() }), BODY_LIMIT),
      handler: ({ body: { code, back }, client }) => {
        assertMayTry(failures, client)
        const id = sessions.logIn(code)
        if (id !== null)
          return { kind: 'redirect', location: `./${screenPath(back)}`, headers: { 'set-cookie': sessionCookie(client, id) } }
        failures.failed(client.address)
        refused(client.address)
        return form(403, { problem: UNKNOWN_CODE, hasEnded: false, back: screenPath(back) })
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
