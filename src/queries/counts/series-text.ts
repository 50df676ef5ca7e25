/** Series as text: a sentence, sums, and marks. */
import { grouped, plural, span } from '../../presentation/text.ts'
import { SECOND } from '../../system/clock.ts'
import type { SeriesJson } from '../../resources/series-json.ts'

export type SeriesValues = readonly (number | null)[]

export const sumIn = (values: SeriesValues = []): number => values.reduce<number>((sum, value) => sum + (value ?? 0), 0)

const addUp = (one: number | null, other: number | null): number | null => (one === null ? other : other === null ? one : one + other)

/** Recipients that wait in each interval, without those on hold; null where there is no sample. */
export function waitingIn({ series }: SeriesJson): SeriesValues {
  const { incoming = [], active = [], deferred = [] } = series[0]?.values ?? {}
  return deferred.map((value, slot) => addUp(addUp(value, active[slot] ?? null), incoming[slot] ?? null))
}

/** A difference below a tenth of the former number, or below this number of recipients, is no trend. */
const LEAST_CHANGE = 10

/** Interval of the counts, in s. The value of a longer interval is the largest of its counts. */
const COUNTED_EACH = 60

/** Seconds to the end of the series from the first interval that has a count: from the end of that interval, where the last of its counts was made, or from its begin. */
function sinceFirstCount({ from, to, step, as_of: now }: SeriesJson, values: SeriesValues, counted: 'end' | 'begin'): number {
  const first = values.findIndex((value) => value !== null)
  return Math.min(to, now) - (from + (first + (counted === 'end' ? 1 : 0)) * step)
}

/** `The backlog grew from 120 to 3,000 recipients; 400 more are on hold. Delivered: 12,000; deferred: 5,300; bounced: 20.` */
export function trendSentence({ flow, backlog }: { readonly flow: SeriesJson; readonly backlog: SeriesJson }): string {
  const values = waitingIn(backlog)
  const known = values.filter((value) => value !== null)
  const counts = flow.series[0]?.values ?? {}
  const flowText = `Delivered: ${grouped(sumIn(counts['delivered']))}; deferred: ${grouped(sumIn(counts['deferred']))}; bounced: ${grouped(sumIn(counts['bounced']))}.`
  const [first, last] = [known[0], known.at(-1)]
  if (first === undefined && Object.values(counts).every((those) => those.every((value) => value === null)))
    return 'No figures of this time are known.'
  if (first === undefined || last === undefined) return flowText
  const held = backlog.series[0]?.values['hold']?.at(-1) ?? 0
  const onHold = (one: string, many: string): string => (held === 0 ? '' : `; ${grouped(held)} more ${held === 1 ? one : many} on hold`)
  if (known.length === 1) return `At the only count so far, ${plural(last, 'recipient')} waited${onHold('was', 'were')}. ${flowText}`
  const heldText = onHold('is', 'are')
  const isChanged = Math.abs(last - first) >= Math.max(LEAST_CHANGE, first / 10)
  const isPeak = backlog.step > COUNTED_EACH
  const isFall = isChanged && last < first
  const since = span(sinceFirstCount(backlog, values, isPeak && isFall ? 'begin' : 'end') * SECOND)
  const what = values[0] === null ? `In the last ${since}, the backlog` : 'The backlog'
  const to = `${plural(last, 'recipient')}${heldText}`
  if (!isChanged) return `${what} is about as it was: ${to}. ${flowText}`
  if (!isPeak) return `${what} ${isFall ? 'fell' : 'grew'} from ${grouped(first)} to ${to}. ${flowText}`
  return isFall
    ? `${what} fell from a peak of ${grouped(first)} to ${to}. ${flowText}`
    : `${what} grew from at most ${grouped(first)} to ${to}. ${flowText}`
}

const MARK_TEXTS: Readonly<Record<SeriesJson['marks'][number]['kind'], string>> = {
  restart: 'started',
  reload: 'reloaded',
  configuration: 'configuration changed',
  suspended: 'suspended',
  resumed: 'resumed',
}

/** `suspended: far.example`, `started: 0.9.0` */
export const markText = ({ kind, text }: SeriesJson['marks'][number]): string => `${MARK_TEXTS[kind]}${text === '' ? '' : `: ${text}`}`
