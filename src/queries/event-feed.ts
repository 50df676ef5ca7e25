/** Queries for the events that the queue keeps for programs. */
import { eventSelector, type EventFilter } from '../events/event-filter.ts'
import type { EventPage, ListedEvent } from '../events/wire-events.ts'
import { cursorText, readCursor, type EventSeq } from '../events/kept-event.ts'
import { Problem } from '../http/problem-details.ts'
import { eventJson, lostJson } from '../resources/event-json.ts'
import { CURSOR_PROBLEM } from './cursor.ts'
import { asOf, eventTerms, type QueueView, type Viewer } from './queue-view.ts'
import { inRange, keptTypes, positionsOf, type EventRange } from './subscriptions.ts'

interface EventQuery extends EventRange {
  readonly after?: string | undefined
  readonly types: readonly string[]
  readonly destination?: string | undefined
  readonly sender?: string | undefined
}

/** Number of events per read of the whole listing or of a stream. */
const READ_AT_ONCE = 250

interface Read {
  readonly events: readonly ListedEvent[]
  readonly epoch: number
  /** Position before the first kept event. */
  readonly before: EventSeq
  /** Position after the page. */
  readonly through: EventSeq
  readonly isLast: boolean
}

const filterOf = ({ types, destination, sender }: Pick<EventQuery, 'types' | 'destination' | 'sender'>): EventFilter => ({
  types,
  destinations: destination === undefined ? [] : [destination],
  senders: sender === undefined ? [] : [sender],
})

interface Span {
  /** Position of the cursor, or that before the range of times; null without either. */
  readonly after: EventSeq | null
  /** Number of the last kept event that the range of times may have; null without an end. */
  readonly through: EventSeq | null
  /** Whether no later event can be of the range. */
  readonly isOver: boolean
}

/** Throws Problem for the cursor of another queue. */
async function spanOf(view: QueueView, { after: text, ...range }: EventQuery): Promise<Span> {
  const { occurred_after: begin, occurred_before: end } = range
  if (text === undefined && begin === undefined && end === undefined) return { after: null, through: null, isOver: false }
  const bounds = await view.reader.eventsAfter({ after: Number.MAX_SAFE_INTEGER, limit: 1, filter: filterOf({ types: [] }) })
  const ends = await positionsOf(view, range, bounds)
  const through = end === undefined ? null : ends.through
  const { isOver } = ends
  if (text === undefined) return { after: begin === undefined ? null : ends.after, through, isOver }
  const { epoch, last } = bounds
  const cursor = readCursor(text)
  if (cursor !== undefined && (cursor.epoch === null || cursor.epoch === epoch) && cursor.seq <= last)
    return { after: cursor.seq, through, isOver }
  throw new Problem(CURSOR_PROBLEM, 'the cursor belongs to another queue, or to one that was restored since: begin without a cursor')
}

/** Reads the events after a position; from the oldest kept one for null. Begins with a report of the deleted events, if any. */
async function read(
  view: QueueView,
  { after, limit, ...query }: Omit<EventQuery, 'after'> & { readonly after: EventSeq | null; readonly limit: number },
  { visible }: Viewer,
): Promise<Read> {
  const page = await view.reader.eventsAfter({ after: after ?? 0, limit, filter: filterOf(query) })
  const { epoch, first, last } = page
  const maySee = eventSelector({ types: [], senders: [], destinations: visible === null ? [] : [visible] })
  const isWanted = inRange(query, view.clock.wall)
  const terms = eventTerms(view)
  const seen = page.events.filter((event) => maySee(event) && isWanted(event)).map((event) => eventJson(epoch, event, terms))
  const lost = after !== null && first > after + 1 ? { from: after + 1, to: first - 1, count: first - 1 - after } : null
  const events = lost === null ? seen : [lostJson(epoch, lost, view.clock.wall.now()), ...seen]
  const through = Math.max(page.through, first - 1)
  return { events, epoch, before: first - 1, through, isLast: through >= last }
}

/**
 * One page of events, in the order of their numbers. An empty page may have a next page; none follows when the end of the range has passed
 * and all its events were read.
 */
export async function eventPage(
  view: QueueView,
  { limit, ...query }: EventQuery & { readonly limit: number },
  viewer: Viewer,
): Promise<EventPage> {
  const { after, through: end, isOver } = await spanOf(view, query)
  const { events, epoch, through } = await read(view, { ...query, after, limit }, viewer)
  const isEnd = isOver && end !== null && through >= end
  return {
    events,
    next: isEnd ? null : cursorText(epoch, through),
    kept_types: keptTypes(await view.reader.allSubscriptions()),
    as_of: asOf(view),
  }
}

export async function* eventLines(view: QueueView, query: EventQuery, viewer: Viewer): AsyncGenerator<string> {
  const { through: end, ...span } = await spanOf(view, query)
  let { after } = span
  for (let isDone = false; !isDone && !viewer.signal.aborted;) {
    const { events, through, isLast } = await read(view, { ...query, after, limit: READ_AT_ONCE }, viewer)
    isDone = isLast || (end !== null && through >= end)
    after = through
    yield events.map((event) => `${JSON.stringify(event)}\n`).join('')
  }
}

/** Server-sent events: the kept events first, then each new event at once, until the client disconnects. */
export async function* eventStream(view: QueueView, query: EventQuery, viewer: Viewer): AsyncGenerator<string> {
  const { signal } = viewer
  let { after } = await spanOf(view, query)
  const news = new News(view, signal)
  try {
    yield 'retry: 5000\n\n'
    while (!signal.aborted) {
      const isNew = news.next()
      const { events, epoch, before, through, isLast } = await read(view, { ...query, after, limit: READ_AT_ONCE }, viewer)
      after = through
      if (events.length > 0) yield events.map((event) => serverSent(event, cursorText(epoch, before))).join('')
      if (isLast) await isNew
    }
  } finally {
    news.close()
  }
}

/** The field `id` is the position to which a client returns with Last-Event-ID; after a loss, the position before the oldest event. */
const serverSent = (event: ListedEvent, beforeOldest: string): string => {
  const id = event.type === 'events.lost' ? beforeOldest : event.id
  return `id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}

/** Waits for more events, or for the end of the request. */
class News {
  readonly #signal: AbortSignal
  readonly #close: () => void
  #wake: () => void = () => undefined

  constructor(view: QueueView, signal: AbortSignal) {
    this.#signal = signal
    const wake = (): void => this.#wake()
    const unsubscribe = view.onEvents(wake)
    signal.addEventListener('abort', wake)
    this.#close = () => {
      unsubscribe()
      signal.removeEventListener('abort', wake)
    }
  }

  /** Resolves when events may have been added since the call. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
      if (this.#signal.aborted) resolve()
    })
  }

  close(): void {
    this.#close()
  }
}
