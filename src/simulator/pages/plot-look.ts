/**
 * Appearance of the series of a plot. Colours are those of Okabe and Ito (2008), which readers with any form of colour blindness can
 * tell apart; dashes and marks distinguish the series without colours too. Pure.
 */

export interface Look {
  /** In hexadecimal digits; null for the colour of the text, which follows the colour scheme of the page. */
  readonly colour: string | null
  /** Lengths of dashes and gaps, in pixels; empty for a solid line. */
  readonly dash: readonly number[]
  /** Mark of a point, by its name in Chart.js. */
  readonly mark: string
}

/** Blue, vermilion, bluish green, orange, sky blue, reddish purple, and the colour of the text. Yellow is not legible on white. */
const COLOURS: readonly (string | null)[] = ['#0072b2', '#d55e00', '#009e73', '#e69f00', '#56b4e9', '#cc79a7', null]
const DASHES: readonly (readonly number[])[] = [[], [7, 3], [2, 2], [10, 3, 2, 3], [14, 5]]
const MARKS: readonly string[] = ['circle', 'triangle', 'rect', 'rectRot', 'star', 'crossRot']

/** Look of the series at a position, from 0. The numbers of colours, dashes and marks have no common divisor but 1. */
export const lookOf = (position: number): Look => ({
  colour: COLOURS[position % COLOURS.length] ?? null,
  dash: DASHES[position % DASHES.length] ?? [],
  mark: MARKS[position % MARKS.length] ?? 'circle',
})
