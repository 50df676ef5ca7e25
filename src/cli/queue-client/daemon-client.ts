/** QueueClient that calls a running daemon over its control socket. */
import type { IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { errorCode } from '../../system/caught-error.ts'
import { maskControls } from '../../mail/smtp-reply.ts'
import { VERSION } from '../../system/version.ts'
import { controlPath } from '../../daemon/admin/socket-path.ts'
import type { RenewalReply } from '../../daemon/oauth-requests.ts'
import type { OauthClient } from '../../oauth/oauth-client.ts'
import type { TokenFailure } from '../../oauth/token-answer.ts'
import type { AccessRequestedEntry } from '../../access/access-entries.ts'
import type { AuditId } from '../../store/audit-log.ts'
import type { PolicyRemoval } from '../../delivery/sts/policy-removal.ts'
import type { AccessSubject } from '../../store/access-entry.ts'
import type { OperationReply } from '../../daemon/control-operations.ts'
import type { MoveReply } from '../../daemon/control-server.ts'
import type { SuspensionRequest } from '../../queue/operations.ts'
import type { BulkOperation, Cancellation, CommandedUndo, OperationSummary, Progress, UndoSummary } from '../../queue/operation-request.ts'
import type { MoveProgress, MoveRequest, MoveSummary } from '../../queue/queue-move.ts'
import type { LiveDestination } from '../../store/destination-status.ts'
import type { Duration } from '../../system/clock.ts'
import type { LiveStatus } from '../../queue/queue-status.ts'
import type {
  NewSecretRequest,
  NewSubscriptionRequest,
  ReplayRequest,
  SubscriptionRemoval,
} from '../../subscriptions/subscription-changes.ts'
import type { NewToken } from '../../admin/token-changes.ts'
import type { PageUser } from '../../admin/sessions.ts'
import type { LoginCode } from '../../daemon/admin/account-requests.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { QueueClient } from '../shell/queue-client.ts'

// Importing node:http as a module takes 20 ms, because it evaluates all exports, including WebSocket, and loads fetch.
const { request: httpRequest } = process.getBuiltinModule('node:http')

/** Time without data from the daemon, in ms, after which a query is abandoned. */
const QUERY_LIMIT = 5_000
/** Time without data, in ms, after which a query of the status is abandoned: the first count of a large queue takes seconds. */
const STATUS_LIMIT: Duration = 30_000
/** Time without data, in ms, after which an operation is abandoned. */
const OPERATION_LIMIT = 60_000

/** Time without data, in ms, after which a token request is abandoned: the daemon waits for another node for 90 s, then asks. */
const RENEWAL_LIMIT: Duration = 240_000

/** The daemon does not answer, although the kernel accepts connections for it (EX_TEMPFAIL). */
class DaemonSilent extends CommandError {
  constructor(limit: number) {
    const text = `the daemon has not answered for ${limit / 1000} seconds: the process is stopped (SIGSTOP) or overloaded`
    super(
      EX.temporary,
      `${text}; an operation that it has received may still be carried out: check \`deferd audit\`, then repeat the command`,
    )
  }
}

type Failed = Extract<OperationReply, { kind: 'failed' }>

/** The error of a refused request. A daemon of another version may not know the request, or its form. */
function refusal({ exitCode, why }: Failed, { headers }: IncomingMessage): CommandError {
  const running = headers['deferd-version']
  if (exitCode !== EX.software || running === VERSION) return new CommandError(exitCode, why)
  const daemon = typeof running === 'string' ? `deferd ${maskControls(running)}` : 'an older deferd'
  return new CommandError(
    EX.unavailable,
    `the daemon is ${daemon} and does not understand this command of deferd ${VERSION} (${why}): restart the daemon, or use the command of its version`,
  )
}

class DaemonClient implements QueueClient {
  readonly #socketPath: string

  constructor(socketPath: string) {
    this.#socketPath = socketPath
  }

  perform(order: BulkOperation, progress: (soFar: Progress) => void = () => undefined): Promise<OperationSummary> {
    return this.#long<OperationReply>('/operations', order, progress)
  }

  undo(undo: CommandedUndo, progress: (soFar: Progress) => void = () => undefined): Promise<UndoSummary> {
    return this.#long<OperationReply<UndoSummary>>('/operations/undo', undo, progress)
  }

  async cancel(operation: AuditId, who: string): Promise<Cancellation> {
    return ((await this.#json('POST', '/operations/cancel', { operation, who })) as { readonly outcome: Cancellation }).outcome
  }

  move(request: MoveRequest, progress: (soFar: MoveProgress) => void): Promise<MoveSummary> {
    return this.#long<MoveReply>('/move', request, progress)
  }

  /** Sends a request whose response has a line for each step. */
  async #long<R extends OperationReply | MoveReply>(
    path: string,
    body: object,
    progress: (soFar: Extract<R, { kind: 'progress' }>['soFar']) => void,
  ): Promise<Extract<R, { kind: 'done' }>['summary']> {
    try {
      const response = await this.#ask('POST', path, body, OPERATION_LIMIT)
      for await (const line of createInterface({ input: response })) {
        const reply = JSON.parse(line) as R
        if (reply.kind === 'failed') throw refusal(reply, response)
        if (reply.kind === 'done') return reply.summary
        progress(reply.soFar)
      }
    } catch (error) {
      // The daemon ended while the operation was running.
      if (errorCode(error) !== 'ECONNRESET') throw error
    }
    throw new CommandError(
      EX.temporary,
      'lost connection to the daemon; the operation may be partly applied: check `deferd audit`, then repeat the command',
    )
  }

  async suspend(destination: string, request: SuspensionRequest): Promise<void> {
    await this.#json('POST', '/suspend', { destination, ...request })
  }

  async resume(destination: string, who: string): Promise<void> {
    await this.#json('POST', '/resume', { destination, who })
  }

  async addToken(token: NewToken): Promise<void> {
    await this.#json('POST', '/tokens', token)
  }

  async removeToken(removal: Pick<NewToken, 'name' | 'who'>): Promise<void> {
    await this.#json('POST', '/tokens/remove', removal)
  }

  async addSubscription(request: NewSubscriptionRequest): Promise<void> {
    await this.#json('POST', '/subscriptions', request)
  }

  async removeSubscription(removal: SubscriptionRemoval): Promise<void> {
    await this.#json('POST', '/subscriptions/remove', removal)
  }

  async changeSecret(request: NewSecretRequest): Promise<void> {
    await this.#json('POST', '/subscriptions/secret', request)
  }

  async replayEvents(request: ReplayRequest): Promise<number> {
    const { events } = (await this.#json('POST', '/subscriptions/replay', request)) as { readonly events: number }
    return events
  }

  async newLoginCode(user: PageUser): Promise<LoginCode> {
    return (await this.#json('POST', '/login-codes', user)) as LoginCode
  }

  async addAccess(entry: AccessRequestedEntry): Promise<void> {
    await this.#json('POST', '/access', entry)
  }

  async removeAccess(subject: AccessSubject, key: string, who: string): Promise<boolean> {
    return ((await this.#json('POST', '/access/remove', { subject, key, who })) as { readonly removed: boolean }).removed
  }

  async readFiles(): Promise<void> {
    await this.#json('POST', '/read-files', {}, OPERATION_LIMIT)
  }

  async removeStsPolicy(removal: PolicyRemoval): Promise<boolean> {
    return ((await this.#json('POST', '/tls/forget', removal)) as { readonly removed: boolean }).removed
  }

  async renewGrant({ table }: OauthClient): Promise<TokenFailure | null> {
    return ((await this.#json('POST', '/oauth/renew', { name: table.name }, RENEWAL_LIMIT)) as RenewalReply).failure
  }

  async destinations(): Promise<readonly LiveDestination[]> {
    return (await this.#json('GET', '/destinations')) as readonly LiveDestination[]
  }

  async status(): Promise<LiveStatus> {
    return (await this.#json('GET', '/status', undefined, STATUS_LIMIT)) as LiveStatus
  }

  async close(): Promise<void> {
    // There is no connection to close, because each request has its own.
  }

  async #json(method: string, path: string, body?: object, limit = QUERY_LIMIT): Promise<unknown> {
    try {
      const response = await this.#ask(method, path, body, limit)
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += String(chunk)
      const value: unknown = JSON.parse(text)
      if (response.statusCode === 200) return value
      throw refusal(value as Failed, response)
    } catch (cause) {
      if (errorCode(cause) !== 'ECONNRESET' || body === undefined) throw cause
      throw new CommandError(
        EX.temporary,
        'lost connection to the daemon before its answer; the change may have been made: look before you repeat the command',
        { cause },
      )
    }
  }

  #ask(method: string, path: string, body?: object, limit = QUERY_LIMIT): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : { 'content-type': 'application/json' }
      const request = httpRequest({ socketPath: this.#socketPath, method, path, headers, agent: false }, resolve)
      request.on('error', reject)
      request.setTimeout(limit, () => request.destroy(new DaemonSilent(limit)))
      request.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}

/** Returns a client of the running daemon; null when no daemon listens for this queue. */
export async function openDaemonClient(queueDirectory: string): Promise<QueueClient | null> {
  const client = new DaemonClient(controlPath(queueDirectory))
  return (await answerOf(() => client.destinations())) === null ? null : client
}

/** Answer of the daemon; null when no daemon runs. Throws CommandError (77) when the user may not use the control socket. */
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
 * Destinations in the daemon's memory. Empty when the user may not use the control socket or the daemon does not answer; null
 * when no daemon runs.
 */
export async function askForDestinations(queueDirectory: string): Promise<readonly LiveDestination[] | null> {
  try {
    return await answerOf(() => new DaemonClient(controlPath(queueDirectory)).destinations())
  } catch (error) {
    if (error instanceof DaemonSilent || (error instanceof CommandError && error.exitCode === EX.notPermitted)) return []
    throw error
  }
}

/** Status of the running daemon; null when no daemon runs. */
export const askForStatus = (queueDirectory: string): Promise<LiveStatus | null> =>
  answerOf(() => new DaemonClient(controlPath(queueDirectory)).status())

/** A code that logs in to the page of the running daemon; null when no daemon runs. */
export const askForLoginCode = (queueDirectory: string, user: PageUser): Promise<LoginCode | null> =>
  answerOf(() => new DaemonClient(controlPath(queueDirectory)).newLoginCode(user))

/** Has the running daemon read the files of its configuration again. False when no daemon runs. */
export const askToReadFiles = async (queueDirectory: string): Promise<boolean> =>
  (await answerOf(async () => (await new DaemonClient(controlPath(queueDirectory)).readFiles(), true))) ?? false
