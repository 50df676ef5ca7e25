/** Route of the screen of mail that has left the queue. */
import { z } from 'zod'
import type { Answer, Route } from '../http/route-table.ts'
import { FINAL_STATES } from '../mail/message.ts'
import { checkValue } from '../presentation/checked-value.ts'
import { historyPage } from '../queries/departed-mail.ts'
import { historyConditions } from '../queries/operations/resend.ts'
import { ANY_TIME, timeRangeIn } from './markup/time-range.ts'
import type { FormProblem } from './markup/fields.ts'
import type { View } from './markup/view.ts'
import { given, orUndefined, problemOf, screenAnswer, screenRoute, type PageDeps, type ShownRequest } from './page-view.ts'
import { TEXT, textsOf } from './markup/screen-parameters.ts'
import { historyScreen } from './screens/history-screen.ts'

const ROWS_PER_PAGE = 50

/** The conditions of the API, whose names those of the parameters are. */
const HISTORY = { ...textsOf(historyConditions), outcome: FINAL_STATES, before: TEXT } as const

const { left_after: _after, left_before: _before, ...beside } = historyConditions
/** The conditions but the range, which forms have in the zone of the page. */
const conditionShape = z.strictObject(beside)

async function historyAnswer(
  deps: PageDeps,
  { asked: { before, ...query }, visible, signal }: ShownRequest<typeof HISTORY>,
  view: View,
): Promise<Answer> {
  const { left_after: after, left_before: end, ...fields } = query
  const range = timeRangeIn({ after, before: end }, view)
  const checked = checkValue(conditionShape, given(fields))
  const refused = (problem: FormProblem): Answer =>
    screenAnswer(view, historyScreen(view, { page: { messages: [], next: null }, query, range: ANY_TIME, before, problem }), 422)
  if (typeof range === 'string') return refused(range)
  if (!checked.ok) return refused(problemOf(checked.invalid))
  const times = { left_after: range.after, left_before: range.before }
  const asked = { ...checked.value, ...times, limit: ROWS_PER_PAGE, before: orUndefined(before) }
  const page = await historyPage(deps.view, asked, { visible, signal })
  return screenAnswer(view, historyScreen(view, { page, query, range, before, problem: null }))
}

export const historyRoute = (deps: PageDeps): Route =>
  screenRoute(deps, { path: '/history', slots: 'searches', parameters: HISTORY }, (request, view) => historyAnswer(deps, request, view))
