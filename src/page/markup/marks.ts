/** Marks of states and outcomes: a shape, a colour and the word. The shape and the word carry the meaning without the colour. */
import { html, type Html, type Part } from '../../presentation/html.ts'

/** Colour of a mark, by its meaning. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'held' | 'faint'

interface Mark {
  readonly tone: Tone
  /** Path in a square of 16 × 16. */
  readonly shape: string
  /** The meaning of a word that does not tell it, shown as a title. */
  readonly about?: string
}

const DISC = 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11z'
const RING = 'M8 2a6 6 0 1 1 0 12a6 6 0 1 1 0-12zM8 4a4 4 0 1 0 0 8a4 4 0 1 0 0-8z'
const TRIANGLE = 'M8 2.2L14.8 14H1.2z'
const SQUARE = 'M2.5 2.5h11v11h-11z'
const BARS = 'M3 2.5h3.6v11H3zM9.4 2.5H13v11H9.4z'
const PLAY = 'M3.5 2L14 8L3.5 14z'
const CHECK = 'M1.6 8.6L3.4 6.8L6.4 9.8L12.8 3.2L14.6 5L6.4 13.4z'
const CROSS = 'M3.6 2L8 6.4L12.4 2L14 3.6L9.6 8L14 12.4L12.4 14L8 9.6L3.6 14L2 12.4L6.4 8L2 3.6z'
const CLOCK =
  'M8 1.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 1 1 0-13zM8 3.2a4.8 4.8 0 1 0 0 9.6a4.8 4.8 0 1 0 0-9.6zM7.2 4.6h1.6v3.1l2.3 2.3l-1.1 1.1l-2.8-2.8z'
const DASH = 'M2 6.8h12v2.4H2z'
const ALERT = 'M8 1L15.5 14.5H.5zM7.1 5.6h1.8l-.2 4.6H7.3zM7.2 11.2h1.6v1.6H7.2z'

const MARKS: Readonly<Record<string, Mark>> = {
  open: { tone: 'good', shape: DISC },
  throttled: { tone: 'warn', shape: TRIANGLE },
  dead: { tone: 'bad', shape: SQUARE },
  suspended: { tone: 'held', shape: BARS },
  incoming: { tone: 'busy', shape: RING },
  active: { tone: 'busy', shape: PLAY },
  deferred: { tone: 'warn', shape: CLOCK },
  scheduled: { tone: 'faint', shape: CLOCK },
  hold: { tone: 'held', shape: BARS },
  corrupt: { tone: 'bad', shape: ALERT },
  trash: { tone: 'faint', shape: DASH },
  gone: { tone: 'faint', shape: DASH },
  waiting: { tone: 'warn', shape: CLOCK },
  leased: { tone: 'busy', shape: PLAY, about: 'in the active queue: its delivery runs, or waits for a slot' },
  parked: { tone: 'held', shape: BARS, about: 'not scheduled: its message is on hold, corrupt or in the trash' },
  delivered: { tone: 'good', shape: CHECK },
  bounced: { tone: 'bad', shape: CROSS },
  failed: { tone: 'bad', shape: CROSS },
  expired: { tone: 'bad', shape: SQUARE },
  removed: { tone: 'faint', shape: DASH },
  running: { tone: 'busy', shape: PLAY },
  done: { tone: 'good', shape: CHECK },
  cancelled: { tone: 'held', shape: SQUARE },
  failing: { tone: 'warn', shape: TRIANGLE },
  disabled: { tone: 'bad', shape: SQUARE },
  warning: { tone: 'warn', shape: ALERT },
  refusing: { tone: 'bad', shape: ALERT },
}

const UNKNOWN: Mark = { tone: 'faint', shape: DISC }

/** The shape alone, hidden from screen readers: the word stands beside it. */
export function shapeOf(name: string): Html {
  const { tone, shape } = MARKS[name] ?? UNKNOWN
  return html`<svg class="mark ${tone}" viewBox="0 0 16 16" aria-hidden="true"><path d="${shape}" /></svg>`
}

/** Shape and word of a state, a queue or an outcome. */
export const marked = (name: string, word: Part = name): Html => {
  const about = MARKS[name]?.about
  return html`<span class="marked" ${about === undefined ? null : html`title="${about}"`}>${shapeOf(name)} ${word}</span>`
}

/** A hint for operators, below the reply that it is about. */
export const hintPart = (hint: string | null): Part => (hint === null ? null : html`<br /><span class="faint">${hint}</span>`)

export const toneOf = (name: string): Tone => (MARKS[name] ?? UNKNOWN).tone

export const pathOf = (name: string): string => (MARKS[name] ?? UNKNOWN).shape
