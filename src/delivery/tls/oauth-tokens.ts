/**
 * Access tokens for XOAUTH2 (smtp_sasl_oauth_token_command). A token is kept until shortly before its end, or until a server refuses
 * it. Each agent has its own tokens, so that a reload fetches new ones.
 */
import type { TokenSource } from '../../oauth/token-source.ts'
import { MINUTE, SECOND, type Clock, type Duration } from '../../system/clock.ts'

/** Returns the output of the command for a user: the token, and in a second line its lifetime in seconds, if known. */
export type RunTokenCommand = (user: string) => Promise<string>

/** Lifetime of a token whose output states none. */
const DEFAULT_LIFETIME: Duration = 300 * SECOND
/** Time before its end at which a token is no longer used: a session that begins then has time to log in. */
const MARGIN: Duration = 30 * SECOND
/** Time for which a token that replaced a refused one is not replaced itself. */
const VERDICT_STANDS: Duration = 5 * MINUTE

interface Token {
  readonly text: string
  /** End of use, on the monotonic clock. */
  readonly until: Duration
}

export class OauthTokens implements TokenSource {
  readonly #clock: Clock
  readonly #run: RunTokenCommand
  readonly #kept = new Map<string, Token>()
  readonly #fetching = new Map<string, Promise<string>>()
  /** Time of the last replacement of a user's token, on the monotonic clock. */
  readonly #replacedAt = new Map<string, Duration>()

  constructor(clock: Clock, run: RunTokenCommand) {
    this.#clock = clock
    this.#run = run
  }

  get(user: string): Promise<string> {
    const kept = this.#kept.get(user)
    if (kept !== undefined && kept.until > this.#clock.monotonic()) return Promise.resolve(kept.text)
    const running = this.#fetching.get(user)
    if (running !== undefined) return running
    const fetching = this.#fetch(user).finally(() => this.#fetching.delete(user))
    this.#fetching.set(user, fetching)
    return fetching
  }

  async replacement(user: string, refused: string): Promise<string | null> {
    if (this.#kept.get(user)?.text === refused) {
      const now = this.#clock.monotonic()
      if (now < (this.#replacedAt.get(user) ?? -Infinity) + VERDICT_STANDS) return null
      this.#replacedAt.set(user, now)
      this.#kept.delete(user)
    }
    const token = await this.get(user)
    return token === refused ? null : token
  }

  async #fetch(user: string): Promise<string> {
    const { text, lifetime } = parseTokenOutput(await this.#run(user))
    this.#kept.set(user, { text, until: this.#clock.monotonic() + usableTime(lifetime) })
    return text
  }
}

const usableTime = (lifetime: Duration): Duration => Math.max(lifetime / 2, lifetime - MARGIN)

/** Parses the output of the command. Throws an Error, without the output, when its first line is no token (RFC 6750 §2.1). */
export function parseTokenOutput(output: string): { readonly text: string; readonly lifetime: Duration } {
  const [text = '', seconds = ''] = output.split(/\r?\n/)
  if (!/^[\w.~+/-]+=*$/.test(text)) throw new Error('the first line of its output is no access token')
  if (seconds !== '' && !/^\d{1,9}$/.test(seconds)) throw new Error('the second line of its output is no lifetime in seconds')
  return { text, lifetime: seconds === '' ? DEFAULT_LIFETIME : Number(seconds) * SECOND }
}
