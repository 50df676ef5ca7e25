/**
 * Decides what an operation changes, from the locked state of its message. PostgreSQL makes the changes of many operations with a statement for
 * each kind, the queue in memory one by one.
 */
import {
  isLive,
  queueIdOf,
  type DestinationName,
  type Message,
  type Placement,
  type Recipient,
  type RecipientId,
} from '../../mail/message.ts'
import { requeuedReason } from '../../mail/requeued.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { QueueTime } from '../../system/clock.ts'
import { perDestination, type Former, type FormerTimes } from '../former-times.ts'
import { appliesAt, cancelledStatus, PURGE_PENDING, type Operation, type Rescheduling } from '../message-operation.ts'

/** A recipient, as far as operations concern it. */
export interface OperatedRecipient extends Pick<Recipient, 'id' | 'destination' | 'state' | 'dueAt' | 'expiresAt' | 'noticeDue'> {
  /** Due time before an operator's flush. */
  readonly keptDueAt: QueueTime | null
}

/** A message with all its recipients; engines add what they need to make the changes. */
export interface OperatedMessage<R extends OperatedRecipient = OperatedRecipient> {
  readonly message: Pick<Message, 'id' | 'notBefore' | 'scheduled' | 'holdRequest' | 'expires' | 'class'>
  readonly placement: Placement
  readonly deletedAt: QueueTime | null
  readonly forcedExpire: boolean
  readonly recipients: readonly R[]
}

export type Requeue = Extract<Operation, { kind: 'requeue' }>

type RecipientOf<H extends OperatedMessage> = H['recipients'][number]

/** One change of a message or of recipients. Changes of one kind with the same values are made by one statement. */
export type Change<H extends OperatedMessage> =
  | { readonly kind: 'flush'; readonly recipients: readonly RecipientOf<H>[]; readonly now: QueueTime }
  | { readonly kind: 'park' | 'unpark' | 'discard'; readonly recipients: readonly RecipientOf<H>[] }
  | {
      readonly kind: 'remove'
      readonly recipients: readonly RecipientOf<H>[]
      readonly at: QueueTime
      /** Null leaves the outcome of the last attempt. */
      readonly last: DeliveryStatus | null
      /** False for recipients that go on in another message. */
      readonly isCounted: boolean
    }
  | { readonly kind: 'reschedule'; readonly held: H; readonly operation: Rescheduling }
  | { readonly kind: 'reclass'; readonly held: H; readonly class: string | null }
  | { readonly kind: 'place'; readonly held: H; readonly placement: Placement; readonly deletedAt: QueueTime | null }
  | { readonly kind: 'expire'; readonly held: H }
  | { readonly kind: 'depart'; readonly held: H }
  | {
      readonly kind: 'requeue'
      readonly held: H
      readonly moving: readonly RecipientOf<H>[]
      readonly dueAt: QueueTime
      readonly operation: Requeue
    }

const isLeased = ({ state }: OperatedRecipient): boolean => state === 'leased'
const isWaiting = ({ state }: OperatedRecipient): boolean => state === 'waiting'
const isIdle = (one: OperatedRecipient): boolean => isLive(one) && !isLeased(one)

/** Whether a message stays after its idle recipients were removed. */
const staysWithout = (recipients: readonly OperatedRecipient[]): boolean =>
  recipients.some((one) => isLeased(one) || (!isLive(one) && one.noticeDue !== undefined))

/** The recipients as the type of the message has them, which an indexed access loses. */
const allOf = <H extends OperatedMessage>(held: H): readonly RecipientOf<H>[] => held.recipients

/**
 * The changes of one operation; empty when it has no effect. `wasHeld` is true for a message in the trash that was on hold when an operation
 * deleted it.
 */
export function changesOf<H extends OperatedMessage>(held: H, operation: Operation, wasHeld: boolean): readonly Change<H>[] {
  if (!appliesAt(operation, held.placement)) return []
  switch (operation.kind) {
    case 'flush':
      return flushed(held, operation.now)
    case 'hold':
      return [placed(held, 'hold'), { kind: 'park', recipients: allOf(held).filter(isLive) }]
    case 'release':
      return queued(held)
    case 'restore':
      return wasHeld ? [placed(held, 'hold')] : queued(held)
    case 'expire':
      return held.forcedExpire ? [] : [{ kind: 'expire', held }]
    case 'requeue':
      return requeued(held, operation)
    case 'reschedule':
      return (held.message.scheduled !== true && !operation.anyWaiting) || held.recipients.some(isLeased)
        ? []
        : [{ kind: 'reschedule', held, operation }]
    case 'reclass':
      return (held.message.class ?? null) === operation.class ? [] : [{ kind: 'reclass', held, class: operation.class }]
    case 'cancel':
      return cancelled(held, operation)
    case 'delete':
      return operation.purge ? purged(held, operation.now) : discarded(held, operation.now)
  }
}

