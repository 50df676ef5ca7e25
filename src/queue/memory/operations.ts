/**
 * What operators do to messages, in the queue of plain maps. Mail in delivery keeps its lease: its outcome comes first.
 */
import type { Instant } from '../../mail/clock.ts'
import { isKept, isLive, snapshot, type HeldMessage, type HeldRecipient, type MemoryQueue } from './held.ts'
import { queueIdOf, recipientId, type DestinationName } from '../message.ts'
import type { DestinationDue, MessageOperation, Operation, OperationResult } from '../store.ts'

export function applyOperation(queue: MemoryQueue, { message: id, operation }: MessageOperation): OperationResult {
  const held = queue.messages.get(id)
  if (held === undefined) return { changed: false, woken: [] }
  const changed = apply(queue, held, operation)
  // After a hold or a deletion less waits than before, and nobody has to be woken.
  if (!changed || operation.kind === 'hold' || operation.kind === 'delete') return { changed, woken: [] }
  const entry = queue.messages.get(operation.kind === 'requeue' ? operation.newId : id)
  const destinations = entry === undefined ? [] : [...destinationsOf(entry)]
  return { changed, woken: destinations.flatMap((destination) => due(queue, destination)) }
}

/** The message leaves; history remembers it. */
export function depart(queue: MemoryQueue, { message, forcedExpire, warnings, recipients, history }: HeldMessage): void {
  const leftAt = Math.max(0, ...recipients.map((one) => one.settledAt ?? 0))
  queue.departed.set(message.id, { message, queue: 'gone', forcedExpire, warnings, recipients: recipients.map(snapshot), history, leftAt })
  queue.messages.delete(message.id)
  const shared = [...queue.messages.values()].some((other) => other.message.body === message.body)
  if (!shared) queue.bodies.delete(message.body)
}

function apply(queue: MemoryQueue, held: HeldMessage, operation: Operation): boolean {
  switch (operation.kind) {
    case 'flush':
      return held.placement === 'queued' && flush(held, operation.now)
    case 'hold':
      return held.placement === 'queued' && move(held, 'hold')
    case 'release':
      return (held.placement === 'hold' || held.placement === 'corrupt') && move(held, 'queued')
    case 'restore':
      return held.placement === 'trash' && move(held, 'queued')
    case 'expire':
      if (held.placement === 'trash' || held.forcedExpire) return false
      held.forcedExpire = true
      return true
    case 'requeue':
      return held.placement !== 'trash' && requeue(queue, held, operation)
    case 'delete':
      if (operation.purge) return purge(queue, held, operation.now)
      return held.placement !== 'trash' && discard(held, operation.now)
  }
}

function flush({ recipients }: HeldMessage, now: Instant): boolean {
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
    if (to === 'waiting') one.starts = 0
  }
  return true
}

function requeue(queue: MemoryQueue, held: HeldMessage, { now, newId, expiresAt }: Extract<Operation, { kind: 'requeue' }>): boolean {
  const moving = held.recipients.filter((one) => one.state === 'waiting' || one.state === 'parked')
  if (moving.length === 0) return false
  const message = { ...held.message, id: newId, createdAt: now }
  const fresh = { dueAt: now, expiresAt, steps: 0, attempts: 0, starts: 0, last: null, keptDueAt: null, state: 'waiting' as const }
  const recipients = moving.map(({ address, notify, orcpt, destination }, position): HeldRecipient => {
    const wishes = { ...(notify === undefined ? {} : { notify }), ...(orcpt === undefined ? {} : { orcpt }) }
    return { address, ...wishes, destination, ...fresh, id: recipientId(newId, position) }
  })
  const { warnings, warnAt } = held
  queue.messages.set(newId, {
    message,
    placement: 'queued',
    deletedAt: null,
    forcedExpire: false,
    warnings,
    warnAt,
    recipients,
    history: [],
  })
  for (const one of moving) {
    remove(one, now)
    one.last = { status: '2.0.0', reason: `requeued as ${queueIdOf(message)}`, stage: 'queue' }
  }
  if (!isKept(held)) depart(queue, held)
  return true
}

/** To the trash. Nobody is warned of the delay of deleted mail; what has failed before is still reported. */
function discard(held: HeldMessage, deletedAt: Instant): boolean {
  held.placement = 'trash'
  held.deletedAt = deletedAt
  for (const one of held.recipients) {
    if (one.state === 'waiting') one.state = 'parked'
    if (one.debt === 'delay') delete one.debt
  }
  return true
}

/** For good: what is not in delivery is removed now, the rest when its outcome is known and pruning comes by. */
function purge(queue: MemoryQueue, held: HeldMessage, now: Instant): boolean {
  if (held.recipients.some((one) => one.state === 'leased')) return held.deletedAt !== 0 && discard(held, 0)
  for (const one of held.recipients) if (isLive(one)) remove(one, now)
  if (isKept(held)) move(held, 'queued')
  else depart(queue, held)
  return true
}

function remove(one: HeldRecipient, at: Instant): void {
  one.state = 'removed'
  one.settledAt = at
  one.starts = 0
  one.keptDueAt = null
  delete one.debt
}

const destinationsOf = ({ recipients }: HeldMessage): Set<DestinationName> =>
  new Set(recipients.filter((one) => one.state === 'waiting').map((one) => one.destination))

/** The earliest due time at a destination, if anything waits there. */
function due(queue: MemoryQueue, destination: DestinationName): DestinationDue[] {
  const times = [...queue.messages.values()].flatMap(({ recipients }) =>
    recipients.filter((one) => one.state === 'waiting' && one.destination === destination).map((one) => one.dueAt),
  )
  return times.length === 0 ? [] : [{ destination, dueAt: Math.min(...times) }]
}
