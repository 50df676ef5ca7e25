/** Finds the messages that an operation selects, in rounds. */
import type { Message, MessageId, QueueName } from '../mail/message.ts'
import type { AuditId } from '../store/records/audit-log.ts'
import type { Former } from '../store/former-times.ts'
import type { FoundMessage, QueueReader } from '../store/queue-reader.ts'
import { isAside } from '../store/decisions/queue-name.ts'
import type { QueueFilter } from '../store/message-conditions.ts'
import { appliesAt } from '../store/message-operation.ts'
import type { BulkOperation, OperationName, PassedOver, PassedReason, Selection } from './operation-request.ts'

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
  reschedule: null,
  reclass: null,
}

/** Identifies a selected message. */
export type SelectedMessage = Pick<Message, 'id' | 'createdAt'> & {
  /** Absent for a message that an earlier operation has placed. */
  readonly queue?: FoundMessage['queue']
  /** Its times, or its class, before an operation gave it others. */
  readonly former?: Former | undefined
}

/** True for scheduled mail that a release sends now: it gets another time, and no other place. */
export const isSentNow = (operation: OperationName, { queue }: Pick<SelectedMessage, 'queue'>): boolean =>
  operation === 'release' && queue === 'scheduled'

type Selecting = Pick<BulkOperation, 'operation' | 'queues' | 'purge'>

/** True for mail of a queue that an operation may change. */
export function mayChange({ operation, queues, purge }: Selecting, queue: FoundMessage['queue']): boolean {
  if (queues !== null && !queues.some((name) => name === queue)) return false
  if (operation === 'flush' && queue === 'scheduled') return false
  return isSentNow(operation, { queue }) || appliesAt({ kind: operation, purge }, isAside(queue) ? queue : 'queued')
}

/** The messages of a selection that an operation may change. */
export const changeable = (request: Selecting, messages: readonly SelectedMessage[]): readonly SelectedMessage[] =>
  messages.filter(({ queue }) => queue === undefined || mayChange(request, queue))

/** A selection, or the messages that an earlier operation has placed. */
export type RoundsOf = Selection | { readonly kind: 'placed'; readonly by: AuditId }

interface SelectionDeps {
  readonly reader: Pick<QueueReader, 'find' | 'named' | 'placedBy' | 'survey'>
}

type MessageSelection = Selecting & {
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

const REASONS: { readonly [Queue in FoundMessage['queue']]?: PassedReason } = {
  incoming: 'due',
  deferred: 'due',
  active: 'active',
  hold: 'hold',
  scheduled: 'scheduled',
}

/** Queues whose messages a flush by a filter passes over. Mail that was not tried yet is due. */
const PASSED_QUEUES: readonly QueueName[] = ['active', 'incoming', 'hold', 'scheduled']

const added = (counts: PassedOver, reason: PassedReason, more: number): PassedOver =>
  more === 0 ? counts : { ...counts, [reason]: (counts[reason] ?? 0) + more }

/** True for a message that a flush would leave unchanged when it names the message. */
const isPassedOver = ({ queue }: SelectedMessage): boolean => queue === 'active' || queue === 'hold' || queue === 'scheduled'

/** Adds selected messages that were left unchanged, by the queue in which they were found. */
export const withUnchanged = (counts: PassedOver, messages: readonly SelectedMessage[]): PassedOver =>
  messages.reduce((sums, { queue }) => {
    const reason = queue === undefined ? undefined : REASONS[queue]
    return reason === undefined ? sums : added(sums, reason, 1)
  }, counts)

/** Adds the selected messages that a flush would leave unchanged. */
export const withPassedOver = (counts: PassedOver, { operation }: Pick<BulkOperation, 'operation'>, selected: readonly SelectedMessage[]) =>
  operation === 'flush' ? withUnchanged(counts, selected.filter(isPassedOver)) : counts

/** Adds a number of messages of a queue that a flush would leave unchanged. */
const passedIn = (counts: PassedOver, queue: FoundMessage['queue'], messages: number): PassedOver => {
  const reason = REASONS[queue]
  return reason === undefined ? counts : added(counts, reason, messages)
}

/** Counts the messages of a filter. */
async function counted(reader: Pick<QueueReader, 'survey'>, filter: QueueFilter, through: MessageId): Promise<number> {
  let sum = 0
  for (let after: MessageId | null = 0; after !== null;) {
    const page = { after, through, size: SLICE, queues: null, destinations: false }
    const slice: Awaited<ReturnType<QueueReader['survey']>> = await reader.survey(filter, page)
    sum += slice.messages
    after = slice.last
  }
  return sum
}

/**
 * Messages that the filter of a flush selects but for their queue, in the queues that it does not search. Counted before the flush, because what
 * it changes is soon in delivery.
 */
export async function passedOver({ reader }: Pick<SelectionDeps, 'reader'>, request: MessageSelection): Promise<PassedOver> {
  const { operation, selection, queues, through } = request
  if (operation !== 'flush' || selection.kind !== 'filter' || selection.filter.queue !== null) return {}
  const { queue: searched } = searchedBy(request, selection.filter)
  let counts: PassedOver = {}
  for (const queue of PASSED_QUEUES) {
    if (queue === searched || (queues !== null && !queues.includes(queue))) continue
    counts = passedIn(counts, queue, await counted(reader, { ...selection.filter, queue }, through))
  }
  return counts
}

/** Messages that a plan counts by its filter alone, and that a flush would leave unchanged: those of the queue that the filter names. */
export async function passedInSearched(
  deps: Pick<SelectionDeps, 'reader'>,
  request: MessageSelection & { readonly selection: Extract<Selection, { kind: 'filter' }> },
): Promise<PassedOver> {
  const { operation, selection, through } = request
  const { queue } = selection.filter
  if (operation !== 'flush' || queue === null || mayChange(request, queue)) return passedOver(deps, request)
  return passedIn({}, queue, await counted(deps.reader, selection.filter, through))
}
