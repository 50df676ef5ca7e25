/**
 * Series of the queue: flow, backlog, delay of delivered mail, and deferrals by cause, in intervals of equal length. Intervals of an hour and
 * more begin at a full hour, and the last one may go on; shorter ones have ended.
 */
import { z } from 'zod'
import { formatInstant, NAMED_INSTANT } from '../mail/message-times.ts'
import { HTTP_PROBLEMS, invalidPart, Problem } from '../http/problem-details.ts'
import { csvText } from '../resources/csv.ts'
import { SERIES_METRICS, type SeriesJson, type SeriesMetric } from '../resources/series-json.ts'
import { boundsOf } from '../store/decisions/series-notes.ts'
import { BACKLOG_QUEUES, countedAt, waitingOf, type Backlog } from '../store/records/backlog.ts'
import {
  NAMED_DIMENSIONS,
  SERIES_HOURS,
  SERIES_KINDS,
  SERIES_MINUTES,
  type NamedDimension,
  type SeriesDimension,
  type SeriesSlot,
} from '../store/records/series.ts'
import { TRAFFIC_KINDS } from '../store/counts/traffic.ts'
import { DAY, HOUR, MINUTE, SECOND, type Duration, type QueueTime } from '../system/clock.ts'
import { assertVisible } from './destinations.ts'
import { maySee, durationText } from './message-query.ts'
import { instantText } from './named-time.ts'
import { wholeNumber } from './cursor.ts'
import { asOf, type QueueView, type Visible } from './queue-view.ts'

/** Maximum number of intervals in an answer. */
const MOST_INTERVALS = 2_000

const name = z.string().min(1).max(255).optional()

export const seriesQuery = z
  .strictObject({
    metric: z
      .enum(SERIES_METRICS)
      .default('flow')
      .describe(
        'flow: recipients accepted, delivered, deferred, bounced, expired, deleted; backlog: recipients that wait, counted at the end of each minute: when they were most in the interval, and of the newest one the last count; delay: percentiles of delivered mail; causes: deferrals by code',
      ),
    split_by: z.enum(NAMED_DIMENSIONS).optional().describe('a series for each of the largest; flow only'),
    destination: name.describe('flow of one destination'),
    provider: name.describe('flow to one provider'),
    sender_domain: name.describe('flow of one domain of senders; <> is mail without one'),
    node: name.describe('flow of one node of several'),
    since: durationText.optional().describe('begins this long ago, such as 2h or 7d; 24h by default'),
    from: instantText.optional().describe(`begins at this time: ${NAMED_INSTANT}`),
    to: instantText.optional().describe(`ends at this time: ${NAMED_INSTANT}; now by default`),
    step: durationText.optional().describe('length of an interval, such as 5m or 1h; whole minutes, by default as the range has it'),
    limit: wholeNumber(1, 50).default(10).describe('number of series; the others are added up'),
  })
  .superRefine((query, context) => {
    const refuse = (path: string, message: string): void => context.addIssue({ code: 'custom', path: [path], message })
    const given = NAMED_DIMENSIONS.filter((one) => query[one] !== undefined)
    const [first, second] = query.split_by === undefined ? given : [...given, 'split_by']
    if (second !== undefined) refuse(second, `expected either ${String(first)} or ${second}`)
    if (first !== undefined && query.metric !== 'flow')
      refuse(first, `only the flow is counted by name: leave it out, or ask for metric=flow`)
    if (query.since !== undefined && query.from !== undefined) refuse('since', 'expected either since or from')
    if (query.since === 0) refuse('since', 'expected a time above 0')
    if (query.step !== undefined && (query.step === 0 || query.step % MINUTE > 0)) refuse('step', 'expected whole minutes')
  })

export type SeriesQuery = z.output<typeof seriesQuery>

/** Sources of series. */
type SeriesView = Pick<QueueView, 'reader' | 'clock'>

interface Range {
  readonly since: QueueTime
  readonly until: QueueTime
  readonly step: Duration
  /** Number of intervals. */
  readonly length: number
}

