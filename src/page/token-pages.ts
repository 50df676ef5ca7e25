/** Routes of the screens that list, add and remove the tokens of programs. A token is in the answer to the form that adds it only. */
import { z } from 'zod'
import { assertUnlimited } from '../api/route/api-route.ts'
import { formBody } from '../http/request-body.ts'
import { Problem } from '../http/problem-details.ts'
import { route, type Answer, type Route, type RouteRequest } from '../http/route-table.ts'
import { checkValue } from '../presentation/checked-value.ts'
import { accessTokens } from '../queries/records/kept-records.ts'
import { addProgramToken, newTokenBody, programToken, removeProgramToken, TOKEN_EXISTS } from '../queries/programs/program-tokens.ts'
import type { FormProblem } from './markup/fields.ts'
import type { View } from './markup/view.ts'
import { checkField, spanField, textField } from './form-fields.ts'
import {
  FORM_LIMIT,
  formRoute,
  orUndefined,
  problemOf,
  requesterOf,
  screenAnswer,
  screenRoute,
  type PageDeps,
  type SentForm,
} from './page-view.ts'
import {
  newTokenScreen,
  NO_TOKEN,
  tokenRemovalScreen,
  tokenShownScreen,
  tokensScreen,
  type TokenText,
} from './screens/system/tokens-screen.ts'

const tokenForm = z.strictObject({ name: textField, role: textField, content: checkField, destinations: textField, expires: textField })

const expiry = z.strictObject({ expires: spanField })

const nameOf = ({ parameters }: Pick<RouteRequest<unknown>, 'parameters'>): string => parameters['name'] ?? ''

async function added(deps: PageDeps, { body, requester }: SentForm<TokenText>, view: View): Promise<Answer> {
  const refused = (problem: FormProblem, status: number): Answer => screenAnswer(view, newTokenScreen(view, body, problem), status)
  const { expires, destinations, ...rights } = body
  const ends = checkValue(expiry, { expires })
  if (!ends.ok) return refused(problemOf(ends.invalid), 422)
  const asked = { ...rights, destinations: orUndefined(destinations) ?? null, expires_in: ends.value.expires }
  const checked = checkValue(newTokenBody, asked)
  if (!checked.ok) return refused(problemOf(checked.invalid), 422)
  try {
    return screenAnswer(view, tokenShownScreen(view, body.name, await addProgramToken(deps.view, checked.value, requester)))
  } catch (error) {
    if (!(error instanceof Problem) || error.kind !== TOKEN_EXISTS) throw error
    return refused(`${error.message}.`, 409)
  }
}

export const tokenPages = (deps: PageDeps): readonly Route[] => [
  screenRoute(deps, { path: '/tokens', role: 'admin' }, async (request, view) => {
    assertUnlimited(request)
    return screenAnswer(view, tokensScreen(view, await accessTokens(deps.view)))
  }),
  screenRoute(deps, { path: '/new-token', role: 'admin' }, async (request, view) => {
    assertUnlimited(request)
    return screenAnswer(view, newTokenScreen(view, NO_TOKEN, null))
  }),
  formRoute(deps, { path: '/new-token', role: 'admin', body: formBody(tokenForm, FORM_LIMIT) }, async (request, view) => {
    assertUnlimited(request)
    return added(deps, request, view)
  }),
  screenRoute(deps, { path: '/tokens/:name/remove', role: 'admin' }, async (request, view) => {
    assertUnlimited(request)
    return screenAnswer(view, tokenRemovalScreen(view, await programToken(deps.view, nameOf(request))))
  }),
  route({
    method: 'POST',
    path: '/tokens/:name/remove',
    role: 'admin',
    handler: async (request) => {
      const requester = requesterOf(request)
      assertUnlimited({ requester })
      await removeProgramToken(deps.view, nameOf(request), requester)
      return { kind: 'redirect', location: '../../tokens' }
    },
  }),
]
