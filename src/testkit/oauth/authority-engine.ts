/**
 * A simulated authorization server without network and clock: a request and an instant give an answer. Requests that a rule acts on get the
 * failure that it names.
 */
import { createHmac, createPrivateKey } from 'node:crypto'
import { SECOND, type Duration, type WallTime } from '../../system/clock.ts'
import { IssuedTokens } from './issued-tokens.ts'
import { FAILURES, type AuthorityFailure, type AuthorityRule, type AuthorityRules, type Effect } from './authority-rule.ts'
import { pathsOf, type AuthoritySettings } from './authority-settings.ts'
import { devicePage } from './device-page.ts'
import type { HttpAnswer, HttpRequest } from './http-messages.ts'
import { refusal, type JsonAnswer } from './refusal.ts'
import { TokenEndpoint } from './token-endpoint.ts'

/** A request with its answer. The form has the secrets and tokens that the client sent: a test may read them. */
export interface AnsweredRequest {
  readonly path: string
  /** `grant_type`; empty for a request of a device code. */
  readonly grant: string
  readonly client: string
  readonly form: Readonly<Record<string, string>>
  /** Null when the client gets no answer. */
  readonly status: number | null
  /** `error` of the answer; absent for a token. */
  readonly error?: string | undefined
  /** Name of the rule that acted. */
  readonly rule?: string | undefined
  /** Body of the answer, with the tokens; null without an answer. */
  readonly answer: string | null
}

/** A request as a script of failures sees it. */
export type ScriptedRequest = Pick<AnsweredRequest, 'path' | 'grant' | 'client' | 'form'>

export interface Answered {
  /** The answer; null when the connection is closed or stays open without one. */
  readonly answer: HttpAnswer | null
  /** Pause before the answer, or before the connection is closed. */
  readonly delay: Duration
  readonly closes: boolean
  /** Absent for a request to another address than the token and device endpoints. */
  readonly request?: AnsweredRequest | undefined
}

interface EngineDeps {
  readonly settings: AuthoritySettings
  readonly rules: AuthorityRules
  /** Names the failure of a request, before the rules are asked. */
  readonly script?: ((request: ScriptedRequest) => AuthorityFailure | null | undefined) | undefined
  /** From 32 octets on: all keys and texts derive from them. */
  readonly seed: Uint8Array
  /** Time of the start. */
  readonly startedAt: WallTime
}

const JSON_TYPE = 'application/json; charset=utf-8'

export class AuthorityEngine {
  readonly endpoint: TokenEndpoint
  readonly #settings: AuthoritySettings
  readonly #rules: AuthorityRules
  readonly #script: EngineDeps['script']
  readonly #seed: Uint8Array
  #texts = 0

