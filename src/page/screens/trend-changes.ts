/** Destinations whose deferrals changed most. Pure. */
import type { SeriesJson } from '../../resources/series-json.ts'

export interface Change {
  readonly name: string
  readonly before: number
  readonly now: number
  readonly change: number
}

const CHANGES_SHOWN = 5

/** The changes between the last two intervals of a series, the largest first. */
export const changesOf = ({ series }: SeriesJson): readonly Change[] =>
  series
    .flatMap(({ name, values: { deferred = [] } }) => {
      const [before, now] = [deferred.at(-2) ?? 0, deferred.at(-1) ?? 0]
      return name === null || name === '' ? [] : [{ name, before, now, change: now - before }]
    })
    .filter(({ change }) => change !== 0)
    .toSorted((a, b) => Math.abs(b.change) - Math.abs(a.change))
    .slice(0, CHANGES_SHOWN)
