/**
 * Operations on messages of a queue in memory. A recipient in delivery is not changed: it keeps its lease until its outcome is
 * recorded.
 */
import { perDestination, type FormerTimes } from '../former-times.ts'
import { placementBefore } from './held-operations.ts'
import type { QueueTime } from '../../system/clock.ts'
import { isKept, newMessage, noteTraffic, snapshot, type HeldMessage, type HeldRecipient, type MemoryQueue } from './queue-state.ts'
import { isLive, queueIdOf, recipientId, type DestinationName } from '../../mail/message.ts'
import {
  appliesAt,
  cancelledStatus,
  makesMailDue,
  PURGE_PENDING,
  type DestinationDue,
  type MessageOperation,
  type Operation,
  type OperationResult,
  type Rescheduling,
} from '../queue-store.ts'

export function applyOperation(queue: MemoryQueue, { message: id, operation, events }: MessageOperation): OperationResult {
  const held = queue.messages.get(id)
  if (held === undefined) return { changed: false, woken: [] }
  const changed = apply(queue, held, operation)
  if (changed) queue.outbox.keep(events)
  if (!changed || !makesMailDue(operation)) return { changed, woken: [] }
  const entry = queue.messages.get(operation.kind === 'requeue' ? operation.newId : id)
  const destinations = entry === undefined ? [] : [...destinationsOf(entry)]
  return { changed, woken: destinations.flatMap((destination) => due(queue, destination)) }
}

/** Removes a message from the queue and adds it to the history. */
export function depart(queue: MemoryQueue, { message, forcedExpire, warnings, recipients, history }: HeldMessage): void {
  // The history record omits the prepended header fields, because they belong to the deleted content.
  const { prependedHeaders: _, ...gone } = message
  const leftAt = Math.max(0, ...recipients.map((one) => one.settledAt ?? 0))
  const details = {
    message: gone,
    queue: 'gone' as const,
    forcedExpire,
    warnings,
    recipients: recipients.map(snapshot),
    history,
    leftAt,
  }
  queue.history.set(message.id, { seq: ++queue.departures, details })
  queue.messages.delete(message.id)
  queue.outbox.removed(message, leftAt)
  const others = [...queue.messages.values(), ...[...queue.moving.values()].map(({ moved }) => moved)]
  const shared = others.some((other) => other.message.contentId === message.contentId)
  if (!shared) queue.bodies.delete(message.contentId)
}

function apply(queue: MemoryQueue, held: HeldMessage, operation: Operation): boolean {
  if (!appliesAt(operation, held.placement)) return false
  switch (operation.kind) {
    case 'flush':
      return flush(held, operation.now)
    case 'hold':
      return move(held, 'hold')
    case 'release':
      return move(held, 'queued')
    case 'restore':
      return restore(queue, held)
    case 'expire':
      if (held.forcedExpire) return false
      held.forcedExpire = true
      return true
    case 'requeue':
      return requeue(queue, held, operation)
    case 'reschedule':
      return reschedule(held, operation)
    case 'cancel':
      return cancel(queue, held, operation)
    case 'delete':
      return operation.purge ? purge(queue, held, operation.now) : discard(held, operation.now)
  }
}

function flush({ message, recipients }: HeldMessage, now: QueueTime): boolean {
  if (message.scheduled === true) return false
  const flushed = recipients.filter((one) => one.state === 'waiting' && one.keptDueAt === null)
  for (const one of flushed) {
    one.keptDueAt = one.dueAt
    one.dueAt = Math.min(one.dueAt, now)
  }
  return flushed.length > 0
}

function move(held: HeldMessage, placement: 'hold' | 'queued'): boolean {
  held.placement = placement
  held.deletedAt = null
  const [from, to] = placement === 'hold' ? (['waiting', 'parked'] as const) : (['parked', 'waiting'] as const)
  for (const one of held.recipients) {
    if (one.state !== from) continue
    one.state = to
    if (to === 'waiting') one.deliveryStarts = 0
  }
  return true
}

/** Takes a message out of the trash. One that was on hold when an operation deleted it stays parked. */
function restore(queue: MemoryQueue, held: HeldMessage): boolean {
  if (placementBefore(queue, held.message.id) !== 'hold') return move(held, 'queued')
  held.placement = 'hold'
  held.deletedAt = null
  return true
}

