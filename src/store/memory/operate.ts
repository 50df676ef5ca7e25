/**
 * Operations on messages of a queue in memory. A recipient in delivery is not changed: it keeps its lease until its outcome is
 * recorded.
 */
import { NO_CLASS } from '../../config/values/mail-classes.ts'
import { contentSize, isLive, recipientId, type DestinationName } from '../../mail/message.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { QueueTime } from '../../system/clock.ts'
import { changesOf, wakes, type Change } from '../decisions/operation-changes.ts'
import type { DestinationDue, MessageOperation, OperationResult, Rescheduling } from '../message-operation.ts'
import { HELD_BEFORE } from '../records/operation-round.ts'
import { CLASS_BANDS } from '../records/class-band.ts'
import { KEPT_CONTENT_ROWS } from '../records/kept-content.ts'
import { isReturned } from '../returned-mail.ts'
import { hasContent } from './held-contents.ts'
import { newMessage, noteTraffic, snapshot, type HeldMessage, type HeldRecipient, type MemoryQueue } from './queue-state.ts'
import { enter } from './recipient-states.ts'

export function applyOperation(queue: MemoryQueue, { message: id, operation, events }: MessageOperation): OperationResult {
  const held = queue.messages.get(id)
  if (held === undefined) return { changed: false, woken: [] }
  const wasHeld = operation.kind === 'restore' && HELD_BEFORE.held(queue.records, [id]).length > 0
  const changes = changesOf(held, operation, wasHeld)
  if (changes.length === 0) return { changed: false, woken: [] }
  const destinations = wakes(held, operation, wasHeld)
  for (const change of changes) make(queue, change)
  queue.outbox.keep(events)
  return { changed: true, woken: destinations.flatMap((destination) => due(queue, destination)) }
}

/** Removes a message from the queue and adds it to the history. `keepUntil` is that of Settlement. */
export function depart(
  queue: MemoryQueue,
  { message, forcedExpire, warnings, recipients, history }: HeldMessage,
  keepUntil?: QueueTime,
): void {
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
  const { id, contentId, prependedHeaders: headers = null } = message
  if (keepUntil !== undefined && isReturned(recipients)) {
    const kept = { message: id, contentId, until: keepUntil, size: contentSize(message), headers }
    KEPT_CONTENT_ROWS.heldIn(queue.records).set(String(id), kept)
  } else if (!hasContent(queue, contentId)) queue.bodies.delete(contentId)
}

/** Makes one change. */
function make(queue: MemoryQueue, change: Change<HeldMessage>): void {
  switch (change.kind) {
    case 'flush':
      for (const one of change.recipients) Object.assign(one, { keptDueAt: one.dueAt, dueAt: Math.min(one.dueAt, change.now) })
      return
    case 'park':
      return stop(change.recipients)
    case 'unpark':
      for (const one of change.recipients) if (one.state === 'parked') Object.assign(one, { state: 'waiting', deliveryStarts: 0 })
      return
    case 'discard':
      stop(change.recipients)
      for (const one of change.recipients) if (one.noticeDue === 'delay') delete one.noticeDue
      return
    case 'remove':
      for (const one of change.recipients) remove(one, change.at, change.last)
      if (change.isCounted) noteTraffic(queue, { kind: 'deleted', at: change.at, recipients: change.recipients.length })
      return
    case 'reschedule':
      return reschedule(change.held, change.operation)
    case 'reclass':
      return reclass(queue, change.held, change.class)
    case 'place':
      return void Object.assign(change.held, { placement: change.placement, deletedAt: change.deletedAt })
    case 'expire':
      change.held.forcedExpire = true
      return
    case 'depart':
      return depart(queue, change.held)
    case 'requeue':
      return requeue(queue, change)
  }
}

function stop(recipients: readonly HeldRecipient[]): void {
  for (const one of recipients) if (one.state === 'waiting') one.state = 'parked'
}

function remove(one: HeldRecipient, at: QueueTime, last: DeliveryStatus | null): void {
  Object.assign(one, { state: 'removed', settledAt: at, deliveryStarts: 0, keptDueAt: null, last: last ?? one.last })
  delete one.noticeDue
}

function reschedule(
  held: HeldMessage,
  { notBefore, scheduled, expires, holdRequest = held.message.holdRequest, times }: Rescheduling,
): void {
  held.message = { ...held.message, notBefore, scheduled, expires, holdRequest: holdRequest ?? undefined }
  for (const { destination, dueAt, expiresAt } of times) {
    for (const one of held.recipients)
      if (isLive(one) && one.destination === destination)
        Object.assign(one, { dueAt: Math.min(dueAt, expiresAt), keptDueAt: null, expiresAt })
  }
}

function reclass(queue: MemoryQueue, held: HeldMessage, name: string | null): void {
  held.message = { ...held.message, class: name ?? undefined }
  held.band = CLASS_BANDS.all.held(queue.records).find((one) => one.name === name)?.band ?? NO_CLASS
}

function requeue(
  queue: MemoryQueue,
  { held, moving, dueAt, operation: { now, newId, expiresAt } }: Extract<Change<HeldMessage>, { kind: 'requeue' }>,
): void {
  const message = { ...held.message, id: newId, createdAt: now }
  const recipients = moving.map(({ address, notify, orcpt, destination }, position) =>
    enter(recipientId(newId, position), { address, notify, orcpt, destination, dueAt, expiresAt, leased: false }, false, 0),
  )
  const { band, warnings, warnAt } = held
  queue.messages.set(newId, { ...newMessage(message, recipients, 'queued'), band, warnings, warnAt })
}

/** The earliest due time at a destination, as a list: empty when no recipient waits there. */
function due(queue: MemoryQueue, destination: DestinationName): DestinationDue[] {
  const times = [...queue.messages.values()].flatMap(({ recipients }) =>
    recipients.filter((one) => one.state === 'waiting' && one.destination === destination).map((one) => one.dueAt),
  )
  return times.length === 0 ? [] : [{ destination, dueAt: Math.min(...times) }]
}
