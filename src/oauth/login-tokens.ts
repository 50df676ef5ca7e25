/** The access token of one login: one request at a time, which all callers share; renewed before its end while it is used. */
import { errorMessage } from '../system/caught-error.ts'
import type { Clock, Duration, QueueTime, Timer } from '../system/clock.ts'
import { adviceFor } from './advice.ts'
import type { OauthClient } from './oauth-client.ts'
import type { TokenAnswer, TokenFailure } from './token-answer.ts'
import { isIdle, mayReplace, pauseAfter, renewalTime, usableTime } from './token-schedule.ts'

interface LoginTokensDeps {
  readonly clock: Clock
  /** The client as of the last reload. */
  readonly client: () => OauthClient
  readonly request: (old: string | null) => Promise<TokenAnswer>
  /** Called with the outcome of each request, once the outcome has taken effect; not after `close`. */
  readonly answered?: ((answer: TokenAnswer) => void) | undefined
}

export interface LoginState {
  /** Time until the end of the token; null without one. */
  readonly left: Duration | null
  /** Why the last request failed, and what to do; null when it did not. */
  readonly problem: string | null
  /** Time of the first failure since which mail cannot rely on the login: no token can be used, or the authority refuses another one. Else null. */
  readonly failedSince: QueueTime | null
}

interface Token {
  readonly text: string
  /** End of use, on the monotonic clock. */
  readonly until: Duration
  /** End, on the monotonic clock. */
  readonly end: Duration
}

interface Failure {
  readonly answer: TokenFailure
  /** Time of the next request, on the monotonic clock. */
  readonly until: Duration
}

export class LoginTokens {
  readonly #deps: LoginTokensDeps
  #token: Token | null = null
  #failure: Failure | null = null
  /** Number of failures in a row. */
  #failures = 0
  #failedSince: QueueTime | null = null
  #running: Promise<void> | null = null
  #replacedAt: Duration | null = null
  #usedAt: Duration
  #timer: Timer | undefined
  #isClosed = false

  constructor(deps: LoginTokensDeps) {
    this.#deps = deps
    this.#usedAt = deps.clock.monotonic()
  }

  /** The token. Rejects with an Error that says why there is none, and what to do. */
  async get(): Promise<string> {
    this.#usedAt = this.#now()
    const kept = this.#usable()
    if (kept !== null) return kept
    if (this.#mayAsk()) await this.#request()
    const fetched = this.#usable()
    if (fetched !== null) return fetched
    throw new Error(this.problem ?? 'its lifetime is over')
  }

  /** See TokenSource.replacement. Rejects like `get` when a new token was asked for in vain. */
  async replacement(refused: string): Promise<string | null> {
    this.#usedAt = this.#now()
    if (this.#running !== null) await this.#running
    if (this.#token?.text === refused || this.#usable() === null) {
      if (!mayReplace(this.#replacedAt, this.#now())) return null
      if (this.#mayAsk()) {
        this.#replacedAt = this.#now()
        await this.#request()
      }
      if (this.problem !== null) throw new Error(this.problem)
    }
    const text = this.#usable()
    return text === refused ? null : text
  }

  /** Why the last request failed, and what to do; null when it did not. */
  get problem(): string | null {
    if (this.#failure === null) return null
    const { answer } = this.#failure
    return `${answer.why}: ${adviceFor(this.#deps.client().table, answer)}`
  }

  /** The state; null when the token has ended and was not used for so long that it is not renewed. */
  get state(): LoginState | null {
    const now = this.#now()
    if (this.#usable() === null && isIdle(this.#usedAt, now)) return null
    const left = this.#token === null ? null : Math.max(0, this.#token.end - now)
    return { left, problem: this.problem, failedSince: this.#failedSince }
  }

  /** Lets the next call ask the authority, whatever it has answered before. The failure is shown until a request succeeds. */
  retry(): void {
    if (this.#failure !== null) this.#failure = { ...this.#failure, until: this.#now() }
    this.#failures = 0
  }

  /** Asks for another token at once, whatever the authority has answered before. Returns the failure, if any. */
  async renew(): Promise<TokenFailure | null> {
    if (this.#running !== null) await this.#running
    await this.#request()
    return this.#failure?.answer ?? null
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  #now(): Duration {
    return this.#deps.clock.monotonic()
  }

  /** False in the pause after a failure. */
  #mayAsk(): boolean {
    return this.#failure === null || this.#failure.until <= this.#now()
  }

  #usable(): string | null {
    return this.#token !== null && this.#token.until > this.#now() ? this.#token.text : null
  }

  #request(): Promise<void> {
    this.#running ??= this.#ask().finally(() => (this.#running = null))
    return this.#running
  }

  async #ask(): Promise<void> {
    const answer = await this.#answer()
    this.#take(answer)
    if (!this.#isClosed) this.#deps.answered?.(answer)
  }

  #take(answer: TokenAnswer): void {
    const now = this.#now()
    if (answer.kind === 'token') {
      this.#token = { text: answer.token, until: now + usableTime(answer.lifetime), end: now + answer.lifetime }
      this.#failure = null
      this.#failures = 0
      this.#failedSince = null
      return this.#askAgainAfter(renewalTime(answer.lifetime))
    }
    this.#failures++
    const pause = pauseAfter(answer.kind, this.#failures)
    this.#failure = { answer, until: now + pause }
    if (answer.kind === 'refused' || this.#usable() === null) this.#failedSince ??= this.#deps.clock.now()
    this.#askAgainAfter(pause)
  }

  async #answer(): Promise<TokenAnswer> {
    try {
      return await this.#deps.request(this.#token?.text ?? null)
    } catch (error) {
      return { kind: 'temporary', why: errorMessage(error) }
    }
  }

  #askAgainAfter(wait: Duration): void {
    this.#timer?.cancel()
    if (this.#isClosed) return
    this.#timer = this.#deps.clock.after(wait, () => {
      if (!isIdle(this.#usedAt, this.#now())) void this.#request()
    })
  }
}
