/** State of a queue in memory, in plain maps. The store writes it and the reader reads it. */
import type { Instant } from '../../system/clock.ts'
import type { ClockRecord } from '../../system/queue-clock.ts'
import {
  isLive,
  type ContentId,
  type DestinationName,
  type Message,
  type MessageId,
  type Placement,
  type Recipient,
  type QueueName,
} from '../../mail/message.ts'
import type { MessageDetails } from '../queue-reader.ts'
import type { AttemptRecord, AuditRecord, DestinationRecord } from '../queue-store.ts'
import { minuteOf, NO_TRAFFIC, OLDER_MINUTES, sumOfTraffic, TRAFFIC_MINUTES, type Traffic, type TrafficKind } from '../traffic.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export interface HeldRecipient extends Mutable<Recipient> {
  /** Due time that applied before an operator flushed the recipient. */
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
  /** Number of times the queue was opened. */
  openings: number
  /** The last reserved message id. */
  lastId: MessageId
  /** Messages by id, in ascending order of ids. */
  readonly messages: Map<MessageId, HeldMessage>
  /** Messages that have left, in the order of leaving; `seq` numbers them from 1. */
  readonly history: Map<MessageId, { readonly seq: number; readonly details: MessageDetails }>
  departures: number
  readonly bodies: Map<ContentId, Uint8Array[]>
  /** Contents whose message is not queued yet. */
  readonly staged: Set<ContentId>
  /** Maildrop files whose message was queued, but whose removal may not be durable yet. */
  readonly maildropFiles: Set<string>
  readonly destinations: Map<DestinationName, DestinationRecord>
  clock: ClockRecord | null
  /** Traffic by minute. */
  readonly traffic: Map<Instant, Traffic>
  readonly audit: (Omit<AuditRecord, 'changed'> & { changed: number })[]
}

export const emptyQueue = (): MemoryQueue => ({
  openings: 0,
  lastId: 0,
  messages: new Map(),
  history: new Map(),
  departures: 0,
  bodies: new Map(),
  staged: new Set(),
  maildropFiles: new Set(),
  destinations: new Map(),
  clock: null,
  traffic: new Map(),
  audit: [],
})

/** Counts recipients in the minute of an instant. */
export function noteTraffic({ traffic }: MemoryQueue, kind: TrafficKind, at: Instant, recipients: number): void {
  if (recipients === 0) return
  const minute = minuteOf(at)
  const counted = traffic.get(minute) ?? NO_TRAFFIC
  traffic.set(minute, { ...counted, [kind]: counted[kind] + recipients })
}

/** Replaces the minutes before the newest TRAFFIC_MINUTES by their sum. */
export function pruneTraffic({ traffic }: MemoryQueue): void {
  const before = [...traffic.keys()].toSorted((a, b) => b - a)[TRAFFIC_MINUTES - 1]
  const old = [...traffic].filter(([at]) => before !== undefined && at < before)
  if (old.length === 0) return
  for (const [at] of old) traffic.delete(at)
  traffic.set(OLDER_MINUTES, sumOfTraffic(old.map(([, counted]) => counted)))
}

/** Whether a message stays in the queue: a recipient is live or has a notice due. */
export const isKept = ({ recipients }: HeldMessage): boolean => recipients.some((one) => isLive(one) || one.noticeDue !== undefined)

const isClosed = (record: DestinationRecord | undefined): boolean =>
  record !== undefined && (record.deadUntil !== null || record.suspension !== null)

/** The queue of a message; the same definition as QUEUE_NAME of the SQLite store. */
export function queueOf({ placement, recipients }: HeldMessage, { destinations }: MemoryQueue): QueueName | 'trash' {
  if (placement !== 'queued') return placement
  if (recipients.some((one) => one.state === 'leased')) return 'active'
  const isDeferred = (one: Recipient) => isLive(one) && (one.attempts > 0 || isClosed(destinations.get(one.destination)))
  return recipients.some(isDeferred) ? 'deferred' : 'incoming'
}

/** Copy of a recipient, unaffected by later changes. */
export function snapshot(held: HeldRecipient): Recipient {
  const { keptDueAt: _, ...recipient } = held
  return recipient
}

/** All messages in the order of arrival, which is the order of ids. */
export const inOrder = (queue: MemoryQueue): HeldMessage[] => [...queue.messages.values()].toSorted((a, b) => a.message.id - b.message.id)
