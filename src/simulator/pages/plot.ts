/** A plot of a page, as data: its axes and series. */

/** An axis of a plot. */
export interface Axis {
  readonly title: string
  readonly scale: 'linear' | 'logarithmic'
  /** Names of the positions 0, 1, 2 … instead of numbers. */
  readonly labels?: readonly string[]
}

export interface Plot {
  readonly title: string
  /** Caption in one or two sentences. */
  readonly about: string
  readonly kind: 'line' | 'scatter' | 'bar'
  readonly x: Axis
  readonly y: Axis
  readonly stepped?: boolean
  readonly series: readonly { readonly name: string; readonly points: readonly (readonly [x: number, y: number])[] }[]
}