/** Intervals by the length of a range. */
const STEPS: readonly (readonly [span: Duration, step: Duration])[] = [
  [HOUR, MINUTE],
  [6 * HOUR, 5 * MINUTE],
  [24 * HOUR, 15 * MINUTE],
  [7 * DAY, HOUR],
  [31 * DAY, 6 * HOUR],
]

const named = (query: SeriesQuery): NamedDimension | undefined =>
  query.split_by ?? NAMED_DIMENSIONS.find((dimension) => query[dimension] !== undefined)

/** The intervals of a query. Throws Problem. */
export function rangeOf(query: SeriesQuery, { clock }: Pick<SeriesView, 'clock'>): Range {
  const now = clock.now()
  const end = query.to === undefined ? now : Math.min(now, clock.wall.queueTime(query.to))
  const begin = query.from === undefined ? end - (query.since ?? DAY) : clock.wall.queueTime(query.from)
  if (begin >= end) throw invalidPart('/from', 'expected a time before the end of the range, and before now')
  if (begin < now - SERIES_HOURS) throw invalidPart(query.from === undefined ? '/since' : '/from', 'expected a time of the last 400 days')
  const span = end - begin
  const isOld = begin < now - SERIES_MINUTES - HOUR
  const byRange = STEPS.find(([longest]) => span <= longest)?.[1] ?? DAY
  const least = named(query) !== undefined || isOld ? HOUR : MINUTE
  const step = query.step ?? Math.max(least, byRange)
  if (step < least || (least === HOUR && step % HOUR > 0))
    throw invalidPart(
      '/step',
      isOld ? 'expected whole hours: minutes are kept for 7 days' : 'expected whole hours: names are counted by hour',
    )
  const until = step % HOUR === 0 ? Math.ceil(end / HOUR) * HOUR : Math.min(Math.ceil(end / MINUTE), Math.floor(now / MINUTE)) * MINUTE
  // An interval that has begun before the range belongs to it. The last one that has ended stands for a part of the one that goes on.
  const length = Math.max(1, Math.ceil((until - begin) / step))
  if (length > MOST_INTERVALS) throw invalidPart('/step', `expected at most ${MOST_INTERVALS} intervals: ask for a longer step`)
  if (step > SERIES_HOURS) throw invalidPart('/step', 'expected at most 400 days')
  return { since: until - length * step, until, step, length }
}

type Values = Record<string, (number | null)[]>
type Named = SeriesJson['series'][number]

interface Counted {
  readonly series: readonly Named[]
  /** Time of the first count; null without any, and where the first interval has one. */
  readonly first: QueueTime | null
}

/** A list of nulls for each key. */
const unknownValues = (keys: readonly string[], { length }: Pick<Range, 'length'>): Values =>
  Object.fromEntries(keys.map((key) => [key, Array.from({ length }, () => null)]))

function put(values: Values, key: string, slot: number, value: number | null): void {
  const list = values[key]
  if (list !== undefined && slot >= 0 && slot < list.length) list[slot] = value
}

/** A list of counts for each key: 0 per interval, and null before the first mail of the queue. */
async function noCounts({ reader }: SeriesView, keys: readonly string[], { since, step, length }: Range): Promise<Values> {
  const first = (await reader.firstTraffic()) ?? Infinity
  return Object.fromEntries(keys.map((key) => [key, Array.from({ length }, (_, slot) => (since + (slot + 1) * step <= first ? null : 0))]))
}

function add(values: Values, key: string, slot: number, count: number): void {
  put(values, key, slot, (values[key]?.[slot] ?? 0) + count)
}

/** Recipients of the whole queue. */
async function flow(view: SeriesView, range: Range): Promise<readonly Named[]> {
  const values = await noCounts(view, TRAFFIC_KINDS, range)
  for (const { at, ...counts } of (await view.reader.traffic(range.since)).minutes)
    for (const kind of TRAFFIC_KINDS) add(values, kind, Math.floor((at - range.since) / range.step), counts[kind])
  return [{ name: null, values }]
}

