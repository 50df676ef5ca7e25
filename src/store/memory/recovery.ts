/**
 * Ends the work of owners that have left a queue in memory: ends their leases and operations, quarantines mail that was in delivery during too many
 * crashes, and deletes contents that belong to no message.
 */
import { endClaims } from '../records/kept-grant.ts'
import { endAbandoned } from './held-operations.ts'
import { type HeldMessage, type HeldRecipient, type MemoryQueue } from './queue-state.ts'
import { isLive, queueIdOf, STARTS_UNTIL_CORRUPT, type OwnerId } from '../../mail/message.ts'

export interface RecoveryReport {
  readonly quarantined: readonly { readonly queueId: string; readonly why: string }[]
  /** Number of deleted contents that belonged to no message. */
  readonly swept: number
}

/** Recovers a queue that its last owner has left. */
export function recover(queue: MemoryQueue): RecoveryReport {
  const quarantined = [...queue.messages.values()].flatMap((held) => endLeases(queue, held, isLeased, STARTS_UNTIL_CORRUPT))
  endAbandoned(queue, () => true)
  endClaims.held(queue.records)
  return { quarantined, swept: sweep(queue, () => true) }
}

/** Ends the leases and deletes the staged contents of one owner. `limit` is the number of starts after which mail is quarantined. */
export function removeOwner(queue: MemoryQueue, owner: OwnerId, limit: number): RecoveryReport {
  const quarantined = [...queue.messages.values()].flatMap((held) => endLeases(queue, held, ({ leasedBy }) => leasedBy === owner, limit))
  endAbandoned(queue, (by) => by === owner)
  return { quarantined, swept: sweep(queue, (by) => by === owner) }
}

const isLeased = ({ state }: HeldRecipient): boolean => state === 'leased'

/** Ends leases of a message. Due times, schedule steps and attempt counts do not change. */
function endLeases(
  queue: MemoryQueue,
  held: HeldMessage,
  ended: (recipient: HeldRecipient) => boolean,
  limit: number,
): RecoveryReport['quarantined'] {
  const left = held.recipients.filter(ended)
  const convicted = left.find((one) => one.deliveryStarts >= limit)
  for (const one of left) one.state = held.placement === 'queued' ? 'waiting' : 'parked'
  for (const one of left) one.leasedBy = null
  if (convicted === undefined) return []
  const why = `in delivery when the daemon died, ${convicted.deliveryStarts} times`
  setAside(queue, held, why, () => false)
  return [{ queueId: queueIdOf(held.message), why }]
}

/**
 * Moves a message to `corrupt` and parks its waiting recipients and those whose leases `ends` selects, so that no claim returns
 * them. The others are parked at the end of their leases.
 */
export function setAside(queue: MemoryQueue, held: HeldMessage, why: string, ends: (recipient: HeldRecipient) => boolean): void {
  if (held.placement !== 'corrupt') queue.outbox.quarantined(held.message, why)
  held.placement = 'corrupt'
  held.deletedAt = null
  for (const one of held.recipients) {
    if (!isLive(one) || (isLeased(one) && !ends(one))) continue
    if (isLeased(one)) one.deliveryStarts = 0
    one.state = 'parked'
    one.leasedBy = null
  }
}

function sweep({ staged, bodies }: MemoryQueue, isOver: (owner: OwnerId) => boolean): number {
  const swept = [...staged].filter(([, owner]) => isOver(owner))
  for (const [body] of swept) {
    bodies.delete(body)
    staged.delete(body)
  }
  return swept.length
}
