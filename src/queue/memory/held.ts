/**
 * A queue in plain maps: what the in-memory store writes and its reader shows.
 */
import type { Instant } from '../../mail/clock.ts'
import type { BodyId, DestinationName, Message, MessageId, Placement, Recipient } from '../message.ts'
import type { MessageStory, QueueName } from '../reader.ts'
import type { AttemptRecord, AuditRecord, DestinationRecord } from '../store.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export interface HeldRecipient extends Mutable<Recipient> {
  /** The due time it had before an operator's flush. */
  keptDueAt: Instant | null
}

export interface HeldMessage {
  readonly message: Message
  placement: Placement
  deletedAt: Instant | null
  forcedExpire: boolean
  warnings: number
  warnAt: Instant | null
  readonly recipients: HeldRecipient[]
  readonly history: AttemptRecord[]
}

export interface MemoryQueue {
  /** In the order of their ids. */
  readonly messages: Map<MessageId, HeldMessage>
  readonly departed: Map<MessageId, MessageStory>
  readonly bodies: Map<BodyId, Uint8Array[]>
  /** Bodies whose message is still on its way in. */
  readonly staged: Set<BodyId>
  readonly destinations: Map<DestinationName, DestinationRecord>
  readonly audit: (Omit<AuditRecord, 'changed'> & { changed: number })[]
}

export const emptyQueue = (): MemoryQueue => ({
  messages: new Map(),
  departed: new Map(),
  bodies: new Map(),
  staged: new Set(),
  destinations: new Map(),
  audit: [],
})

export const isLive = ({ state }: Recipient): boolean => state === 'waiting' || state === 'leased' || state === 'parked'

/** What keeps a message in the queue: recipients that are alive, and words owed. */
export const isKept = ({ recipients }: HeldMessage): boolean => recipients.some((one) => isLive(one) || one.debt !== undefined)

/** In which queue it is: mail that was never tried is incoming as long as nothing but its turn is in the way. */
export function queueOf({ placement, recipients }: HeldMessage, { destinations }: MemoryQueue, now: Instant): QueueName | 'trash' {
  if (placement !== 'queued') return placement
  if (recipients.some((one) => one.state === 'leased')) return 'active'
  const isShut = (name: DestinationName) => {
    const record = destinations.get(name)
    return record !== undefined && (record.deadUntil !== null || record.suspendedBy !== null)
  }
  const isDeferred = (one: Recipient) => isLive(one) && (one.attempts > 0 || one.dueAt > now || isShut(one.destination))
  return recipients.some(isDeferred) ? 'deferred' : 'incoming'
}

/** A recipient as it is now, apart from what changes later. */
export function snapshot(held: HeldRecipient): Recipient {
  const { keptDueAt: _, ...recipient } = held
  return recipient
}

/** Everything in the order of arrival, which is the order of ids. */
export const inOrder = (queue: MemoryQueue): HeldMessage[] => [...queue.messages.values()].toSorted((a, b) => a.message.id - b.message.id)
