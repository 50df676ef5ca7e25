/** Route of the screen Trends. */
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import type { Route } from '../http/route-table.ts'
import { queueSeries, seriesQuery, type SeriesQuery } from '../queries/series-query.ts'
import { NAMED_DIMENSIONS } from '../store/records/series.ts'
import { problemText } from './markup/fields.ts'
import { ANY_TIME, timeRangeIn, type TimeRange } from './markup/time-range.ts'
import { problemIn, screenAnswer, screenRoute, type ScreenDeps, type ShownRequest } from './page-view.ts'
import { TEXT } from './markup/screen-parameters.ts'
import { NAMES_DRAWN } from './screens/series-plots.ts'
import { RANGE_FIELDS, rangeQuery, TREND_RANGES, trendsScreen, type TrendQuery, type TrendSeries } from './screens/trends-screen.ts'

const NAMES_LISTED = 50

async function seriesFor({ view }: ScreenDeps, query: TrendQuery, time: TimeRange, { visible }: ShownRequest): Promise<TrendSeries> {
  const read = (asked: Partial<Record<keyof SeriesQuery, unknown>>) =>
    queueSeries(view, seriesQuery.parse({ ...rangeQuery(query, time), ...asked }), visible)
  const [flow, backlog, delay, causes, split, days] = await Promise.all([
    read({}),
    read({ metric: 'backlog' }),
    read({ metric: 'delay' }),
    // Causes are counted of all mail only.
    visible === null ? read({ metric: 'causes', limit: NAMES_DRAWN }) : null,
    query.split_by === '' ? null : read({ split_by: query.split_by, limit: NAMES_LISTED }),
    queueSeries(view, seriesQuery.parse({ split_by: 'destination', since: '2d', step: '1d', limit: NAMES_LISTED }), visible),
  ])
  return { flow, backlog, delay, causes, split, days }
}

const TRENDS = { range: TREND_RANGES, from: TEXT, to: TEXT, split_by: NAMED_DIMENSIONS } as const

export const trendsRoute = (deps: ScreenDeps): Route =>
  screenRoute(deps, { path: '/trends', slots: 'searches', parameters: TRENDS }, async (request, view) => {
    const { asked } = request
    const isShared = deps.view.nodes() !== null
    const dimensions = NAMED_DIMENSIONS.filter((one) => (request.visible === null ? isShared || one !== 'node' : one === 'destination'))
    const query: TrendQuery = {
      ...asked,
      range: asked.range || TREND_RANGES[0],
      split_by: dimensions.find((one) => one === asked.split_by) ?? '',
    }
    const time = timeRangeIn({ after: query.from, before: query.to }, view)
    const refused = (problem: string) =>
      screenAnswer(view, trendsScreen(view, { query, time: ANY_TIME, dimensions, series: null, problem }), 422)
    if (typeof time === 'string') return refused(time)
    try {
      const series = await seriesFor(deps, query, time, request)
      return screenAnswer(view, trendsScreen(view, { query, time, dimensions, series, problem: null }))
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      return refused(error.kind === HTTP_PROBLEMS.invalid ? problemText(RANGE_FIELDS, problemIn(error)) : error.summary)
    }
  })
