/** Marks of states and outcomes: a shape, a colour and the word. The shape and the word carry the meaning without the colour. */
import { html, type Html, type Part } from '../../presentation/html.ts'

/** Colour of a mark, by its meaning. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'held' | 'faint'

interface Mark {
  readonly tone: Tone
  /** Path in a square of 16 × 16. */
  readonly shape: string
  /** The meaning of the word, shown as a title. */
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
  open: { tone: 'good', shape: DISC, about: 'its mail is delivered as it becomes due' },
  throttled: { tone: 'warn', shape: TRIANGLE, about: 'fewer deliveries are made to it than the settings permit' },
  dead: {
    tone: 'bad',
    shape: SQUARE,
    about: 'its servers are not found, or do not accept connections or mail: one delivery at a time probes it',
  },
  suspended: { tone: 'held', shape: BARS, about: 'no delivery to it begins until it is resumed' },
  incoming: { tone: 'busy', shape: RING, about: 'was not tried yet, and is due' },
  active: { tone: 'busy', shape: PLAY, about: 'in delivery, or waits for a slot' },
  deferred: { tone: 'warn', shape: CLOCK, about: 'an attempt failed for now: the next one follows' },
  scheduled: { tone: 'faint', shape: CLOCK, about: 'no delivery begins before a time that a client, an operator or a quota has set' },
  hold: { tone: 'held', shape: BARS, about: 'no attempts until an operator releases it' },
  corrupt: { tone: 'bad', shape: ALERT, about: 'unreadable: it stays until an operator deletes it' },
  trash: { tone: 'faint', shape: DASH, about: 'deleted by an operator, and can be restored for some time' },
  gone: { tone: 'faint', shape: DASH, about: 'all recipients have their outcome' },
  waiting: { tone: 'warn', shape: CLOCK, about: 'waits for its next attempt' },
  leased: { tone: 'busy', shape: PLAY, about: 'in the active queue: its delivery runs, or waits for a slot' },
  parked: { tone: 'held', shape: BARS, about: 'not scheduled: its message is on hold, corrupt or in the trash' },
  delivered: { tone: 'good', shape: CHECK, about: 'the server took it' },
  bounced: { tone: 'bad', shape: CROSS, about: 'refused for good' },
  failed: { tone: 'bad', shape: CROSS, about: 'ended by an error: what was done before stays done' },
  expired: { tone: 'bad', shape: SQUARE, about: 'given up: it was not delivered within its lifetime or number of attempts' },
  removed: { tone: 'faint', shape: DASH, about: 'deleted without a notice to the sender' },
  running: { tone: 'busy', shape: PLAY, about: 'is being carried out' },
  done: { tone: 'good', shape: CHECK, about: 'was carried out' },
  cancelled: { tone: 'held', shape: SQUARE, about: 'ended at the request of its submitter or of an operator' },
  failing: { tone: 'warn', shape: TRIANGLE, about: 'its last try failed: further ones follow' },
  disabled: { tone: 'bad', shape: SQUARE, about: 'nothing is sent until it is enabled' },
  warning: { tone: 'warn', shape: ALERT },
  refusing: { tone: 'bad', shape: ALERT },
}

const UNKNOWN: Mark = { tone: 'faint', shape: DISC }

/** The shape alone, hidden from screen readers: the word stands beside it. */
export function shapeOf(name: string): Html {
  const { tone, shape } = MARKS[name] ?? UNKNOWN
  return html`<svg class="mark ${tone}" viewBox="0 0 16 16" aria-hidden="true"><path d="${shape}" /></svg>`
}

/** Shape and word of a state, a queue or an outcome, with its meaning as a title. Another word than the name of the mark has that of `about`. */
export const marked = (name: string, word: Part = name, about?: string): Html => {
  const meaning = about ?? (word === name ? MARKS[name]?.about : undefined)
  return html`<span class="marked" ${meaning === undefined ? null : html`title="${meaning}"`}>${shapeOf(name)} ${word}</span>`
}

/** The mark of mail that has left the queue, in the words of a screen. */
export const goneMark = (word: string): Html => marked('gone', word, MARKS['gone']?.about)

/** A hint for operators, below the reply that it is about. */
export const hintPart = (hint: string | null): Part => (hint === null ? null : html`<br /><span class="faint">${hint}</span>`)

export const toneOf = (name: string): Tone => (MARKS[name] ?? UNKNOWN).tone

export const pathOf = (name: string): string => (MARKS[name] ?? UNKNOWN).shape
