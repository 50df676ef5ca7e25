/** State of a queue in memory, in plain maps. The store writes it and the reader reads it. */
import { NO_CLASS, type Band } from '../../config/values/mail-classes.ts'
import { isRecordedClosed } from '../destination-status.ts'
import { queueNameOf } from '../decisions/queue-name.ts'
import { HOUR, type QueueTime } from '../../system/clock.ts'
import type { ClockRecord } from '../../system/queue-clock.ts'
import {
  isLive,
  type ContentId,
  type DestinationName,
  type Message,
  type MessageId,
  type OwnerId,
  type Placement,
  type Recipient,
  type QueueName,
} from '../../mail/message.ts'
import type { MessageDetails } from '../queue-reader.ts'
import type { MovedMessage, MoveTarget, QueueIdentity, RecordsTaken } from '../move-store.ts'
import type { HeldRows } from '../records/record-table.ts'
import { MemoryOutbox } from './memory-outbox.ts'
import type { DestinationRecord } from '../queue-store.ts'
import type { AttemptRecord } from '../recorded-outcomes.ts'
import type { Arrivals, AskedRecall, NodeState, RecallAnswer } from '../membership/node-table.ts'
import { SHARDS, shardOf, type Shard } from '../membership/shards.ts'
import { keepHeldDelta } from '../records/series.ts'
import { deltaOf, type Happened } from '../decisions/series-notes.ts'
import { addTraffic, minuteOf, NO_TRAFFIC, OLDER_MINUTES, TRAFFIC_HOURS, TRAFFIC_MINUTES, type Traffic } from '../counts/traffic.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export interface HeldRecipient extends Mutable<Recipient> {
  /** Due time that applied before an operator flushed the recipient. */
  keptDueAt: QueueTime | null
  /** Owner of the lease; null without a lease. */
  leasedBy: OwnerId | null
}

export interface HeldMessage {
  message: Message
  /** Of all its recipients. */
  band: Band
  /** Shard of the first recipient's destination, whose owner sends the notices about the message. */
  readonly home: Shard
  placement: Placement
  deletedAt: QueueTime | null
  /** Why it was moved to `corrupt`; undefined for other mail. */
  why: string | undefined
  forcedExpire: boolean
  warnings: number
  warnAt: QueueTime | null
  readonly recipients: HeldRecipient[]
  readonly history: AttemptRecord[]
}

/** A node that has joined the queue. */
export interface HeldNode extends Mutable<Omit<NodeState, 'shards' | 'leased' | 'beatAge'>> {
  beatAt: QueueTime
  hint: (ofNode: boolean) => void
}

/** One message to the owner of a shard. */
export type Arrival = {
  readonly [Kind in Exclude<keyof Arrivals, 'recalls'>]: { readonly shard: Shard; readonly kind: Kind; readonly of: Arrivals[Kind][number] }
}[Exclude<keyof Arrivals, 'recalls'>]

/** A recall to one node. */
type HeldRecall = AskedRecall & Mutable<RecallAnswer>

export interface MemoryQueue {
  /** Number of times the queue was opened; the number of the last owner. */
  openings: number
  /** Owners that may change the queue. */
  readonly nodes: Map<OwnerId, HeldNode>
  /** Owner of each shard; null for a free one. Not used while the queue has a sole owner. */
  readonly shards: (OwnerId | null)[]
  arrivals: readonly Arrival[]
  /** Recalls of claimed mail by nodes. */
  recalls: readonly HeldRecall[]
  /** The last reserved message id. */
  lastId: MessageId
  /** Messages by id, in ascending order of ids. */
  readonly messages: Map<MessageId, HeldMessage>
  /** Messages that have left, in the order of leaving; `seq` numbers them from 1. */
  readonly history: Map<MessageId, { readonly seq: number; readonly details: MessageDetails }>
  departures: number
  readonly bodies: Map<ContentId, Uint8Array[]>
  /** Contents whose message is not queued yet, each with the owner that receives it. */
  readonly staged: Map<ContentId, OwnerId>
  /** Maildrop files whose message was queued, but whose removal may not be durable yet. */
  readonly maildropFiles: Set<string>
  readonly destinations: Map<DestinationName, DestinationRecord>
  clock: ClockRecord | null
  /** Traffic by minute. */
  readonly traffic: Map<QueueTime, Traffic>
  /** Small records. */
  readonly records: HeldRows
  readonly outbox: MemoryOutbox
  readonly identity: QueueIdentity
  movedTo: string | null
  /** Messages that a move has taken out of the queue. */
  readonly moving: Map<MessageId, { readonly target: MoveTarget; readonly moved: MovedMessage }>
  /** Messages that other queues have sent. */
  readonly origins: Map<string, HeldOrigin>
  readonly recordsTaken: Map<QueueIdentity, RecordsTaken>
  /** True while a limit needs the counts of shares. */
  countsShares: boolean
}