/** Recipients by name, the names with the most deferrals first. `none` has the values without any recipient. */
function byName(slots: readonly SeriesSlot[], none: Values, limit: number): readonly Named[] {
  const names = [...Map.groupBy(slots, ({ name: one }) => one)]
    .filter(([one]) => one !== '')
    .map(([one, those]) => ({
      name: one,
      deferred: those.reduce((sum, { deferred }) => sum + deferred, 0),
      others: those.reduce((sum, { accepted, delivered }) => sum + accepted + delivered, 0),
    }))
    .toSorted((a, b) => b.deferred - a.deferred || b.others - a.others || (a.name < b.name ? -1 : 1))
  const shown = new Set(names.slice(0, limit).map(({ name: one }) => one))
  const groups = Map.groupBy(slots, ({ name: one }) => (shown.has(one) ? one : ''))
  return [...shown, ...(groups.has('') ? [''] : [])].map((one) => {
    const values = structuredClone(none)
    for (const { slot, ...counts } of groups.get(one) ?? []) for (const kind of SERIES_KINDS) add(values, kind, slot, counts[kind])
    return { name: one, values }
  })
}

const slotsOf = ({ reader }: SeriesView, dimension: SeriesDimension, { since, until, step }: Range, one: string | null) =>
  reader.records.series.of({ dimension, since, until, step, name: one })

async function flowByName(view: SeriesView, query: SeriesQuery, range: Range, visible: Visible): Promise<readonly Named[]> {
  const dimension = named(query)
  if (dimension === undefined) return flow(view, range)
  const one = query[dimension] ?? null
  const slots = await slotsOf(view, dimension, range, one)
  const seen = dimension === 'destination' ? slots.filter((slot) => maySee(visible, slot.name)) : slots
  const none = await noCounts(view, SERIES_KINDS, range)
  const series = byName(seen, none, query.limit)
  return one === null || series.length > 0 ? series : [{ name: one, values: none }]
}

const VALUES_OF_BACKLOG = [...BACKLOG_QUEUES, 'oldest'] as const

/**
 * The count of each interval in which most recipients waited, so that its numbers are of one moment, with the largest age. The last one of the
 * newest interval: the numbers of now.
 */
async function backlog({ reader, clock }: SeriesView, range: Range): Promise<Counted> {
  const values = unknownValues(VALUES_OF_BACKLOG, range)
  const slotOf = ({ at }: Backlog): number => Math.floor((at - range.since) / range.step)
  const all = await reader.records.backlogs.of(range.since, range.until)
  for (const [slot, counts] of Map.groupBy(all, slotOf)) {
    const isNewest = range.since + (slot + 1) * range.step > clock.now() - MINUTE
    const shown = counts.reduce((one, other) => (!isNewest && waitingOf(one) > waitingOf(other) ? one : other))
    for (const key of BACKLOG_QUEUES) put(values, key, slot, shown[key])
    const oldest = isNewest ? shown.oldest : Math.max(...counts.map((count) => count.oldest))
    put(values, 'oldest', slot, Math.round(oldest / SECOND))
  }
  const [first] = all
  const isWhole = first === undefined || first.at <= range.since
  return { series: [{ name: null, values }], first: isWhole ? null : countedAt(first) }
}

const PERCENTILES = { p50: 0.5, p95: 0.95, p99: 0.99 } as const

/** The delay in seconds that a part of the delivered mail does not exceed, by linear interpolation in its bucket. */
export function percentile(buckets: readonly Pick<SeriesSlot, 'name' | 'delivered'>[], part: number): number | null {
  const sorted = buckets.map((one) => ({ bounds: boundsOf(one.name), count: one.delivered })).toSorted((a, b) => a.bounds[0] - b.bounds[0])
  const total = sorted.reduce((sum, { count }) => sum + count, 0)
  if (total === 0) return null
  let before = 0
  for (const { bounds, count } of sorted) {
    if (count > 0 && before + count >= total * part) {
      const value = bounds[0] + ((bounds[1] - bounds[0]) * (total * part - before)) / count
      return Math.round(value) / SECOND
    }
    before += count
  }
  return null
}

