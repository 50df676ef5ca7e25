/** QueueClient that has the running daemon make the changes, through its API. */
import { errorCode } from '../../system/caught-error.ts'
import type { OauthClient } from '../../oauth/oauth-client.ts'
import type { TokenFailure } from '../../oauth/token-answer.ts'
import type { AccessRequestedEntry } from '../../access/access-entries.ts'
import type { SharesJson } from '../../resources/share-json.ts'
import type { AuditId } from '../../store/records/audit-log.ts'
import type { PolicyRemoval } from '../../delivery/sts/policy-removal.ts'
import type { AccessSubject } from '../../store/records/access-entry.ts'
import type { DirectBody } from '../../queries/operations/operation-request-shape.ts'
import { replayMembers } from '../../queries/operations/replay-request.ts'
import type { EraseBody } from '../../queries/operations/erase.ts'
import type { ResendBody } from '../../queries/operations/resend.ts'
import type { QuotaReset } from '../../queue/intake/quota-changes.ts'
import type { SuppressionRemovalJson } from '../../resources/records/suppression-json.ts'
import type { RequestedSuppression } from '../../suppression/suppression-changes.ts'
import type { OperationJson } from '../../resources/operation-json.ts'
import type { ErasurePlanJson } from '../../resources/plans/erasure-plan-json.ts'
import type { ResendPlanJson } from '../../resources/plans/resend-plan-json.ts'
import type { RunEndJson } from '../../api/schedule-routes.ts'
import type { OperationLine } from '../../api/route/operation-lines.ts'
import type { SuspensionRequest } from '../../queue/operations.ts'
import type { Cancellation, CommandedUndo, OperationSummary, Progress, UndoSummary } from '../../queue/operation-request.ts'
import type { MoveProgress, MoveRequest, MoveSummary } from '../../queue/queue-move.ts'
import type { LiveDestination } from '../../queue/scheduler/destination.ts'
import { HOUR, SECOND, type Duration } from '../../system/clock.ts'
import type { LiveStatus } from '../../queue/queue-status.ts'
import type {
  NewSecretRequest,
  NewSubscriptionRequest,
  ReplayRequest,
  SubscriptionRemoval,
} from '../../subscriptions/subscription-changes.ts'
import type { PageUser } from '../../admin/sessions.ts'
import type { TraceProgress, TraceSummary, TraceTerms } from '../../sessions/traces.ts'
import type { LoginCode } from '../../daemon/local-routes.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { CommandedOperation, GivenRemoval, GivenSelection, QueueClient, RequestedToken } from '../shell/queue-client.ts'
import { namedTimeText } from '../../queue/operation-words.ts'
import { conditionTexts } from './filters.ts'
import { ApiConnection, DaemonSilent, localEndpoint, RequestRefused, segment, type Call } from './api-connection.ts'

/** Time without data from the daemon after which a query of the status is abandoned: the first count of a large queue takes seconds. */
const STATUS_LIMIT: Duration = 30 * SECOND
/** Time without data after which an operation is abandoned. */
const OPERATION_LIMIT: Duration = 60 * SECOND
/** Time without data after which a token request is abandoned: the daemon waits for another node for 90 s, then asks. */
const RENEWAL_LIMIT: Duration = 240 * SECOND

/** Time after which a run of a schedule is no longer awaited; it goes on. A large queue takes long to copy. */
const RUN_LIMIT: Duration = 12 * HOUR

/** All members, so that a forgotten one does not compile. */
type OperationBody = Required<Omit<DirectBody, 'all' | 'reason' | 'accept_growth'>>

function selectionBody(selection: GivenSelection): OperationBody['selection'] {
  if (selection.kind === 'ids') return { kind: 'ids', ids: [...selection.ids] }
  const filter = { ...conditionTexts(selection.given) }
  return { kind: 'filter', filter, limit: selection.limit, all: Object.keys(filter).length === 0 }
}

const secondsOf = (duration: Duration | null): number | null => (duration === null ? null : duration / SECOND)

type Outcome = Extract<OperationLine, { done: unknown }>['done']
type OperationProgress = Extract<OperationLine, { progress: unknown }>['progress']

export class ApiClient implements QueueClient {
  readonly #api: ApiConnection

  constructor(api: ApiConnection) {
    this.#api = api
  }

  async perform(order: CommandedOperation, progress: (soFar: Progress) => void = () => undefined): Promise<OperationSummary> {
    const { operation, selection, queues, purge, release, class: named, dryRun, who } = order
    const body: OperationBody = {
      operation,
      selection: selectionBody(selection),
      queues: queues?.slice() ?? null,
      purge,
      not_before: release === null ? null : namedTimeText(release),
      class: named,
      dry_run: dryRun,
    }
    return this.#operation({ method: 'POST', path: '/operations', body, who }, progress)
  }