/** A message that another queue has sent; `moved` is null when it was added to the queue. */
interface HeldOrigin {
  readonly id: MessageId
  readonly source: QueueIdentity
  readonly queueId: string
  moved: MovedMessage | null
  admittedAt: QueueTime | null
}

let queues = 0

export const emptyQueue = (): MemoryQueue => ({
  openings: 0,
  nodes: new Map(),
  shards: Array.from({ length: SHARDS }, () => null),
  arrivals: [],
  recalls: [],
  lastId: 0,
  messages: new Map(),
  history: new Map(),
  departures: 0,
  bodies: new Map(),
  staged: new Map(),
  maildropFiles: new Set(),
  destinations: new Map(),
  clock: null,
  traffic: new Map(),
  records: { tables: new Map(), caller: { owner: 0, name: null } },
  outbox: new MemoryOutbox(),
  identity: `memory ${++queues}`,
  movedTo: null,
  moving: new Map(),
  origins: new Map(),
  recordsTaken: new Map(),
  countsShares: false,
})

/** Counts recipients in the minute of an instant, and in the series. */
export function noteTraffic({ traffic, records }: MemoryQueue, ...happened: readonly Happened[]): void {
  for (const { kind, at, recipients } of happened) {
    const minute = minuteOf(at)
    const counted = traffic.get(minute) ?? NO_TRAFFIC
    if (recipients !== 0) traffic.set(minute, { ...counted, [kind]: counted[kind] + recipients })
  }
  keepHeldDelta(records, deltaOf(happened, null))
}

/** Adds up the minutes before the newest TRAFFIC_MINUTES by hour, and hours before TRAFFIC_HOURS in one row. */
export function pruneTraffic({ traffic }: MemoryQueue): void {
  const before = [...traffic.keys()].toSorted((a, b) => b - a)[TRAFFIC_MINUTES - 1]
  if (before === undefined) return
  for (const [at, counted] of [...traffic].filter(([one]) => one < before)) {
    const hour = at < before - TRAFFIC_HOURS ? OLDER_MINUTES : Math.floor(at / HOUR) * HOUR
    if (hour === at) continue
    traffic.delete(at)
    traffic.set(hour, addTraffic(traffic.get(hour) ?? NO_TRAFFIC, counted))
  }
}

/** Whether a message stays in the queue: a recipient is live or has a notice due. */
export const isKept = ({ recipients }: HeldMessage): boolean => recipients.some((one) => isLive(one) || one.noticeDue !== undefined)

/** The queue of a message. */
export function queueOf({ message, placement, recipients }: HeldMessage, { destinations }: MemoryQueue): QueueName | 'trash' {
  return queueNameOf({
    placement,
    scheduled: message.scheduled === true,
    isActive: recipients.some((one) => one.state === 'leased'),
    isDeferred: recipients.some((one) => isLive(one) && (one.attempts > 0 || isRecordedClosed(destinations.get(one.destination)))),
  })
}

/** Copy of a recipient, unaffected by later changes. */
export function snapshot(held: HeldRecipient): Recipient {
  const { keptDueAt: _, leasedBy: __, ...recipient } = held
  return recipient
}

/** All messages in the order of arrival, which is the order of ids. */
export const inOrder = (queue: MemoryQueue): HeldMessage[] => [...queue.messages.values()].toSorted((a, b) => a.message.id - b.message.id)

/** A new message of the queue, without attempts. */
export function newMessage(message: Message, recipients: HeldRecipient[], placement: Placement): HeldMessage {
  const home = shardOf(recipients[0]?.destination ?? '')
  return {
    message,
    band: NO_CLASS,
    home,
    placement,
    deletedAt: null,
    why: undefined,
    forcedExpire: false,
    warnings: 0,
    warnAt: null,
    recipients,
    history: [],
  }
}
