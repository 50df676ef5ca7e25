/**
 * Decides what an operation changes, from the locked rows of its message. The changes of many operations are collected, so that each
 * kind takes one statement.
 */
import { queueIdOf, type Placement, type RecipientId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { appliesAt, cancelledStatus, PURGE_PENDING, type Operation, type Rescheduling } from '../../queue-store.ts'
import type { MessageRow, RecipientRow } from './rows.ts'

/** A message with its recipients, locked. */
export interface HeldMessage {
  readonly row: MessageRow
  readonly recipients: readonly RecipientRow[]
  /** True for a message in the trash that was on hold when an operation deleted it. */
  readonly wasHeld?: boolean
}

type Requeue = Extract<Operation, { kind: 'requeue' }>

/** One change of a message or of recipients. Changes of one kind with the same values are made by one statement. */
export type Change =
  | { readonly kind: 'flush'; readonly ids: readonly RecipientId[]; readonly now: QueueTime }
  | { readonly kind: 'park' | 'unpark' | 'discard'; readonly ids: readonly RecipientId[] }
  | {
      readonly kind: 'remove'
      readonly ids: readonly RecipientId[]
      readonly at: QueueTime
      readonly last: string | null
      /** False for recipients that go on in another message. */
      readonly isCounted: boolean
    }
  | { readonly kind: 'reschedule'; readonly held: HeldMessage; readonly operation: Rescheduling }
  | { readonly kind: 'place'; readonly held: HeldMessage; readonly placement: Placement; readonly deletedAt: QueueTime | null }
  | { readonly kind: 'expire'; readonly held: HeldMessage }
  | { readonly kind: 'depart'; readonly held: HeldMessage }
  | { readonly kind: 'requeue'; readonly held: HeldMessage; readonly moving: readonly RecipientRow[]; readonly operation: Requeue }

const idsOf = (recipients: readonly RecipientRow[]): readonly RecipientId[] => recipients.map(({ id }) => id)
const isLive = ({ settled_at: at }: RecipientRow): boolean => at === null
const isLeased = ({ state }: RecipientRow): boolean => state === 'leased'
const isWaiting = ({ state }: RecipientRow): boolean => state === 'waiting'
const isIdle = (one: RecipientRow): boolean => isLive(one) && !isLeased(one)

/** Whether a message stays after its idle recipients were removed. */
const staysWithout = (recipients: readonly RecipientRow[]): boolean =>
  recipients.some((one) => isLeased(one) || (!isLive(one) && one.notice_due !== null))

/** The changes of one operation; empty when it has no effect. */
export function changesOf(held: HeldMessage, operation: Operation): readonly Change[] {
  if (!appliesAt(operation, held.row.placement)) return []
  switch (operation.kind) {
    case 'flush':
      return flushed(held, operation.now)
    case 'hold':
      return [placed(held, 'hold'), { kind: 'park', ids: idsOf(held.recipients.filter(isLive)) }]
    case 'release':
      return queued(held)
    case 'restore':
      return held.wasHeld === true ? [placed(held, 'hold')] : queued(held)
    case 'expire':
      return held.row.forced_expire ? [] : [{ kind: 'expire', held }]
    case 'requeue':
      return requeued(held, operation)
    case 'reschedule':
      return (held.row.scheduled !== true && !operation.anyWaiting) || held.recipients.some(isLeased)
        ? []
        : [{ kind: 'reschedule', held, operation }]
    case 'cancel':
      return cancelled(held, operation)
    case 'delete':
      return operation.purge ? purged(held, operation.now) : discarded(held, operation.now)
  }
}

/** Destinations of the recipients that wait after the operation. */
export function wakes(held: HeldMessage, operation: Operation): readonly RecipientRow[] {
  switch (operation.kind) {
    case 'flush':
    case 'expire':
    case 'reschedule':
      return held.recipients.filter(isWaiting)
    case 'restore':
      return held.wasHeld === true ? [] : held.recipients.filter(isIdle)
    case 'release':
    case 'requeue':
      return held.recipients.filter(isIdle)
    case 'hold':
    case 'delete':
    case 'cancel':
      return []
  }
}

const placed = (held: HeldMessage, placement: Placement, deletedAt: QueueTime | null = null): Change => ({
  kind: 'place',
  held,
  placement,
  deletedAt,
})

const queued = (held: HeldMessage): readonly Change[] => [
  placed(held, 'queued'),
  { kind: 'unpark', ids: idsOf(held.recipients.filter(isLive)) },
]

function flushed({ row, recipients }: HeldMessage, now: QueueTime): readonly Change[] {
  if (row.scheduled === true) return []
  const ids = idsOf(recipients.filter((one) => isWaiting(one) && one.kept_due_at === null))
  return ids.length === 0 ? [] : [{ kind: 'flush', ids, now }]
}

/** Moves a message to the trash. Its delay warnings are dropped; failure notices that are due remain due. */
const discarded = (held: HeldMessage, at: QueueTime): readonly Change[] => [
  placed(held, 'trash', at),
  { kind: 'discard', ids: idsOf(held.recipients.filter((one) => isLive(one) || one.notice_due === 'delay')) },
]

/** Deletes a message permanently. When a recipient is in delivery, a later pruning deletes it instead. */
export function purged(held: HeldMessage, now: QueueTime): readonly Change[] {
  const { row, recipients } = held
  if (recipients.some(isLeased)) return row.placement === 'trash' && row.deleted_at === PURGE_PENDING ? [] : discarded(held, PURGE_PENDING)
  const removal: Change = { kind: 'remove', ids: idsOf(recipients.filter(isLive)), at: now, last: null, isCounted: true }
  return [removal, staysWithout(recipients) ? placed(held, 'queued') : { kind: 'depart', held }]
}

function cancelled(held: HeldMessage, { now, by }: Extract<Operation, { kind: 'cancel' }>): readonly Change[] {
  const ids = idsOf(held.recipients.filter(isIdle))
  if (ids.length === 0) return []
  const removal: Change = { kind: 'remove', ids, at: now, last: JSON.stringify(cancelledStatus(by)), isCounted: true }
  return staysWithout(held.recipients) ? [removal] : [removal, { kind: 'depart', held }]
}

function requeued(held: HeldMessage, operation: Requeue): readonly Change[] {
  const moving = held.recipients.filter(isIdle)
  if (moving.length === 0) return []
  const reason = `requeued as ${queueIdOf({ id: operation.newId, createdAt: operation.now })}`
  const last = JSON.stringify({ status: '2.0.0', reason, stage: 'queue' })
  const removal: Change = { kind: 'remove', ids: idsOf(moving), at: operation.now, last, isCounted: false }
  const copy: Change = { kind: 'requeue', held, moving, operation }
  return staysWithout(held.recipients) ? [copy, removal] : [copy, removal, { kind: 'depart', held }]
}