async function delay(view: SeriesView, range: Range): Promise<readonly Named[]> {
  const values = { ...(await noCounts(view, ['delivered'], range)), ...unknownValues(Object.keys(PERCENTILES), range) }
  for (const [slot, buckets] of Map.groupBy(await slotsOf(view, 'delay', range, null), (one) => one.slot)) {
    put(
      values,
      'delivered',
      slot,
      buckets.reduce((sum, { delivered }) => sum + delivered, 0),
    )
    for (const [key, part] of Object.entries(PERCENTILES)) put(values, key, slot, percentile(buckets, part))
  }
  return [{ name: null, values }]
}

async function causes(view: SeriesView, range: Range, limit: number): Promise<readonly Named[]> {
  const series = byName(await slotsOf(view, 'cause', range, null), await noCounts(view, SERIES_KINDS, range), limit)
  return series.map(({ name: one, values: { deferred = [] } }) => ({ name: one, values: { deferred } }))
}

const UNITS: Readonly<Record<SeriesMetric, string>> = {
  flow: 'recipients per interval',
  backlog: 'recipients; seconds for oldest',
  delay: 'seconds; recipients for delivered',
  causes: 'recipients per interval',
}

function counted(view: SeriesView, query: SeriesQuery, range: Range, visible: Visible): Promise<Counted> {
  /** Adds the time of the first mail, from which on mail is counted. */
  const fromFirstMail = async (series: Promise<readonly Named[]>): Promise<Counted> => ({
    series: await series,
    first: await view.reader.firstTraffic(),
  })
  switch (query.metric) {
    case 'flow':
      return fromFirstMail(flowByName(view, query, range, visible))
    case 'backlog':
      return backlog(view, range)
    case 'delay':
      return fromFirstMail(delay(view, range))
    case 'causes':
      return fromFirstMail(causes(view, range, query.limit))
  }
}

/**
 * A client that sees some destinations has no series of others, of causes, providers, senders and nodes, and only marks of its destinations. Throws Problem for a range without intervals,
 * and for a name that the client may not see.
 */
export async function queueSeries(view: SeriesView, query: SeriesQuery, visible: Visible): Promise<SeriesJson> {
  const dimension = named(query)
  if (visible !== null && dimension !== undefined && dimension !== 'destination')
    throw new Problem(HTTP_PROBLEMS.notPermitted, `the token is limited to the destinations ${visible}`)
  if (visible !== null && query.metric === 'causes')
    throw new Problem(HTTP_PROBLEMS.notPermitted, `the token is limited to the destinations ${visible}: GET /causes has the causes there`)
  if (query.destination !== undefined) assertVisible(query.destination, visible)
  const range = rangeOf(query, view)
  const { wall } = view.clock
  const [{ series, first }, marks] = await Promise.all([
    counted(view, query, range, visible),
    view.reader.records.marks.of(range.since, range.until),
  ])
  // Marks of the relay and of providers are about all destinations.
  const isSeen = (kind: string, text: string): boolean =>
    visible === null || ((kind === 'suspended' || kind === 'resumed') && !/\s/.test(text) && maySee(visible, text))
  return {
    metric: query.metric,
    unit: UNITS[query.metric],
    from: wall.seconds(range.since),
    to: wall.seconds(range.until),
    step: range.step / SECOND,
    series,
    marks: marks
      .filter(({ kind, text }) => isSeen(kind, text))
      .map(({ at, kind, text, node }) => ({ time: wall.seconds(at), kind, text, node })),
    known_since: first === null || first <= range.since ? null : wall.seconds(first),
    as_of: asOf(view),
  }
}

/** A row per interval and series, with the values in columns. */
export function seriesCsv({ series, from, step }: SeriesJson): string {
  const keys = Object.keys(series[0]?.values ?? {})
  const rows = series.flatMap(({ name: one, values }) =>
    Array.from({ length: Object.values(values)[0]?.length ?? 0 }, (_, slot) => [
      formatInstant((from + slot * step) * 1_000),
      csvText(one ?? ''),
      ...keys.map((key) => String(values[key]?.[slot] ?? '')),
    ]),
  )
  return [['time', 'name', ...keys], ...rows].map((row) => `${row.join(',')}\r\n`).join('')
}
