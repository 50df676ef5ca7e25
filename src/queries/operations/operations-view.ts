/** Operations for clients of the API: plans, begun operations with their state, cancel and undo. */
import { HTTP_PROBLEMS, invalidPart, Problem, type ProblemKind } from '../../http/problem-details.ts'
import { actorOf, auditName, type Requester } from '../../http/requests/requester.ts'
import { jsonLine } from '../../presentation/text.ts'
import { wholeTime } from '../../resources/members.ts'
import {
  auditEntryJson,
  operationJson,
  type AuditPageJson,
  type OperationJson,
  type OperationPlanJson,
} from '../../resources/operation-json.ts'
import { queueIdOf, type MessageId } from '../../mail/message.ts'
import { PlanOutdated } from '../../queue/operation-plan.ts'
import type { StartedOperation } from '../../queue/operation-jobs.ts'
import { UnknownClass } from '../../queue/operation-request.ts'
import { NotUndoable } from '../../queue/operation-undo.ts'
import { searchedBy } from '../../queue/selected-messages.ts'
import { RequestRepeated, type AuditEntry, type AuditFilter, type IdempotentRequest } from '../../store/records/audit-log.ts'
import type { ListedMessage } from '../../store/queue-reader.ts'
import { ANY_MESSAGE } from '../../store/message-conditions.ts'
import { seconds, withTimeout, type Duration, type WallTime } from '../../system/clock.ts'
import { cursorPosition, cursorText } from '../cursor.ts'
import { assertSame } from './idempotency.ts'
import { maySee } from '../message-query.ts'
import type { Asked } from './operation-request-shape.ts'
import { planToken, type Planned } from './plan-token.ts'
import { pageEntry } from '../messages.ts'
import { recordsOf, type QueueView } from '../queue-view.ts'

export const UNKNOWN_OPERATION: ProblemKind = {
  slug: 'unknown-operation',
  status: 404,
  title: 'Unknown operation',
  about: 'No operation has this id, or the token may not see it.',
}

export const PLAN_OUTDATED: ProblemKind = {
  slug: 'plan-outdated',
  status: 409,
  title: 'Plan outdated',
  about:
    'More than 10 % or 100 more messages match now than the dry run has shown. Repeat the dry run, or send `"accept_growth": true`; messages that came after the dry run are not changed either way.',
}

export const NOT_UNDOABLE: ProblemKind = {
  slug: 'not-undoable',
  status: 409,
  title: 'Cannot be undone',
  about:
    'Flush, requeue, expire and purge cannot be undone; a running operation has to be cancelled first; an undo is possible until `undo_until`.',
}

export const ENDED: ProblemKind = {
  slug: 'operation-ended',
  status: 409,
  title: 'Operation has ended',
  about: 'The operation had ended before it could be cancelled; its state tells what it has changed.',
}

/** Messages examined at once for a client with limited destinations. */
const EXAMINED_AT_ONCE = 100
/** Maximum number of messages that a client with limited destinations may change at once, because each is examined. */
const LIMITED_MOST = 10_000
/** The response to a request waits up to 2 s for the end of the operation. */
const ANSWER_LIMIT: Duration = seconds(2)

async function* selectedPages(
  view: QueueView,
  { operation, queues, selection }: Pick<Asked, 'operation' | 'queues' | 'selection'>,
  through: MessageId,
): AsyncGenerator<readonly ListedMessage[]> {
  if (selection.kind === 'ids') {
    for (const queueId of selection.ids) {
      const listed = await listedAnywhere(view, queueId)
      if (listed !== undefined && (queues === null || queues.some((name) => name === listed.queue))) yield [listed]
    }
    return
  }
  const filter = searchedBy({ operation, queues }, selection.filter)
  const isEligible = ({ queue }: ListedMessage): boolean =>
    queues === null ? queue !== 'corrupt' || filter.queue === 'corrupt' : queues.some((one) => one === queue)
  let left = selection.limit ?? Infinity
  for (let after = 0; left > 0;) {
    const limit = Math.min(EXAMINED_AT_ONCE, left)
    const page = await view.reader.list(filter, { after, through, limit })
    const chosen = page.filter(isEligible)
    left -= chosen.length
    yield chosen
    if (page.length < limit) return
    after = page.at(-1)?.message.id ?? after
  }
}

/**
 * The same operation, limited to messages of which the client may see all recipients. Throws Problem for a destination that the client may
 * not see, and for too many messages.
 */
