/** Route of the API for the series of the queue over time. */
import { z } from 'zod'
import { CSV } from '../http/command-protocol.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { queueSeries, seriesCsv, seriesQuery } from '../queries/series-query.ts'
import { seriesShape } from '../resources/series-json.ts'
import { apiRoute, json, type ApiRoute } from './route/api-route.ts'

export const seriesRoute = (view: QueueView): ApiRoute =>
  apiRoute({
    method: 'GET',
    path: '/series',
    role: 'viewer',
    summary: 'The queue over time',
    about:
      'Minutes are kept for 7 days and hours for 400 days. The flow by name has hours of the 50 names with the most deferrals of each day; the others are added up. Intervals of an hour and more begin at a full hour, and the last one may go on. `format=csv` has a row per interval and series.',
    query: seriesQuery.safeExtend({ format: z.enum(['json', 'csv']).default('json') }),
    answers: {
      200: [
        { about: 'the series, exact over all nodes', shape: seriesShape },
        { about: 'with `format=csv`, a row per interval and series', type: CSV },
      ],
    },
    handler: async ({ query: { format, ...query }, requester }) => {
      const series = await queueSeries(view, query, requester.destinations)
      return format === 'json' ? json(series) : { kind: 'text', status: 200, contentType: `${CSV}; charset=utf-8`, text: seriesCsv(series) }
    },
  })
