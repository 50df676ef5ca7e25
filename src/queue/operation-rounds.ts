/** Carries out the rounds of an operation, each of which is one commit, and tells the scheduler and the log about the changed messages. */
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { expiryOf, queueIdOf, type DestinationName, type MessageId } from '../mail/message.ts'
import type { OperationRound } from '../store/records/audit-log.ts'
import type { LiveDestination } from './scheduler/destination.ts'
import type { Suspension } from '../store/records/suspension.ts'
import type { ListedMessage, QueueReader } from '../store/queue-reader.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import type { TakenBack } from '../store/membership/taken-back.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { DestinationDue, Operation } from '../store/message-operation.ts'
import type { Clock, Duration, QueueTime } from '../system/clock.ts'
import type { Published } from '../outbox/event-data.ts'
import type { EventRecorder } from '../outbox/event-recorder.ts'
import type { Events } from '../telemetry/events.ts'
import type { BulkOperation, OperationName } from './operation-request.ts'
import { rescheduled, timesBefore, type NewTimes } from './rescheduling.ts'
import { isSentNow, type SelectedMessage } from './selected-messages.ts'

/** Effects on the scheduler. */
export interface SchedulerControl {
  /** Schedules the mail of these destinations. With `revive`, dead destinations are opened; `scheduled` is the time of a scheduled message. */
  workAdded(due: readonly DestinationDue[], options: { readonly revive: boolean; readonly scheduled?: QueueTime | undefined }): void
  suspend(name: DestinationName, suspension: Suspension): Promise<void>
  resume(name: DestinationName, by: string): Promise<void>
  suspendProvider(name: string, suspension: Suspension): Promise<void>
  resumeProvider(name: string, by: string): Promise<void>
  /**
   * Gives the mail of these messages back that nodes have claimed and that has no slot, on all nodes. With `rests`, the nodes that gave mail
   * back make no claims for a moment. Rejects with NotTakenBack when a running node does not answer in time.
   */
  takeBack(messages: readonly MessageId[], options: { readonly rests: boolean }): Promise<TakenBack>
  /** Messages in transfer, on all nodes that answer. */
  transfers(): Promise<readonly MessageId[]>
  snapshot(): readonly LiveDestination[]
}

export interface RoundDeps {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly clock: Clock
  readonly policies: () => DestinationPolicies
  readonly events: Events
  readonly recorder: EventRecorder
  readonly scheduler: SchedulerControl
}

interface Work extends Pick<BulkOperation, 'operation' | 'purge' | 'who'> {
  /** Highest id that the operation selects. */
  readonly through: MessageId
  /** The time of a reschedule; null for other operations, and for its undo. */
  readonly ordered: Pick<NewTimes, 'notBefore' | 'holdRequest'> | null
  /** The class of a reclass; null for other operations, and for its undo. */
  readonly class: string | null
}

/** The operation on one message, with the data of the event that is emitted for it. */
interface Step {
  readonly message: SelectedMessage
  readonly operation: Operation
  readonly requeued?: ListedMessage | undefined
}

/**
 * Event of a requeued message, which has a new queue id. The log links the new id to the old one, as `orig_id=` of Postfix pickup
 * does.
 */
const requeuedEvent = ({ message, recipients }: ListedMessage, { now, newId }: Extract<Operation, { kind: 'requeue' }>): Published => ({
  kind: 'accepted',
  message: { ...message, id: newId, createdAt: now },
  recipients: recipients.filter(({ state }) => state === 'waiting' || state === 'parked').map(({ address }) => address),
  client: null,
  originalId: queueIdOf(message),
})

/** Operations after which no attempt of their messages begins. */
const ENDS_ATTEMPTS: ReadonlySet<string> = new Set<OperationName>(['hold', 'delete', 'expire', 'requeue', 'reschedule'])

/** True for an operation, or an action of the audit log, after which no attempt of its messages begins. */
export const endsAttempts = (action: string): boolean => ENDS_ATTEMPTS.has(action)

/** Operations whose mail is claimed again after them: those, and a reclass, after which the attempts are those of the other class. */
const takesBack = (operation: OperationName): boolean => endsAttempts(operation) || operation === 'reclass'

/** Operations that have no effect on claimed mail. */
const CHANGES_IDLE_MAIL: ReadonlySet<string> = new Set<OperationName>(['requeue', 'reschedule'])

/** Effect of a round. */
export interface Carried {
  /** Queue ids of the changed messages. */
  readonly ids: readonly string[]
  /** Selected messages of which a recipient is in transfer. */
  readonly inTransfer: readonly MessageId[]
}

