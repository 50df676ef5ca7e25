/** Finds the messages that an operation selects, in rounds. */
import type { Message, MessageId } from '../mail/message.ts'
import type { AuditId } from '../store/audit-log.ts'
import type { FoundMessage, QueueReader } from '../store/queue-reader.ts'
import type { QueueFilter } from '../store/message-conditions.ts'
import type { BulkOperation, OperationName, Selection } from './operation-request.ts'

/** Number of messages per round. A round is one commit, and it is small so that other commits wait little. */
const ROUND = 64
/** Number of messages per search page. The search for one page takes half a millisecond. */
const PAGE = 4 * ROUND

/** Queue to search when the filter names none; null for all queues except the trash and, unless `queues` names it, `corrupt`. */
const DEFAULT_QUEUE: Readonly<Record<OperationName, QueueFilter['queue']>> = {
  flush: 'deferred',
  hold: null,
  release: 'hold',
  requeue: null,
  expire: null,
  delete: null,
  restore: 'trash',
}

/** Identifies a selected message. */
export type SelectedMessage = Pick<Message, 'id' | 'createdAt'> & {
  /** Absent for a message that an earlier operation has placed. */
  readonly queue?: FoundMessage['queue']
}

/** A selection, or the messages that an earlier operation has placed. */
export type RoundsOf = Selection | { readonly kind: 'placed'; readonly by: AuditId }

interface SelectionDeps {
  readonly reader: Pick<QueueReader, 'find' | 'named' | 'placedBy' | 'survey'>
}

type MessageSelection = Pick<BulkOperation, 'operation' | 'queues'> & {
  readonly selection: RoundsOf
  /** Highest id that a filter selects. */
  readonly through: MessageId
}

/** The filter that an operation searches with. */
export function searchedBy({ operation, queues }: Pick<BulkOperation, 'operation' | 'queues'>, asked: QueueFilter): QueueFilter {
  const only = queues?.length === 1 ? queues[0] : null
  return { ...asked, queue: asked.queue ?? only ?? DEFAULT_QUEUE[operation] }
}

/** The selected messages in rounds. Adds the ids that are found neither in the queue nor in the trash to `unknown`. */
export function selectedRounds(
  deps: SelectionDeps,
  request: MessageSelection,
  unknown: string[],
): AsyncIterable<readonly SelectedMessage[]> {
  const { selection } = request
  switch (selection.kind) {
    case 'ids':
      return named(deps, request, selection.ids, unknown)
    case 'filter':
      return inRounds(matching(deps, request, selection))
    case 'placed':
      return placed(deps, selection.by)
  }
}

async function* named(
  { reader }: SelectionDeps,
  { queues }: MessageSelection,
  ids: readonly string[],
  unknown: string[],
): AsyncGenerator<readonly SelectedMessage[]> {
  for (let from = 0; from < ids.length; from += ROUND) {
    const asked = ids.slice(from, from + ROUND)
    const found = await reader.named(asked)
    unknown.push(...asked.filter((_, n) => found[n] === undefined))
    yield found.filter((one) => one !== undefined).filter(({ queue }) => queues === null || queues.some((name) => name === queue))
  }
}

async function* placed({ reader }: SelectionDeps, by: AuditId): AsyncGenerator<readonly SelectedMessage[]> {
  for (let after: MessageId | null = 0; after !== null;) {
    const { messages, next }: Awaited<ReturnType<QueueReader['placedBy']>> = await reader.placedBy(by, { after, limit: ROUND })
    if (messages.length > 0) yield messages
    after = next
  }
}

async function* inRounds(pages: AsyncIterable<readonly SelectedMessage[]>): AsyncGenerator<readonly SelectedMessage[]> {
  for await (const found of pages) {
    for (let from = 0; from < found.length; from += ROUND) yield found.slice(from, from + ROUND)
  }
}

async function* matching(
  { reader }: SelectionDeps,
  request: MessageSelection,
  { filter: asked, limit }: Extract<Selection, { kind: 'filter' }>,
): AsyncGenerator<readonly FoundMessage[]> {
  const { queues, through } = request
  const filter = searchedBy(request, asked)
  const eligible = ({ queue }: FoundMessage) =>
    queues === null ? queue !== 'corrupt' || filter.queue === 'corrupt' : queues.some((one) => one === queue)
  const find = (after: MessageId, left: number) => {
    const page = reader.find(filter, { after, through, limit: Math.min(PAGE, left) })
    // The next page is requested before this one is processed. If processing fails, a failure of that request would have no
    // handler.
    page.catch(() => undefined)
    return page
  }
  let left = limit ?? Infinity
  for (let next: ReturnType<typeof find> | null = find(0, left); next !== null;) {
    const page: readonly FoundMessage[] = await next
    const found = page.filter(eligible)
    const isLast = page.length < Math.min(PAGE, left) || found.length === left
    left -= found.length
    // The next page is searched while this one is processed.
    next = isLast ? null : find(page.at(-1)?.id ?? through, left)
    yield found
  }
}

/** Number of ids that one slice of a count covers. */
const SLICE = 16_000

/** Number of scheduled messages that a flush passes over: those that are named, or that its filter selects but for their queue. */
export async function passedOver({ reader }: SelectionDeps, { selection, through }: MessageSelection): Promise<number> {
  if (selection.kind === 'placed') return 0
  if (selection.kind === 'ids') return (await reader.named(selection.ids)).filter((one) => one?.queue === 'scheduled').length
  const { filter } = selection
  if (filter.queue !== null) return 0
  let count = 0
  for (let after: MessageId | null = 0; after !== null;) {
    const page = { after, through, size: SLICE, queues: null, destinations: false }
    const slice: Awaited<ReturnType<QueueReader['survey']>> = await reader.survey({ ...filter, queue: 'scheduled' }, page)
    count += slice.messages
    after = slice.last
  }
  return count
}
