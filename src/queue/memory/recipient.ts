/**
 * How one recipient moves through its states, in the queue of plain maps.
 */
import type { HeldMessage, HeldRecipient } from './held.ts'
import type { Lease, RecipientId } from '../message.ts'
import type { NewRecipient, Settled } from '../store.ts'

export function enter(id: RecipientId, { leased, ...recipient }: NewRecipient, hold: boolean): HeldRecipient {
  const state = hold ? 'parked' : leased ? 'leased' : 'waiting'
  return { ...recipient, id, state, steps: 0, attempts: 0, starts: state === 'leased' ? 1 : 0, last: null, keptDueAt: null }
}

export function lease(one: HeldRecipient, { message, warnings, forcedExpire }: HeldMessage): Lease {
  one.state = 'leased'
  one.starts++
  const { id, address, notify, orcpt, expiresAt, steps, attempts, last, destination, dueAt, keptDueAt } = one
  const wishes = { ...(notify === undefined ? {} : { notify }), ...(orcpt === undefined ? {} : { orcpt }) }
  const progress = { dueAt: keptDueAt ?? dueAt, expiresAt, steps, attempts }
  const recipient = { id, address, ...wishes, ...progress, last, warnings, flushed: keptDueAt !== null }
  return { message, destination, recipient, fresh: attempts === 0, forcedExpire }
}

/** What is still alive of a held, corrupt or deleted message is parked, where it would have waited. */
export function settleOne(one: HeldRecipient, settled: Settled, { placement }: HeldMessage): void {
  one.attempts = settled.attempts
  one.last = settled.last
  one.keptDueAt = null
  one.starts = 0
  if (settled.state === 'waiting') {
    one.state = placement === 'queued' ? 'waiting' : 'parked'
    one.dueAt = settled.dueAt
    one.steps = settled.steps
    if (settled.debt !== undefined) one.debt = settled.debt
    return
  }
  one.state = settled.state
  one.settledAt = settled.at
  if (settled.debt === undefined) delete one.debt
  else one.debt = settled.debt
}
