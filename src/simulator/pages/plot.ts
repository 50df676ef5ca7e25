/** A plot of a page, as data: its axes, series and shaded areas. */
import type { Look } from './plot-look.ts'

export interface Axis {
  readonly title: string
  readonly scale: 'linear' | 'logarithmic'
  /** Names of the positions 0, 1, 2 … instead of numbers. */
  readonly labels?: readonly string[]
}

/** A shaded area between two positions of the horizontal axis. */
export interface Area {
  readonly label: string
  readonly from: number
  readonly to: number
}

export interface Series {
  readonly name: string
  readonly points: readonly (readonly [x: number, y: number])[]
}

export interface Plot {
  readonly title: string
  /** Caption in one or two sentences. */
  readonly about: string
  readonly kind: 'line' | 'scatter' | 'bar'
  readonly x: Axis
  readonly y: Axis
  readonly stepped?: boolean
  readonly series: readonly Series[]
  /** Outages; none when absent. */
  readonly shaded?: readonly Area[]
}

export interface DrawnPlot extends Plot {
  readonly series: readonly (Series & { readonly look: Look })[]
}