async function limited(view: QueueView, asked: Asked, visible: string): Promise<Asked> {
  const { selection } = asked
  const ids: string[] = []
  const restricted =
    selection.kind === 'filter' && selection.filter.destination === null
      ? { ...asked, selection: { ...selection, filter: { ...selection.filter, destination: visible } } }
      : asked
  for await (const page of selectedPages(view, restricted, await view.reader.lastId())) {
    for (const { message, recipients } of page)
      if (recipients.length > 0 && recipients.every(({ destination }) => maySee(visible, destination))) ids.push(queueIdOf(message))
    if (ids.length > LIMITED_MOST)
      throw new Problem(
        HTTP_PROBLEMS.invalid,
        `a token with limited destinations changes at most ${LIMITED_MOST} messages at once: add a limit`,
      )
  }
  return { ...asked, selection: { kind: 'ids', ids } }
}

/** The operation, limited to the messages that the client may change. */
export const permitted = async (view: QueueView, asked: Asked, { destinations }: Requester): Promise<Asked> =>
  destinations === null ? asked : limited(view, asked, destinations)

/** The effect that an operation would have now. Changes nothing. */
export async function operationPlan(view: QueueView, given: Asked, requester: Requester): Promise<OperationPlanJson> {
  const asked = await permitted(view, given, requester)
  const plan = await view.plan(asked).catch((error: unknown) => {
    throw refusalOf(error)
  })
  const { through, matched } = plan
  const records = await recordsOf(view)
  const { wall } = view.clock
  const examples = await Promise.all(plan.examples.map((queueId) => listedAnywhere(view, queueId)))
  return {
    token: planToken({ ...asked, through, matched }),
    matched,
    recipients: plan.destinations.reduce((sum, { recipients }) => sum + recipients, 0),
    unknown: plan.unknown.length,
    bytes: plan.bytes,
    oldest: plan.oldestArrival === null ? null : wholeTime(plan.oldestArrival, wall),
    in_transfer: plan.inTransfer,
    ...plan.passedOver,
    destinations: plan.destinations.length,
    examples: examples.flatMap((listed) => (listed === undefined ? [] : [pageEntry(listed, requester.destinations, records, wall)])),
    told_senders: plan.tellsSenders,
    undo: wall.secondsOrNull(plan.undoUntil),
  }
}

/** A message in the queue or in the trash; undefined when it has left. */
async function listedAnywhere({ reader }: QueueView, queueId: string): Promise<ListedMessage | undefined> {
  const [found] = await reader.named([queueId])
  if (found === undefined) return undefined
  const [listed] = await reader.list({ ...ANY_MESSAGE, queueId, queue: found.queue }, { after: 0, limit: 1 })
  return listed
}

export interface Carried {
  readonly reason: string | null
  /** Null for a request without an idempotency key. */
  readonly request: IdempotentRequest | null
}

export interface Begun {
  readonly operation: OperationJson
  readonly isReplayed: boolean
}

/** Begins an operation, and waits for its end for some seconds. `planned` has the last id and the number of messages that were shown. */
export async function beginOperation(
  view: QueueView,
  given: Asked | Planned,
  { requester, acceptsGrowth, ...carried }: Carried & { readonly requester: Requester; readonly acceptsGrowth: boolean },
): Promise<Begun> {
  const asked = await permitted(view, given, requester)
  const plan = 'through' in given ? { through: given.through, matched: given.matched, acceptsGrowth } : null
  const { operation, selection, queues, purge, release, class: named } = asked
  const request = { operation, selection, queues, purge, release, class: named, ...actorOf(requester), plan, ...carried }
  return begun(view, carried.request, () => view.operations().jobs.start(request))
}

export function undoOperation(
  view: QueueView,
  id: number,
  { requester, ...carried }: Carried & { readonly requester: Requester },
): Promise<Begun> {
  const actor = actorOf(requester)
  return begun(view, carried.request, async () => {
    await visibleEntry(view, id, requester)
    return view.operations().jobs.undo({ operation: id, ...actor, ...carried })
  })
}

/** Begins an operation once, and waits for its end for some seconds. */
export async function begun(view: QueueView, request: IdempotentRequest | null, begin: () => Promise<StartedOperation>): Promise<Begun> {
  const repeated = async (): Promise<Begun | null> => {
    const kept = request === null ? undefined : await view.reader.records.requests.find(request.key)
    if (kept === undefined || request === null) return null
    assertSame(request, kept)
    return { operation: operationJson(await entryOf(view, Number(kept.answer)), view.clock.wall), isReplayed: true }
  }
  const earlier = await repeated()
  if (earlier !== null) return earlier
  try {
    const { id, ended } = await begin()
    const end = ended.then(
      () => true,
      () => true,
    )
    await withTimeout(end, view.clock, ANSWER_LIMIT)
    return { operation: operationJson(await entryOf(view, id), view.clock.wall), isReplayed: false }
  } catch (error) {
    if (error instanceof RequestRepeated) {
      const other = await repeated()
      if (other !== null) return other
    }
    throw refusalOf(error)
  }
}