function reschedule(
  held: HeldMessage,
  { notBefore, scheduled, expires, holdRequest = held.message.holdRequest, times, anyWaiting }: Rescheduling,
): boolean {
  if ((held.message.scheduled !== true && !anyWaiting) || held.recipients.some(({ state }) => state === 'leased')) return false
  held.message = { ...held.message, notBefore, scheduled, expires, holdRequest: holdRequest ?? undefined }
  for (const { destination, dueAt, expiresAt } of times) {
    for (const one of held.recipients)
      if (isLive(one) && one.destination === destination)
        Object.assign(one, { dueAt: Math.min(dueAt, expiresAt), keptDueAt: null, expiresAt })
  }
  return true
}

/** The times that a reschedule replaces. */
export function formerTimes({ message, recipients }: HeldMessage): FormerTimes {
  const { notBefore, scheduled, holdRequest, expires } = message
  const live = recipients
    .filter(isLive)
    .map(({ destination, dueAt, keptDueAt, expiresAt }) => ({ destination, dueAt: keptDueAt ?? dueAt, expiresAt }))
  return { notBefore, scheduled, holdRequest, expires, times: perDestination(live) }
}

function cancel(queue: MemoryQueue, held: HeldMessage, { now, by }: Extract<Operation, { kind: 'cancel' }>): boolean {
  const idle = held.recipients.filter(({ state }) => state === 'waiting' || state === 'parked')
  for (const one of idle) {
    remove(one, now)
    one.last = cancelledStatus(by)
  }
  noteTraffic(queue, 'deleted', now, idle.length)
  if (idle.length > 0 && !isKept(held)) depart(queue, held)
  return idle.length > 0
}

function requeue(queue: MemoryQueue, held: HeldMessage, { now, newId, expiresAt }: Extract<Operation, { kind: 'requeue' }>): boolean {
  const moving = held.recipients.filter((one) => one.state === 'waiting' || one.state === 'parked')
  if (moving.length === 0) return false
  const message = { ...held.message, id: newId, createdAt: now }
  const fresh = {
    dueAt: Math.max(now, message.notBefore ?? now),
    expiresAt,
    steps: 0,
    attempts: 0,
    deliveryStarts: 0,
    last: null,
    keptDueAt: null,
    state: 'waiting' as const,
  }
  const recipients = moving.map(({ address, notify, orcpt, destination }, position): HeldRecipient => {
    const wishes = { ...(notify === undefined ? {} : { notify }), ...(orcpt === undefined ? {} : { orcpt }) }
    return { address, ...wishes, destination, ...fresh, leasedBy: null, id: recipientId(newId, position) }
  })
  const { warnings, warnAt } = held
  queue.messages.set(newId, { ...newMessage(message, recipients, 'queued'), warnings, warnAt })
  for (const one of moving) {
    remove(one, now)
    one.last = { status: '2.0.0', reason: `requeued as ${queueIdOf(message)}`, stage: 'queue' }
  }
  if (!isKept(held)) depart(queue, held)
  return true
}

/** Moves a message to the trash. Its delay warnings are dropped; failure notices that are due remain due. */
function discard(held: HeldMessage, deletedAt: QueueTime): boolean {
  held.placement = 'trash'
  held.deletedAt = deletedAt
  for (const one of held.recipients) {
    if (one.state === 'waiting') one.state = 'parked'
    if (one.noticeDue === 'delay') delete one.noticeDue
  }
  return true
}

/** Deletes a message permanently. When a recipient is in delivery, the next pruning deletes the message instead. */
function purge(queue: MemoryQueue, held: HeldMessage, now: QueueTime): boolean {
  if (held.recipients.some((one) => one.state === 'leased')) return held.deletedAt !== PURGE_PENDING && discard(held, PURGE_PENDING)
  const live = held.recipients.filter(isLive)
  for (const one of live) remove(one, now)
  noteTraffic(queue, 'deleted', now, live.length)
  if (isKept(held)) move(held, 'queued')
  else depart(queue, held)
  return true
}

function remove(one: HeldRecipient, at: QueueTime): void {
  one.state = 'removed'
  one.settledAt = at
  one.deliveryStarts = 0
  one.keptDueAt = null
  delete one.noticeDue
}

const destinationsOf = ({ recipients }: HeldMessage): Set<DestinationName> =>
  new Set(recipients.filter((one) => one.state === 'waiting').map((one) => one.destination))

/** The earliest due time at a destination, as a list: empty when no recipient waits there. */
function due(queue: MemoryQueue, destination: DestinationName): DestinationDue[] {
  const times = [...queue.messages.values()].flatMap(({ recipients }) =>
    recipients.filter((one) => one.state === 'waiting' && one.destination === destination).map((one) => one.dueAt),
  )
  return times.length === 0 ? [] : [{ destination, dueAt: Math.min(...times) }]
}
