/** `deferd status --since`: the queue over time, in intervals that fit on a screen. */
import type { Config } from '../../config/options.ts'
import { Problem } from '../../http/problem-details.ts'
import { formatInstant } from '../../mail/message-times.ts'
import { jsonLine } from '../../presentation/text.ts'
import { queueSeries, seriesQuery } from '../../queries/series-query.ts'
import type { SeriesJson } from '../../resources/series-json.ts'
import { SERIES_MINUTES } from '../../store/records/series.ts'
import { DAY, HOUR, MINUTE, type Duration, type WallTime } from '../../system/clock.ts'
import { formatDuration } from '../../system/duration.ts'
import { trendText } from '../render/trend-table.ts'
import { queryOf } from './api-connection.ts'
import { displayOf } from '../shell/display.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { resourceOf, withSource, type QueueSource, type Shell } from '../shell/shell.ts'

export interface TrendOptions {
  readonly since?: Duration
  readonly from?: WallTime
  readonly to?: WallTime
  readonly json?: true
}

const STEPS: readonly Duration[] = [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY, 14 * DAY]
const MOST_ROWS = 31
const CAUSES = 5

export const isTrend = ({ since, from, to }: TrendOptions): boolean => since !== undefined || from !== undefined || to !== undefined

/** The shortest step with which the range has at most MOST_ROWS intervals. */
function stepOf({ since = DAY, from, to }: TrendOptions, now: WallTime): string {
  const length = from === undefined ? since : (to ?? now) - from
  const least = from !== undefined && from < now - SERIES_MINUTES ? HOUR : MINUTE
  return formatDuration(STEPS.find((step) => step >= least && length / step <= MOST_ROWS) ?? 14 * DAY)
}

const textOf = (at: WallTime | undefined): string | undefined => (at === undefined ? undefined : formatInstant(at))

export async function showTrend(shell: Shell, config: Config, options: TrendOptions): Promise<void> {
  await withSource(shell, config, async (source) => {
    const { since, from, to, json } = options
    const range = {
      since: since === undefined ? undefined : formatDuration(since),
      from: textOf(from),
      to: textOf(to),
      step: stepOf(options, source.clock.wall.now()),
    }
    const read = (query: Readonly<Record<string, unknown>>) => seriesOf(source, { ...range, ...query })
    const trend = {
      flow: await read({}),
      backlog: await read({ metric: 'backlog' }),
      delay: await read({ metric: 'delay' }),
      causes: await read({ metric: 'causes', limit: CAUSES }),
    }
    await shell.stdout.write(json === true ? jsonLine(trend) : trendText(trend, { clock: shell.clock, display: displayOf(shell) }))
  })
}

const seriesOf = (source: QueueSource, query: Readonly<Record<string, unknown>>): Promise<SeriesJson> =>
  resourceOf(source, `/series${queryOf(query)}`, async ({ reader, clock }) => {
    const checked = seriesQuery.safeParse(query)
    if (!checked.success) throw new CommandError(EX.usage, checked.error.issues.map(({ message }) => message).join('; '))
    try {
      return await queueSeries({ reader, clock }, checked.data, null)
    } catch (error) {
      if (error instanceof Problem) throw new CommandError(EX.usage, error.message)
      throw error
    }
  })
