/** Series of the queue over time. */
import { z } from 'zod'
import { MARK_KINDS } from '../store/records/queue-mark.ts'
import { time, timeOrNull, type Json } from './members.ts'

export const SERIES_METRICS = ['flow', 'backlog', 'delay', 'causes'] as const
export type SeriesMetric = (typeof SERIES_METRICS)[number]

export const seriesShape = z
  .object({
    metric: z.enum(SERIES_METRICS),
    unit: z.string().describe('recipients per interval, recipients, or seconds'),
    from: time.describe('begin of the first interval'),
    to: time.describe('end of the last interval, which goes on when it is after `as_of`'),
    step: z.number().describe('length of an interval in seconds'),
    series: z
      .array(
        z.object({
          name: z.string().nullable().describe('null: the whole queue; empty: those that have no series of their own'),
          values: z
            .record(z.string(), z.array(z.number().nullable()))
            .describe('a value per interval, the first one first; null: not known, such as before the first mail'),
        }),
      )
      .describe('the largest first'),
    marks: z
      .array(
        z.object({
          time,
          kind: z.enum(MARK_KINDS),
          text: z.string().describe('the destination, the changed parameters, or the version'),
          node: z.string(),
        }),
      )
      .describe('what changed the relay, the newest 200'),
    known_since: timeOrNull.describe('time of the first count, when it is after `from`'),
    as_of: time,
  })
  .meta({ id: 'Series' })

export type SeriesJson = Json<typeof seriesShape>
