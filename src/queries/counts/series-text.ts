/** Series as text: a sentence, sums, and marks. */
import { grouped, plural, span } from '../../presentation/text.ts'
import { SECOND } from '../../system/clock.ts'
import type { SeriesJson } from '../../resources/series-json.ts'

export type SeriesValues = readonly (number | null)[]

export const sumIn = (values: SeriesValues = []): number => values.reduce<number>((sum, value) => sum + (value ?? 0), 0)

const addUp = (one: number | null, other: number | null): number | null => (one === null ? other : other === null ? one : one + other)

/** Recipients that wait in each interval, without those on hold; null where there is no count. */
export function waitingIn({ series }: SeriesJson): SeriesValues {
  const { incoming = [], active = [], deferred = [] } = series[0]?.values ?? {}
  return deferred.map((value, slot) => addUp(addUp(value, active[slot] ?? null), incoming[slot] ?? null))
}

/** A difference below a tenth of the former number, or below this number of recipients, is no trend. */
const LEAST_CHANGE = 10

/** Interval of the counts, in s. The value of a longer interval is the largest of its counts; that of the newest one is the last count. */
const COUNTED_EACH = 60

/** Time of the last count of an interval: its end, or that of the last whole minute in an interval that goes on. */
const lastCountIn = ({ from, step, as_of: now }: SeriesJson, slot: number): number =>
  from + Math.min((slot + 1) * step, Math.floor((now - from) / COUNTED_EACH) * COUNTED_EACH)

/** `The backlog grew from 120 to 3,000 recipients; 400 more are on hold. Delivered: 12,000; deferred: 5,300; bounced: 20.` */
export function trendSentence({ flow, backlog }: { readonly flow: SeriesJson; readonly backlog: SeriesJson }): string {
  const values = waitingIn(backlog)
  const counts = flow.series[0]?.values ?? {}
  const [firstSlot, lastSlot] = [values.findIndex((value) => value !== null), values.findLastIndex((value) => value !== null)]
  const [first, last] = [values[firstSlot] ?? null, values[lastSlot] ?? null]
  const flowText = `Delivered: ${grouped(sumIn(counts['delivered']))}; deferred: ${grouped(sumIn(counts['deferred']))}; bounced: ${grouped(sumIn(counts['bounced']))}`
  if (first === null && Object.values(counts).every((those) => those.every((value) => value === null)))
    return 'No figures of this time are known.'
  if (first === null || last === null) return `${flowText}.`
  const { from, to, step, as_of: now, known_since: since } = backlog
  const lastAt = lastCountIn(backlog, lastSlot)
  const isOld = (end: number): boolean => end - lastAt >= 2 * COUNTED_EACH
  const held = backlog.series[0]?.values['hold']?.[lastSlot] ?? 0
  const onHold = (one: string, many: string): string => (held === 0 ? '' : `; ${grouped(held)} more ${held === 1 ? one : many} on hold`)
  const age = isOld(Math.min(to, now)) ? `, last counted ${span((now - lastAt) * SECOND)} ago` : ''
  const isPeak = step > COUNTED_EACH
  if (firstSlot === lastSlot) {
    const when = isPeak ? (isOld(now) ? 'At most' : 'At the last count,') : 'At the only count so far,'
    return `${when} ${plural(last, 'recipient')} waited${onHold('was', 'were')}${age}. ${flowText}.`
  }
  const isChanged = Math.abs(last - first) >= Math.max(LEAST_CHANGE, first / 10)
  const isFall = isChanged && last < first
  // A peak may be any count of its interval.
  const begin = isPeak && isFall ? Math.max(from + firstSlot * step, since ?? from) : lastCountIn(backlog, firstSlot)
  const what = firstSlot === 0 ? 'The backlog' : `In ${isOld(now) ? '' : 'the last '}${span((lastAt - begin) * SECOND)}, the backlog`
  const flowTime = firstSlot === 0 ? '' : ', in the whole range'
  const end = `${plural(last, 'recipient')}${onHold('is', 'are')}${age}. ${flowText}${flowTime}.`
  if (!isChanged) return `${what} is about as it was: ${end}`
  if (!isPeak) return `${what} ${isFall ? 'fell' : 'grew'} from ${grouped(first)} to ${end}`
  return isFall ? `${what} fell from a peak of ${grouped(first)} to ${end}` : `${what} grew from at most ${grouped(first)} to ${end}`
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
