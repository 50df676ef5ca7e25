/**
 * Access tokens by a rotating refresh token that all nodes share: one request to the authority per lifetime of an access token, whatever the
 * number of nodes, and every answer stored durably before its tokens are used.
 *
 * A node that is killed between the answer and its storage sends the former refresh token again, when its claim has ended. So no login
 * is lost with an authority that accepts the former token until the new one is used first, or that does not rotate. With an authority which
 * ends the former token at once, no client survives a crash in that moment; the token of `refresh_token_file` is tried then,
 * and after its refusal a person logs in anew (`deferd oauth login`).
 */
import { errorMessage } from '../system/caught-error.ts'
import { SECOND, sleep, type Clock, type Duration, type QueueTime } from '../system/clock.ts'
import { candidatesOf, usableToken, type Candidate, type ChainFacts } from './grant-chain.ts'
import { sha256 } from './oauth-client.ts'
import type { SharedGrant, SharedGrants } from './shared-grant.ts'
import type { TokenAnswer } from './token-answer.ts'

interface SharedGrantRenewalDeps {
  /** NAME of the table `[oauth.NAME]`. */
  readonly name: string
  /**
   * User of the row. Empty when the refresh token of the table serves all its users, as that of one `refresh_token_file` does: with a row for
   * each user, the second one would send a token that the first one has replaced.
   */
  readonly user: string
  readonly grants: SharedGrants
  /** Clock of the queue. */
  readonly clock: Clock
  /** Token of `refresh_token_file` as of the start or the last reload; null without one. */
  readonly fileToken: () => string | null
  /** Asks the authority, for 30 s at most. */
  readonly request: (refreshToken: string) => Promise<TokenAnswer>
}

type Token = Extract<TokenAnswer, { readonly kind: 'token' }>

/** Duration of a claim: two requests of 30 s, and the commit. */
const CLAIM: Duration = 75 * SECOND
/** Time for which a node waits for the answer that another one has asked for: until the claim of a node that is gone has ended. */
const PATIENCE: Duration = 90 * SECOND
const PAUSE: Duration = SECOND

/** Error of RFC 6749 §5.2 for a refresh token that is expired, revoked or replaced. */
const INVALID_GRANT = 'invalid_grant'

/**
 * Stands in the cache of access tokens for the request to the authority, for tables with `grant = "refresh_token"`: where the cache would send
 * the request of another grant, it calls `token`, with
 * - null when it has no token;
 * - its token when it renews that in the background, so that the answer is another one;
 * - the token that a server refused, for `replacement`.
 * The schedule of the cache (renewal, pauses after failures) is the same as for other grants; `lifetime` is what is left of it.
 */
export class SharedGrantRenewal {
  readonly #deps: SharedGrantRenewalDeps
  #done: string | null = null
  /** An answer whose storage failed, or whose commit is in doubt. */
  #unstored: SharedGrant | null = null

  constructor(deps: SharedGrantRenewalDeps) {
    this.#deps = deps
  }

  /** An access token other than `unlike`: the kept one while it can be used, else that of a request. Never rejects. */
  async token(unlike: string | null): Promise<TokenAnswer> {
    try {
      return await this.#obtain(unlike)
    } catch (error) {
      return { kind: 'temporary', why: `the refresh token in the queue cannot be used: ${errorMessage(error)}` }
    }
  }

  async #obtain(unlike: string | null): Promise<TokenAnswer> {
    const { clock } = this.#deps
    const end = clock.monotonic() + PATIENCE
    await this.#storeAgain()
    for (;;) {
      const known = this.#known(await this.#facts(), unlike)
      if (known !== null) return known
      const answer = await this.#claimed(unlike)
      if (answer !== null) return answer
      if (clock.monotonic() >= end) return { kind: 'temporary', why: 'another node is asking for a token, without an answer' }
      await sleep(clock, PAUSE)
    }
  }

  /** Asks the authority under a claim. Null without the claim, and when another node has stored an answer meanwhile. */
  async #claimed(unlike: string | null): Promise<TokenAnswer | null> {
    const { name, user, grants, clock } = this.#deps
    const now = clock.now()
    const until = now + CLAIM
    if (!(await grants.claim(name, user, { now, until }))) return null
    let isStored = false
    try {
      const facts = await this.#facts()
      const known = this.#known(facts, unlike)
      if (known !== null) return known
      const asked = clock.now()
      const { answer, by } = await this.#ask(facts)
      if (answer.kind !== 'token') return (await this.#isCurrent(facts)) ? answer : null
      const grant = successor(facts.kept, answer, by, asked)
      isStored = await this.#store(grant)
      return isStored ? tokenOf(grant, clock.now()) : null
    } finally {
      // A claim that has ended may be that of another node now. One that cannot be released ends at its time.
      if (!isStored && clock.now() < until) await grants.release(name, user).catch(() => undefined)
    }
  }

  async #facts(): Promise<ChainFacts> {
    const { name, user, grants, fileToken } = this.#deps
    const kept = await grants.read(name, user)
    const file = fileToken()
    if (file !== null && kept?.origin === sha256(file)) this.#done = kept.origin
    return { kept, file, done: this.#done }
  }

  #known(facts: ChainFacts, unlike: string | null): Token | null {
    const now = this.#deps.clock.now()
    return facts.kept !== null && usableToken(facts, unlike, now) !== null ? tokenOf(facts.kept, now) : null
  }

  /** True while no other node has stored a later answer, which happens when the claim ends before the answer arrives. */
  async #isCurrent({ kept }: ChainFacts): Promise<boolean> {
    const { name, user, grants } = this.#deps
    return ((await grants.read(name, user))?.generation ?? 0) === (kept?.generation ?? 0)
  }

  /** Sends refresh tokens until one is not refused as invalid. */
  async #ask(facts: ChainFacts): Promise<{ readonly answer: TokenAnswer; readonly by: Candidate }> {
    let last: { readonly answer: TokenAnswer; readonly by: Candidate } = { answer: NO_TOKEN, by: { refreshToken: '', origin: '' } }
    for (const by of candidatesOf(facts)) {
      last = { answer: await this.#deps.request(by.refreshToken), by }
      if (last.answer.kind !== 'refused' || last.answer.error !== INVALID_GRANT) break
      // From now on, the token of the file is sent after that of the queue.
      if (by.refreshToken === facts.file) this.#done = by.origin
    }
    return last
  }

  async #store(grant: SharedGrant): Promise<boolean> {
    const { name, user, grants } = this.#deps
    this.#unstored = grant
    const isStored = await grants.replace(name, user, grant)
    this.#unstored = null
    return isStored
  }

  /** Stores an answer again whose storage failed. The store refuses it when it was stored, or when there is a later one. */
  async #storeAgain(): Promise<void> {
    if (this.#unstored !== null) await this.#store(this.#unstored)
  }
}

const NO_TOKEN: TokenAnswer = { kind: 'refused', error: 'no_refresh_token', why: 'there is no refresh token' }

const successor = (kept: SharedGrant | null, answer: Token, by: Candidate, asked: QueueTime): SharedGrant => ({
  refreshToken: answer.refreshToken ?? by.refreshToken,
  accessToken: answer.token,
  expiresAt: asked + Math.floor(answer.lifetime),
  generation: (kept?.generation ?? 0) + 1,
  origin: by.origin,
})

const tokenOf = ({ accessToken, expiresAt }: SharedGrant, now: QueueTime): Token => ({
  kind: 'token',
  token: accessToken ?? '',
  lifetime: expiresAt - now,
})
