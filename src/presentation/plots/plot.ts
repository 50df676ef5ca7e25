/** A plot as data: its axes, series and shaded areas. */
import type { Clock } from '../../system/clock.ts'

/** Instants in ms since 1970, shown in a time zone. */
export type Instants = Pick<Clock, 'zone'>

export interface Axis {
  /** Quantity, with its unit unless the values are durations or instants. */
  readonly title: string
  readonly scale: 'linear' | 'logarithmic'
  /** Numbers by default, whole numbers, durations in ms, instants, or the names of rows at the positions 0, 1, 2 … (vertical axis only). */
  readonly values?: 'numbers' | 'counts' | 'durations' | Instants | readonly string[]
  /** Values that a linear axis has at least, beside those of the series. */
  readonly includes?: readonly number[]
}

/** A shaded area between two positions of the horizontal axis. */
export interface Area {
  readonly label: string
  readonly from: number
  readonly to: number
}

/** A position of the horizontal axis, such as that of a restart. */
export interface Mark {
  readonly label: string
  readonly at: number
}

export interface Series {
  readonly name: string
  /** In ascending order of x where the plot has lines. */
  readonly points: readonly (readonly [x: number, y: number])[]
}

interface AnyPlot {
  readonly title: string
  /** Caption in one or two sentences. */
  readonly about: string
  readonly y: Axis
  /** Whether a value holds until the next point. */
  readonly stepped?: boolean
  readonly series: readonly Series[]
  /** Outages; none when absent. */
  readonly shaded?: readonly Area[]
  readonly marks?: readonly Mark[]
}

/** A plot. Bars are horizontal, one for each name of the vertical axis, and begin at zero, which a logarithmic axis does not have. */
export type Plot = AnyPlot &
  ({ readonly kind: 'line' | 'scatter'; readonly x: Axis } | { readonly kind: 'bar'; readonly x: Axis & { readonly scale: 'linear' } })