/**
 * Changes the messages of a round, in one commit, and takes their mail back that nodes have claimed. Returns null, without a change, when
 * the operation has ended.
 */
export async function carryOut(
  deps: RoundDeps,
  work: Work,
  messages: readonly SelectedMessage[],
  round: OperationRound,
): Promise<Carried | null> {
  const { scheduler } = deps
  const { operation, purge } = work
  if (!takesBack(operation)) {
    const changed = await commit(deps, work, messages, round)
    return changed && { ids: changed.map(queueIdOf), inTransfer: [] }
  }
  const all = messages.map(({ id }) => id)
  const isAgain = CHANGES_IDLE_MAIL.has(operation)
  // They change what waits in the store at once, and leave what is claimed.
  if (isAgain || purge) await scheduler.takeBack(all, { rests: true })
  const changed = await commit(deps, work, messages, round)
  if (changed === null) return null
  let taken = await scheduler.takeBack(all, { rests: isAgain })
  if (isAgain) {
    for (; taken.given.length > 0; taken = await scheduler.takeBack(all, { rests: true }))
      if (!(await changeGiven(deps, work, { messages, changed, given: new Set(taken.given), round }))) return null
  }
  return { ids: changed.map(queueIdOf), inTransfer: endsAttempts(operation) ? taken.inTransfer : [] }
}

/**
 * Requeues or reschedules mail that was claimed again before the commit of its round, and was given back after it. Adds the messages to `changed`, once.
 * Returns false when the operation has ended.
 */
async function changeGiven(
  deps: RoundDeps,
  work: Work,
  {
    messages,
    changed,
    given,
    round,
  }: {
    readonly messages: readonly SelectedMessage[]
    readonly changed: SelectedMessage[]
    readonly given: ReadonlySet<MessageId>
    readonly round: OperationRound
  },
): Promise<boolean> {
  const again = messages.filter(({ id }) => given.has(id))
  const counted = again.filter((message) => changed.includes(message))
  await commit(deps, work, counted, undefined)
  const more = await commit(
    deps,
    work,
    again.filter((message) => !counted.includes(message)),
    round,
  )
  changed.push(...(more ?? []))
  return more !== null
}

/** Passes operations to the store. Returns the changed messages; null, without a change, when the operation has ended. */
async function commit(
  deps: RoundDeps,
  work: Work,
  messages: readonly SelectedMessage[],
  round: OperationRound | undefined,
): Promise<SelectedMessage[] | null> {
  if (messages.length === 0) return []
  const { store, events, recorder, scheduler } = deps
  const steps = (await stepsOf(deps, work, messages)).map((step) => ({ ...step, happened: happenedIn(step, work) }))
  const operations = steps.map(({ message, operation, happened }) => {
    const kept = recorder.ofAll(happened)
    return { message: message.id, operation, ...(kept === undefined ? {} : { events: kept }) }
  })
  const results = await store.operate(operations, round)
  if (results === null) return null
  const woken = new Map<DestinationName, QueueTime>()
  const changed: SelectedMessage[] = []
  let scheduled: QueueTime | undefined
  for (const [n, { message, operation, happened }] of steps.entries()) {
    const result = results[n]
    if (result?.changed !== true) continue
    changed.push(message)
    if (operation.kind === 'reschedule') scheduled = Math.min(operation.notBefore ?? Infinity, scheduled ?? Infinity)
    for (const event of happened) events.emit(event)
    for (const { destination, dueAt } of result.woken) woken.set(destination, Math.min(dueAt, woken.get(destination) ?? dueAt))
  }
  if (woken.size > 0) {
    const due = [...woken].map(([destination, dueAt]) => ({ destination, dueAt }))
    scheduler.workAdded(due, { revive: work.operation === 'flush', scheduled })
  }
  return changed
}

/** The events of a step that changes its message. */
function happenedIn({ message, operation, requeued }: Step, { operation: name, who }: Work): readonly Published[] {
  const operated: Published = { kind: 'operated', queueId: queueIdOf(message), operation: name, by: who }
  return operation.kind === 'requeue' && requeued !== undefined ? [operated, requeuedEvent(requeued, operation)] : [operated]
}

