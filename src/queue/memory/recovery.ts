/**
 * Takes a queue of plain maps up as its last owner left it: its leases end, mail that was in delivery at three crashes
 * is set aside, contents that never became mail are swept, and ids go on above the highest that was ever used.
 */
import { isLive, type HeldMessage, type MemoryQueue } from './held.ts'
import { queueIdOf, type MessageId } from '../message.ts'

/** Starts without an end after which a message is held responsible for the crashes. */
const CONVICTED = 3

export interface TakenUp {
  readonly quarantined: readonly { readonly queueId: string; readonly why: string }[]
  /** Contents that never became mail. */
  readonly swept: number
  readonly lastId: MessageId
}

export function takeUp(queue: MemoryQueue): TakenUp {
  const lastId = Math.max(0, ...queue.messages.keys(), ...queue.departed.keys(), ...queue.bodies.keys())
  const quarantined = [...queue.messages.values()].flatMap(endLeases)
  return { quarantined, swept: sweep(queue), lastId }
}

/** Due times, steps and attempts stay as they were. */
function endLeases(held: HeldMessage): TakenUp['quarantined'] {
  const left = held.recipients.filter((one) => one.state === 'leased')
  const convicted = left.find((one) => one.starts >= CONVICTED)
  for (const one of left) one.state = held.placement === 'queued' ? 'waiting' : 'parked'
  if (convicted === undefined) return []
  const why = `in delivery when the daemon died, ${convicted.starts} times`
  setAside(held)
  return [{ queueId: queueIdOf(held.message), why }]
}

/** The message is corrupt: what lives of it is looked for by nobody. */
export function setAside(held: HeldMessage): void {
  held.placement = 'corrupt'
  held.deletedAt = null
  for (const one of held.recipients) {
    if (one.state === 'leased') one.starts = 0
    if (isLive(one)) one.state = 'parked'
  }
}

function sweep({ staged, bodies }: MemoryQueue): number {
  const swept = [...staged]
  for (const body of swept) bodies.delete(body)
  staged.clear()
  return swept.length
}
