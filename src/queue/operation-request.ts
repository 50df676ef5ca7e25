/** Operations on queued messages, as the command line, the page and the HTTP interface ask for them. */
import type { MailClasses } from '../config/values/mail-classes.ts'
import type { MessageId, QueueName } from '../mail/message.ts'
import type { NamedTime } from '../mail/message-times.ts'
import type { Actor, AuditId, IdempotentRequest } from '../store/records/audit-log.ts'
import type { QueueFilter } from '../store/message-conditions.ts'

export const OPERATIONS = ['flush', 'hold', 'release', 'requeue', 'expire', 'delete', 'restore', 'reschedule', 'reclass'] as const
/** Operation on queued messages. */
export type OperationName = (typeof OPERATIONS)[number]
/** Name in the audit log of the operation that sends departed mail again (queue/resending). */
export const RESEND = 'resend'
/** Name in the audit log of the operation that erases addresses of departed mail (queue/erasing). */
export const ERASE = 'erase'
/** Actions of the audit log that are operations on many messages. */
export const MESSAGE_OPERATIONS = [...OPERATIONS, RESEND, ERASE] as const

/** Selection of messages: by id, or by a filter. */
export type Selection =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'filter'; readonly filter: QueueFilter; readonly limit: number | null }

/** An operation on many messages as it is asked for. Every key is required, so that a layer that omits a new one does not compile. */
export interface AskedOperation {
  readonly operation: OperationName
  readonly selection: Selection
  /** Queues whose messages may be changed; null for all queues. */
  readonly queues: readonly QueueName[] | null
  /** True to delete permanently, without the trash. */
  readonly purge: boolean
  /** Time before which a reschedule lets no delivery begin; null for other operations. */
  readonly release: NamedTime | null
  /** Class that a reclass gives the messages; null for other operations. */
  readonly class: string | null
}

export interface BulkOperation extends AskedOperation, Actor {
  /** True to count and list messages without changing them. */
  readonly dryRun: boolean
}

/** Queues of mail that is delivered, or held back, by itself: all but corrupt mail and the trash. */
export const ORDINARY_QUEUES: readonly QueueName[] = ['incoming', 'active', 'deferred', 'scheduled', 'hold']

/** Terms of an operation on mail of any queue, which needs no terms of its own. */
export const ANY_QUEUE = { queues: null, purge: false, release: null, class: null } as const satisfies Partial<BulkOperation>

/** A reclass names a class that the configuration does not have (EX_DATAERR). */
export class UnknownClass extends Error {
  override readonly name = 'UnknownClass'
  readonly exitCode = 65
}

/** Throws UnknownClass for a reclass to a class without a table. */
export function assertClass(classes: Pick<MailClasses, 'has'>, { class: name }: Pick<BulkOperation, 'class'>): void {
  if (name !== null && !classes.has(name))
    throw new UnknownClass(`there is no class ${JSON.stringify(name)}: name one that has a table [class.NAME] in the configuration`)
}

/** The plan that an operator was shown before the operation. */
export interface ShownPlan {
  /** Highest message id that existed then. Messages with higher ids are not changed. */
  readonly through: MessageId
  /** Number of messages that were selected then. */
  readonly matched: number
  /** True to carry the operation out also when many more messages are selected now. */
  readonly acceptsGrowth: boolean
}

/** An operation that is to be carried out. */
export interface OperationRequest extends Omit<BulkOperation, 'dryRun'> {
  /** The operator's reason. */
  readonly reason: string | null
  /** Null for an operation without a plan. */
  readonly plan: ShownPlan | null
  /** Null for a request that may have its effect each time it is sent. */
  readonly request: IdempotentRequest | null
}

/** An undo of an operation. */
export interface UndoRequest extends Actor, Pick<OperationRequest, 'reason' | 'request'> {
  readonly operation: AuditId
}

/** An undo as a command asks for it. */
export type CommandedUndo = Omit<UndoRequest, 'request'>

export const PASSED_REASONS = ['active', 'due', 'hold', 'scheduled'] as const
/** Why a flush leaves a message unchanged: `active`, in delivery or claimed for it; `due` already; on `hold`; `scheduled`, before the time that the client named. */
export type PassedReason = (typeof PASSED_REASONS)[number]

/** Numbers of messages that a flush leaves unchanged, of those that it names or that its filter selects in any queue; absent for none. */
export type PassedOver = { readonly [Reason in PassedReason]?: number | undefined }

/** Result of an operation. */
export interface OperationSummary extends PassedOver {
  /** Number of selected messages. */
  readonly matched: number
  /** Number of changed messages. */
  readonly changed: number
  /** Number of selected messages of which a recipient is in transfer, after an operation that ends attempts. Its outcome comes first. */
  readonly inTransfer: number
  /** Ids found neither in the queue nor in the trash. */
  readonly unknown: readonly string[]
}

/** Result of an undo. */
export interface UndoSummary extends OperationSummary {
  /** The undo is an operation with an id of its own. */
  readonly id: AuditId
}

/** Result of a request to cancel an operation; `ended`: it had ended before. */
export type Cancellation = 'cancelled' | 'ended' | 'unknown'

/** Progress of an operation, after each round. */
export interface Progress extends Omit<OperationSummary, 'inTransfer' | PassedReason> {
  /**
   * Queue ids of the messages that this round changed, or of those selected in a dry run. A requeued message has its former id
   * here.
   */
  readonly ids: readonly string[]
}
