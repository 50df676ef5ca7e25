/**
 * The life of a message as a drawing: its arrival, the attempts so far, now, the planned attempts, warnings and the end. The axis is
 * logarithmic in the age, as waits grow with it. A table beside the drawing has the same values.
 */
import { html, type Html } from '../../presentation/html.ts'
import { pathOf, toneOf } from './marks.ts'
import { span } from './times.ts'

export interface TimelineMark {
  /** Age of the message in ms. */
  readonly age: number
  /** A name of a mark. */
  readonly mark: string
  readonly text: string
  readonly isPlanned: boolean
}

export interface Timeline {
  readonly marks: readonly TimelineMark[]
  /** Age of the message now, in ms; null for a message that has left. */
  readonly now: number | null
  /** Age at the end of the axis, in ms. */
  readonly end: number
}

const WIDTH = 1000
const HEIGHT = 74
const LINE_Y = 34
const MARGIN = 16
/** In ms. */
const LOGARITHMIC_FROM = 20_000
const MINUTE = 60_000

const LABELLED_AGES = [1, 5, 30, 60, 240, 720, 1440, 2880, 7200, 20_160].map((minutes) => minutes * MINUTE)

function position(age: number, end: number): number {
  const share = Math.log1p(Math.max(0, age) / LOGARITHMIC_FROM) / Math.log1p(Math.max(end, 1) / LOGARITHMIC_FROM)
  return Math.round((MARGIN + share * (WIDTH - 2 * MARGIN)) * 10) / 10
}

/** Labelled ages at a distance of at least 50 from each other and from the end. */
function ticksOf(end: number): readonly { readonly at: number; readonly text: string }[] {
  const shown: { at: number; text: string }[] = []
  for (const age of LABELLED_AGES) {
    const at = position(age, end)
    if (age < end && at - (shown.at(-1)?.at ?? MARGIN + 40) > 60 && WIDTH - MARGIN - at > 60) shown.push({ at, text: span(age) })
  }
  return [...shown, { at: WIDTH - MARGIN, text: span(end) }]
}

/** A mark as its shape; a deferred attempt as a disc, a planned one as a ring. */
function drawn({ age, mark, text, isPlanned }: TimelineMark, end: number): Html {
  const at = position(age, end)
  if (isPlanned && mark === 'waiting') return html`<circle cx="${at}" cy="${LINE_Y}" r="3.5"><title>${text}</title></circle>`
  if (mark === 'deferred') return html`<circle class="made" cx="${at}" cy="${LINE_Y}" r="5"><title>${text}</title></circle>`
  return html`<g class="${toneOf(mark)}${isPlanned ? ' planned' : ''}" transform="translate(${at - 8} ${LINE_Y - 8})"
    ><title>${text}</title><path d="${pathOf(mark)}"
  /></g>`
}

const LEAST_DISTANCE = 6

/** Leaves out planned attempts that would hide each other. */
function thinned(marks: readonly TimelineMark[], end: number): readonly TimelineMark[] {
  let last = -Infinity
  return marks.filter(({ age, mark, isPlanned }) => {
    if (!isPlanned || mark !== 'waiting') return true
    const at = position(age, end)
    if (at - last < LEAST_DISTANCE) return false
    last = at
    return true
  })
}

export function timeline({ marks, now, end }: Timeline, label: string): Html {
  const here = now === null ? null : position(now, end)
  return html`<div class="wide" tabindex="0" role="group" aria-label="${label}">
    <svg class="timeline" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}">
      ${here === null ? null : html`<rect class="past" x="${MARGIN}" y="${LINE_Y - 1}" width="${here - MARGIN}" height="2" />`}
      <path class="axis" d="${`M${here ?? MARGIN} ${LINE_Y}H${WIDTH - MARGIN}`}" />
      ${ticksOf(end).map(
        ({ at, text }) =>
          html`<path class="tick" d="${`M${at} ${LINE_Y + 12}v6`}" /><text
              x="${at}"
              y="${HEIGHT - 8}"
              text-anchor="${at > WIDTH - 40 ? 'end' : 'middle'}"
              >${text}</text
            >`,
      )}
      <text x="${MARGIN}" y="${HEIGHT - 8}">accepted</text>
      ${thinned(marks, end).map((mark) => drawn(mark, end))}
      ${here === null ? null : html`<path class="now" d="${`M${here} ${LINE_Y - 20}V${LINE_Y + 20}`}" /><text class="now" x="${Math.min(here + 4, WIDTH - 40)}" y="12">now</text>`}
    </svg>
  </div>`
}
