/**
 * Appearance of the series of a plot. Colours are those of Okabe and Ito (2008), which readers with any form of colour blindness can
 * tell apart; dashes and marks distinguish the series without colours too. Pure.
 */

export interface Look {
  /** Colour as SVG names it. */
  readonly colour: string
  /** Lengths of dashes and gaps, in pixels; empty for a solid line. */
  readonly dash: readonly number[]
  /** Path of the mark of a point, around 0 0. */
  readonly mark: string
}

/** Blue, vermilion, bluish green, orange, sky blue, reddish purple, and the colour of the text. Yellow is not legible on white. */
const COLOURS: readonly string[] = ['#0072b2', '#d55e00', '#009e73', '#e69f00', '#56b4e9', '#cc79a7', 'currentColor']
const DASHES: readonly (readonly number[])[] = [[], [7, 3], [2, 2], [10, 3, 2, 3], [14, 5]]
/** Circle, triangle, square, diamond, plus and cross. */
const MARKS: readonly string[] = [
  'M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z',
  'M0-4L4 3.5H-4Z',
  'M-3-3H3V3H-3Z',
  'M0-4.5L4.5 0L0 4.5L-4.5 0Z',
  'M0-4V4M-4 0H4',
  'M-3-3L3 3M-3 3L3-3',
]

/** Look of the series at a position, from 0. The numbers of colours, dashes and marks have no common divisor but 1. */
export const lookOf = (position: number): Look => ({
  colour: COLOURS[position % COLOURS.length] ?? 'currentColor',
  dash: DASHES[position % DASHES.length] ?? [],
  mark: MARKS[position % MARKS.length] ?? '',
})
