/**
 * Mail that has left the queue and did not reach all recipients. While its content is kept (returned_content_retention), it can be sent
 * again: as a new message to failed recipients, whose history tells that they were sent again.
 */
import { nothing, type MethodRows } from './method-traits.ts'
import type { MessageId, Recipient, RecipientId } from '../mail/message.ts'
import { queueIdOf } from '../mail/message.ts'
import type { QueueTime } from '../system/clock.ts'
import type { OperationRound } from './records/audit-log.ts'
import type { NewMessage } from './new-message.ts'

/** A message that is sent again. */
export interface Resending {
  /** The message that has left. */
  readonly message: MessageId
  /** Failed recipients of it. */
  readonly recipients: readonly RecipientId[]
  /** True when recipients that were sent again before are sent again. */
  readonly again: boolean
  /** The new message, without content: it has the content id of the kept content. */
  readonly entry: NewMessage
}

/** Limits of the kept contents. */
export interface KeptLimits {
  /** Contents are deleted that were to be kept until this time. */
  readonly until: QueueTime
  /** The oldest are deleted while all of them have more bytes than this. */
  readonly bytes: number
}

const ERASED_SIDES = ['recipient', 'sender'] as const
export type ErasedSide = (typeof ERASED_SIDES)[number]

/** The addresses of mail that has left the queue which an erasure replaces. */
export interface ErasureTerms {
  /** Side of the envelope whose addresses are erased. Those of the other side stay, although they match. */
  readonly side: ErasedSide
  /** Pattern of the addresses; `*` matches any text. */
  readonly pattern: string
  /** Mail that left the queue later, and rows that were written later, stay. */
  readonly before: QueueTime
}

/** A slice of an erasure, which is one commit. A plan has the same slices without a change. */
export interface ErasureSlice {
  readonly terms: ErasureTerms
  /** Key of the texts that stand for addresses. */
  readonly key: string
  /** Null for the first slice. */
  readonly stage: string | null
  /** Null at the begin of a stage. */
  readonly after: string | null
  /** Null for a plan, which changes nothing. */
  readonly round: OperationRound | null
  /** Time until which the erasure belongs to the caller (StoredErasure). */
  readonly until: QueueTime
}

export interface ErasureStep {
  /** Table of the slice, or the end. */
  readonly of: string
  /** Number of changed rows. */
  readonly rows: number
  /** Begin of the next slice; null after the last one. */
  readonly next: { readonly stage: string; readonly after: string | null } | null
  /** False when the slice waits for readers of the file; the next one then follows after a pause. */
  readonly advances: boolean
}

/** Methods of QueueStore for mail that has left the queue, its member `departed`. */
export interface DepartedMail {
  /**
   * Queues mail again, in one commit that also notes it in the history. One boolean for each: false, without effect, when the content is
   * not kept, or a recipient has not failed or was sent again before. Resolves with null, without a change, when the operation has ended.
   */
  resend(mail: readonly Resending[], round: OperationRound): Promise<readonly boolean[] | null>
  /** Deletes a slice of the kept contents that are beyond the limits. Resolves with the bytes that stay. */
  dropKept(limits: KeptLimits): Promise<{ readonly bytes: number; readonly more: boolean }>
  /**
   * Carries out a slice of an erasure, and counts it in the audit log; a plan changes nothing. Resolves with null, without a change, when the
   * operation has ended. A repetition has no further effect.
   */
  erase(slice: ErasureSlice): Promise<ErasureStep | null>
}

/** Maximum number of contents that one call deletes. */
export const DROPPED = 50
/** A call deletes no further content when those that it deletes have this many bytes: a transaction of large ones would delay mail. */
const DROPPED_BYTES = 32 * 2 ** 20

interface DroppedSlice<R> {
  readonly dropped: readonly R[]
  /** Bytes that stay. */
  readonly bytes: number
  /** Whether more contents may be beyond the limits. */
  readonly more: boolean
}

/** The contents that one call deletes, of the oldest ones in order. All contents have `held` bytes. */
export function sliceToDrop<R extends { readonly until: QueueTime; readonly size: number }>(
  oldest: readonly R[],
  held: number,
  { until, bytes: most }: KeptLimits,
): DroppedSlice<R> {
  const dropped: R[] = []
  let bytes = held
  for (const row of oldest) {
    if (row.until > until && bytes <= most) return { dropped, bytes, more: false }
    dropped.push(row)
    bytes -= row.size
    if (dropped.length === DROPPED || held - bytes >= DROPPED_BYTES) return { dropped, bytes, more: true }
  }
  return { dropped, bytes, more: false }
}

const hasFailed = ({ state }: Pick<Recipient, 'state'>): boolean => state === 'bounced' || state === 'expired'

/** True when the content of a message stays after it has left. */
export const isReturned = (recipients: readonly Pick<Recipient, 'state'>[]): boolean => recipients.some(hasFailed)

/** True for a recipient that may be sent again. */
export const mayBeResent = (one: Pick<Recipient, 'state' | 'resentAs'>, again: boolean): boolean =>
  hasFailed(one) && (again || one.resentAs === undefined)

/** The recipients of a message that has left, with the note that mail was sent again; null when it may not be. */
export function resentRecipients(
  recipients: readonly Recipient[],
  { recipients: ids, again, entry: { message } }: Resending,
): readonly Recipient[] | null {
  const wanted = new Set(ids)
  const chosen = recipients.filter(({ id }) => wanted.has(id))
  if (chosen.length < wanted.size || !chosen.every((one) => mayBeResent(one, again))) return null
  return recipients.map((one) => (wanted.has(one.id) ? { ...one, resentAs: queueIdOf(message) } : one))
}

export const DEPARTED_METHODS = {
  resend: { room: 'needs', sending: 'alone', changes: ([mail]) => mail.map(({ entry }) => entry.message.id) },
  dropKept: { room: 'reserve', sending: 'alone', changes: nothing },
  erase: { room: 'reserve', sending: 'alone', changes: nothing },
} as const satisfies MethodRows<DepartedMail>
