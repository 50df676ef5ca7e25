/**
 * Where a recipient stands: what it waits for, when it is tried next, and what a listing gives as the reason. All of it
 * follows from the recipient, the queue its message is in, and what is remembered of its destination.
 */
import type { Instant } from '../mail/clock.ts'
import type { DestinationName } from '../queue/message.ts'
import type { ListedRecipient, MessageStory } from '../queue/reader.ts'
import type { DestinationRecord } from '../queue/store.ts'

/** Destinations about which something is out of the ordinary, by name. */
export type DestinationRecords = ReadonlyMap<DestinationName, DestinationRecord>

export const recordsByName = (records: readonly DestinationRecord[]): DestinationRecords =>
  new Map(records.map((record) => [record.name, record]))

export type WaitsFor = 'due-time' | 'delivery' | 'probe' | 'resume' | 'release' | 'inspection' | 'restore' | 'nothing'

/** What has to happen before the recipient is tried. */
export function waitsFor(recipient: ListedRecipient, queue: MessageStory['queue'], records: DestinationRecords): WaitsFor {
  if (recipient.state === 'leased') return 'delivery'
  if (recipient.state !== 'waiting' && recipient.state !== 'parked') return 'nothing'
  if (queue === 'hold') return 'release'
  if (queue === 'corrupt') return 'inspection'
  if (queue === 'trash') return 'restore'
  const record = records.get(recipient.destination)
  if (record !== undefined && record.suspendedBy !== null) return 'resume'
  return record !== undefined && record.deadUntil !== null ? 'probe' : 'due-time'
}

/** When it is tried next; null while only an operator can set it moving. */
export function nextAttemptAt(recipient: ListedRecipient, queue: MessageStory['queue'], records: DestinationRecords): Instant | null {
  const waiting = waitsFor(recipient, queue, records)
  if (waiting === 'due-time' || waiting === 'delivery') return recipient.dueAt
  if (waiting === 'probe') return Math.max(recipient.dueAt, records.get(recipient.destination)?.deadUntil ?? 0)
  return null
}

/**
 * Why it is still here, as listings say it. Nothing while it is being delivered, as in Postfix; the destination's
 * trouble for mail that waits behind others, unless it was this recipient that met with it.
 */
export function delayReason(recipient: ListedRecipient, records: DestinationRecords): string | null {
  if (recipient.state === 'leased') return null
  const record = records.get(recipient.destination)
  const own = recipient.last?.reason ?? null
  if (record === undefined || recipient.state !== 'waiting') return own
  if (record.suspendedBy !== null) return `delivery temporarily suspended: by ${record.suspendedBy}`
  const trouble = record.deadUntil === null ? null : (record.reason?.reason ?? 'the destination cannot be reached')
  return trouble === null || trouble === own ? own : `delivery temporarily suspended: ${trouble}`
}

/** The address the sender wrote (ORCPT), when it differs from the one in use. */
export function originalAddress({ orcpt, address }: Pick<ListedRecipient, 'orcpt' | 'address'>): string | null {
  const original = /^(?:rfc822|utf-8);(.*)$/is.exec(orcpt ?? '')?.[1]
  return original === undefined || original.toLowerCase() === address.toLowerCase() ? null : original
}
