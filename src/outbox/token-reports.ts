/** Reports requests for access tokens: each one to the log and the metrics, and the first failure that delays mail to programs. */
import type { TokenState } from '../oauth/access-tokens.ts'
import type { TokenAnswer } from '../oauth/token-answer.ts'
import type { OutboxStore } from '../store/outbox-store.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
import { TaskSet } from '../system/task-set.ts'
import type { EventOf, Events } from '../telemetry/events.ts'
import type { EventRecorder } from './event-recorder.ts'

interface TokenReportsDeps {
  readonly outbox: Pick<OutboxStore, 'recordEvents'>
  readonly recorder: EventRecorder
  readonly events: Events
}

export class TokenReports {
  readonly #deps: TokenReportsDeps
  /** Logins whose failure has been reported to programs, or is being reported. */
  readonly #told = new Set<string>()
  readonly #tasks = new TaskSet((error) => {
    throw error
  })

  constructor(deps: TokenReportsDeps) {
    this.#deps = deps
  }

  /** Called with the answer to a request, and with the state of the token after it. */
  readonly answered = (answer: TokenAnswer, { name, user, problem, failedSince }: TokenState): void => {
    const about = { oauth: name, user: user === '' ? null : user }
    const login = JSON.stringify([name, user])
    if (answer.kind === 'token') {
      this.#told.delete(login)
      return this.#deps.events.emit({ kind: 'oauth-token', ...about, lifetime: answer.lifetime })
    }
    const isFirst = failedSince !== null && !this.#told.has(login)
    const failed = { kind: 'oauth-failed', ...about, result: answer.kind, text: problem ?? answer.why, isFirst } as const
    this.#deps.events.emit(failed)
    if (isFirst) this.#tasks.add(this.#tell(login, failed))
  }

  /** Resolves when all events are stored. */
  settled(): Promise<void> {
    return this.#tasks.settled()
  }

  /** Records the event. While the store is unavailable, no event is recorded, so that the next failure is reported. */
  async #tell(login: string, failed: EventOf<'oauth-failed'>): Promise<void> {
    const events = this.#deps.recorder.of(failed)
    this.#told.add(login)
    if (events === undefined) return
    try {
      await this.#deps.outbox.recordEvents(events)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      this.#told.delete(login)
    }
  }
}
