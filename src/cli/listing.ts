/**
 * The lines of a listing, in shares. A long one is made by several threads, each with a connection of its own: what
 * takes the time is to make text of a million messages, and that can be done side by side.
 */
import type { Instant } from '../mail/clock.ts'
import type { MessageId } from '../queue/message.ts'
import type { QueueFilter, QueueReader } from '../queue/reader.ts'
import { listedLine } from './listed-line.ts'
import { messageJson } from './message-json.ts'
import { pages } from './page-reader.ts'
import { recordsByName } from './standing.ts'
import { jsonLines } from './text.ts'

export interface ListingOrder {
  readonly filter: QueueFilter
  readonly now: Instant
  /** The most messages to list; all when absent. */
  readonly limit?: number | undefined
  readonly json: boolean
  /** Of the terminal; null when it is none. */
  readonly columns: number | null
}

/** Ids after the first and up to the second. */
export interface IdRange {
  readonly after: MessageId
  readonly through: MessageId
}

export interface Share {
  /** Messages. */
  readonly count: number
  readonly lines: Uint8Array
}

/** Messages that are listed sooner than threads have started and warmed up. */
const FEW = 100_000

/** Mail that is in few places, where most slices would be looked through in vain. */
const RARE: ReadonlySet<QueueFilter['queue']> = new Set(['active', 'hold', 'corrupt', 'trash'])

/** Shares in the order of the messages. `directory` is where the queue of `reader` is. */
export async function* listing(reader: QueueReader, directory: string, order: ListingOrder): AsyncGenerator<Share> {
  if (order.limit !== undefined || RARE.has(order.filter.queue) || isShort(reader)) return yield* sharesOf(reader, order)
  const { listingInThreads } = await import('./listing-threads.ts')
  yield* listingInThreads(reader, directory, order)
}

const isShort = (reader: QueueReader): boolean => {
  const end = reader.sliceEnd(0, FEW)
  return end === null || reader.sliceEnd(end, 1) === null
}

/** One share for each page of the range, of the whole queue when none is given. */
export function* sharesOf(reader: QueueReader, order: ListingOrder, range?: IdRange): Generator<Share> {
  const facts = { now: order.now, records: recordsByName(reader.destinationRecords()), columns: order.columns }
  const encoder = new TextEncoder()
  for (const page of pages(reader, { ...order, ...range })) {
    const lines = order.json
      ? jsonLines(page.map((listed) => messageJson(listed, facts.records)))
      : encoder.encode(page.map((listed) => `${listedLine(listed, facts)}\n`).join(''))
    yield { count: page.length, lines }
  }
}
