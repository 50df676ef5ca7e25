/** QueueClient: changes to the queue. The running daemon makes them, or the command itself while no daemon runs. */
import type { NewToken } from '../../admin/token-changes.ts'
import type { AccessRequestedEntry } from '../../access/access-entries.ts'
import type { PolicyRemoval } from '../../delivery/sts/policy-removal.ts'
import type { OauthClient } from '../../oauth/oauth-client.ts'
import type { RunEndJson } from '../../api/schedule-routes.ts'
import type { TokenFailure } from '../../oauth/token-answer.ts'
import type { SuspensionRequest } from '../../queue/operations.ts'
import type { BulkOperation, Cancellation, CommandedUndo, OperationSummary, Progress, UndoSummary } from '../../queue/operation-request.ts'
import type { MoveProgress, MoveRequest, MoveSummary } from '../../queue/queue-move.ts'
import type { EraseBody } from '../../queries/operations/erase.ts'
import type { ResendBody } from '../../queries/operations/resend.ts'
import type { QuotaReset } from '../../queue/intake/quota-changes.ts'
import type { SuppressionQuery } from '../../queries/records/suppression-entries.ts'
import type { SuppressionRemovalJson } from '../../resources/records/suppression-json.ts'
import type { RequestedSuppression } from '../../suppression/suppression-changes.ts'
import type { SuppressionKey } from '../../store/records/suppression-entry.ts'
import type { OperationJson } from '../../resources/operation-json.ts'
import type { ErasurePlanJson } from '../../resources/plans/erasure-plan-json.ts'
import type { ResendPlanJson } from '../../resources/plans/resend-plan-json.ts'
import type { AuditId } from '../../store/records/audit-log.ts'
import type { AccessSubject } from '../../store/records/access-entry.ts'
import type { GivenConditions } from '../../store/message-conditions.ts'
import type { LiveDestination } from '../../queue/scheduler/destination.ts'
import type {
  NewSecretRequest,
  NewSubscriptionRequest,
  ReplayRequest,
  SubscriptionRemoval,
} from '../../subscriptions/subscription-changes.ts'

/** A selection of messages as an operator gives it. Ages count from the time at which the operation is performed. */
export type GivenSelection =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'filter'; readonly given: GivenConditions; readonly limit: number | null }

export interface CommandedOperation extends Omit<BulkOperation, 'selection'> {
  readonly selection: GivenSelection
}

/** Entries of the suppression list to remove: those with keys, or those that match all conditions. */
export interface GivenRemoval {
  readonly selection:
    | { readonly kind: 'keys'; readonly keys: readonly SuppressionKey[] }
    | { readonly kind: 'filter'; readonly query: SuppressionQuery }
  readonly dryRun: boolean
  readonly who: string
}

/** The rights of a new token. */
export type RequestedToken = Omit<NewToken, 'hash'>

export interface QueueClient {
  perform(order: CommandedOperation, progress?: (soFar: Progress) => void): Promise<OperationSummary>
  /** Undoes an operation. Rejects with the exit code 65 when it cannot be undone, or is unknown. */
  undo(undo: CommandedUndo, progress?: (soFar: Progress) => void): Promise<UndoSummary>
  /** Cancels an operation. Messages that it has changed stay changed. */
  cancel(operation: AuditId, who: string): Promise<Cancellation>
  suspend(name: string, request: SuspensionRequest): Promise<void>
  resume(name: string, who: string): Promise<void>
  suspendProvider(name: string, request: SuspensionRequest): Promise<void>
  resumeProvider(name: string, who: string): Promise<void>
  addAccess(entry: AccessRequestedEntry): Promise<void>
  /** Returns false when there is no such entry. */
  removeAccess(subject: AccessSubject, key: string, who: string): Promise<boolean>
  /** Returns false when no quota counts the key. */
  resetQuota(reset: QuotaReset): Promise<boolean>
  addSuppression(entry: RequestedSuppression, who: string): Promise<void>
  /** Imports all lines of a text. Rejects with the exit code 65 when one is invalid. Returns the number of entries. */
  importSuppressions(text: string, scope: string, who: string): Promise<number>
  removeSuppressions(removal: GivenRemoval): Promise<SuppressionRemovalJson>
  /** Returns false when the listings of the scope are not stopped. */
  resumeSuppressions(scope: string, who: string): Promise<boolean>
  /** Returns false when no policy of the domain is kept. */
  removeStsPolicy(removal: PolicyRemoval): Promise<boolean>
  /** Destinations in the scheduler's memory; null when no daemon runs. */
  destinations(): Promise<readonly LiveDestination[] | null>
  move(request: MoveRequest, progress: (soFar: MoveProgress) => void): Promise<MoveSummary>
  /** Adds a token, and returns it. Rejects with the exit code 65 when there is one of its name. */
  addToken(token: RequestedToken): Promise<string>
  /** Removes a token. Rejects with the exit code 65 when there is none of the name. */
  removeToken(removal: Pick<RequestedToken, 'name' | 'who'>): Promise<void>
  /** Adds a subscription. Rejects with the exit code 65 when the name is in use. */
  addSubscription(request: NewSubscriptionRequest): Promise<void>
  /** Removes a subscription. Rejects with the exit code 65 when no command has added one of the name. */
  removeSubscription(removal: SubscriptionRemoval): Promise<void>
  /** Gives a subscription a new secret. Rejects as `removeSubscription` does. */
  changeSecret(request: NewSecretRequest): Promise<void>
  /** Has events sent again, and returns how many. Rejects with the exit code 65 for an unknown name. */
  replayEvents(request: ReplayRequest): Promise<number>
  /** Requests an access token with the refresh token that the queue keeps, and stores the answer. Returns the failure; null for success. */
  renewGrant(client: OauthClient): Promise<TokenFailure | null>
  /** Makes a run of a schedule. Rejects with the exit code 65 for an unknown one and while a run goes on, 69 without a daemon. */
  runSchedule(name: string, who: string): Promise<RunEndJson>
  /** Rejects with the exit code 69 without a daemon. */
  planResending(order: ResendBody, who: string): Promise<ResendPlanJson>
  /** Begins to send mail again. Rejects with the exit code 65 when nothing can be sent again, 69 without a daemon. */
  resend(order: ResendBody, who: string): Promise<OperationJson>
  /** Rejects with the exit code 69 without a daemon. */
  planErasure(order: EraseBody, who: string): Promise<ErasurePlanJson>
  /** Begins an erasure. Rejects with the exit code 69 without a daemon. */
  erase(order: EraseBody, who: string): Promise<OperationJson>
  /** An operation that the daemon has begun. */
  operation(id: AuditId): Promise<OperationJson>
  close(): Promise<void>
}