function refusalOf(error: unknown): unknown {
  if (error instanceof PlanOutdated) return new Problem(PLAN_OUTDATED, error.message, { cause: error })
  if (error instanceof UnknownClass) return invalidPart('/class', error.message)
  if (error instanceof NotUndoable) return new Problem(NOT_UNDOABLE, error.message, { cause: error })
  return error
}

const unknownOperation = (id: number): Problem =>
  new Problem(UNKNOWN_OPERATION, Number.isSafeInteger(id) ? `there is no operation ${id}` : 'the id of an operation is a whole number', {
    hint: 'GET /audit has the ids',
  })

async function entryOf({ reader }: Pick<QueueView, 'reader'>, id: number): Promise<AuditEntry> {
  const entry = Number.isSafeInteger(id) && id > 0 ? await reader.records.audit.one(id) : undefined
  if (entry !== undefined) return entry
  throw unknownOperation(id)
}

/** True for an operation that the client may see: with limited destinations, its own. */
export const seesOperation = ({ who }: AuditEntry, { destinations, name }: Requester): boolean =>
  destinations === null || who.startsWith(`${name} (`)

async function visibleEntry(view: QueueView, id: number, requester: Requester): Promise<AuditEntry> {
  const entry = await entryOf(view, id)
  if (seesOperation(entry, requester)) return entry
  throw unknownOperation(id)
}

export const operationState = async (view: QueueView, id: number, requester: Requester): Promise<OperationJson> =>
  operationJson(await visibleEntry(view, id, requester), view.clock.wall)

/** Cancels an operation; the rounds that are committed keep their effect. Throws Problem when it has ended. */
export async function cancelOperation(view: QueueView, id: number, requester: Requester): Promise<OperationJson> {
  await visibleEntry(view, id, requester)
  const outcome = await view.operations().jobs.cancel(id, auditName(requester))
  const state = await operationState(view, id, requester)
  if (outcome === 'ended') throw new Problem(ENDED, `operation ${id} has ended already: it is ${state.state}`)
  return state
}

interface AuditQuery extends Pick<{ readonly [K in keyof AuditFilter]?: AuditFilter[K] | undefined }, 'who' | 'action' | 'state'> {
  readonly request_id?: string | undefined
  readonly since?: Duration | undefined
  /** Records of this time or later. */
  readonly recorded_after?: WallTime | undefined
  /** Records before this time. */
  readonly recorded_before?: WallTime | undefined
  readonly limit: number
  readonly before?: string | undefined
}

/** One page of the audit log, the last record first. */
export async function auditPage(view: QueueView, { limit, before, ...query }: AuditQuery): Promise<AuditPageJson> {
  const now = view.clock.now()
  const {
    who = null,
    action = null,
    request_id: requestId = null,
    state = null,
    since,
    recorded_after: after,
    recorded_before: end,
  } = query
  const { wall } = view.clock
  const begins = [...(since === undefined ? [] : [now - since]), ...(after === undefined ? [] : [wall.queueTime(after)])]
  const filter = {
    who,
    action,
    requestId,
    state,
    since: begins.length === 0 ? null : Math.max(...begins),
    until: end === undefined ? null : wall.queueTime(end),
  }
  const conditions = ['audit', query]
  const position = before === undefined ? null : (cursorPosition(before, conditions)[0] ?? null)
  const records = await view.reader.records.audit.before(filter, { before: position, limit })
  const last = records.length < limit ? undefined : records.at(-1)
  return {
    records: records.map((record) => auditEntryJson(record, wall)),
    next: last === undefined ? null : cursorText([last.id], conditions),
    as_of: wall.seconds(now),
  }
}

/** Records read at once for the whole log. */
const READ_AT_ONCE = 500

/** All records as lines of JSON, the last one first. */
export async function* auditLines(
  view: QueueView,
  query: Omit<AuditQuery, 'limit' | 'before'>,
  signal: AbortSignal,
): AsyncGenerator<string> {
  let before: string | undefined
  do {
    const { records, next } = await auditPage(view, { ...query, limit: READ_AT_ONCE, before })
    yield records.map(jsonLine).join('')
    before = next ?? undefined
  } while (before !== undefined && !signal.aborted)
}