/** One step per message of a round. Where each needs no data of its own, they share one operation object, so that structured cloning copies it once. */
async function stepsOf(
  deps: RoundDeps,
  { operation: kind, purge, through, ordered, class: named }: Work,
  messages: readonly SelectedMessage[],
): Promise<readonly Step[]> {
  const now = deps.clock.now()
  const each = async (step: (message: SelectedMessage) => Promise<readonly Step[]>) => (await Promise.all(messages.map(step))).flat()
  switch (kind) {
    case 'requeue':
      return each((message) => requeueing(deps, message, { now, through }))
    case 'reschedule':
      return each((message) => rescheduling(deps, message, { now, ordered }))
    case 'reclass':
      return named === null ? messages.flatMap(reclassedBack) : sharing(messages, { kind, class: named })
    case 'release':
      return each(async (message) => (isSentNow(kind, message) ? releasing(deps, message, now) : [{ message, operation: { kind } }]))
    case 'delete':
      return sharing(messages, { kind, now, purge })
    case 'flush':
      return sharing(messages, { kind, now })
    case 'hold':
    case 'expire':
    case 'restore':
      return sharing(messages, { kind })
  }
}

const sharing = (messages: readonly SelectedMessage[], operation: Operation): readonly Step[] =>
  messages.map((message) => ({ message, operation }))

/** A message with its live recipients; undefined when it has left the queue. */
const listedOf = async ({ reader }: Pick<RoundDeps, 'reader'>, message: SelectedMessage): Promise<ListedMessage | undefined> =>
  (await reader.list({ ...ANY_MESSAGE, queueId: queueIdOf(message) }, { after: 0, limit: 1 }))[0]

/** Step that makes a scheduled message due now, as a list: empty when the message has left the queue. */
async function releasing(deps: RoundDeps, message: SelectedMessage, now: QueueTime): Promise<readonly Step[]> {
  const listed = await listedOf(deps, message)
  if (listed === undefined) return []
  const terms = { now, policies: deps.policies(), anyWaiting: false }
  return [{ message, operation: rescheduled(listed, { notBefore: now, expires: listed.message.expires }, terms) }]
}

/** Step that gives a message the ordered time or, for an undo, its former times, as a list: empty when there are none. */
async function rescheduling(
  deps: RoundDeps,
  message: SelectedMessage,
  { now, ordered }: Pick<Work, 'ordered'> & { readonly now: QueueTime },
): Promise<readonly Step[]> {
  if (ordered === null)
    return message.former === undefined || !('times' in message.former) ? [] : [{ message, operation: timesBefore(message.former, now) }]
  const listed = await listedOf(deps, message)
  if (listed === undefined) return []
  const terms = { now, policies: deps.policies(), anyWaiting: true }
  return [{ message, operation: rescheduled(listed, { ...ordered, expires: listed.message.expires }, terms) }]
}

/** Step that gives a message its former class, as a list: empty when it is not known. */
const reclassedBack = (message: SelectedMessage): readonly Step[] =>
  message.former === undefined || !('class' in message.former)
    ? []
    : [{ message, operation: { kind: 'reclass', class: message.former.class } }]

/** Step that requeues a message, as a list: empty when the message has left the queue. */
async function requeueing(
  deps: RoundDeps,
  message: SelectedMessage,
  { now, through }: { readonly now: QueueTime; readonly through: MessageId },
): Promise<readonly Step[]> {
  const { store, policies } = deps
  const requeued = await listedOf(deps, message)
  if (requeued === undefined) return []
  const newId = await idAbove(store, through)
  return [
    {
      message,
      requeued,
      operation: {
        kind: 'requeue',
        now,
        newId,
        expiresAt: expiryOf({ ...requeued.message, createdAt: now }, lifetime(policies(), requeued)),
      },
    },
  ]
}

/**
 * A new message id above `last`, so that the search of the operation does not find the message again. The ids that a node of a shared
 * queue has reserved may be lower.
 */
async function idAbove(store: Pick<QueueStore, 'nextId' | 'nextIds'>, last: MessageId): Promise<MessageId> {
  const id = store.nextId()
  if (id > last) return id
  const [reserved] = await store.nextIds(1)
  if (reserved === undefined || reserved <= last) throw new Error(`the store reserved no id above ${last}`)
  return reserved
}

/** Lifetime of a requeued message: the longest lifetime among its destinations. */
function lifetime(policies: DestinationPolicies, { message, recipients }: ListedMessage): Duration {
  const name = message.sender === '' ? 'bounce_queue_lifetime' : 'maximal_queue_lifetime'
  return Math.max(0, ...recipients.map(({ destination }) => policies.forMail(destination, message).settings[name]))
}
