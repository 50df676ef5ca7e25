/** Carries out the rounds of an operation, each of which is one commit, and tells the scheduler and the log about the changed messages. */
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { queueIdOf, type DestinationName, type MessageId } from '../mail/message.ts'
import type { OperationRound } from '../store/audit-log.ts'
import type { LiveDestination, Suspension } from '../store/destination-status.ts'
import { ANY_MESSAGE, type ListedMessage, type QueueReader } from '../store/queue-reader.ts'
import type { DestinationDue, Operation, QueueStore } from '../store/queue-store.ts'
import type { Clock, Duration, Instant } from '../system/clock.ts'
import type { Published } from '../outbox/event-data.ts'
import type { EventRecorder } from '../outbox/event-recorder.ts'
import type { Events } from '../telemetry/events.ts'
import type { BulkOperation } from './operation-request.ts'
import type { SelectedMessage } from './selected-messages.ts'

/** Effects on the scheduler. */
export interface SchedulerControl {
  /** Schedules the mail of these destinations. With `revive`, dead destinations are opened. */
  workAdded(due: readonly DestinationDue[], options: { readonly revive: boolean }): void
  suspend(name: DestinationName, suspension: Suspension): Promise<void>
  resume(name: DestinationName, by: string): Promise<void>
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

/**
 * Passes a round to the store, which commits it as one transaction. Returns the ids of the changed messages; null, without a change, when
 * the operation has ended.
 */
export async function carryOut(
  deps: RoundDeps,
  work: Work,
  messages: readonly SelectedMessage[],
  round: OperationRound,
): Promise<readonly string[] | null> {
  const { store, events, recorder, scheduler } = deps
  const steps = (await stepsOf(deps, work, messages)).map((step) => ({ ...step, happened: happenedIn(step, work) }))
  const operations = steps.map(({ message, operation, happened }) => {
    const kept = recorder.ofAll(happened)
    return { message: message.id, operation, ...(kept === undefined ? {} : { events: kept }) }
  })
  const results = await store.operate(operations, round)
  if (results === null) return null
  const woken = new Map<DestinationName, Instant>()
  const changed: string[] = []
  for (const [n, { message, happened }] of steps.entries()) {
    const result = results[n]
    if (result?.changed !== true) continue
    changed.push(queueIdOf(message))
    for (const event of happened) events.emit(event)
    for (const { destination, dueAt } of result.woken) woken.set(destination, Math.min(dueAt, woken.get(destination) ?? dueAt))
  }
  if (woken.size > 0) {
    const due = [...woken].map(([destination, dueAt]) => ({ destination, dueAt }))
    scheduler.workAdded(due, { revive: work.operation === 'flush' })
  }
  return changed
}

/** The events of a step that changes its message. */
function happenedIn({ message, operation, requeued }: Step, { operation: name, who }: Work): readonly Published[] {
  const operated: Published = { kind: 'operated', queueId: queueIdOf(message), operation: name, by: who }
  return operation.kind === 'requeue' && requeued !== undefined ? [operated, requeuedEvent(requeued, operation)] : [operated]
}

/** One step per message of a round. Except for requeue, they share one operation object, so that structured cloning copies it once. */
async function stepsOf(
  deps: RoundDeps,
  { operation: kind, purge, through }: Work,
  messages: readonly SelectedMessage[],
): Promise<readonly Step[]> {
  const now = deps.clock.now()
  if (kind === 'requeue') return (await Promise.all(messages.map((message) => requeueing(deps, message, { now, through })))).flat()
  const operation: Operation = kind === 'delete' ? { kind, now, purge } : kind === 'flush' ? { kind, now } : { kind }
  return messages.map((message) => ({ message, operation }))
}

/** Step that requeues a message, as a list: empty when the message has left the queue. */
async function requeueing(
  { store, reader, policies }: RoundDeps,
  message: SelectedMessage,
  { now, through }: { readonly now: Instant; readonly through: MessageId },
): Promise<readonly Step[]> {
  const [requeued] = await reader.list({ ...ANY_MESSAGE, queueId: queueIdOf(message) }, { after: 0, limit: 1 })
  if (requeued === undefined) return []
  const newId = await idAbove(store, through)
  return [{ message, requeued, operation: { kind: 'requeue', now, newId, expiresAt: now + lifetime(policies(), requeued) } }]
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
function lifetime(policies: DestinationPolicies, { message: { sender }, recipients }: ListedMessage): Duration {
  const name = sender === '' ? 'bounce_queue_lifetime' : 'maximal_queue_lifetime'
  return Math.max(0, ...recipients.map(({ destination }) => policies.for(destination).settings[name]))
}
