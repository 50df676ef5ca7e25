/**
 * Searches all addresses for a pattern, in pages of limited time: first those of the queue, the oldest message first, then those of the
 * history, the newest first. A page without a message may have a next page; the client stops by asking for none.
 */
import { ANY_MESSAGE } from '../../store/message-conditions.ts'
import { addressPattern, addressMatcher } from '../../patterns/filter-pattern.ts'
import { queueIdOf, type Message } from '../../mail/message.ts'
import { foundMessageJson, type FoundMessageJson, type SearchPageJson } from '../../resources/found-message-json.ts'
import { seconds, type Duration } from '../../system/clock.ts'
import type { Requester } from '../../http/requests/requester.ts'
import { cursorPosition, cursorText } from '../cursor.ts'
import { withSeen } from '../messages.ts'
import { asOf, type QueueView } from '../queue-view.ts'

/** A page ends after this time. */
const PAGE_TIME: Duration = seconds(0.3)
/** Number of messages of the queue that are read at once, which takes some milliseconds. */
const SLICE = 10_000
/** Number of found messages that are read between two looks at the time. */
const FOUND_AT_ONCE = 20

/** Places that are searched one after another. */
const PLACES = [
  { of: 'queue', by: 'recipient' },
  { of: 'queue', by: 'sender' },
  { of: 'history', by: 'recipient' },
  { of: 'history', by: 'sender' },
] as const

/** Position of a scan: the place, how far it was read there, and its highest position. */
interface Position {
  readonly place: number
  readonly at: number | null
  readonly top: number | null
}

interface Scan {
  readonly view: QueueView
  readonly pattern: string
  readonly limit: number
}

interface Slice {
  /** Messages of which an address matches. */
  readonly found: readonly Pick<Message, 'id' | 'createdAt'>[]
  readonly next: Position
}

export async function addressScan(
  view: QueueView,
  { q, limit, after }: { readonly q: string; readonly limit: number; readonly after?: string | undefined },
  { requester, signal }: { readonly requester: Pick<Requester, 'content' | 'destinations'>; readonly signal: AbortSignal },
): Promise<SearchPageJson> {
  const { destinations: visible, content } = requester
  const conditions = ['scan', q, visible, content]
  const [place = 0, at = null, top = null] = after === undefined ? [] : cursorPosition(after, conditions)
  const until = view.clock.monotonic() + PAGE_TIME
  const matches = addressMatcher(addressPattern(q))
  const messages: FoundMessageJson[] = []
  let position: Position = { place: place ?? 0, at, top }
  do {
    const slice = await sliceAt({ view, pattern: addressPattern(q), limit: Math.min(FOUND_AT_ONCE, limit - messages.length) }, position)
    for (const one of slice.found) {
      const details = await view.reader.details(queueIdOf(one))
      const seen = details === undefined || visible === null ? details : withSeen(details, visible)
      // A match of a recipient whom the client may not see would tell of that recipient.
      const isFound =
        visible === null || [seen?.message.sender ?? '', ...(seen?.recipients ?? []).map(({ address }) => address)].some(matches)
      if (seen !== undefined && isFound) messages.push(foundMessageJson(seen, view.clock.wall, content))
    }
    position = slice.next
  } while (position.place < PLACES.length && messages.length < limit && view.clock.monotonic() < until && !signal.aborted)
  const isDone = position.place >= PLACES.length
  return {
    searched: ['part_of_address'],
    messages,
    progress: isDone ? 1 : progressOf(position),
    next: isDone ? null : cursorText([position.place, position.at, position.top], conditions),
    as_of: asOf(view),
  }
}

const nextPlace = ({ place }: Position): Position => ({ place: place + 1, at: null, top: null })

const partOf = ({ place, at, top }: Position): number => {
  if (at === null || top === null || top === 0) return 0
  return PLACES[place]?.of === 'queue' ? at / top : 1 - at / top
}

const progressOf = (position: Position): number =>
  Math.round(((position.place + Math.min(1, partOf(position))) / PLACES.length) * 100) / 100

function sliceAt(scan: Scan, position: Position): Promise<Slice> {
  return PLACES[position.place]?.of === 'queue' ? queueSlice(scan, position) : historySlice(scan, position)
}

async function queueSlice({ view: { reader }, pattern, limit }: Scan, position: Position): Promise<Slice> {
  const after = position.at ?? 0
  const top = position.top ?? (await reader.lastId())
  const through = await reader.sliceEnd(after, SLICE)
  if (through === null) return { found: [], next: nextPlace(position) }
  const bySender = PLACES[position.place]?.by === 'sender'
  const filter = { ...ANY_MESSAGE, ...(bySender ? { sender: pattern } : { recipient: pattern }) }
  const listed = await reader.list(filter, { after, through, limit })
  const matches = addressMatcher(pattern)
  // Found by their recipients before.
  const found = listed.filter(({ recipients }) => !bySender || !recipients.some(({ address }) => matches(address)))
  const at = listed.length === limit ? (listed.at(-1)?.message.id ?? through) : through
  return { found: found.map(({ message }) => message), next: { place: position.place, at, top } }
}

async function historySlice({ view: { reader }, pattern, limit }: Scan, position: Position): Promise<Slice> {
  const bySender = PLACES[position.place]?.by === 'sender'
  const conditions = { sender: bySender ? pattern : null, recipient: bySender ? null : pattern }
  const page = await reader.departed(
    { ...conditions, outcome: null, class: null, status: null, since: null, until: null },
    { before: position.at, limit },
  )
  const matches = addressMatcher(pattern)
  const found = page.messages.filter(({ recipients }) => !bySender || !recipients.some(({ address }) => matches(address)))
  const next = page.next === null ? nextPlace(position) : { place: position.place, at: page.next, top: position.top ?? page.next }
  return { found: found.map(({ message }) => message), next }
}
