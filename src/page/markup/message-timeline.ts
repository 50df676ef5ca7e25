/**
 * The life of a message as a drawing: its arrival, the attempts so far, now, the planned attempts, warnings and the end. The axis has
 * times of day, or the time since the arrival on a logarithmic scale. A table and a sentence beside the drawing have the same values.
 */
import { html, type Html } from '../../presentation/html.ts'
import { axisScale, axisTitle, type AxisScale } from '../../presentation/plots/plot-axis.ts'
import type { Axis } from '../../presentation/plots/plot.ts'
import { SECOND, type WallTime } from '../../system/clock.ts'
import { pathOf, toneOf } from './marks.ts'
import type { ZonedNow } from './times.ts'

export interface TimelineMark {
  readonly at: WallTime
  /** A name of a mark. */
  readonly mark: string
  readonly text: string
  readonly isPlanned: boolean
}

export const TIMELINE_SCALES = ['time', 'age'] as const
export type TimelineScale = (typeof TIMELINE_SCALES)[number]

export interface Timeline {
  readonly marks: readonly TimelineMark[]
  readonly begin: WallTime
  readonly end: WallTime
  /** Null for a message that has left. */
  readonly now: WallTime | null
  readonly scale: TimelineScale
}

/** In pixels. */
const HEIGHT = 78
const LINE_Y = 34
/** Lengths of the line in a wide and a narrow drawing, and the gap between two labels, in pixels. */
const ROOM = { wide: 600, narrow: 280, gap: 56 }
/** Age at the begin of a logarithmic line. */
const FIRST_AGE = 20 * SECOND

export const timelineAxis = (scale: TimelineScale, { clock }: ZonedNow): Axis =>
  scale === 'time'
    ? { title: 'time', scale: 'linear', values: clock }
    : { title: 'since arrival', scale: 'logarithmic', values: 'durations' }

/** Position of an instant, as a share of the line. */
function placesOf(
  { begin, end, scale }: Timeline,
  view: ZonedNow,
): { readonly axis: AxisScale; readonly at: (instant: WallTime) => number } {
  const shown = scale === 'time' ? [begin, Math.max(end, begin + SECOND)] : [FIRST_AGE, Math.max(end - begin, 2 * FIRST_AGE)]
  const axis = axisScale(timelineAxis(scale, view), shown, ROOM)
  return { axis, at: (instant) => axis.at(scale === 'time' ? instant : Math.max(FIRST_AGE, instant - begin)) }
}

const percent = (share: number): string => `${Number((100 * share).toFixed(2))}%`

/** A mark as its shape; a deferred attempt as a disc, a planned one as a ring. */
function drawn({ mark, text, isPlanned }: TimelineMark, share: number): Html {
  const x = percent(share)
  if (isPlanned && mark === 'waiting') return html`<circle cx="${x}" cy="${LINE_Y}" r="3.5"><title>${text}</title></circle>`
  if (mark === 'deferred') return html`<circle class="made" cx="${x}" cy="${LINE_Y}" r="5"><title>${text}</title></circle>`
  return html`<svg x="${x}" y="${LINE_Y}" overflow="visible">
    <g class="${toneOf(mark)}${isPlanned ? ' planned' : ''}" transform="translate(-8 -8)">
      <title>${text}</title>
      <path d="${pathOf(mark)}" />
    </g>
  </svg>`
}

/** Share of the line between two planned attempts below which one is left out. */
const LEAST_DISTANCE = 0.006

/** Leaves out planned attempts that would hide each other. */
function thinned(marks: readonly TimelineMark[], at: (instant: WallTime) => number): readonly TimelineMark[] {
  let last = -Infinity
  return marks.filter((one) => {
    if (!one.isPlanned || one.mark !== 'waiting') return true
    if (at(one.at) - last < LEAST_DISTANCE) return false
    last = at(one.at)
    return true
  })
}

export function timeline(view: ZonedNow, shown: Timeline, label: string): Html {
  const { axis, at } = placesOf(shown, view)
  const here = shown.now === null ? null : percent(at(shown.now))
  return html`<div class="plot timeline">
    <svg width="100%" height="${HEIGHT}" role="img" aria-label="${label}, by ${axisTitle(timelineAxis(shown.scale, view), view.now)}">
      <line class="past" x2="${here ?? '0%'}" y1="${LINE_Y}" y2="${LINE_Y}" />
      <line class="axis" x1="${here ?? '0%'}" x2="100%" y1="${LINE_Y}" y2="${LINE_Y}" />
      ${axis.ticks.map(
        (tick) =>
          html`<g${tick.shown === 'always' ? null : html` class="${tick.shown}"`}><line class="tick" x1="${percent(tick.at)}" x2="${percent(tick.at)}" y1="${LINE_Y + 12}" y2="${LINE_Y + 18}" /><text x="${percent(tick.at)}" y="${HEIGHT - 8}" text-anchor="middle">${tick.text}</text></g>`,
      )}
      ${thinned(shown.marks, at).map((mark) => drawn(mark, at(mark.at)))}
      ${here === null ? null : html`<line class="now" x1="${here}" x2="${here}" y1="${LINE_Y - 18}" y2="${LINE_Y + 18}" /><text class="now" x="${here}" y="11" text-anchor="middle">now</text>`}
    </svg>
  </div>`
}
