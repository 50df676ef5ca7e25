/** Route of the screen of the log. */
import { assertUnlimited } from '../api/route/api-route.ts'
import { logConditions } from '../api/log-routes.ts'
import type { Answer, Route } from '../http/route-table.ts'
import { checkValue } from '../presentation/checked-value.ts'
import { logPage } from '../queries/log-page.ts'
import { ANY_TIME, timeRangeIn } from './markup/time-range.ts'
import type { FormProblem } from './markup/fields.ts'
import type { View } from './markup/view.ts'
import { given, orUndefined, problemOf, screenAnswer, screenRoute, type PageDeps, type ShownRequest } from './page-view.ts'
import { texts, textsOf } from './markup/screen-parameters.ts'
import { logScreen, NO_LINES } from './screens/system/log-screen.ts'

const LINES_PER_PAGE = 50

const LOG = { ...textsOf(logConditions.shape), ...texts('before') }

async function logAnswer(deps: PageDeps, { asked: { before, ...asked } }: ShownRequest<typeof LOG>, view: View): Promise<Answer> {
  const { logged_after: after, logged_before: end, ...fields } = asked
  const range = timeRangeIn({ after, before: end }, view)
  const checked = checkValue(logConditions, given(fields))
  const shown = { query: asked, before }
  const refused = (problem: FormProblem): Answer =>
    screenAnswer(view, logScreen(view, { ...shown, page: NO_LINES, range: ANY_TIME, problem }), 422)
  if (typeof range === 'string') return refused(range)
  if (!checked.ok) return refused(problemOf(checked.invalid))
  const conditions = { ...checked.value, logged_after: range.after, logged_before: range.before }
  const page = await logPage(deps.view, { ...conditions, limit: LINES_PER_PAGE, before: orUndefined(before) })
  return screenAnswer(view, logScreen(view, { ...shown, page, range, problem: null }))
}

export const logPages = (deps: PageDeps): readonly Route[] => [
  screenRoute(deps, { path: '/log', parameters: LOG }, (request, view) => {
    assertUnlimited(request)
    return logAnswer(deps, request, view)
  }),
]
