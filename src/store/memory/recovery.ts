/**
 * Recovers a queue in memory that its last owner has left: ends the leases, quarantines mail that was in delivery during three
 * crashes, and deletes contents that belong to no message.
 */
import { type HeldMessage, type MemoryQueue } from './queue-state.ts'
import { isLive, queueIdOf, STARTS_UNTIL_CORRUPT } from '../../mail/message.ts'

export interface RecoveryReport {
  readonly quarantined: readonly { readonly queueId: string; readonly why: string }[]
  /** Number of deleted contents that belonged to no message. */
  readonly swept: number
}

export function recover(queue: MemoryQueue): RecoveryReport {
  const quarantined = [...queue.messages.values()].flatMap(endLeases)
  return { quarantined, swept: sweep(queue) }
}

/** Ends all leases of a message. Due times, schedule steps and attempt counts do not change. */
function endLeases(held: HeldMessage): RecoveryReport['quarantined'] {
  const left = held.recipients.filter((one) => one.state === 'leased')
  const convicted = left.find((one) => one.deliveryStarts >= STARTS_UNTIL_CORRUPT)
  for (const one of left) one.state = held.placement === 'queued' ? 'waiting' : 'parked'
  if (convicted === undefined) return []
  const why = `in delivery when the daemon died, ${convicted.deliveryStarts} times`
  setAside(held)
  return [{ queueId: queueIdOf(held.message), why }]
}

/** Moves a message to `corrupt` and parks its live recipients, so that no claim returns them. */
export function setAside(held: HeldMessage): void {
  held.placement = 'corrupt'
  held.deletedAt = null
  for (const one of held.recipients) {
    if (one.state === 'leased') one.deliveryStarts = 0
    if (isLive(one)) one.state = 'parked'
  }
}

function sweep({ staged, bodies }: MemoryQueue): number {
  const swept = [...staged]
  for (const body of swept) bodies.delete(body)
  staged.clear()
  return swept.length
}
