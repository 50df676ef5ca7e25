/**
 * Keeps the audit log of a queue in memory, what its operations have changed, and the requests that were carried out, so that none is
 * carried out twice.
 */
import type { FormerTimes } from '../former-times.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { MessageId, OwnerId, Placement } from '../../mail/message.ts'
import {
  matchesEntry,
  OPERATIONS_PER_MESSAGE,
  PLACING_ACTIONS,
  RequestRepeated,
  takenEntry,
  type AuditEntry,
  type AuditFilter,
  type AuditId,
  type AuditLog,
  type IdempotentRequest,
  type PlacedPage,
} from '../audit-log.ts'
import type { MessageOperation } from '../queue-store.ts'
import type { HeldOperation, MemoryQueue } from './queue-state.ts'

const OF_ACTION = { node: null, inTransfer: 0, unknown: 0, expected: null, reason: null, error: null, undoUntil: null, undoes: null }

function add({ audit }: MemoryQueue, entry: Omit<HeldOperation, 'id' | 'operated' | 'former'>): AuditId {
  return audit.push({ ...entry, id: audit.length + 1, operated: new Map(), former: new Map() })
}

/** Adds a record of another queue. */
export const takeEntry = (queue: MemoryQueue, entry: AuditEntry): AuditId => add(queue, { ...OF_ACTION, ...takenEntry(entry), owner: 0 })

/** The port of an owner. */
export const auditLogOf = (queue: MemoryQueue, owner: OwnerId): AuditLog => ({
  audit: async (record) => add(queue, { ...OF_ACTION, ...record, owner, lastAt: record.at, matched: record.changed, state: 'done' }),
  beginOperation: async ({ request, ...operation }) => {
    if (request !== null) keepRequest(queue, request, operation.at, String(queue.audit.length + 1))
    return add(queue, { ...OF_ACTION, ...operation, owner, lastAt: operation.at, changed: 0, matched: 0, state: 'running' })
  },
  endOperation: async (id, { state, at, matched, inTransfer = 0, unknown, error }) => {
    const operation = queue.audit[id - 1]
    if (operation?.state !== 'running') return false
    const { matched: before, unknown: unknownBefore } = operation
    Object.assign(operation, { state, lastAt: at, error, inTransfer, matched: matched ?? before, unknown: unknown ?? unknownBefore })
    return true
  },
})

/** Ends the operations of owners that have left the queue. */
export function endAbandoned({ audit }: MemoryQueue, hasLeft: (owner: OwnerId) => boolean): void {
  for (const operation of audit) {
    if (operation.state === 'running' && hasLeft(operation.owner))
      Object.assign(operation, { state: 'failed', error: 'the process that carried it out ended' })
  }
}

/** Records that an operation has changed a message, and which message a requeue has added. */
export function noteOperated(
  { operated, former }: HeldOperation,
  { message, operation }: MessageOperation,
  { was, times }: { readonly was: Placement; readonly times: FormerTimes | undefined },
): void {
  if (operation.kind === 'reschedule' && times !== undefined && !former.has(message)) former.set(message, times)
  operated.set(message, was)
  if (operation.kind === 'requeue') operated.set(operation.newId, 'queued')
}

/** Keeps a request. Throws RequestRepeated when its key is kept. */
export function keepRequest({ requests }: MemoryQueue, { key, digest }: IdempotentRequest, at: QueueTime, answer: string): void {
  if (requests.has(key)) throw new RequestRepeated(`a request with the key ${key} was carried out before`)
  requests.set(key, { key, digest, at, answer })
}

/** Forgets the messages that operations have changed, and requests, before a time. */
export function pruneOperations(
  { audit, requests }: MemoryQueue,
  { historyBefore, requestsBefore }: { readonly historyBefore: QueueTime; readonly requestsBefore: QueueTime },
): void {
  for (const { at, operated, former } of audit) {
    if (at >= historyBefore) continue
    operated.clear()
    former.clear()
  }
  for (const [key, { at }] of requests) if (at < requestsBefore) requests.delete(key)
}

/** Placement of a message in the trash before it was deleted; undefined when no operation has deleted it. */
export const placementBefore = ({ audit }: MemoryQueue, message: MessageId): Placement | undefined =>
  audit.flatMap(({ operated }) => operated.get(message) ?? []).findLast((was) => was !== 'trash')

// --- reading

/** The audit log as readers see it, oldest first. */
export const auditEntries = ({ audit }: MemoryQueue): AuditEntry[] =>
  audit.map(({ owner: _owner, operated: _operated, former: _former, ...entry }) => ({
    ...entry,
    undoneBy: audit.findLast(({ undoes }) => undoes === entry.id)?.id ?? null,
  }))

export const entriesBefore = (
  queue: MemoryQueue,
  filter: AuditFilter,
  { before, limit }: { readonly before: AuditId | null; readonly limit: number },
): AuditEntry[] =>
  auditEntries(queue)
    .filter((entry) => (before === null || entry.id < before) && matchesEntry(filter, entry))
    .toReversed()
    .slice(0, limit)

export const operationsOn = (queue: MemoryQueue, message: MessageId): AuditEntry[] =>
  auditEntries(queue)
    .filter(({ id }) => queue.audit[id - 1]?.operated.has(message) === true)
    .toReversed()
    .slice(0, OPERATIONS_PER_MESSAGE)

export function placedBy(
  { audit, messages }: MemoryQueue,
  operation: AuditId,
  { after, limit }: { readonly after: MessageId; readonly limit: number },
): PlacedPage {
  const own = audit[operation - 1]
  const isReschedule = own?.action === 'reschedule'
  const later = audit
    .slice(operation)
    .filter(({ action }) => PLACING_ACTIONS.includes(action) && (action === 'reschedule') === isReschedule)
  const operated = [...(own?.operated.keys() ?? [])].toSorted((a, b) => a - b)
  const page = operated.filter((message) => message > after).slice(0, limit)
  return {
    messages: page
      .filter((message) => !later.some((other) => other.operated.has(message)))
      .flatMap((message) => messages.get(message)?.message ?? [])
      .map(({ id, createdAt }) => ({ id, createdAt, former: own?.former.get(id) })),
    next: page.length < limit ? null : (page.at(-1) ?? null),
  }
}
