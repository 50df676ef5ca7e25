/**
 * Ends the work of owners that have left a queue in memory: ends their leases and operations, quarantines mail that was in delivery during too many
 * crashes, and deletes contents that belong to no message.
 */
import { convictionOf, type Failed } from '../decisions/conviction.ts'
import { stateAt } from '../decisions/settlement.ts'
import { endErasureRights } from '../records/erasure.ts'
import { endClaims } from '../records/kept-grant.ts'
import { END_ABANDONED } from '../records/operation-round.ts'
import { type HeldMessage, type HeldRecipient, type MemoryQueue } from './queue-state.ts'
import { isLive, queueIdOf, type OwnerId } from '../../mail/message.ts'

export interface RecoveryReport {
  readonly quarantined: readonly { readonly queueId: string; readonly why: string }[]
  /** Number of deleted contents that belonged to no message. */
  readonly swept: number
}

/** Recovers a queue that its last owner has left. */
export function recover(queue: MemoryQueue): RecoveryReport {
  const quarantined = [...queue.messages.values()].flatMap((held) => endLeases(queue, held, isLeased, 'daemon'))
  END_ABANDONED.held(queue.records, null)
  endClaims.held(queue.records)
  endErasureRights.held(queue.records)
  return { quarantined, swept: sweep(queue, () => true) }
}

/** Ends the leases and deletes the staged contents of one of several owners. */
export function removeOwner(queue: MemoryQueue, owner: OwnerId): RecoveryReport {
  const quarantined = [...queue.messages.values()].flatMap((held) => endLeases(queue, held, ({ leasedBy }) => leasedBy === owner, 'node'))
  END_ABANDONED.held(queue.records, owner)
  return { quarantined, swept: sweep(queue, (by) => by === owner) }
}

const isLeased = ({ state }: HeldRecipient): boolean => state === 'leased'

/** Ends leases of a message. Due times, schedule steps and attempt counts do not change. */
function endLeases(
  queue: MemoryQueue,
  held: HeldMessage,
  ended: (recipient: HeldRecipient) => boolean,
  failed: Failed,
): RecoveryReport['quarantined'] {
  const left = held.recipients.filter(ended)
  const [why] = left.flatMap(({ deliveryStarts }) => convictionOf(deliveryStarts, failed) ?? [])
  for (const one of left) one.state = stateAt(held.placement)
  for (const one of left) one.leasedBy = null
  if (why === undefined) return []
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
  held.why = why
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
