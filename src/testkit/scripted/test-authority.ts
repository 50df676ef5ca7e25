/**
 * A simulated authorization server (OAuth 2) with its mail servers: issues access tokens over HTTPS, fails as scripted, and lets servers take
 * mail only after a login with one of its tokens. A world makes it with `world.authority`, `deferd sink --oauth` on a real port.
 */
import type { Socket } from 'node:net'
import { sleep, type MachineClock, type Duration, type WallTime } from '../../system/clock.ts'
import { requireDomain, requireFunction, requireKnownOptions } from '../options/argument-checks.ts'
import {
  authoritySettings,
  guardSettings,
  requireFailure,
  type AuthorityFailures,
  type AuthorityOptions,
  type ProtectionOptions,
} from '../options/authority-options.ts'
import { AuthorityEngine, type AnsweredRequest, type ScriptedRequest } from '../oauth/authority-engine.ts'
import type { HttpRequest } from '../oauth/http-messages.ts'
import { AuthorityRules, type AuthorityFailure, type AuthorityRule } from '../oauth/authority-rule.ts'
import { pathsOf, type AuthoritySettings } from '../oauth/authority-settings.ts'
import type { DeviceLogin } from '../oauth/device-logins.ts'
import { SubmissionGuard } from '../oauth/submission-guard.ts'
import { serveWeb, type HostIdentity, type PolicyAnswer } from '../remote/policy-host.ts'
import type { RemoteEvent } from '../remote/remote-events.ts'
import { toDuration, type Time } from '../options/time.ts'
import type { OutsideResult } from '../virtual/outside-calls.ts'

/** A request that the authority answered. */
export interface AuthorityRequest extends AnsweredRequest {
  /** Seconds since the start. */
  readonly at: number
}

/** Requests that a failure concerns. */
export interface FailureTerms {
  /** The next requests only. */
  readonly first?: number
  /** Requests in a time from now. */
  readonly for?: Time
  /** Requests with this `grant_type`. */
  readonly grant?: string
  /** Requests of this client. */
  readonly client?: string
}

export interface AuthorityDeps {
  readonly clock: MachineClock
  readonly startedAt: WallTime
  /** Time on the monotonic clock from which the times of rules count. */
  readonly beganAt: Duration
  readonly seed: Uint8Array
  /** Origin of the endpoint URLs; the host when absent. */
  readonly origin?: string | undefined
  readonly identityOf: (host: string) => HostIdentity
  readonly rules: readonly AuthorityRule[]
  readonly report: (event: RemoteEvent) => void
  /** Makes a mail server require the tokens. */
  readonly protect: (host: string, identity: HostIdentity, guard: SubmissionGuard) => void
  /** Runs code that may call a function of the test. */
  readonly run: <T>(call: () => T) => Promise<OutsideResult<T>>
}

/** A simulated authorization server. Methods that add failures return it, so that they can be chained. */
export class Authority {
  readonly #settings: AuthoritySettings & { readonly host: string }
  readonly #deps: AuthorityDeps
  readonly #engine: AuthorityEngine
  readonly #rules: AuthorityRules
  readonly #requests: AuthorityRequest[] = []
  readonly #identity: HostIdentity

