/** Plans of operations: what an operation would change, and whether what an operator was shown still holds. */
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { queueIdOf, type DestinationName, type MessageId } from '../mail/message.ts'
import type { FoundMessage, QueueReader } from '../store/queue-reader.ts'
import { ANY_MESSAGE, type QueueFilter } from '../store/message-conditions.ts'
import type { Clock, Duration, QueueTime } from '../system/clock.ts'
import {
  assertClass,
  ORDINARY_QUEUES,
  type AskedOperation,
  type OperationRequest,
  type PassedOver,
  type ShownPlan,
} from './operation-request.ts'
import type { SchedulerControl } from './operation-rounds.ts'
import { undoUntil, type Retention } from './operation-undo.ts'
import { changeable, mayChange, passedInSearched, passedOver, searchedBy, selectedRounds, withPassedOver } from './selected-messages.ts'

/** Growth of a selection that needs no new look: this share of what was shown, and at most this number of messages. */
const GROWTH_SHARE = 0.1
const GROWTH = 100

/** Number of examples in a plan. */
const EXAMPLES = 20
/** Number of ids that one slice of a count covers, which takes some milliseconds. */
const SLICE = 16_000

/** Many more messages are selected than the operator was shown (EX_TEMPFAIL). */
export class PlanOutdated extends Error {
  override readonly name = 'PlanOutdated'
  readonly exitCode = 75
  /** Number of messages that are selected now. */
  readonly matched: number

  constructor(shown: number, matched: number) {
    super(`${matched} messages are selected now, ${matched - shown} more than were shown: look again, then repeat the operation`)
    this.matched = matched
  }
}

interface PlanDeps {
  readonly reader: Pick<QueueReader, 'find' | 'lastId' | 'list' | 'named' | 'placedBy' | 'survey'>
  readonly clock: Pick<Clock, 'now' | 'wall'>
  readonly retention: () => Retention
  readonly policies: () => Pick<DestinationPolicies, 'classes'>
  readonly scheduler: Pick<SchedulerControl, 'transfers'>
}

/** An operation that was not carried out. */
export interface OperationPlan {
  /** Highest message id that existed; the operation changes no later message. */
  readonly through: MessageId
  readonly matched: number
  /** Ids that were found neither in the queue nor in the trash. */
  readonly unknown: readonly string[]
  readonly bytes: number
  readonly oldestArrival: QueueTime | null
  /** Messages with a recipient in transfer, whose outcome comes first. */
  readonly inTransfer: number
  /** Live recipients by destination, the most first. */
  readonly destinations: readonly { readonly destination: DestinationName; readonly recipients: number }[]
  /** Queue ids of the first messages. */
  readonly examples: readonly string[]
  /** True when the senders get a notice. */
  readonly tellsSenders: boolean
  /** Messages that a flush would leave unchanged. */
  readonly passedOver: PassedOver
  /** Time until which the operation could be undone if it began now; null when it could not. */
  readonly undoUntil: QueueTime | null
}

/** Whether a selection has grown so much that the operator must look again. */
export const hasOutgrown = (shown: number, now: number): boolean => now - shown > GROWTH || now - shown > shown * GROWTH_SHARE

/** Rejects with PlanOutdated when many more messages are selected now than were shown. */
export async function assertNotOutdated(deps: PlanDeps, request: OperationRequest, { matched: shown, acceptsGrowth }: ShownPlan) {
  if (acceptsGrowth) return
  const { matched } = await planOf(deps, request, { isBrief: true })
  if (hasOutgrown(shown, matched)) throw new PlanOutdated(shown, matched)
}

/** Counts what an operation would change. A brief plan has no destinations and no examples. */
export async function planOf(deps: PlanDeps, request: AskedOperation, { isBrief = false } = {}): Promise<OperationPlan> {
  const { reader, clock, retention, policies } = deps
  assertClass(policies().classes, request)
  const through = await reader.lastId()
  const terms = {
    through,
    tellsSenders: request.operation === 'expire',
    undoUntil: undoUntil(request, retention(), { now: clock.now(), wall: clock.wall }),
  }
  const { selection } = request
  const counted =
    selection.kind === 'ids' || selection.limit !== null
      ? await countedOneByOne(deps, request, through)
      : await countedInSlices(deps, request, { filter: selection.filter, through, isBrief })
  return { ...terms, ...counted }
}

type Counts = Omit<OperationPlan, 'through' | 'tellsSenders' | 'undoUntil'>

