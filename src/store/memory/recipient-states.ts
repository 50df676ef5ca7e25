/**
 * State transitions of one recipient in a queue in memory.
 */
import { stateAt } from '../decisions/settlement.ts'
import type { HeldMessage, HeldRecipient } from './queue-state.ts'
import type { LeasedMail, OwnerId, RecipientId } from '../../mail/message.ts'
import type { NewRecipient, Tried } from '../new-message.ts'
import type { Settled } from '../recorded-outcomes.ts'

const UNTRIED: Tried = { steps: 0, attempts: 0, last: null }

export function enter(
  id: RecipientId,
  { leased, tried = UNTRIED, ...recipient }: NewRecipient,
  hold: boolean,
  owner: OwnerId,
): HeldRecipient {
  const state = hold ? 'parked' : leased ? 'leased' : 'waiting'
  const terms = state === 'leased' ? { leasedBy: owner, deliveryStarts: 1 } : { leasedBy: null, deliveryStarts: 0 }
  return { ...recipient, ...tried, ...terms, id, state, keptDueAt: null }
}

export function lease(one: HeldRecipient, { message, warnings, forcedExpire }: HeldMessage, owner: OwnerId): LeasedMail {
  one.state = 'leased'
  one.leasedBy = owner
  one.deliveryStarts++
  const { id, address, notify, orcpt, expiresAt, steps, attempts, last, destination, dueAt, keptDueAt } = one
  const wishes = { ...(notify === undefined ? {} : { notify }), ...(orcpt === undefined ? {} : { orcpt }) }
  const progress = { dueAt: keptDueAt ?? dueAt, expiresAt, steps, attempts }
  const recipient = { id, address, ...wishes, ...progress, last, warnings, flushed: keptDueAt !== null }
  return { message, destination, recipient, fresh: attempts === 0, forcedExpire }
}

export function settleOne(one: HeldRecipient, settled: Settled, { placement }: HeldMessage): void {
  one.attempts = settled.attempts
  one.last = settled.last
  one.keptDueAt = null
  one.deliveryStarts = 0
  one.leasedBy = null
  if (settled.state === 'waiting') {
    one.state = stateAt(placement)
    one.dueAt = settled.dueAt
    one.steps = settled.steps
    if (settled.noticeDue !== undefined) one.noticeDue = settled.noticeDue
    return
  }
  one.state = settled.state
  one.settledAt = settled.at
  if (settled.noticeDue === undefined) delete one.noticeDue
  else one.noticeDue = settled.noticeDue
}