  async undo({ operation, who, reason }: CommandedUndo, progress: (soFar: Progress) => void = () => undefined): Promise<UndoSummary> {
    const query = reason === null ? '' : `?${new URLSearchParams({ reason }).toString()}`
    const undone = await this.#operation({ method: 'POST', path: `/operations/${operation}/undo${query}`, who }, progress)
    return { ...undone, id: undone.id ?? operation }
  }

  async #operation(call: Call, progress: (soFar: Progress) => void): Promise<OperationSummary & { readonly id?: AuditId | undefined }> {
    const show = (soFar: OperationProgress): void => progress({ ...soFar, unknown: [] })
    const { in_transfer: inTransfer, ...done } = await this.#api.lines<{ progress: OperationProgress; done: Outcome }>(
      { ...call, limit: OPERATION_LIMIT },
      show,
    )
    return { ...done, inTransfer }
  }

  async cancel(operation: AuditId, who: string): Promise<Cancellation> {
    const outcomes = { 'operation-ended': 'ended', 'unknown-operation': 'unknown' } as const
    return this.#unless<Cancellation>(outcomes, async () => {
      await this.#api.json({ method: 'DELETE', path: `/operations/${operation}`, who })
      return 'cancelled'
    })
  }

  move({ who, ...body }: MoveRequest, progress: (soFar: MoveProgress) => void): Promise<MoveSummary> {
    return this.#api.lines<{ progress: MoveProgress; done: MoveSummary }>(
      { method: 'POST', path: '/local/move', body, who, limit: OPERATION_LIMIT },
      progress,
    )
  }

  suspend(destination: string, request: SuspensionRequest): Promise<void> {
    return this.#suspend(`/destinations/${segment(destination)}/suspend`, request)
  }

  suspendProvider(provider: string, request: SuspensionRequest): Promise<void> {
    return this.#suspend(`/providers/${segment(provider)}/suspend`, request)
  }

  async #suspend(path: string, { who, duration, reason }: SuspensionRequest): Promise<void> {
    const body = { ...(duration === null ? {} : { for: duration / SECOND }), ...(reason === null ? {} : { reason }) }
    await this.#api.json({ method: 'POST', path, body, who })
  }

  async resumeProvider(provider: string, who: string): Promise<void> {
    await this.#api.json({ method: 'POST', path: `/providers/${segment(provider)}/resume`, who })
  }

  async resume(destination: string, who: string): Promise<void> {
    await this.#api.json({ method: 'POST', path: `/destinations/${segment(destination)}/resume`, who })
  }

  async addToken({ duration, who, ...rights }: RequestedToken): Promise<string> {
    const body = { ...rights, expires_in: secondsOf(duration) }
    return ((await this.#api.json({ method: 'POST', path: '/tokens', body, who })) as { readonly token: string }).token
  }

  async removeToken({ name, who }: Pick<RequestedToken, 'name' | 'who'>): Promise<void> {
    await this.#api.json({ method: 'DELETE', path: `/tokens/${segment(name)}`, who })
  }

  async addSubscription({ who, allowPrivate, ...settings }: NewSubscriptionRequest): Promise<void> {
    await this.#api.json({ method: 'POST', path: '/subscriptions', body: { ...settings, allow_private: allowPrivate }, who })
  }

  async removeSubscription({ name, who }: SubscriptionRemoval): Promise<void> {
    await this.#api.json({ method: 'DELETE', path: `/subscriptions/${segment(name)}`, who })
  }

  async changeSecret({ name, secret, overlap, who }: NewSecretRequest): Promise<void> {
    const body = { secret, overlap: overlap / SECOND }
    await this.#api.json({ method: 'POST', path: `/subscriptions/${segment(name)}/secret`, body, who })
  }

  async replayEvents({ name, events, who }: ReplayRequest): Promise<number> {
    const call = { method: 'POST', path: `/subscriptions/${segment(name)}/replay`, body: replayMembers(events), who } as const
    const count = await this.#unless({ 'unknown-subscription': null }, async () => {
      return ((await this.#api.json(call)) as { readonly events: number }).events
    })
    if (count === null) throw new CommandError(EX.data, `there is no subscription ${name}: deferd webhook list shows all names`)
    return count
  }

  /** Shows the lines of a trace, and resolves with its end. */
  trace({ who, ...body }: TraceTerms & { readonly who: string }, show: (progress: TraceProgress) => void): Promise<TraceSummary> {
    const limit = body.for + OPERATION_LIMIT
    return this.#api.lines<{ progress: TraceProgress; done: TraceSummary }>(
      { method: 'POST', path: '/local/trace', body, who, limit },
      show,
    )
  }

  async newLoginCode(body: PageUser): Promise<LoginCode> {
    return (await this.#api.json({ method: 'POST', path: '/local/login-codes', body })) as LoginCode
  }

  async addAccess({ duration, who, ...entry }: AccessRequestedEntry): Promise<void> {
    await this.#api.json({ method: 'POST', path: '/access', body: { ...entry, expires_in: secondsOf(duration) }, who })
  }

  removeAccess(subject: AccessSubject, key: string, who: string): Promise<boolean> {
    return this.#removed({ method: 'DELETE', path: `/access/${subject}/${segment(key)}`, who })
  }

  resetQuota({ key, quota, who }: QuotaReset): Promise<boolean> {
    return this.#removed({ method: 'POST', path: '/quotas/reset', body: { key, quota }, who })
  }

  async addSuppression({ duration, ...entry }: RequestedSuppression, who: string): Promise<void> {
    await this.#api.json({ method: 'POST', path: '/suppressions', body: { ...entry, expires_in: secondsOf(duration) }, who })
  }

  async importSuppressions(text: string, scope: string, who: string): Promise<number> {
    const call = { method: 'POST', path: '/suppressions/import', body: { text, scope }, who, limit: OPERATION_LIMIT } as const
    return ((await this.#api.json(call)) as { readonly imported: number }).imported
  }

  async removeSuppressions({ selection, dryRun, who }: GivenRemoval): Promise<SuppressionRemovalJson> {
    const body = { ...removalBody(selection), dry_run: dryRun }
    const call = { method: 'POST', path: '/suppressions/remove', body, who, limit: OPERATION_LIMIT } as const
    return (await this.#api.json(call)) as SuppressionRemovalJson
  }

  resumeSuppressions(scope: string, who: string): Promise<boolean> {
    return this.#removed({ method: 'POST', path: '/suppressions/resume', body: { scope }, who })
  }

  async readFiles(): Promise<void> {
    await this.#api.json({ method: 'POST', path: '/local/read-files', limit: OPERATION_LIMIT })
  }

  async running(): Promise<void> {
    await this.#api.json({ method: 'GET', path: '/local/running' })
  }

  async reload(): Promise<void> {
    await this.#api.json({ method: 'POST', path: '/local/reload', limit: OPERATION_LIMIT })
  }

  removeStsPolicy({ domain, who }: PolicyRemoval): Promise<boolean> {
    return this.#removed({ method: 'DELETE', path: `/sts-policies/${segment(domain)}`, who })
  }

  async renewGrant({ table }: OauthClient): Promise<TokenFailure | null> {
    const path = `/oauth/${segment(table.name)}/renew`
    return ((await this.#api.json({ method: 'POST', path, limit: RENEWAL_LIMIT })) as { readonly failure: TokenFailure | null }).failure
  }

  async runSchedule(name: string, who: string): Promise<RunEndJson> {
    const end = await this.#unless({ unknown: null }, async () => {
      return (await this.#api.json({ method: 'POST', path: `/schedules/${segment(name)}/run`, who, limit: RUN_LIMIT })) as RunEndJson
    })
    if (end === null) throw new CommandError(EX.data, `there is no table [schedule.${name}]; deferd schedule list shows all tables`)
    return end
  }

  async planResending(order: ResendBody, who: string): Promise<ResendPlanJson> {
    const call = { method: 'POST', path: '/history/resend', body: { ...order, dry_run: true }, who, limit: OPERATION_LIMIT } as const
    return ((await this.#api.json(call)) as { readonly plan: ResendPlanJson }).plan
  }

  async resend(order: ResendBody, who: string): Promise<OperationJson> {
    return (await this.#api.json({ method: 'POST', path: '/history/resend', body: order, who, limit: OPERATION_LIMIT })) as OperationJson
  }

  async planErasure(order: EraseBody, who: string): Promise<ErasurePlanJson> {
    const call = { method: 'POST', path: '/history/erase', body: { ...order, dry_run: true }, who, limit: OPERATION_LIMIT } as const
    return ((await this.#api.json(call)) as { readonly plan: ErasurePlanJson }).plan
  }

  async erase(order: EraseBody, who: string): Promise<OperationJson> {
    return (await this.#api.json({ method: 'POST', path: '/history/erase', body: order, who, limit: OPERATION_LIMIT })) as OperationJson
  }

  async operation(id: AuditId): Promise<OperationJson> {
    return (await this.#api.json({ method: 'GET', path: `/operations/${id}` })) as OperationJson
  }

  /** Null while the daemon has no queue open. */
  async destinations(): Promise<readonly LiveDestination[] | null> {
    return (await this.#api.json({ method: 'GET', path: '/local/destinations' })) as readonly LiveDestination[] | null
  }

  /** Null while the daemon has no queue open. */
  async status(): Promise<LiveStatus | null> {
    return (await this.#api.json({ method: 'GET', path: '/local/status', limit: STATUS_LIMIT })) as LiveStatus | null
  }

  async shares(path: string): Promise<SharesJson> {
    return (await this.#api.json({ method: 'GET', path, limit: STATUS_LIMIT })) as SharesJson
  }

  async close(): Promise<void> {
    // There is no connection to close, because each request has its own.
  }

  #removed(call: Call): Promise<boolean> {
    return this.#unless({ unknown: false }, async () => (await this.#api.json(call), true))
  }

  /** The result of a request, or the value that stands for the problem of this type. */
  async #unless<T>(values: Readonly<Record<string, T>>, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      const value = error instanceof RequestRefused ? values[error.type.replace('/problems/', '')] : undefined
      if (value === undefined) throw error
      return value
    }
  }
}

function removalBody(selection: GivenRemoval['selection']): object {
  if (selection.kind === 'keys') return { entries: selection.keys }
  const { since, ...query } = selection.query
  const filter = { ...query, ...(since === undefined ? {} : { since: `${Math.round(since / SECOND)}s` }) }
  return { filter, all: Object.values(filter).every((value) => value === undefined) }
}

const clientOf = (queueDirectory: string): ApiClient => new ApiClient(new ApiConnection(localEndpoint(queueDirectory)))

/** Returns a client of the running daemon; null when no daemon listens for this queue. */
export async function openDaemonClient(queueDirectory: string): Promise<ApiClient | null> {
  const client = clientOf(queueDirectory)
  return (await answerOf(() => client.destinations())) === null ? null : client
}

/** Answer of the daemon; null when no daemon runs. Throws CommandError (77) when the user may not use the socket. */
async function answerOf<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask()
  } catch (cause) {
    const code = errorCode(cause)
    if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ENOTDIR') return null
    if (code === 'EACCES')
      throw new CommandError(EX.notPermitted, 'permission denied: only root or the user who runs the daemon may do this', { cause })
    throw cause
  }
}

/**
 * Destinations in the daemon's memory. Empty when the user may not use the socket or the daemon does not answer; null when no daemon
 * runs.
 */
export async function askForDestinations(queueDirectory: string): Promise<readonly LiveDestination[] | null> {
  try {
    return await answerOf(() => clientOf(queueDirectory).destinations())
  } catch (error) {
    if (error instanceof DaemonSilent || (error instanceof CommandError && error.exitCode === EX.notPermitted)) return []
    throw error
  }
}

/** Status of the running daemon; null when no daemon runs. */
export const askForStatus = (queueDirectory: string): Promise<LiveStatus | null> => answerOf(() => clientOf(queueDirectory).status())

/** The shares of the queue of the running daemon, by the path of their route with its query; null when no daemon runs. */
export const askForShares = (queueDirectory: string, path: string): Promise<SharesJson | null> =>
  answerOf(() => clientOf(queueDirectory).shares(path))

/** A code that logs in to the page of the running daemon; null when no daemon runs. */
export const askForLoginCode = (queueDirectory: string, user: PageUser): Promise<LoginCode | null> =>
  answerOf(() => clientOf(queueDirectory).newLoginCode(user))

/** Traces sessions of the running daemon; null when no daemon runs. */
export const askToTrace = (
  queueDirectory: string,
  terms: TraceTerms & { readonly who: string },
  show: (progress: TraceProgress) => void,
): Promise<TraceSummary | null> => answerOf(() => clientOf(queueDirectory).trace(terms, show))

/** Whether a daemon answers. */
export const askWhetherRunning = async (queueDirectory: string): Promise<boolean> =>
  (await answerOf(async () => (await clientOf(queueDirectory).running(), true))) ?? false

/** Has the running daemon read its configuration again. False when no daemon runs. */
export const askToReload = async (queueDirectory: string): Promise<boolean> =>
  (await answerOf(async () => (await clientOf(queueDirectory).reload(), true))) ?? false

/** Has the running daemon read the files of its configuration again. False when no daemon runs. */
export const askToReadFiles = async (queueDirectory: string): Promise<boolean> =>
  (await answerOf(async () => (await clientOf(queueDirectory).readFiles(), true))) ?? false