/** Destinations of the recipients that wait after an operation with an effect. */
export function wakes(held: OperatedMessage, operation: Operation, wasHeld: boolean): readonly DestinationName[] {
  const those = (are: (recipient: OperatedRecipient) => boolean): readonly DestinationName[] => [
    ...new Set(held.recipients.filter(are).map(({ destination }) => destination)),
  ]
  switch (operation.kind) {
    case 'flush':
    case 'expire':
    case 'reschedule':
    case 'reclass':
      return those(isWaiting)
    case 'restore':
      return wasHeld ? [] : those(isIdle)
    case 'release':
    case 'requeue':
      return those(isIdle)
    case 'hold':
    case 'delete':
    case 'cancel':
      return []
  }
}

/** The times or the class that the operation replaces, which its undo needs; null for other operations. */
export function formerOf(held: OperatedMessage, { kind }: Operation): Former | null {
  if (kind === 'reclass') return { class: held.message.class ?? null }
  return kind === 'reschedule' ? formerTimesOf(held) : null
}

function formerTimesOf({ message, recipients }: OperatedMessage): FormerTimes {
  const { notBefore, scheduled, holdRequest, expires } = message
  const live = recipients
    .filter(isLive)
    .map(({ destination, dueAt, keptDueAt, expiresAt }) => ({ destination, dueAt: keptDueAt ?? dueAt, expiresAt }))
  return { notBefore, scheduled, holdRequest, expires, times: perDestination(live) }
}

/** Outcome of a recipient that goes on in another message. */
export const requeuedStatus = ({ newId, now }: Requeue): DeliveryStatus => ({
  status: '2.0.0',
  reason: requeuedReason(queueIdOf({ id: newId, createdAt: now })),
  stage: 'queue',
})

const placed = <H extends OperatedMessage>(held: H, placement: Placement, deletedAt: QueueTime | null = null): Change<H> => ({
  kind: 'place',
  held,
  placement,
  deletedAt,
})

const queued = <H extends OperatedMessage>(held: H): readonly Change<H>[] => [
  placed(held, 'queued'),
  { kind: 'unpark', recipients: allOf(held).filter(isLive) },
]

function flushed<H extends OperatedMessage>(held: H, now: QueueTime): readonly Change<H>[] {
  if (held.message.scheduled === true) return []
  const recipients = allOf(held).filter((one) => isWaiting(one) && one.keptDueAt === null)
  return recipients.length === 0 ? [] : [{ kind: 'flush', recipients, now }]
}

/** Moves a message to the trash. Its delay warnings are dropped; failure notices that are due remain due. */
const discarded = <H extends OperatedMessage>(held: H, at: QueueTime): readonly Change<H>[] => [
  placed(held, 'trash', at),
  { kind: 'discard', recipients: allOf(held).filter((one) => isLive(one) || one.noticeDue === 'delay') },
]

/** Deletes a message permanently. When a recipient is in delivery, a later pruning deletes it instead. */
export function purged<H extends OperatedMessage>(held: H, now: QueueTime): readonly Change<H>[] {
  const { placement, deletedAt, recipients } = held
  if (recipients.some(isLeased)) return placement === 'trash' && deletedAt === PURGE_PENDING ? [] : discarded(held, PURGE_PENDING)
  const removal: Change<H> = { kind: 'remove', recipients: allOf(held).filter(isLive), at: now, last: null, isCounted: true }
  return [removal, staysWithout(recipients) ? placed(held, 'queued') : { kind: 'depart', held }]
}

function cancelled<H extends OperatedMessage>(held: H, { now, by }: Extract<Operation, { kind: 'cancel' }>): readonly Change<H>[] {
  const recipients = allOf(held).filter(isIdle)
  if (recipients.length === 0) return []
  const removal: Change<H> = { kind: 'remove', recipients, at: now, last: cancelledStatus(by), isCounted: true }
  return staysWithout(held.recipients) ? [removal] : [removal, { kind: 'depart', held }]
}

function requeued<H extends OperatedMessage>(held: H, operation: Requeue): readonly Change<H>[] {
  const moving = allOf(held).filter(isIdle)
  if (moving.length === 0) return []
  const { now } = operation
  const removal: Change<H> = { kind: 'remove', recipients: moving, at: now, last: requeuedStatus(operation), isCounted: false }
  const copy: Change<H> = { kind: 'requeue', held, moving, dueAt: Math.max(now, held.message.notBefore ?? now), operation }
  return staysWithout(held.recipients) ? [copy, removal] : [copy, removal, { kind: 'depart', held }]
}

export const idsOf = (recipients: readonly OperatedRecipient[]): readonly RecipientId[] => recipients.map(({ id }) => id)
