/** Destinations whose deferrals changed most. Pure. */
import type { SeriesJson } from '../../resources/series-json.ts'

export interface Change {
  readonly name: string
  readonly before: number
  readonly now: number
  readonly change: number
}

const CHANGES_SHOWN = 5

/** The changes between the two intervals of a series, the largest first. */
export const changesOf = ({ series }: SeriesJson): readonly Change[] =>
  series
    .flatMap(({ name, values: { deferred: [before = 0, now = 0] = [] } }) =>
      name === null || name === '' ? [] : [{ name, before: before ?? 0, now: now ?? 0, change: (now ?? 0) - (before ?? 0) }],
    )
    .filter(({ change }) => change !== 0)
    .toSorted((a, b) => Math.abs(b.change) - Math.abs(a.change))
    .slice(0, CHANGES_SHOWN)
