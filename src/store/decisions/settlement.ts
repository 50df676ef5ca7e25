/** Decides what a settlement counts, and which state a recipient has after it. */
import { causeCode } from '../../mail/failure-cause.ts'
import type { Placement, RecipientId, RecipientState } from '../../mail/message.ts'
import type { Duration } from '../../system/clock.ts'
import type { AttemptRecord, Settled } from '../recorded-outcomes.ts'
import type { Happened, MailPath } from './series-notes.ts'

export type FinalOutcome = Exclude<Settled, { state: 'waiting' }>
export type LiveOutcome = Extract<Settled, { state: 'waiting' }>

export const isFinal = (one: Settled): one is FinalOutcome => one.state !== 'waiting'
export const goesOn = (one: Settled): one is LiveOutcome => one.state === 'waiting'

/** True for a final state without a notice due. */
export const isOver = (one: Settled): one is FinalOutcome => isFinal(one) && one.noticeDue === undefined

/** State of a recipient that goes on: parked when its message is held, corrupt or deleted. */
export const stateAt = (placement: Placement): RecipientState => (placement === 'queued' ? 'waiting' : 'parked')

/** Outcomes and deferred attempts of the applied part of a settlement, as they are counted. Its recipients have one path. */
export function settledMail(path: MailPath, settled: readonly Settled[], attempts: readonly AttemptRecord[]): readonly Happened[] {
  const delays = new Map<RecipientId, Duration>()
  const happened: Happened[] = []
  for (const { recipient, outcome, at, status, delays: parts } of attempts) {
    if (outcome === 'delivered') delays.set(recipient, parts[0] + parts[1] + parts[2] + parts[3])
    if (outcome === 'deferred') happened.push({ kind: 'deferred', at, recipients: 1, path, cause: causeCode(status) })
  }
  for (const one of settled) {
    if (goesOn(one)) continue
    const delay = one.state === 'delivered' ? delays.get(one.recipient) : undefined
    const kind = one.state === 'removed' ? 'deleted' : one.state
    happened.push({ kind, at: one.at, recipients: 1, path, ...(delay === undefined ? {} : { delay }) })
  }
  return happened
}