  /** @internal Use `world.authority`. */
  constructor(options: AuthorityOptions, deps: AuthorityDeps) {
    this.#settings = authoritySettings(options, deps.origin)
    this.#deps = deps
    this.#identity = deps.identityOf(this.#settings.host)
    this.#rules = new AuthorityRules(deps.rules)
    const { seed, startedAt } = deps
    this.#engine = new AuthorityEngine({
      settings: this.#settings,
      rules: this.#rules,
      script: scriptOf(options.failures),
      seed,
      startedAt,
    })
  }

  /** Host name of the authority. */
  get host(): string {
    return this.#settings.host
  }

  /** Address for tokens. */
  get tokenUrl(): string {
    return `${this.#settings.origin}${pathsOf(this.#settings).token}`
  }

  /** Address for device codes (RFC 8628 §3.1). */
  get deviceUrl(): string {
    return `${this.#settings.origin}${pathsOf(this.#settings).device}`
  }

  /** Public key (PEM, Ed25519) that verifies the access tokens. */
  get publicKey(): string {
    return this.#engine.endpoint.tokens.publicKey.export({ type: 'spki', format: 'pem' }).toString()
  }

  /**
   * Lets a mail server take mail only after a login with a token of this authority, inside TLS: with the replies of Exchange Online, or of
   * Gmail. Another call changes the mailboxes and their rights.
   */
  protects(host: string, options: ProtectionOptions = {}): this {
    requireDomain('protects', host)
    const guard = new SubmissionGuard(guardSettings(options, this.#settings.provider), this.#settings, this.#engine.endpoint.tokens)
    const name = host.toLowerCase()
    this.#deps.protect(name, this.#deps.identityOf(name), guard)
    return this
  }

  // --- failures

  /** Lets requests fail: all requests until `recovers`, or the requests that `terms` select. */
  fails(failure: AuthorityFailure, terms: FailureTerms = {}): this {
    requireFailure('fails', failure)
    requireKnownOptions('fails', terms, ['first', 'for', 'grant', 'client'])
    if (failure === 'down') return this.#add('is down', { fails: failure, ...this.#lasting(terms.for) })
    const { first, grant, client } = terms
    return this.#add(`fails ${failure}`, { fails: failure, first, grant, client, ...this.#lasting(terms.for) })
  }

  /** Delays answers: all answers until `recovers`, or the answers to the requests that `terms` select. */
  isSlow(delay: Time, terms: FailureTerms = {}): this {
    requireKnownOptions('isSlow', terms, ['first', 'for', 'grant', 'client'])
    const { first, grant, client } = terms
    return this.#add('is slow', { delay: toDuration(delay), first, grant, client, ...this.#lasting(terms.for) })
  }

  /** Refuses connections until `recovers`. */
  isDown(): this {
    return this.fails('down')
  }

  /** Refuses connections for a time from now. */
  isDownFor(time: Time): this {
    return this.fails('down', { for: time })
  }

  /** Ends all failures, including the failures of a script. */
  recovers(): this {
    this.#rules.clear()
    return this
  }

  // --- logins of people

  /** Completes the login of a person. Returns its refresh token. */
  logIn(client: string, user: string): string {
    if (!this.#settings.clients.has(client))
      throw new TypeError(`logIn expects one of the clients ${[...this.#settings.clients.keys()].join(', ')}, got "${client}"`)
    return this.#engine.endpoint.begin(client, user, this.#deps.clock.now())
  }

  /** Ends the logins of a person, as a change of the password does. */
  revoke(user: string): this {
    this.#engine.endpoint.logins.revoke(user)
    return this
  }

  /** Logins that devices have begun, oldest first. */
  deviceLogins(): readonly DeviceLogin[] {
    return this.#engine.endpoint.devices.list()
  }

  /** Approves the login of a device as a person does on the page of the authority. */
  approve(userCode: string, user: string): this {
    return this.#decide(userCode, user)
  }

  /** Denies the login of a device. */
  deny(userCode: string): this {
    return this.#decide(userCode, null)
  }

  // --- results

  /** Requests so far, those that failed included. */
  requests(): readonly AuthorityRequest[] {
    return this.#requests
  }

  /** Secrets, codes and tokens that were sent so far, in both directions: none of them belongs into a log. */
  secrets(): readonly string[] {
    const SECRET = ['client_secret', 'client_assertion', 'assertion', 'refresh_token', 'device_code']
    const sent = this.#requests.flatMap(({ form }) => SECRET.map((name) => form[name] ?? ''))
    const answered = this.#requests.flatMap(({ answer }) =>
      [...(answer ?? '').matchAll(/"(?:access_token|refresh_token|device_code)":"([^"]+)"/g)].map((match) => match[1] ?? ''),
    )
    return [...new Set([...sent, ...answered])].filter((secret) => secret !== '')
  }

  // --- the web server

  /** True while connections are refused. Counts a use of the rule. @internal */
  isRefusing(): boolean {
    return this.#rules.decide({ age: this.#age() }, 'connection') !== undefined
  }

  /** Serves one connection. @internal */
  serve(socket: Socket): void {
    serveWeb(socket, this.#identity, ({ method, path, type, body }) =>
      this.#respond({ method, path: path.split('?', 1)[0] ?? '', type, body: body.toString('utf8') }),
    )
  }

  async #respond(asked: HttpRequest): Promise<PolicyAnswer | 'close' | null> {
    const { clock, run, startedAt } = this.#deps
    const now = clock.now()
    const result = await run(() => this.#engine.answer(asked, now, this.#age()))
    if (result === 'failed') return { status: 500, body: '' }
    const { answer, delay, closes, request } = result.value
    if (request !== undefined) this.#note({ ...request, at: (now - startedAt) / 1000 })
    if (delay > 0) await sleep(clock, delay)
    return closes ? 'close' : answer
  }

  #note(request: AuthorityRequest): void {
    this.#requests.push(request)
    const { grant, client, status, error, rule } = request
    this.#deps.report({ event: 'authority', host: this.#settings.host, grant, oauth_client: client, status, error, rule })
  }

  #decide(userCode: string, user: string | null): this {
    if (this.#engine.endpoint.devices.decide(userCode, user, this.#deps.clock.now())) return this
    throw new Error(`no device waits for the code ${userCode}: it is unknown, decided or past its end; see deviceLogins()`)
  }

  #add(name: string, rule: Omit<AuthorityRule, 'name'>): this {
    this.#rules.add({ name, ...rule })
    return this
  }

  #lasting(time: Time | undefined): { readonly until?: Duration } {
    return time === undefined ? {} : { until: this.#age() + toDuration(time) }
  }

  #age(): Duration {
    return this.#deps.clock.monotonic() - this.#deps.beganAt
  }
}

/** The option `failures` as a function. */
function scriptOf(
  failures: AuthorityFailures | undefined,
): ((request: ScriptedRequest) => AuthorityFailure | null | undefined) | undefined {
  if (failures === undefined) return undefined
  if (!Array.isArray(failures)) {
    requireFunction('failures of authority', failures)
    const name = failures as Exclude<AuthorityFailures, readonly unknown[]>
    return (request) => {
      const failure = name(request)
      if (failure !== null && failure !== undefined) requireFailure('the function failures of authority', failure)
      return failure
    }
  }
  const left = [...(failures as readonly (AuthorityFailure | null)[])]
  for (const failure of left) if (failure !== null) requireFailure('failures of authority', failure)
  return () => left.shift()
}
