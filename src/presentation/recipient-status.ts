/**
 * Status of a recipient: the event that ends its wait, the time of its next attempt, and the reason for listings. It is derived
 * from the recipient, the queue of its message and the recorded state of its destination. Pure.
 */
import type { QueueTime } from '../system/clock.ts'
import type { DestinationName, Message } from '../mail/message.ts'
import { holdingQuota } from '../mail/message-times.ts'
import type { LiveDestination } from '../queue/scheduler/destination.ts'
import type { ListedRecipient, MessageDetails } from '../store/queue-reader.ts'
import { endOfAll } from '../store/records/suspension.ts'
import { recordedState } from '../store/destination-status.ts'
import type { DestinationRecord } from '../store/queue-store.ts'
import { suspenderText } from './destination-state.ts'

type Queue = MessageDetails['queue']

/** Recorded states of dead and suspended destinations, by name. */
export type DestinationRecords = ReadonlyMap<DestinationName, DestinationRecord>

export const recordsByName = (records: readonly DestinationRecord[]): DestinationRecords =>
  new Map(records.map((record) => [record.name, record]))

/** `slot` is for mail that is claimed and has no delivery slot; `delivery`, for mail that has one, or whose daemon does not answer. */
export type WaitsFor = 'due-time' | 'schedule' | 'slot' | 'delivery' | 'probe' | 'resume' | 'release' | 'inspection' | 'restore' | 'nothing'

const WAITS_AT = { suspended: 'resume', dead: 'probe', open: 'due-time' } as const

/** The event for which a recipient waits, as far as the store knows it. */
function waitsFor(recipient: Pick<ListedRecipient, 'state' | 'destination'>, queue: Queue, records: DestinationRecords): WaitsFor {
  if (recipient.state === 'leased') return 'delivery'
  if (recipient.state !== 'waiting' && recipient.state !== 'parked') return 'nothing'
  if (queue === 'hold') return 'release'
  if (queue === 'corrupt') return 'inspection'
  if (queue === 'trash') return 'restore'
  if (queue === 'scheduled') return 'schedule'
  return WAITS_AT[recordedState(records.get(recipient.destination))]
}

/** Destinations in the daemon's memory, by name; empty when no daemon runs. */
export type LiveDestinations = ReadonlyMap<DestinationName, LiveDestination>

export const liveByName = (all: readonly LiveDestination[]): LiveDestinations => new Map(all.map((one) => [one.destination, one]))

/** The event for which a recipient waits, also within the daemon. */
export function waitsNow(
  recipient: ListedRecipient,
  { message, queue }: Pick<MessageDetails, 'message' | 'queue'>,
  { records, live }: { readonly records: DestinationRecords; readonly live: LiveDestinations },
): WaitsFor {
  const waits = waitsFor(recipient, queue, records)
  const known = live.get(recipient.destination)
  return waits === 'delivery' && known !== undefined && !known.inTransfer.includes(message.id) ? 'slot' : waits
}

/** Time before which a destination gets no attempt; 0 for one that is open, null for one that is suspended without an end. */
function closedUntil(record: DestinationRecord | undefined): QueueTime | null {
  const { suspension = null, deadUntil = null } = record ?? {}
  return suspension === null ? (deadUntil ?? 0) : endOfAll(suspension)
}

/** Time of the next attempt; null when an operator must act first, and when there is none. */
export function nextAttemptAt(
  recipient: Pick<ListedRecipient, 'state' | 'destination' | 'dueAt'>,
  queue: Queue,
  records: DestinationRecords,
): QueueTime | null {
  switch (waitsFor(recipient, queue, records)) {
    case 'delivery':
      return recipient.dueAt
    case 'due-time':
    case 'schedule':
    case 'probe':
    case 'resume': {
      const until = closedUntil(records.get(recipient.destination))
      return until === null ? null : Math.max(recipient.dueAt, until)
    }
    case 'slot':
    case 'release':
    case 'inspection':
    case 'restore':
    case 'nothing':
      return null
  }
}

/** The queue of a message, and what holds it there. */
interface Place {
  readonly queue: Queue
  readonly message: Pick<Message, 'holdRequest'>
}

/** `quota app, 1000/1h, is used up`; null for mail that no quota holds. */
export function quotaReason({ holdRequest = '' }: Place['message']): string | null {
  const held = holdingQuota(holdRequest)
  return held === undefined ? null : `quota ${held.quota}, ${held.limit}, is used up`
}

/** The quota that holds scheduled mail; null for other mail. */
const heldBy = (waits: WaitsFor, { message }: Place): string | null => (waits === 'schedule' ? quotaReason(message) : null)

/**
 * Short reason of a recipient, which begins at the code of a reply. Null during a delivery and before the first attempt at an
 * open destination. Mail that waits for a suspended destination, or that a quota holds, has the text of `delayReason`. Mail that waits for a dead destination
 * has the reply or the reason for which the destination is dead.
 */
export function shortReason(recipient: ListedRecipient, place: Place, records: DestinationRecords): string | null {
  const waits = waitsFor(recipient, place.queue, records)
  if (waits === 'delivery') return null
  if (waits === 'resume') return delayReason(recipient, place, records)
  const quota = heldBy(waits, place)
  if (quota !== null) return quota
  const own = recipient.last === null ? null : (recipient.last.reply ?? recipient.last.reason)
  const site = waits === 'probe' ? (records.get(recipient.destination)?.siteStatus ?? null) : null
  return site === null ? own : (site.reply ?? site.reason)
}

/**
 * Reason of a recipient in listings. Null during a delivery, as in Postfix, and before the first attempt at an open destination.
 * Mail that waits for a suspended destination has the operator and the reason of the suspension. Mail that waits for a dead
 * destination has the destination's site status as its reason, unless its own last attempt had that result. The destination of
 * scheduled mail does not matter before its time; the quota that holds it is its reason.
 */
export function delayReason(recipient: ListedRecipient, place: Place, records: DestinationRecords): string | null {
  const waits = waitsFor(recipient, place.queue, records)
  if (waits === 'delivery') return null
  const quota = heldBy(waits, place)
  if (quota !== null) return quota
  const suspension = waits === 'resume' ? (records.get(recipient.destination)?.suspension ?? null) : null
  if (suspension !== null) {
    const { reason: given } = suspension
    return `delivery temporarily suspended: ${suspenderText(suspension)}${given === null ? '' : `: ${given}`}`
  }
  const own = recipient.last?.reason ?? null
  const reason = waits === 'probe' ? (records.get(recipient.destination)?.siteStatus?.reason ?? 'the destination does not answer') : null
  return reason === null || reason === own ? own : `delivery temporarily suspended: ${reason}`
}
