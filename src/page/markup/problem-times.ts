/** Instants in the texts of problems, which the API has in UTC, in the zone of the page. */
import type { Problem } from '../../http/problem-details.ts'
import { isoTime } from '../../presentation/text.ts'
import type { FormProblem } from './fields.ts'
import { instantIn } from './time-range.ts'
import { zonedTime } from './times.ts'
import type { View } from './view.ts'

/** The summary of a problem with its instants in the zone of the page. */
export const shownSummary = ({ summary, instants }: Pick<Problem, 'summary' | 'instants'>, view: Pick<View, 'clock'>): string =>
  instants.reduce((text, at) => text.replace(isoTime(at), zonedTime(view, at)), summary)

/** A quoted date with a time. */
const GIVEN = /"(\d{4}-\d\d-\d\d[T ][^"\\]*)"/g

/** A problem of a form with the instants that were given in the zone of the page, in which they were typed. */
export function withShownTimes(problem: FormProblem, view: Pick<View, 'clock'>): FormProblem {
  if (typeof problem === 'string') return problem
  const detail = problem.detail.replace(GIVEN, (whole, text: string) => {
    const at = instantIn(text, view)
    return at === undefined ? whole : zonedTime(view, at)
  })
  return { ...problem, detail }
}
