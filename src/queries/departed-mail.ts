/** Queries for the history of the queue. */
import { departedMessageJson, type DepartedMessageJson, type HistoryPageJson } from '../resources/departed-message-json.ts'
import { jsonLines } from '../presentation/text.ts'
import type { FinalState } from '../mail/message.ts'
import { addressPattern } from '../patterns/filter-pattern.ts'
import { senderPattern } from '../store/message-conditions.ts'
import { departedRecipients, type HistoryFilter, type MessageDetails } from '../store/queue-reader.ts'
import type { Moment } from '../mail/message-times.ts'
import type { Duration, WallTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { cursorPosition, cursorText } from './cursor.ts'
import { maySee } from './message-query.ts'
import type { QueueView, Viewer, Visible } from './queue-view.ts'

export interface HistoryQuery {
  readonly sender?: string | undefined
  readonly recipient?: string | undefined
  readonly outcome?: FinalState | undefined
  /** Name of the class. */
  readonly class?: string | undefined
  /** Pattern of the status of the last attempt. */
  readonly status?: string | undefined
  readonly since?: Duration | undefined
  /** The message left at this time or later. */
  readonly left_after?: WallTime | undefined
  /** The message left before this time. */
  readonly left_before?: WallTime | undefined
}

interface HistoryPageQuery extends HistoryQuery {
  readonly limit: number
  readonly before?: string | undefined
}

const STREAM_PAGE = 50
/** Maximum number of pages that one request reads in search of messages with a recipient that the client may see. */
const MOST_PAGES = 20

export function filterOf(
  { sender, recipient, outcome, class: name, status, since, left_after: after, left_before: before }: HistoryQuery,
  { now, wall }: Moment,
): HistoryFilter {
  const begins = [...(since === undefined ? [] : [now - since]), ...(after === undefined ? [] : [wall.queueTime(after)])]
  return {
    sender: sender === undefined ? null : senderPattern(sender),
    recipient: recipient === undefined ? null : addressPattern(recipient),
    outcome: outcome ?? null,
    class: name ?? null,
    status: status ?? null,
    since: begins.length === 0 ? null : Math.max(...begins),
    until: before === undefined ? null : wall.queueTime(before),
  }
}

/** The messages with a recipient that matches and that the client may see. */
const entriesOf = (
  messages: readonly MessageDetails[],
  filter: HistoryFilter,
  { visible, wall }: { readonly visible: Visible; readonly wall: WallView },
): readonly DepartedMessageJson[] =>
  messages.flatMap((message) => {
    const recipients = departedRecipients(filter, message).filter(({ destination }) => maySee(visible, destination))
    return recipients.length === 0 ? [] : [departedMessageJson(message, recipients, wall)]
  })

/** One page of mail that has left the queue, the last one first. A page without messages may have a next page. */
export async function historyPage(
  view: QueueView,
  { limit, before, ...query }: HistoryPageQuery,
  { visible, signal }: Viewer,
): Promise<HistoryPageJson> {
  const now = view.clock.now()
  const filter = filterOf(query, { now, wall: view.clock.wall })
  const conditions = ['history', query, visible]
  const messages: DepartedMessageJson[] = []
  let position = before === undefined ? null : (cursorPosition(before, conditions)[0] ?? null)
  for (let page = 0; page < MOST_PAGES && !signal.aborted; page++) {
    const departed = await view.reader.departed(filter, { before: position, limit: limit - messages.length })
    messages.push(...entriesOf(departed.messages, filter, { visible, wall: view.clock.wall }))
    position = departed.next
    if (position === null || messages.length >= limit) break
  }
  return { messages, next: position === null ? null : cursorText([position], conditions), as_of: view.clock.wall.seconds(now) }
}

/** The whole history in pages of `size` messages, up to `limit`, the last one first. Ends early when `signal` aborts. */
export async function* departures(
  { reader, clock }: Pick<QueueView, 'reader' | 'clock'>,
  { limit = Infinity, ...query }: HistoryQuery & { readonly limit?: number | undefined },
  { visible, size, signal }: { readonly visible: Visible; readonly size: number; readonly signal?: AbortSignal },
): AsyncGenerator<readonly DepartedMessageJson[]> {
  const filter = filterOf(query, { now: clock.now(), wall: clock.wall })
  let left = limit
  for (let before: number | null | undefined; before !== null && left > 0;) {
    if (signal?.aborted === true) return
    const { messages, next } = await reader.departed(filter, { before: before ?? null, limit: Math.min(size, left) })
    left -= messages.length
    before = next
    yield entriesOf(messages, filter, { visible, wall: clock.wall })
  }
}

/** The whole history as the lines of `deferd history list --json`. */
export async function* historyLines(view: QueueView, query: HistoryQuery, viewer: Viewer): AsyncGenerator<Uint8Array> {
  for await (const page of departures(view, query, { ...viewer, size: STREAM_PAGE })) yield jsonLines(page)
}