  constructor({ settings, rules, script, seed, startedAt }: EngineDeps) {
    this.#script = script
    this.#settings = settings
    this.#rules = rules
    this.#seed = seed
    const tokens = new IssuedTokens(settings, signingKey(seed))
    this.endpoint = new TokenEndpoint(settings, tokens, (kind) => this.#newText(kind), startedAt)
  }

  /** Answers a request that arrives at `now`, `age` after the start. */
  answer(request: HttpRequest, now: WallTime, age: Duration): Answered {
    const { path, method, body } = request
    const paths = pathsOf(this.#settings)
    if (path === paths.page) return atOnce(devicePage(request, (code, user) => this.endpoint.devices.decide(code, user, now)))
    if (path === '/discovery/v2.0/keys') return atOnce(asHttp(this.#keys()))
    const isToken = samePath(path, paths.token)
    if (!isToken && !samePath(path, paths.device)) return this.#elsewhere(request, now)
    if (method !== 'POST') return atOnce({ status: 405, type: 'text/plain', body: 'use POST\n', headers: { allow: 'POST' } })
    const form = new URLSearchParams(body)
    const grant = form.get('grant_type') ?? ''
    const client = form.get('client_id') ?? ''
    const asked = { path, grant, client, form: Object.fromEntries(form) }
    const fails = this.#script?.(asked) ?? undefined
    const rule = fails === undefined ? this.#rules.decide({ age, grant, client }, 'request') : { name: 'failures', fails }
    const said = this.#scripted(rule, isToken, form, now)
    const answer = 'kind' in said ? null : said
    return {
      answer,
      delay: rule?.delay ?? 0,
      closes: 'kind' in said && said.closes,
      request: { ...asked, status: answer?.status ?? null, error: errorOf(answer), rule: rule?.name, answer: answer?.body ?? null },
    }
  }

  #scripted(
    rule: AuthorityRule | undefined,
    isToken: boolean,
    form: URLSearchParams,
    now: WallTime,
  ): HttpAnswer | Extract<Effect, { kind: 'none' }> {
    const effect: Effect | undefined = rule?.fails === undefined ? undefined : FAILURES[rule.fails]
    switch (effect?.kind) {
      case 'none':
        return effect
      case 'down':
        return { kind: 'none', closes: true }
      case 'refused':
        return asHttp(refusal(effect.cause, this.#settings.provider, now))
      case 'status': {
        const { status, body, retryAfter } = effect
        const headers = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter / SECOND) }
        return { status, body, type: body.startsWith('{') ? JSON_TYPE : 'text/html', headers }
      }
      case 'falsified':
      case undefined:
        if (!isToken) return asHttp(this.endpoint.device(form, now))
        return asHttp(this.endpoint.token(form, now, effect?.kind === 'falsified' ? effect.how : {}))
    }
  }

  /** Another tenant is an error of Microsoft's; any other address does not exist. */
  #elsewhere({ path }: HttpRequest, now: WallTime): Answered {
    const isTenant = this.#settings.provider === 'microsoft' && /^\/[^/]+\/oauth2\/v2\.0\/(?:token|devicecode)$/.test(path)
    if (isTenant) return atOnce(asHttp(refusal('unknown tenant', 'microsoft', now)))
    return atOnce({ status: 404, type: 'text/plain', body: 'there is nothing at this address\n' })
  }

  #keys(): JsonAnswer {
    const { publicKey, keyId } = this.endpoint.tokens
    return { status: 200, body: { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: keyId, use: 'sig', alg: 'EdDSA' }] } }
  }

  #newText(kind: 'refresh' | 'device' | 'user'): string {
    const octets = createHmac('sha256', this.#seed)
      .update(`${kind} ${++this.#texts}`)
      .digest()
    if (kind === 'user')
      return [...octets.subarray(0, 8)]
        .map((octet) => LETTERS.charAt(octet % LETTERS.length))
        .join('')
        .replace(/^.{4}/, '$&-')
    return `${kind === 'refresh' ? '1.' : 'D'}${octets.toString('base64url')}`
  }
}

/** Letters of user codes: no vowels, no letters that look alike (RFC 8628 §6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'

const atOnce = (answer: HttpAnswer): Answered => ({ answer, delay: 0, closes: false })

const asHttp = ({ status, body }: JsonAnswer): HttpAnswer => ({
  status,
  type: JSON_TYPE,
  body: JSON.stringify(body),
  headers: { 'cache-control': 'no-store', pragma: 'no-cache' },
})

/** Tenants are compared without case, as in a domain. */
const samePath = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

function errorOf(answer: HttpAnswer | null): string | undefined {
  if (answer === null || answer.status === 200) return undefined
  return /"error":"([\w]+)"/.exec(answer.body)?.[1] ?? String(answer.status)
}

/** PKCS #8 of an Ed25519 key before its 32 octets (RFC 8410 §7). */
const ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

function signingKey(seed: Uint8Array) {
  const secret = createHmac('sha256', seed).update('signing key').digest()
  return createPrivateKey({ key: Buffer.concat([ED25519, secret]), format: 'der', type: 'pkcs8' })
}