/** Counts the messages of a filter. */
async function countedInSlices(
  { reader, scheduler }: PlanDeps,
  request: AskedOperation,
  { filter: asked, through, isBrief }: { readonly filter: QueueFilter; readonly through: MessageId; readonly isBrief: boolean },
): Promise<Counts> {
  const filter = searchedBy(request, asked)
  const wanted = request.queues ?? (filter.queue === null ? ORDINARY_QUEUES : null)
  const queues = wanted === null ? null : wanted.filter((queue) => mayChange(request, queue))
  const isVain = queues === null ? filter.queue !== null && !mayChange(request, filter.queue) : queues.length === 0
  const sums = { matched: 0, bytes: 0 }
  const isCounted = ({ queue }: FoundMessage): boolean => !isVain && (queues === null || queues.some((name) => name === queue))
  const recipients = new Map<DestinationName, number>()
  let oldest = Infinity
  for (let after: MessageId | null = isVain ? null : 0; after !== null;) {
    const page = { after, through, size: SLICE, queues, destinations: !isBrief }
    const slice: Awaited<ReturnType<QueueReader['survey']>> = await reader.survey(filter, page)
    sums.matched += slice.messages
    sums.bytes += slice.bytes
    oldest = Math.min(oldest, slice.oldestArrival ?? Infinity)
    for (const one of slice.destinations) recipients.set(one.destination, (recipients.get(one.destination) ?? 0) + one.recipients)
    after = slice.last
  }
  const found = isBrief ? [] : await reader.find(filter, { after: 0, through, limit: 10 * EXAMPLES })
  const examples = found.filter(isCounted).slice(0, EXAMPLES).map(queueIdOf)
  let inTransfer = 0
  for (const id of isBrief ? [] : await scheduler.transfers()) {
    const [one] = id > through ? [] : await reader.find(filter, { after: id - 1, through: id, limit: 1 })
    if (one !== undefined && isCounted(one)) inTransfer++
  }
  const counts = { inTransfer, unknown: [], oldestArrival: oldestOf(oldest), destinations: ordered(recipients), examples }
  const selection = { kind: 'filter', filter: asked, limit: null } as const
  return { ...sums, ...counts, passedOver: isBrief ? {} : await passedInSearched({ reader }, { ...request, selection, through }) }
}

/** Counts the messages that are named, or the first ones of a filter. */
async function countedOneByOne(deps: PlanDeps, request: AskedOperation, through: MessageId): Promise<Counts> {
  const unknown: string[] = []
  const examples: string[] = []
  const sums = { matched: 0, bytes: 0, inTransfer: 0 }
  const transfers = new Set(await deps.scheduler.transfers())
  const recipients = new Map<DestinationName, number>()
  let oldest = Infinity
  let passed = await passedOver(deps, { ...request, through })
  for await (const selected of selectedRounds(deps, { ...request, through }, unknown)) {
    const round = changeable(request, selected)
    passed = withPassedOver(passed, request, selected)
    for (const { listed, queueId } of await Promise.all(round.map(async (one) => listedOf(deps, queueIdOf(one))))) {
      sums.matched++
      if (examples.length < EXAMPLES) examples.push(queueId)
      if (listed === undefined) continue
      sums.bytes += listed.message.size
      sums.inTransfer += transfers.has(listed.message.id) ? 1 : 0
      oldest = Math.min(oldest, listed.message.arrivedAt)
      for (const { destination } of listed.recipients) recipients.set(destination, (recipients.get(destination) ?? 0) + 1)
    }
  }
  return { ...sums, unknown, oldestArrival: oldestOf(oldest), destinations: ordered(recipients), examples, passedOver: passed }
}

/** A message that may be in the trash; undefined when it has left. */
async function listedOf({ reader }: PlanDeps, queueId: string) {
  const page = { after: 0, limit: 1 }
  const [found] = await reader.list({ ...ANY_MESSAGE, queueId }, page)
  const [deleted] = found === undefined ? await reader.list({ ...ANY_MESSAGE, queueId, queue: 'trash' }, page) : []
  return { queueId, listed: found ?? deleted }
}

const oldestOf = (at: QueueTime): QueueTime | null => (at === Infinity ? null : at)

const ordered = (recipients: ReadonlyMap<DestinationName, number>): OperationPlan['destinations'] =>
  [...recipients].map(([destination, count]) => ({ destination, recipients: count })).toSorted((a, b) => b.recipients - a.recipients)

/** A count that stops at a limit. */
interface BoundedCount {
  readonly count: number
  /** True when there may be more. */
  readonly isAtLeast: boolean
}

/** Counts the messages of a filter, up to about `most` messages or `within` ms. The filter has times of the reader's clock. */
export async function countMatching(
  { reader, clock }: { readonly reader: Pick<QueueReader, 'survey'>; readonly clock: Pick<Clock, 'monotonic'> },
  filter: QueueFilter,
  { most, within }: { readonly most: number; readonly within: Duration },
): Promise<BoundedCount> {
  const end = clock.monotonic() + within
  let count = 0
  for (let after: MessageId | null = 0; after !== null;) {
    const page = { after, through: Number.MAX_SAFE_INTEGER, size: SLICE, queues: null, destinations: false }
    const slice: Awaited<ReturnType<QueueReader['survey']>> = await reader.survey(filter, page)
    count += slice.messages
    after = slice.last
    if (after !== null && (count >= most || clock.monotonic() >= end)) return { count: Math.min(count, most), isAtLeast: true }
  }
  return count > most ? { count: most, isAtLeast: true } : { count, isAtLeast: false }
}
