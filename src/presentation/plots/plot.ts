/** A plot as data: its axes, series and shaded areas. */

export interface Axis {
  /** Quantity, with its unit unless the values are durations. */
  readonly title: string
  readonly scale: 'linear' | 'logarithmic'
  /** Numbers by default, durations in ms, or the names of rows at the positions 0, 1, 2 … (vertical axis only). */
  readonly values?: 'numbers' | 'durations' | readonly string[]
}

/** A shaded area between two positions of the horizontal axis. */
export interface Area {
  readonly label: string
  readonly from: number
  readonly to: number
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
}

/** A plot. Bars are horizontal, one for each name of the vertical axis, and begin at zero, which a logarithmic axis does not have. */
export type Plot = AnyPlot &
  ({ readonly kind: 'line' | 'scatter'; readonly x: Axis } | { readonly kind: 'bar'; readonly x: Axis & { readonly scale: 'linear' } })
